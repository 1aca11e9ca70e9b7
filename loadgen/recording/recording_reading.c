// SPDX-License-Identifier: MIT
#include "loadgen/recording/recording_reading.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/hash.h"
#include "base/text.h"

enum { NUMBER_MOST = 64, REQUESTS_MOST = 1 << 28 };

static const enum column monitor[] = {COLUMN_TIME, COLUMN_OPERATION, COLUMN_KEY, COLUMN_KEY_SIZE,
                                      COLUMN_VALUE_SIZE};
enum {
    MONITOR_KEY = 2,
    MONITOR_KEY_SIZE,
    MONITOR_COLUMNS = sizeof monitor / sizeof *monitor,
};

// What others call operations, and what those are here.
static const char *const synonyms[][2] = {
    {"gets", "get"},      {"read", "get"},   {"add", "set"},     {"replace", "set"},
    {"cas", "set"},       {"append", "set"}, {"prepend", "set"}, {"write", "set"},
    {"update", "set"},    {"insert", "set"}, {"mg", "get"},      {"ms", "set"},
    {"mget", "get"},      {"md", "delete"},  {"del", "delete"},  {"unlink", "delete"},
    {"remove", "delete"},
};

int reading_wrong(const struct reading *reading, const char *what)
{
    return error_set(reading->err, ERROR_INPUT, "%s:%zu: what stands here %s", reading->path,
                     reading->line, what);
}

int reading_no_memory(const struct reading *reading)
{
    return error_set(reading->err, ERROR_FAILED, "%s: out of memory", reading->path);
}

bool piece_is(struct piece piece, const char *word)
{
    return piece.bytes == strlen(word) && strncasecmp(piece.at, word, piece.bytes) == 0;
}

bool piece_number(struct piece piece, double *number)
{
    char text[NUMBER_MOST + 1], *end;
    if (piece.bytes == 0 || piece.bytes > NUMBER_MOST)
        return false;
    memcpy(text, piece.at, piece.bytes);
    text[piece.bytes] = '\0';
    if (strspn(text, "+-.0123456789eE") != piece.bytes)
        return false;
    *number = strtod(text, &end);
    return *end == '\0';
}

void reading_set_columns(struct reading *reading, const enum column *columns, size_t count)
{
    memcpy(reading->columns, columns, count * sizeof *columns);
    for (size_t i = 0; i < count; i++)
        reading->has[columns[i]] = true;
    reading->column_count = count;
}

// --- a request -----------------------------------------------------------------------------------

static int take_time(struct reading *reading, struct piece piece, struct scheduled_request *request)
{
    static const double longest_s = 86400 * 7;
    double seconds;
    if (!piece_number(piece, &seconds))
        return reading_wrong(reading, "is no time in seconds");
    if (!(seconds >= reading->before))
        return reading_wrong(reading, "is before the one above it, or below 0");
    // A trace counts from when it likes; a list of times from the load's begin.
    if (reading->begin < 0)
        reading->begin = reading->column_count > 1 ? seconds : 0;
    if (!(seconds - reading->begin <= longest_s))
        return reading_wrong(reading, "is later than a week");
    for (size_t i = 0; i < piece.bytes; i++)
        reading->fractions |= piece.at[i] == '.' || piece.at[i] == 'e' || piece.at[i] == 'E';
    reading->before = seconds;
    request->offset_ns = (uint64_t)((seconds - reading->begin) * 1e9);
    return 0;
}

// False: the protocol has none like it.
static bool take_operation(const struct reading *reading, struct piece piece,
                           struct scheduled_request *request)
{
    const struct protocol *protocol = reading->workload->protocol;
    for (size_t i = 0; i < sizeof synonyms / sizeof *synonyms; i++)
        if (piece_is(piece, synonyms[i][0]) &&
            protocol_operation_find(protocol, synonyms[i][0]) < 0)
            piece = (struct piece){synonyms[i][1], strlen(synonyms[i][1])};
    for (unsigned i = 0; i < protocol->operation_count; i++)
        if (piece_is(piece, protocol->operations[i].name) && !protocol->operations[i].many_keys) {
            request->operation = (uint8_t)i;
            return true;
        }
    return false;
}

