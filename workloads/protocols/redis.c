// SPDX-License-Identifier: MIT
#include "workloads/protocols/redis.h"

#include <string.h>

#include "workloads/protocols/encode.h"
#include "workloads/protocols/login.h"
#include "workloads/protocols/redis_cluster.h"
#include "workloads/protocols/reply_parser.h"

static const uint64_t bulk_bytes_limit = 512u << 20; // proto-max-bulk-len
static const uint64_t elements_limit = 1u << 30;     // of one aggregate; below 2^32 in Redis

enum {
    HEADER_BYTES_MAX = 192, // of the longest request, without keys and value
    SCORES = 100,
    PREFIXES = 6, // of keys, with none
};

static const struct {
    struct text command, prefix;
    unsigned words;   // in all
    struct text tail; // encoded words behind the key, before a value
} commands[REDIS_OPERATIONS] = {
    [REDIS_GET] = {TEXT("$3\r\nGET\r\n"), TEXT(""), 2, TEXT("")},
    [REDIS_SET] = {TEXT("$3\r\nSET\r\n"), TEXT(""), 3, TEXT("")},
    [REDIS_INCR] = {TEXT("$4\r\nINCR\r\n"), TEXT("counter:"), 2, TEXT("")},
    [REDIS_LPUSH] = {TEXT("$5\r\nLPUSH\r\n"), TEXT("list:"), 3, TEXT("")},
    [REDIS_LPOP] = {TEXT("$4\r\nLPOP\r\n"), TEXT("list:"), 2, TEXT("")},
    [REDIS_LRANGE] = {TEXT("$6\r\nLRANGE\r\n"), TEXT("list:"), 4, TEXT("$1\r\n0\r\n$1\r\n9\r\n")},
    [REDIS_HSET] = {TEXT("$4\r\nHSET\r\n"), TEXT("hash:"), 4, TEXT("$5\r\nfield\r\n")},
    [REDIS_HGET] = {TEXT("$4\r\nHGET\r\n"), TEXT("hash:"), 3, TEXT("$5\r\nfield\r\n")},
    [REDIS_ZADD] = {TEXT("$4\r\nZADD\r\n"), TEXT("zset:"), 4, TEXT("")},
    [REDIS_ZRANGE] = {TEXT("$6\r\nZRANGE\r\n"), TEXT("zset:"), 4, TEXT("$1\r\n0\r\n$1\r\n9\r\n")},
    [REDIS_XADD] = {TEXT("$4\r\nXADD\r\n"), TEXT("stream:"), 8,
                    TEXT("$6\r\nMAXLEN\r\n$1\r\n~\r\n$4\r\n1000\r\n$1\r\n*\r\n$5\r\nfield\r\n")},
    [REDIS_XRANGE] = {TEXT("$6\r\nXRANGE\r\n"), TEXT("stream:"), 6,
                      TEXT("$1\r\n-\r\n$1\r\n+\r\n$5\r\nCOUNT\r\n$2\r\n10\r\n")},
    [REDIS_TRANSACTION] = {TEXT("$3\r\nSET\r\n"), TEXT(""), 3,
                           TEXT("")}, // what it ends with, but for EXEC
    [REDIS_MULTIGET] = {TEXT("$4\r\nMGET\r\n"), TEXT(""), 2, TEXT("")},
    [REDIS_DELETE] = {TEXT("$3\r\nDEL\r\n"), TEXT(""), 2, TEXT("")},
    [REDIS_SCRIPT] = {TEXT("$7\r\nEVALSHA\r\n$40\r\n" REDIS_SCRIPT_SHA "\r\n$1\r\n1\r\n"), TEXT(""),
                      5, TEXT("")},
};
static const struct text eval = TEXT("$4\r\nEVAL\r\n$85\r\n" REDIS_SCRIPT_TEXT "\r\n$1\r\n1\r\n");
_Static_assert(sizeof REDIS_SCRIPT_TEXT - 1 == 85, "its length is as said");
_Static_assert(REDIS_RANGE == 10, "the ranges above end at 9, or count 10");

