// SPDX-License-Identifier: MIT
#include "loadgen/engine/recording_csv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/text.h"
#include "loadgen/engine/recording_monitor.h"

enum { COLUMNS_MOST = 32, NUMBER_MOST = 64, REQUESTS_MOST = 1 << 28 };

enum column {
    COLUMN_OTHER,
    COLUMN_TIME,
    COLUMN_KEY,
    COLUMN_OPERATION,
    COLUMN_KEY_SIZE,
    COLUMN_VALUE_SIZE,
    COLUMNS
};

static const struct {
    const char *name;
    enum column column;
} column_names[] = {
    {"time", COLUMN_TIME},
    {"timestamp", COLUMN_TIME},
    {"key", COLUMN_KEY},
    {"anonymized key", COLUMN_KEY},
    {"operation", COLUMN_OPERATION},
    {"op", COLUMN_OPERATION},
    {"key_size", COLUMN_KEY_SIZE},
    {"key size", COLUMN_KEY_SIZE},
    {"value_size", COLUMN_VALUE_SIZE},
    {"value size", COLUMN_VALUE_SIZE},
    {"size", COLUMN_VALUE_SIZE},
};

static const enum column twitter[] = {COLUMN_TIME,       COLUMN_KEY,   COLUMN_KEY_SIZE,
                                      COLUMN_VALUE_SIZE, COLUMN_OTHER, COLUMN_OPERATION,
                                      COLUMN_OTHER};
enum { TWITTER_COLUMNS = sizeof twitter / sizeof *twitter };

static const enum column monitor[] = {COLUMN_TIME, COLUMN_OPERATION, COLUMN_KEY, COLUMN_KEY_SIZE,
                                      COLUMN_VALUE_SIZE};
enum { MONITOR_COLUMNS = sizeof monitor / sizeof *monitor };

// What others call operations, and what those are here.
static const char *const synonyms[][2] = {
    {"gets", "get"},   {"read", "get"},    {"add", "set"},   {"replace", "set"}, {"cas", "set"},
    {"append", "set"}, {"prepend", "set"}, {"write", "set"}, {"update", "set"},  {"insert", "set"},
};

struct reading {
    const char *path;
    size_t line;
    const struct workload *workload;
    struct recording *recording;
    enum column columns[COLUMNS_MOST]; // what they hold
    size_t column_count;               // 0: nobody knows yet
    bool has[COLUMNS];
    bool monitor;                       // what Redis' MONITOR printed
    bool fractions;                     // of seconds
    double begin, before;               // the first time, below 0: none yet; and the last
    struct ARRAY_OF(struct piece) keys; // the keys' texts, by number
    struct map keys_map;
    struct error *err;
};

static int wrong(const struct reading *reading, const char *what)
{
    return error_set(reading->err, ERROR_INPUT, "%s:%zu: what stands here %s", reading->path,
                     reading->line, what);
}

static int no_memory(const struct reading *reading)
{
    return error_set(reading->err, ERROR_FAILED, "%s: out of memory", reading->path);
}

// --- pieces of a line ----------------------------------------------------------------------------

static struct piece trimmed(const char *at, size_t bytes)
{
    while (bytes && (at[bytes - 1] == '\r' || at[bytes - 1] == ' ' || at[bytes - 1] == '\t'))
        bytes--;
    while (bytes && (*at == ' ' || *at == '\t')) {
        at++;
        bytes--;
    }
    return (struct piece){at, bytes};
}

// How many there are: more than COLUMNS_MOST are not taken apart.
static size_t take_apart(struct piece line, struct piece fields[COLUMNS_MOST])
{
    size_t count = 0;
    for (const char *at = line.at, *end = line.at + line.bytes; count < COLUMNS_MOST;) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        fields[count++] = trimmed(at, (size_t)((comma ? comma : end) - at));
        if (!comma)
            return count;
        at = comma + 1;
    }
    return COLUMNS_MOST + 1;
}

static bool piece_is(struct piece piece, const char *word)
{
    return piece.bytes == strlen(word) && strncasecmp(piece.at, word, piece.bytes) == 0;
}

static bool read_number(struct piece piece, double *number)
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

// --- what the columns are ------------------------------------------------------------------------