static void name_left_out(struct recording *recording, struct piece operation)
{
    enum { ELLIPSIS_BYTES = sizeof ", ..." };
    char word[32], clean[sizeof word];
    char *names = recording->left_out_names;
    snprintf(word, sizeof word, "%.*s",
             (int)(operation.bytes < sizeof word ? operation.bytes : sizeof word - 1),
             operation.at);
    if (!word[0]) // or it begins with a NUL
        snprintf(word, sizeof word, "command without a name");
    const size_t bytes = strlen(text_clean(word, false, clean, sizeof clean));
    for (const char *at = names; (at = strstr(at, clean)); at += bytes)
        if ((at == names || at[-1] == ' ') && (at[bytes] == '\0' || at[bytes] == ','))
            return;
    const size_t used = strlen(names);
    if (used + bytes + 2 + ELLIPSIS_BYTES < sizeof recording->left_out_names)
        text_append(names, sizeof recording->left_out_names, "%s%s", used ? ", " : "", clean);
    else if (used && names[used - 1] != '.')
        text_append(names, sizeof recording->left_out_names, ", ...");
}

static int take_key(struct reading *reading, struct piece piece, struct scheduled_request *request)
{
    if (piece.bytes == 0)
        return reading_wrong(reading, "has no key");
    const uint64_t hash = hash_bytes(piece.at, piece.bytes);
    const struct piece *keys = reading->keys.items;
    request->key =
        map_find(&reading->keys_map, hash, at,
                 keys[at].bytes == piece.bytes && memcmp(keys[at].at, piece.at, piece.bytes) == 0);
    if (request->key != MAP_NONE)
        return 0;
    if (reading->copies_keys) {
        char *copy = malloc(piece.bytes);
        if (!copy)
            return reading_no_memory(reading);
        piece.at = memcpy(copy, piece.at, piece.bytes);
    }
    const struct recorded_key key = {.value_bytes = RECORDED_UNKNOWN};
    request->key = (uint32_t)reading->keys.count;
    if (array_push(&reading->keys, piece) < 0) {
        if (reading->copies_keys)
            free((void *)(uintptr_t)piece.at);
        return reading_no_memory(reading);
    }
    if (array_push(&reading->recording->keys, key) < 0 ||
        map_add(&reading->keys_map, hash, request->key) < 0)
        return reading_no_memory(reading);
    return 0;
}

// The longest that is seen, in whole seconds: a get says 0. More than a month memcached takes for a
// date.
static uint32_t take_expiry(double seconds, uint32_t before)
{
    static const double most_s = 30 * 86400;
    const uint32_t whole = (uint32_t)ceil(seconds < most_s ? seconds : most_s);
    return whole > before ? whole : before;
}

// Of a value the largest that is seen: a get that found nothing says 0.
static int take_sizes(struct reading *reading, const struct piece *fields, uint32_t key)
{
    struct recorded_key *of = &reading->recording->keys.items[key];
    for (size_t i = 0; i < reading->column_count; i++) {
        const enum column column = reading->columns[i];
        double bytes;
        if (column != COLUMN_KEY_SIZE && column != COLUMN_VALUE_SIZE && column != COLUMN_EXPIRY)
            continue;
        if (column == COLUMN_EXPIRY && fields[i].bytes == 0)
            continue; // it says none
        if (reading->commands && fields[i].bytes == 0)
            continue; // the command says nothing of it
        if (!piece_number(fields[i], &bytes) || !(bytes >= 0 && bytes <= UINT32_MAX - 1))
            return reading_wrong(reading, column == COLUMN_EXPIRY
                                              ? "has an expiry that is no number of seconds"
                                              : "has a size that is no number of bytes");
        if (column == COLUMN_EXPIRY)
            of->expiry_s = take_expiry(bytes, of->expiry_s);
        else if (column == COLUMN_KEY_SIZE)
            of->key_bytes = (uint8_t)(bytes < 1                        ? 1
                                      : bytes < WORKLOAD_KEY_BYTES_MAX ? bytes
                                                                       : WORKLOAD_KEY_BYTES_MAX);
        else if (of->value_bytes == RECORDED_UNKNOWN || bytes > of->value_bytes)
            of->value_bytes =
                (uint32_t)(bytes < WORKLOAD_VALUE_BYTES_MAX ? bytes : WORKLOAD_VALUE_BYTES_MAX);
    }
    return 0;
}