static const struct protocol_operation operations[REDIS_OPERATIONS] = {
    [REDIS_GET] = {.name = "get", .weight = 90, .returns_value = true},
    [REDIS_SET] = {.name = "set", .weight = 10, .carries_value = true},
    [REDIS_INCR] = {.name = "incr"},
    [REDIS_LPUSH] = {.name = "lpush", .carries_value = true},
    [REDIS_LPOP] = {.name = "lpop"},
    [REDIS_LRANGE] = {.name = "lrange"},
    [REDIS_HSET] = {.name = "hset", .carries_value = true},
    [REDIS_HGET] = {.name = "hget", .returns_value = true},
    [REDIS_ZADD] = {.name = "zadd"},
    [REDIS_ZRANGE] = {.name = "zrange"},
    [REDIS_XADD] = {.name = "xadd", .carries_value = true},
    [REDIS_XRANGE] = {.name = "xrange"},
    [REDIS_SCRIPT] = {.name = "script",
                      .carries_value = true,
                      .returns_value = true,
                      .named = true},
    [REDIS_TRANSACTION] = {.name = "transaction",
                           .carries_value = true,
                           .returns_value = true,
                           .parts = 3}, // OK and twice QUEUED, in front of EXEC's reply
    [REDIS_MULTIGET] = {.name = "multiget", .many_keys = true},
    [REDIS_DELETE] = {.name = "delete"},
};

static size_t request_bytes_max(size_t key_bytes, size_t value_bytes)
{
    // A transaction has a key twice, and a value; a DEL has it once for each prefix at most.
    const size_t others = (PREFIXES - 2) * key_bytes;
    return 2 * key_bytes + (value_bytes > others ? value_bytes : others) + HEADER_BYTES_MAX;
}

static const struct text none = TEXT("");

static char *append_word(char *at, struct text prefix, const char *bytes, size_t count)
{
    *at++ = '$';
    at = append_text(append_number(at, prefix.count + count), "\r\n");
    if (prefix.count)
        at = append_bytes(at, prefix.bytes, prefix.count);
    return append_text(append_bytes(at, bytes, count), "\r\n");
}

// The operations that a recorded key has with prefixes of its own, besides the one that removes it:
// one of each prefix. None: it is a string, for all that is known.
static unsigned named_operations(const struct request *request)
{
    unsigned named = 0;
    for (unsigned i = 0; i < REDIS_DELETE; i++) {
        bool again = !(request->key_operations & 1u << i);
        for (unsigned before = 0; before < i && !again; before++)
            again = named & 1u << before &&
                    strcmp(commands[before].prefix.bytes, commands[i].prefix.bytes) == 0;
        named |= again ? 0 : 1u << i;
    }
    return named ? named : 1u << REDIS_DELETE;
}

// A key that holds a list is called otherwise than one that holds a string.
static size_t encode_delete(const struct request *request, char *out)
{
    const unsigned named = named_operations(request);
    char *at = out;
    *at++ = '*';
    at = append_number(at, 1 + (unsigned)__builtin_popcount(named));
    at = append_text(at, "\r\n$3\r\nDEL\r\n");
    for (unsigned i = 0; i < REDIS_OPERATIONS; i++)
        if (named & 1u << i)
            at = append_word(at, commands[i].prefix, request->key, request->key_bytes);
    return (size_t)(at - out);
}

// Without a key, and with an answer of its own.
static size_t encode_asking(char *out, size_t out_bytes)
{
    static const char asking[] = "*1\r\n$6\r\nASKING\r\n";
    if (out_bytes < sizeof asking - 1)
        return 0;
    memcpy(out, asking, sizeof asking - 1);
    return sizeof asking - 1;
}

static size_t redis_encode(const struct request *request, char *out, size_t out_bytes);

// A transaction of other commands than the usual two.
static size_t encode_commands(const struct request *request, char *out, size_t out_bytes)
{
    static const char multi[] = "*1\r\n$5\r\nMULTI\r\n", exec[] = "*1\r\n$4\r\nEXEC\r\n";
    enum { MULTI_BYTES = sizeof multi - 1, EXEC_BYTES = sizeof exec - 1 };
    if (out_bytes < MULTI_BYTES + EXEC_BYTES)
        return 0;
    memcpy(out, multi, MULTI_BYTES);
    size_t at = MULTI_BYTES;
    for (unsigned i = 0; i < request->command_count; i++) {
        const size_t bytes =
            redis_encode(&request->commands[i], out + at, out_bytes - EXEC_BYTES - at);
        if (bytes == 0)
            return 0;
        at += bytes;
    }
    memcpy(out + at, exec, EXEC_BYTES);
    return at + EXEC_BYTES;
}

