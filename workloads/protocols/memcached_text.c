// SPDX-License-Identifier: MIT
#include "workloads/protocols/memcached_text.h"

#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "workloads/protocols/encode.h"
#include "workloads/protocols/login.h"
#include "workloads/protocols/reply_parser.h"

enum { HEADER_BYTES_MAX = 64 }; // of "set  0 <expiry> <length>\r\n\r\n", without the key

static size_t request_bytes_max(size_t key_bytes, size_t value_bytes)
{
    return key_bytes + value_bytes + HEADER_BYTES_MAX;
}

static size_t text_encode(const struct request *request, char *out, size_t out_bytes)
{
    bool set = request->operation == WORKLOAD_SET;
    if (request_bytes_max(request_keys_bytes(request), set ? request->value_bytes : 0) > out_bytes)
        return 0;
    const bool removes = request->operation == MEMCACHED_DELETE;
    char *at = append_text(out, set ? "set " : removes ? "delete " : "get ");
    at = append_bytes(at, request->key, request->key_bytes);
    const char *more = request->more_keys;
    for (unsigned i = 0; i < request->more_key_count; i++) {
        size_t key_bytes;
        const char *key = request_next_key(&more, &key_bytes);
        at = append_bytes(append_text(at, " "), key, key_bytes);
    }
    if (set) {
        at = append_number(append_text(at, " 0 "), request->expiry_s);
        at = append_number(append_text(at, " "), request->value_bytes);
        at = append_text(at, "\r\n");
        at = append_bytes(at, request->value, request->value_bytes);
    }
    at = append_text(at, "\r\n");
    return (size_t)(at - out);
}

// "VALUE <key> <flags> <bytes>[ <cas>]". Returns REPLY_VALUE with the length, or what is wrong.
static enum reply_kind parse_value_line(const struct reply_line *line, uint64_t *value_bytes,
                                        uint64_t *key_hash)
{
    const char *at = line->bytes + 6, *end = line->bytes + line->count;
    const char *space = memchr(at, ' ', (size_t)(end - at));
    uint64_t flags, cas;
    if (!space || space == at || space - at > WORKLOAD_KEY_BYTES_MAX)
        return REPLY_MALFORMED;
    *key_hash = hash_bytes(at, (size_t)(space - at));
    at = space + 1;
    if (!line_digits(&at, end, UINT32_MAX, &flags) || flags > UINT32_MAX || at == end ||
        *at++ != ' ')
        return REPLY_MALFORMED;
    if (!line_digits(&at, end, MEMCACHED_VALUE_BYTES_MAX, value_bytes))
        return REPLY_MALFORMED;
    if (*value_bytes > MEMCACHED_VALUE_BYTES_MAX)
        return REPLY_OVERSIZED;
    if (at < end && (*at++ != ' ' || !line_digits(&at, end, UINT64_MAX - 1, &cas)))
        return REPLY_MALFORMED;
    return at == end ? REPLY_VALUE : REPLY_MALFORMED;
}

enum reply_kind memcached_error_kind(const struct reply_line *line)
{
    // "ERROR Too many open connections" is no command's fault.
    if (line_starts_with(line, "SERVER_ERROR") || line_starts_with(line, "ERROR "))
        return REPLY_SERVER_ERROR;
    bool client = line_equals(line, "ERROR") || line_starts_with(line, "CLIENT_ERROR");
    return line->too_long ? REPLY_OVERSIZED : client ? REPLY_CLIENT_ERROR : REPLY_MALFORMED;
}

static enum reply_progress text_judge(struct reply_parser *parser, const struct reply_line *line)
{
    if (line_starts_with(line, "VALUE ")) {
        uint64_t bytes = 0;
        enum reply_kind kind = parse_value_line(line, &bytes, &parser->key_hash);
        if (kind == REPLY_VALUE && parser->list)
            kind = reply_list_value(parser, 0, parser->key_hash, bytes);
        else if (kind == REPLY_VALUE && parser->values) // a get asks for one key
            kind = REPLY_MALFORMED;
        if (kind != REPLY_VALUE)
            return reply_end(parser, kind);
        parser->data_left = bytes + 2; // its CR LF belongs to the protocol
        parser->value_bytes += bytes;
        parser->values = 1;
        return REPLY_UNDER_WAY;
    }
    if (line_equals(line, "END") && parser->list)
        parser->list->told = parser->list->due;
    if (line_equals(line, "END"))
        return reply_end(parser, parser->data_damaged ? REPLY_MALFORMED
                                 : parser->values     ? REPLY_VALUE
                                                      : REPLY_MISS);
    if (parser->values && !line->too_long)
        return reply_end(parser, REPLY_MALFORMED); // only END may follow a value
    if (line_equals(line, "STORED") || line_equals(line, "DELETED"))
        return reply_end(parser, REPLY_STORED);
    if (line_equals(line, "NOT_STORED") || line_equals(line, "NOT_FOUND"))
        return reply_end(parser, REPLY_NOT_STORED);
    return reply_end(parser, memcached_error_kind(line));
}