static int add_request(struct reading *reading, const struct scheduled_request *request)
{
    struct recording *recording = reading->recording;
    if (recording->requests.count + recording->transactions.commands.count >= REQUESTS_MOST)
        return reading_wrong(reading, "is one request too many");
    int status = reading->within
                     ? array_push(&reading->within->commands,
                                  (struct recorded_command){request->key, request->operation})
                     : array_push(&recording->requests, *request);
    return status < 0 ? reading_no_memory(reading) : 0;
}

static void leave_out(struct reading *reading, struct piece what)
{
    if (reading->recording->left_out++ == 0)
        reading->left_out_line = reading->line;
    name_left_out(reading->recording, what);
}

int reading_take_request(struct reading *reading, const struct piece *fields)
{
    struct recording *recording = reading->recording;
    struct scheduled_request request = {0};
    const struct piece *operation = NULL, *key = NULL;
    int result = 0;
    for (size_t i = 0; i < reading->column_count && result == 0; i++) {
        operation = reading->columns[i] == COLUMN_OPERATION ? &fields[i] : operation;
        key = reading->columns[i] == COLUMN_KEY ? &fields[i] : key;
        if (reading->columns[i] == COLUMN_TIME)
            result = take_time(reading, fields[i], &request);
    }
    // A client may err, and send a get without a key, or mean the empty one, which Redis has: that
    // ends no replay of what it sent.
    static const char without[] = "command without a key";
    const bool keyless = reading->commands && key && key->bytes == 0;
    if (result == 0 && operation && (!take_operation(reading, *operation, &request) || keyless)) {
        const bool known = take_operation(reading, *operation, &request);
        leave_out(reading, known ? (struct piece){without, strlen(without)} : *operation);
        return 0;
    }
    if (result == 0 && key)
        result = take_key(reading, *key, &request);
    if (result == 0 && key)
        result = take_sizes(reading, fields, request.key);
    if (result == 0 && key && operation)
        recording->keys.items[request.key].operations |= (uint16_t)(1u << request.operation);
    return result == 0 ? add_request(reading, &request) : result;
}

static struct piece print_size(char text[NUMBER_MOST], bool known, size_t bytes)
{
    return (struct piece){text, known ? (size_t)snprintf(text, NUMBER_MOST, "%zu", bytes) : 0};
}

// EXEC: the transaction is a request of its first command's key.
static int take_transaction(struct reading *reading, struct client_transaction *one,
                            struct scheduled_request request)
{
    struct recording *recording = reading->recording;
    struct recorded_transactions *all = &recording->transactions;
    const size_t count = one->commands.count;
    uint64_t *why = count == 0                         ? &recording->lost.empty
                    : count > TRANSACTION_COMMANDS_MAX ? &recording->lost.too_long
                                                       : NULL;
    int status = 0;
    if (!why) {
        const struct recorded_transaction fresh = {.place = (uint32_t)recording->requests.count,
                                                   .count = (uint32_t)count,
                                                   .first = all->commands.count};
        request.key = one->commands.items[0].key;
        status = add_request(reading, &request);
        if (status == 0 && (array_reserve(&all->commands, fresh.first + count) < 0 ||
                            array_push(&all->items, fresh) < 0))
            status = reading_no_memory(reading);
        for (size_t i = 0; i < count && status == 0; i++)
            all->commands.items[all->commands.count++] = one->commands.items[i];
    }
    transactions_end(&reading->transactions, one, why, &recording->lost);
    return status;
}