static size_t redis_encode(const struct request *request, char *out, size_t out_bytes)
{
    unsigned operation = request->operation;
    if (operation == REDIS_ASKING)
        return encode_asking(out, out_bytes);
    if (request->commands)
        return encode_commands(request, out, out_bytes);
    bool value = operations[operation].carries_value;
    if (request_bytes_max(request_keys_bytes(request), value ? request->value_bytes : 0) >
        out_bytes)
        return 0;
    if (operation == REDIS_DELETE)
        return encode_delete(request, out);
    if (operation == REDIS_GET) { // as most are: without asking what else there may be
        char *key = append_text(out, "*2\r\n$3\r\nGET\r\n");
        return (size_t)(append_word(key, none, request->key, request->key_bytes) - out);
    }
    char *at = out, number[NUMBER_DIGITS_MAX];
    bool transaction = operation == REDIS_TRANSACTION;
    bool expires = (operation == REDIS_SET || transaction) && request->expiry_s;
    if (transaction) {
        at = append_text(at, "*1\r\n$5\r\nMULTI\r\n*2\r\n$3\r\nGET\r\n");
        at = append_word(at, none, request->key, request->key_bytes);
    }
    *at++ = '*';
    at = append_number(at, commands[operation].words + (expires ? 2 : 0) + request->more_key_count);
    const struct text *command = request->spelled_out ? &eval : &commands[operation].command,
                      *tail = &commands[operation].tail;
    at = append_bytes(append_text(at, "\r\n"), command->bytes, command->count);
    at = append_word(at, commands[operation].prefix, request->key, request->key_bytes);
    const char *more = request->more_keys;
    for (unsigned i = 0; i < request->more_key_count; i++) {
        size_t key_bytes;
        const char *key = request_next_key(&more, &key_bytes);
        at = append_word(at, none, key, key_bytes);
    }
    at = append_bytes(at, tail->bytes, tail->count);
    if (value)
        at = append_word(at, none, request->value, request->value_bytes);
    if (expires) {
        size_t bytes = (size_t)(append_number(number, request->expiry_s) - number);
        at = append_word(append_text(at, "$2\r\nEX\r\n"), none, number, bytes);
    }
    if (operation == REDIS_ZADD) {
        size_t bytes = (size_t)(append_number(number, request->number % SCORES) - number);
        at = append_word(at, none, number, bytes);
        at = append_word(at, none, number, bytes);
    }
    if (transaction)
        at = append_text(at, "*1\r\n$4\r\nEXEC\r\n");
    return (size_t)(at - out);
}

// AUTH with a user is Redis 6's; without, it is the password of the user "default".
static int redis_log_in(const struct login *login, struct login_words *words, struct error *err)
{
    char number[NUMBER_DIGITS_MAX], *at = words->bytes;
    (void)err;
    if (login->user[0] || login->password[0]) {
        at = append_text(at, login->user[0] ? "*3\r\n$4\r\nAUTH\r\n" : "*2\r\n$4\r\nAUTH\r\n");
        if (login->user[0])
            at = append_word(at, none, login->user, strlen(login->user));
        at = append_word(at, none, login->password, strlen(login->password));
        words->answers++;
    }
    if (login->database) {
        at = append_text(at, "*2\r\n$6\r\nSELECT\r\n");
        at = append_word(at, none, number,
                         (size_t)(append_number(number, login->database) - number));
        words->answers++;
    }
    words->count = (size_t)(at - words->bytes);
    return 0;
}
_Static_assert(LOGIN_USER_BYTES + LOGIN_PASSWORD_BYTES + 128 < LOGIN_WORDS_BYTES, "they fit");

static size_t redis_encode_resp3(const struct request *request, char *out, size_t out_bytes)
{
    static const char hello[] = "*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n";
    enum { HELLO_BYTES = sizeof hello - 1 };
    if (request->number > 0)
        return redis_encode(request, out, out_bytes);
    if (out_bytes < HELLO_BYTES)
        return 0;
    size_t bytes = redis_encode(request, out + HELLO_BYTES, out_bytes - HELLO_BYTES);
    if (bytes)
        memcpy(out, hello, HELLO_BYTES);
    return bytes ? bytes + HELLO_BYTES : 0;
}