static enum reply_progress text_end_data(struct reply_parser *parser)
{
    (void)parser;
    return REPLY_UNDER_WAY; // to END
}

// A value that is there or not, and a set's answer.
static size_t text_take_usual(const char *bytes, size_t count, struct reply *reply)
{
    enum { LINE_BYTES = 320 }; // of "VALUE ...", with the longest key and numbers
    static const char stored[] = "STORED\r\n", end[] = "END\r\n", behind[] = "\r\nEND\r\n";
    enum { STORED_BYTES = sizeof stored - 1, END_BYTES = sizeof end - 1 };
    enum { BEHIND_BYTES = sizeof behind - 1 };
    const char *newline;
    if (count >= END_BYTES && memcmp(bytes, end, END_BYTES) == 0) {
        *reply = (struct reply){.kind = REPLY_MISS};
        return END_BYTES;
    }
    if (count >= STORED_BYTES && memcmp(bytes, stored, STORED_BYTES) == 0) {
        *reply = (struct reply){.kind = REPLY_STORED};
        return STORED_BYTES;
    }
    if (count < STORED_BYTES || memcmp(bytes, "VALUE ", 6) != 0 ||
        !(newline = memchr(bytes, '\n', count < LINE_BYTES ? count : LINE_BYTES)) ||
        newline[-1] != '\r')
        return 0;
    const struct reply_line line = {.bytes = bytes, .count = (size_t)(newline - 1 - bytes)};
    const size_t line_bytes = line.count + 2;
    *reply = (struct reply){.kind = REPLY_VALUE};
    if (parse_value_line(&line, &reply->value_bytes, &reply->key_hash) != REPLY_VALUE ||
        count - line_bytes < reply->value_bytes + BEHIND_BYTES ||
        memcmp(bytes + line_bytes + reply->value_bytes, behind, BEHIND_BYTES) != 0)
        return 0;
    return line_bytes + reply->value_bytes + BEHIND_BYTES;
}

static const struct protocol_operation operations[MEMCACHED_OPERATIONS] =
    MEMCACHED_OPERATIONS_WITH();

bool memcached_answers(unsigned operation, enum reply_kind kind)
{
    switch (kind) {
    case REPLY_VALUE:
    case REPLY_MISS:
        return operation == WORKLOAD_GET || operation == MEMCACHED_MULTIGET;
    case REPLY_STORED:
    case REPLY_NOT_STORED:
        return operation == WORKLOAD_SET || operation == MEMCACHED_DELETE;
    default:
        return true; // an error can answer any operation
    }
}

int memcached_check_login(const struct login *login, struct error *err)
{
    return login->user[0] && login->password[0]
               ? 0
               : error_set(err, ERROR_INPUT, "memcached wants both a user and a password");
}

// What memcached's -Y takes for a login: a set of whatever key.
int memcached_log_in(const struct login *login, struct login_words *words, struct error *err)
{
    static const char white[] = " \t\r\n";
    if (memcached_check_login(login, err) < 0)
        return -ERROR_INPUT;
    if (strpbrk(login->user, white) || strpbrk(login->password, white))
        return error_set(err, ERROR_INPUT,
                         "memcached's text protocols can say no user and no password with a blank "
                         "in it; memcached-binary can");
    char *at = append_text(words->bytes, "set login 0 0 ");
    at = append_number(at, strlen(login->user) + 1 + strlen(login->password));
    at = append_text(append_text(append_text(at, "\r\n"), login->user), " ");
    at = append_text(append_text(at, login->password), "\r\n");
    words->count = (size_t)(at - words->bytes);
    words->answers = 1;
    return 0;
}

const struct protocol memcached_text_protocol = {
    .name = memcached_text_name,
    .speaks = "memcached's text protocol",
    .replies = "`END` alone is a miss, `NOT_FOUND` a delete that is done; `NOT_STORED`, "
               "`SERVER_ERROR`, `CLIENT_ERROR`/`ERROR` by "
               "kind",
    .operations = operations,
    .operation_count = MEMCACHED_OPERATIONS,
    .usual_port = 11211,
    PROTOCOL_PROBE("version\r\n"),
    .probe_answers = {"VERSION", "ERROR"}, // the second: of servers that have no such command
    .refusals = {MEMCACHED_IS_FULL},
    MEMCACHED_WANTS_LOGIN,
    .dataset = DATASET_MEMCACHED,
    .over_udp = true,
    .request_bytes_max = request_bytes_max,
    .encode = text_encode,
    .judge_line = text_judge,
    .take_usual = text_take_usual,
    .end_data = text_end_data,
    .log_in = memcached_log_in,
    .answers = memcached_answers,
};