// A word that begins or ends a transaction.
static int take_word(struct reading *reading, enum transaction_word word,
                     const struct monitor_line *said, uint8_t operation)
{
    struct lost_transactions *lost = &reading->recording->lost;
    struct scheduled_request request = {.operation = operation};
    struct client_transaction *one = transactions_of_client(&reading->transactions, said->client);
    int status = take_time(reading, said->time, &request);
    if (status < 0)
        return status;
    if (word == WORD_MULTI)
        return transactions_begin(&reading->transactions, said->client, lost) < 0
                   ? reading_no_memory(reading)
                   : 0;
    if (!one)
        lost->unbegun += word != WORD_RESET;
    else if (word == WORD_EXEC)
        return take_transaction(reading, one, request);
    else
        transactions_end(&reading->transactions, one, &lost->discarded, lost);
    return 0;
}

// A key of several, and how long it is.
static int take_one_of(struct reading *reading, const struct piece *fields, struct piece key,
                       size_t key_bytes, struct recorded_command *one)
{
    const int get = protocol_operation_find(reading->workload->protocol, "get");
    char size[NUMBER_MOST];
    struct piece own[MONITOR_COLUMNS];
    struct scheduled_request request = {0};
    memcpy(own, fields, sizeof own);
    own[MONITOR_KEY] = key;
    own[MONITOR_KEY_SIZE] = print_size(size, true, key_bytes);
    int status = take_key(reading, key, &request);
    if (status == 0)
        status = take_sizes(reading, own, request.key);
    if (status == 0 && get >= 0)
        reading->recording->keys.items[request.key].operations |= (uint16_t)(1u << get);
    *one = (struct recorded_command){request.key, (uint8_t)request.operation};
    return status;
}

// A command of several keys becomes one request of them all.
static int take_multiget(struct reading *reading, const struct monitor_line *said,
                         const struct piece *fields, uint8_t operation)
{
    struct recording *recording = reading->recording;
    struct recorded_transactions *all = &recording->multigets;
    struct recorded_transaction fresh = {.place = (uint32_t)recording->requests.count,
                                         .first = all->commands.count};
    struct scheduled_request request = {.operation = operation};
    struct piece rest = said->more, key = said->key;
    size_t key_bytes = said->key_bytes;
    int status = take_time(reading, said->time, &request);
    do {
        struct recorded_command one;
        if (status == 0)
            status = take_one_of(reading, fields, key, key_bytes, &one);
        if (status == 0 && array_push(&all->commands, one) < 0)
            status = reading_no_memory(reading);
        fresh.count++;
    } while (status == 0 && monitor_key_take(said, &rest, &key, &key_bytes));
    if (status < 0)
        return status;
    request.key = all->commands.items[fresh.first].key;
    status = add_request(reading, &request);
    return status == 0 && array_push(&all->items, fresh) < 0 ? reading_no_memory(reading) : status;
}

// Which operation asks for several keys at once. -1: the protocol has none.
static int operation_of_many(const struct protocol *protocol)
{
    for (unsigned i = 0; i < protocol->operation_count; i++)
        if (protocol->operations[i].many_keys)
            return (int)i;
    return -1;
}

// Whether it asks for several keys, which gets of Redis do not.
static bool asks_for_several(const struct monitor_line *said)
{
    return said->more_words &&
           (piece_is(said->operation, "mget") || piece_is(said->operation, "get") ||
            piece_is(said->operation, "gets"));
}

// It may be within a transaction, of a protocol without the like, or of too many keys.
static int leave_out_several(struct reading *reading, const struct monitor_line *said)
{
    static const char several[] = "get of several keys there";
    struct scheduled_request request = {0};
    int status = take_time(reading, said->time, &request);
    if (status == 0)
        leave_out(reading, (struct piece){several, strlen(several)});
    return status;
}