static size_t request_bytes_max_resp3(size_t key_bytes, size_t value_bytes)
{
    return request_bytes_max(key_bytes, value_bytes) + 64;
}

static unsigned redis_slot(const struct request *request)
{
    char whole[sizeof "counter:" + WORKLOAD_KEY_BYTES_MAX];
    const unsigned operation = request->operation == REDIS_DELETE
                                   ? (unsigned)__builtin_ctz(named_operations(request))
                                   : request->operation;
    const struct text prefix = commands[operation].prefix;
    memcpy(whole, prefix.bytes, prefix.count);
    memcpy(whole + prefix.count, request->key, request->key_bytes);
    return cluster_slot(whole, prefix.count + request->key_bytes);
}

// --- replies -------------------------------------------------------------------------------------

// The state of the reply under way. Its kind is that of its outermost element.
enum state {
    STATE_BEGIN,  // nothing of it seen
    STATE_WITHIN, // its kind is known
    STATE_ASIDE,  // within an attribute or a push, which precede a reply and are not part of it
};

// Redis names the error by its first word; these are the server's, not the request's.
static enum reply_kind kind_of_error(const struct reply_line *line)
{
    static const char *const server_side[] = {
        "OOM ",
        "LOADING ",
        "BUSY ",
        "MISCONF ",
        "READONLY ",
        "TRYAGAIN ",
        "MASTERDOWN ",
        "NOREPLICAS ",
        "CLUSTERDOWN ",
        "UNBLOCKED ",
        "ERR max number of clients",
    };
    struct reply_line text = {.bytes = line->bytes + 1, .count = line->count - 1};
    for (size_t i = 0; i < sizeof server_side / sizeof *server_side; i++)
        if (line_starts_with(&text, server_side[i]))
            return REPLY_SERVER_ERROR;
    return REPLY_CLIENT_ERROR;
}

// Of the reply that EXEC has, by the parts in front of it.
static bool is_of_transaction(const struct reply_parser *parser)
{
    return parser->parts_past && !parser->parts_due;
}

// The kind becomes the reply's when this is its outermost element, or, within EXEC's reply, an
// error, which one of its commands had, or nothing found. Nil in EXEC's place: it was aborted.
static void set_kind(struct reply_parser *parser, enum reply_kind kind)
{
    if (parser->state == STATE_BEGIN) {
        bool aborted = kind == REPLY_MISS && is_of_transaction(parser);
        parser->kind = (uint8_t)(aborted ? REPLY_CLIENT_ERROR : kind);
        parser->state = STATE_WITHIN;
    } else if (parser->state == STATE_WITHIN && is_of_transaction(parser) &&
               (kind == REPLY_MISS || reply_is_fault(kind)) && !reply_is_fault(parser->kind)) {
        parser->kind = (uint8_t)kind;
    }
}

// "<type><length>". Returns false if it is not a number; -1 is returned as absent.
static bool parse_length(const struct reply_line *line, uint64_t limit, uint64_t *length,
                         bool *absent)
{
    const char *at = line->bytes + 1, *end = line->bytes + line->count;
    *absent = line->count == 3 && at[0] == '-' && at[1] == '1';
    if (*absent)
        return true;
    return line_digits(&at, end, limit, length) && at == end;
}

// A string's length line. Returns REPLY_VALUE, or what is wrong with it.
static enum reply_kind judge_bulk(struct reply_parser *parser, const struct reply_line *line)
{
    uint64_t length = 0;
    bool absent;
    if (!parse_length(line, bulk_bytes_limit, &length, &absent))
        return REPLY_MALFORMED;
    if (absent) {
        set_kind(parser, REPLY_MISS);
        return REPLY_VALUE;
    }
    if (length > bulk_bytes_limit)
        return REPLY_OVERSIZED;
    set_kind(parser, line->bytes[0] == '!' ? REPLY_CLIENT_ERROR : REPLY_VALUE);
    if (parser->state == STATE_WITHIN)
        parser->value_bytes += length;
    parser->data_left = length + 2;
    return REPLY_VALUE;
}