static int name_columns(struct reading *reading, const struct piece *fields, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < sizeof column_names / sizeof *column_names; k++)
            if (piece_is(fields[i], column_names[k].name))
                reading->columns[i] = column_names[k].column;
    for (size_t i = 0; i < count; i++) {
        if (reading->columns[i] && reading->has[reading->columns[i]])
            return wrong(reading, "names a column twice");
        reading->has[reading->columns[i]] = true;
    }
    reading->column_count = count;
    return reading->has[COLUMN_TIME]
               ? 0
               : wrong(reading,
                       "is no time in seconds, nor names of columns with `time` among them");
}

static void set_columns(struct reading *reading, const enum column *columns, size_t count)
{
    memcpy(reading->columns, columns, count * sizeof *columns);
    for (size_t i = 0; i < count; i++)
        reading->has[columns[i]] = true;
    reading->column_count = count;
}

// By the first line; 1: it was one of names.
static int choose_columns(struct reading *reading, const struct piece *fields, size_t count)
{
    double number;
    if (!read_number(fields[0], &number)) {
        int result = name_columns(reading, fields, count);
        return result < 0 ? result : 1;
    }
    if (count != 1 && count != TWITTER_COLUMNS)
        return wrong(reading, "has columns that no line above names: time, key, operation, "
                              "key_size, value_size");
    set_columns(reading, twitter, count);
    return 0;
}

// --- a request -----------------------------------------------------------------------------------

static int take_time(struct reading *reading, struct piece piece, struct scheduled_request *request)
{
    static const double longest_s = 86400 * 7;
    double seconds;
    if (!read_number(piece, &seconds))
        return wrong(reading, "is no time in seconds");
    if (!(seconds >= reading->before))
        return wrong(reading, "is before the one above it, or below 0");
    // A trace counts from when it likes; a list of times from the load's begin.
    if (reading->begin < 0)
        reading->begin = reading->column_count > 1 ? seconds : 0;
    if (!(seconds - reading->begin <= longest_s))
        return wrong(reading, "is later than a week");
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
        if (piece_is(piece, protocol->operations[i].name)) {
            request->operation = (uint8_t)i;
            return true;
        }
    return false;
}

static int take_key(struct reading *reading, struct piece piece, struct scheduled_request *request)
{
    if (piece.bytes == 0)
        return wrong(reading, "has no key");
    const uint64_t hash = hash_bytes(piece.at, piece.bytes);
    const struct piece *keys = reading->keys.items;
    request->key =
        map_find(&reading->keys_map, hash, at,
                 keys[at].bytes == piece.bytes && memcmp(keys[at].at, piece.at, piece.bytes) == 0);
    if (request->key != MAP_NONE)
        return 0;
    const struct recorded_key key = {.value_bytes = RECORDED_UNKNOWN};
    request->key = (uint32_t)reading->keys.count;
    if (array_push(&reading->keys, piece) < 0 || array_push(&reading->recording->keys, key) < 0 ||
        map_add(&reading->keys_map, hash, request->key) < 0)
        return no_memory(reading);
    return 0;
}

// Of a value the largest that is seen: a get that found nothing says 0.
static int take_sizes(struct reading *reading, const struct piece *fields, uint32_t key)
{
    struct recorded_key *of = &reading->recording->keys.items[key];
    for (size_t i = 0; i < reading->column_count; i++) {
        const enum column column = reading->columns[i];
        double bytes;
        if (column != COLUMN_KEY_SIZE && column != COLUMN_VALUE_SIZE)
            continue;
        if (reading->monitor && fields[i].bytes == 0)
            continue; // the command says nothing of it
        if (!read_number(fields[i], &bytes) || !(bytes >= 0 && bytes <= UINT32_MAX - 1))
            return wrong(reading, "has a size that is no number of bytes");
        if (column == COLUMN_KEY_SIZE)
            of->key_bytes = (uint8_t)(bytes < 1                        ? 1
                                      : bytes < WORKLOAD_KEY_BYTES_MAX ? bytes
                                                                       : WORKLOAD_KEY_BYTES_MAX);
        else if (of->value_bytes == RECORDED_UNKNOWN || bytes > of->value_bytes)
            of->value_bytes =
                (uint32_t)(bytes < WORKLOAD_VALUE_BYTES_MAX ? bytes : WORKLOAD_VALUE_BYTES_MAX);
    }
    return 0;
}