// Whether none of its keys is empty.
static bool has_all_keys(const struct monitor_line *said)
{
    struct piece rest = said->more, key = said->key;
    size_t bytes;
    unsigned whole = 0;
    while (key.bytes && monitor_key_take(said, &rest, &key, &bytes))
        whole++;
    return key.bytes && whole == said->more_words;
}

void reading_break_transaction(struct reading *reading, struct piece client)
{
    struct client_transaction *one = transactions_of_client(&reading->transactions, client);
    struct lost_transactions *lost = &reading->recording->lost;
    if (one)
        transactions_end(&reading->transactions, one, &lost->unended, lost);
}

int reading_take_command(struct reading *reading, const struct monitor_line *said)
{
    const int operation = protocol_operation_find(reading->workload->protocol, "transaction");
    const enum transaction_word word =
        operation >= 0 ? transaction_word(said->operation) : WORD_NONE;
    char key_size[NUMBER_MOST], value_size[NUMBER_MOST];
    const struct piece fields[MONITOR_COLUMNS] = {
        said->time, said->operation, said->key, print_size(key_size, true, said->key_bytes),
        print_size(value_size, said->has_value, said->value_bytes)};
    if (word)
        return take_word(reading, word, said, (uint8_t)operation);
    reading->within = transactions_of_client(&reading->transactions, said->client);
    int status;
    if (!asks_for_several(said)) {
        status = reading_take_request(reading, fields);
    } else {
        const int many = operation_of_many(reading->workload->protocol);
        if (many >= 0 && !reading->within && said->more_words < MULTIGET_KEYS_MAX &&
            has_all_keys(said))
            return take_multiget(reading, said, fields, (uint8_t)many);
        status = leave_out_several(reading, said);
    }
    reading->within = NULL;
    return status;
}

void reading_expect_commands(struct reading *reading)
{
    reading->commands = true;
    reading->transactions.copies = reading->copies_keys;
    reading_set_columns(reading, monitor, MONITOR_COLUMNS);
}

// --- the whole -----------------------------------------------------------------------------------

// Requests of one whole second leave evenly over it: that they came at its begin is not what the
// trace says.
static void spread_seconds(struct schedule *requests)
{
    for (size_t begin = 0, end; begin < requests->count; begin = end) {
        const uint64_t second = requests->items[begin].offset_ns;
        for (end = begin; end < requests->count && requests->items[end].offset_ns == second;)
            end++;
        for (size_t i = begin; i < end; i++)
            requests->items[i].offset_ns += (i - begin) * 1000000000 / (end - begin);
    }
}

int reading_finish(struct reading *reading)
{
    struct recording *recording = reading->recording;
    struct schedule *requests = &recording->requests;
    transactions_end_all(&reading->transactions, &recording->lost);
    recording->has_keys = reading->has[COLUMN_KEY];
    recording->has_operations = reading->has[COLUMN_OPERATION];
    if (!reading->fractions && reading->column_count > 1)
        spread_seconds(requests);
    if (requests->count >= 2 && requests->items[requests->count - 1].offset_ns > 0)
        return 0;
    if (recording->left_out)
        return error_set(
            reading->err, ERROR_INPUT,
            "%s:%zu: protocol %s has no %s, and without such requests there are no two "
            "at different times left: take a protocol that has it",
            reading->path, reading->left_out_line, reading->workload->protocol->name,
            recording->left_out_names);
    return error_set(reading->err, ERROR_INPUT,
                     "%s: a recording has two requests at least, at different times",
                     reading->path);
}

void reading_free(struct reading *reading)
{
    for (size_t i = 0; reading->copies_keys && i < reading->keys.count; i++)
        free((void *)(uintptr_t)reading->keys.items[i].at);
    array_free(&reading->keys);
    map_free(&reading->keys_map);
    client_transactions_free(&reading->transactions);
}