static enum reply_kind judge_aggregate(struct reply_parser *parser, const struct reply_line *line)
{
    char type = line->bytes[0];
    uint64_t length = 0;
    bool absent;
    if (!parse_length(line, elements_limit, &length, &absent))
        return REPLY_MALFORMED;
    if (length > elements_limit)
        return REPLY_OVERSIZED;
    if (type == '>' || type == '|') {
        if (absent)
            return REPLY_MALFORMED;
        // Precedes a reply; an attribute may also precede an element within one.
        if (parser->state == STATE_BEGIN)
            parser->state = STATE_ASIDE;
        else
            parser->elements++; // it is none of those awaited
    } else {
        set_kind(parser, absent || length == 0 ? REPLY_MISS : REPLY_VALUE);
    }
    parser->elements += type == '%' || type == '|' ? 2 * length : length;
    return parser->elements >= UINT32_MAX * (uint64_t)16 ? REPLY_OVERSIZED : REPLY_VALUE;
}

static bool is_number_line(const struct reply_line *line)
{
    const char *at = line->bytes + 1, *end = line->bytes + line->count;
    uint64_t value;
    if (at < end && (*at == '-' || *at == '+'))
        at++;
    return line_digits(&at, end, UINT64_MAX - 1, &value) && at == end;
}

// Handles one element's line. Returns REPLY_VALUE when it is well formed, else what is wrong.
static enum reply_kind judge_element(struct reply_parser *parser, const struct reply_line *line)
{
    if (line->count == 0)
        return REPLY_MALFORMED;
    switch (line->bytes[0]) {
    case '+':
        set_kind(parser, REPLY_STORED);
        return REPLY_VALUE;
    case '-':
        set_kind(parser, kind_of_error(line));
        return REPLY_VALUE;
    case ':':
        set_kind(parser, REPLY_STORED);
        return is_number_line(line) ? REPLY_VALUE : REPLY_MALFORMED;
    case '(':
        set_kind(parser, REPLY_VALUE);
        return line->count > 1 ? REPLY_VALUE : REPLY_MALFORMED;
    case ',':
    case '#':
        set_kind(parser, REPLY_VALUE);
        return line->count > 1 ? REPLY_VALUE : REPLY_MALFORMED;
    case '_':
        set_kind(parser, REPLY_MISS);
        return line->count == 1 ? REPLY_VALUE : REPLY_MALFORMED;
    case '$':
    case '!':
    case '=':
        return judge_bulk(parser, line);
    case '*':
    case '%':
    case '~':
    case '>':
    case '|':
        return judge_aggregate(parser, line);
    default:
        return REPLY_MALFORMED;
    }
}

// An element ended.
static enum reply_progress end_element(struct reply_parser *parser)
{
    if (parser->elements) {
        parser->elements--;
        return REPLY_UNDER_WAY;
    }
    if (parser->state == STATE_ASIDE) {
        parser->state = STATE_BEGIN; // now the reply itself
        return REPLY_ASIDE;
    }
    return REPLY_ENDED;
}

static enum reply_progress redis_end_data(struct reply_parser *parser)
{
    enum reply_progress progress = end_element(parser);
    if (progress == REPLY_ENDED && parser->data_damaged)
        parser->kind = REPLY_MALFORMED;
    return progress;
}

// Lists a member of MGET's reply, of which nil says that there is no such key.
static enum reply_kind list_member(struct reply_parser *parser, const struct reply_line *line)
{
    const char type = line->bytes[0];
    const unsigned place = parser->list->told;
    if (place == parser->list->due)
        return REPLY_MALFORMED;
    parser->list->told++;
    if (type == '_' || (type == '$' && !parser->data_left))
        return REPLY_VALUE;
    return reply_list_value(parser, place, 0, type == '$' ? parser->data_left - 2 : UINT64_MAX);
}

static enum reply_progress redis_judge(struct reply_parser *parser, const struct reply_line *line)
{
    const bool is_member = parser->list && parser->state == STATE_WITHIN;
    enum reply_kind fault = line->too_long ? REPLY_OVERSIZED : judge_element(parser, line);
    if (fault == REPLY_VALUE && is_member)
        fault = list_member(parser, line);
    if (fault != REPLY_VALUE)
        return reply_end(parser, fault);
    return parser->data_left ? REPLY_UNDER_WAY : end_element(parser);
}