static int take_request(struct reading *reading, const struct piece *fields)
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
    if (result == 0 && operation && !take_operation(reading, *operation, &request)) {
        char word[32];
        snprintf(word, sizeof word, "%.*s",
                 (int)(operation->bytes < sizeof word ? operation->bytes : sizeof word - 1),
                 operation->at);
        if (recording->left_out++ == 0)
            text_clean(word, false, recording->left_out_first, sizeof recording->left_out_first);
        return 0;
    }
    if (result == 0 && key)
        result = take_key(reading, *key, &request);
    if (result == 0 && key)
        result = take_sizes(reading, fields, request.key);
    if (result == 0 && recording->requests.count >= REQUESTS_MOST)
        result = wrong(reading, "is one request too many");
    if (result == 0 && array_push(&recording->requests, request) < 0)
        result = no_memory(reading);
    return result;
}

static struct piece print_size(char text[NUMBER_MOST], bool known, size_t bytes)
{
    return (struct piece){text, known ? (size_t)snprintf(text, NUMBER_MOST, "%zu", bytes) : 0};
}

static int take_monitor(struct reading *reading, struct piece line)
{
    struct monitor_line said;
    char key_size[NUMBER_MOST], value_size[NUMBER_MOST];
    if (!monitor_line_read(line, &said))
        return wrong(reading, "is no line of MONITOR, as those above");
    const struct piece fields[MONITOR_COLUMNS] = {
        said.time, said.operation, said.key, print_size(key_size, true, said.key_bytes),
        print_size(value_size, said.has_value, said.value_bytes)};
    return take_request(reading, fields);
}

// The first line says what the others are.
static bool is_monitor(struct reading *reading, struct piece line)
{
    if (reading->column_count == 0 && monitor_line_begins(line)) {
        reading->monitor = true;
        set_columns(reading, monitor, MONITOR_COLUMNS);
    }
    return reading->monitor;
}

static int take_line(struct reading *reading, struct piece line)
{
    struct piece fields[COLUMNS_MOST];
    char text[80];
    if (reading->column_count == 0 && (piece_is(line, "OK") || piece_is(line, "+OK")))
        return 0; // Redis' answer, in front of what MONITOR prints
    if (is_monitor(reading, line))
        return take_monitor(reading, line);
    size_t count = take_apart(line, fields);
    if (count > COLUMNS_MOST)
        return wrong(reading, "has too many columns");
    if (reading->column_count == 0) {
        int result = choose_columns(reading, fields, count);
        if (result)
            return result < 0 ? result : 0;
    }
    if (count != reading->column_count) {
        snprintf(text, sizeof text, "has %zu columns, not %zu", count, reading->column_count);
        return wrong(reading, text);
    }
    return take_request(reading, fields);
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

static int finish(struct reading *reading)
{
    struct recording *recording = reading->recording;
    struct schedule *requests = &recording->requests;
    recording->has_keys = reading->has[COLUMN_KEY];
    recording->has_operations = reading->has[COLUMN_OPERATION];
    if (!reading->fractions && reading->column_count > 1)
        spread_seconds(requests);
    if (requests->count < 2 || requests->items[requests->count - 1].offset_ns == 0)
        return error_set(reading->err, ERROR_INPUT,
                         "%s: a recording has two requests at least, at different times%s%s",
                         reading->path, recording->left_out ? "; the protocol has no " : "",
                         recording->left_out ? recording->left_out_first : "");
    return 0;
}

int recording_parse(const char *text, size_t bytes, const char *path,
                    const struct workload *workload, struct recording *recording, struct error *err)
{
    struct reading reading = {
        .path = path, .workload = workload, .recording = recording, .begin = -1, .err = err};
    int result = 0;
    *recording = (struct recording){0};
    for (size_t at = 0; at < bytes && result == 0;) {
        const char *newline = memchr(text + at, '\n', bytes - at);
        const size_t length = newline ? (size_t)(newline - text) - at : bytes - at;
        const struct piece line = trimmed(text + at, length);
        reading.line++;
        if (line.bytes && *line.at != '#')
            result = take_line(&reading, line);
        at += length + 1;
    }
    result = result == 0 ? finish(&reading) : result;
    array_free(&reading.keys);
    map_free(&reading.keys_map);
    return result;
}