// A string that is there or not, and a set's OK.
static size_t redis_take_usual(const char *bytes, size_t count, struct reply *reply)
{
    enum { LENGTH_DIGITS = 9, OK_BYTES = 5 };
    const char *at = bytes + 1, *end = bytes + count;
    uint64_t length = 0;
    if (count < OK_BYTES)
        return 0;
    if (*bytes != '$' || *at == '-') {
        const bool absent = memcmp(bytes, "$-1\r\n", OK_BYTES) == 0;
        *reply = (struct reply){.kind = absent ? REPLY_MISS : REPLY_STORED};
        return absent || memcmp(bytes, "+OK\r\n", OK_BYTES) == 0 ? OK_BYTES : 0;
    }
    for (; at < end && at <= bytes + LENGTH_DIGITS && *at >= '0' && *at <= '9'; at++)
        length = length * 10 + (uint64_t)(*at - '0');
    if (at == bytes + 1 || (size_t)(end - at) < length + 4 || length > bulk_bytes_limit ||
        at[0] != '\r' || at[1] != '\n' || at[length + 2] != '\r' || at[length + 3] != '\n')
        return 0;
    *reply = (struct reply){.kind = REPLY_VALUE, .value_bytes = length};
    return (size_t)(at - bytes) + length + 4;
}

static bool redis_answers(unsigned operation, enum reply_kind kind)
{
    static const bool reads[REDIS_OPERATIONS] = {
        [REDIS_GET] = true,    [REDIS_LPOP] = true,        [REDIS_LRANGE] = true,
        [REDIS_HGET] = true,   [REDIS_ZRANGE] = true,      [REDIS_XRANGE] = true,
        [REDIS_SCRIPT] = true, [REDIS_TRANSACTION] = true, [REDIS_MULTIGET] = true,
    };
    switch (kind) {
    case REPLY_VALUE:
        return reads[operation] || operation == REDIS_XADD; // the entry's id
    case REPLY_MISS:
        return reads[operation];
    case REPLY_STORED:
        return !reads[operation] && operation != REDIS_XADD;
    default:
        return kind != REPLY_NOT_STORED; // an error can answer any operation
    }
}

// Whatever error it answers with (busy, still loading, no master, no more clients), it is what it
// is, and the load will quote it; one that wants a password answers nothing else.
#define REDIS_PROBE                                                                                \
    PROTOCOL_PROBE("*1\r\n$4\r\nPING\r\n"), .probe_answers = {"+PONG", "-"},                       \
                                            PROTOCOL_WANTS_LOGIN("-NOAUTH")

// maxclients, and protected-mode (Redis' networking.c, acceptCommonHandler and
// clientAcceptHandler).
#define REDIS_REFUSALS "-ERR max number of clients", "-DENIED "

const struct protocol redis_protocol = {
    .name = redis_name,
    .speaks = "RESP2",
    .replies = "nil and empty are misses; `OOM`, `LOADING`, `BUSY`, `MISCONF`, `READONLY`, … the "
               "server's errors, others the client's; a transaction that is aborted is an error",
    .operations = operations,
    .unnamed = "NOSCRIPT ",
    .operation_count = REDIS_OPERATIONS,
    .usual_port = 6379,
    REDIS_PROBE,
    .refusals = {REDIS_REFUSALS},
    .dataset = DATASET_REDIS,
    .request_bytes_max = request_bytes_max,
    .encode = redis_encode,
    .judge_line = redis_judge,
    .take_usual = redis_take_usual,
    .end_data = redis_end_data,
    .log_in = redis_log_in,
    .slot = redis_slot,
    .answers = redis_answers,
};

const struct protocol redis_resp3_protocol = {
    .name = redis_resp3_name,
    .speaks = "RESP3: `HELLO 3` goes in front of each connection's first request",
    .replies = "as of RESP2; pushes and attributes are passed over",
    .operations = operations,
    .unnamed = "NOSCRIPT ",
    .operation_count = REDIS_OPERATIONS,
    .usual_port = 6379,
    REDIS_PROBE,
    .refusals = {REDIS_REFUSALS},
    .dataset = DATASET_REDIS,
    .request_bytes_max = request_bytes_max_resp3,
    .encode = redis_encode_resp3,
    .judge_line = redis_judge,
    .take_usual = redis_take_usual,
    .end_data = redis_end_data,
    .log_in = redis_log_in,
    .greets = true,
    .slot = redis_slot,
    .answers = redis_answers,
};
