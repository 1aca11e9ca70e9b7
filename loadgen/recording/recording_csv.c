// SPDX-License-Identifier: MIT
#include "loadgen/recording/recording_csv.h"

#include <stdio.h>
#include <string.h>

#include "base/input_file.h"
#include "loadgen/recording/recording_monitor.h"
#include "loadgen/recording/recording_reading.h"

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
    {"ttl", COLUMN_EXPIRY},
    {"expiry", COLUMN_EXPIRY},
};

static const enum column twitter[] = {COLUMN_TIME,       COLUMN_KEY,   COLUMN_KEY_SIZE,
                                      COLUMN_VALUE_SIZE, COLUMN_OTHER, COLUMN_OPERATION,
                                      COLUMN_EXPIRY};
enum { TWITTER_COLUMNS = sizeof twitter / sizeof *twitter };

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

// A field in quotes (RFC 4180), from the first of them on: behind the last. NULL: it has none.
// Within it quotes are doubled, and stay so: a key is known by its text, however that is written.
static const char *quotes_end(const char *at, const char *end)
{
    for (const char *quote; (quote = memchr(at + 1, '"', (size_t)(end - at - 1))); at = quote + 1)
        if (quote + 1 == end || quote[1] != '"')
            return quote + 1;
    return NULL;
}

// How many there are: more than COLUMNS_MOST are not taken apart. 0: quotes do not end in it.
static size_t take_apart(struct piece line, struct piece fields[COLUMNS_MOST])
{
    size_t count = 0;
    for (const char *at = line.at, *end = line.at + line.bytes; count < COLUMNS_MOST;) {
        const struct piece rest = trimmed(at, (size_t)(end - at));
        const bool quoted = rest.bytes && *rest.at == '"';
        const char *from = quoted ? quotes_end(rest.at, end) : at;
        if (!from)
            return 0;
        const char *comma = memchr(from, ',', (size_t)(end - from));
        fields[count] = trimmed(from, (size_t)((comma ? comma : end) - from));
        if (quoted && fields[count].bytes)
            return 0;
        if (quoted)
            fields[count] = (struct piece){rest.at + 1, (size_t)(from - rest.at) - 2};
        count++;
        if (!comma)
            return count;
        at = comma + 1;
    }
    return COLUMNS_MOST + 1;
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
            return reading_wrong(reading, "names a column twice");
        reading->has[reading->columns[i]] = true;
    }
    reading->column_count = count;
    return reading->has[COLUMN_TIME]
               ? 0
               : reading_wrong(
                     reading, "is no time in seconds, nor names of columns with `time` among them");
}

// By the first line; 1: it was one of names.
static int choose_columns(struct reading *reading, const struct piece *fields, size_t count)
{
    double number;
    if (!piece_number(fields[0], &number)) {
        int result = name_columns(reading, fields, count);
        return result < 0 ? result : 1;
    }
    if (count != 1 && count != TWITTER_COLUMNS)
        return reading_wrong(reading, "has columns that no line above names: time, key, operation, "
                                      "key_size, value_size");
    reading_set_columns(reading, twitter, count);
    return 0;
}

// The first line says what the others are.
static bool is_monitor(struct reading *reading, struct piece line)
{
    if (reading->column_count == 0 && monitor_line_begins(line)) {
        reading_expect_commands(reading);
    }
    return reading->commands;
}

static int take_line(struct reading *reading, struct piece line)
{
    struct piece fields[COLUMNS_MOST];
    char text[80];
    if (reading->column_count == 0 && (piece_is(line, "OK") || piece_is(line, "+OK")))
        return 0; // Redis' answer, in front of what MONITOR prints
    if (is_monitor(reading, line)) {
        struct monitor_line said;
        return monitor_line_read(line, &said)
                   ? reading_take_command(reading, &said)
                   : reading_wrong(reading, "is no line of MONITOR, as those above");
    }
    size_t count = take_apart(line, fields);
    if (count == 0)
        return reading_wrong(reading, "has quotes that do not end with their field");
    if (count > COLUMNS_MOST)
        return reading_wrong(reading, "has too many columns");
    if (reading->column_count == 0) {
        int result = choose_columns(reading, fields, count);
        if (result)
            return result < 0 ? result : 0;
    }
    if (count != reading->column_count) {
        snprintf(text, sizeof text, "has %zu columns, not %zu", count, reading->column_count);
        return reading_wrong(reading, text);
    }
    return reading_take_request(reading, fields);
}

// --- the whole -----------------------------------------------------------------------------------

int recording_parse(const char *text, size_t bytes, const char *path,
                    const struct workload *workload, struct recording *recording, struct error *err)
{
    struct reading reading = {
        .path = path, .workload = workload, .recording = recording, .begin = -1, .err = err};
    int result = 0;
    *recording = (struct recording){0};
    for (size_t at = input_mark_bytes(text, bytes); at < bytes && result == 0;) {
        const char *newline = memchr(text + at, '\n', bytes - at);
        const size_t length = newline ? (size_t)(newline - text) - at : bytes - at;
        const struct piece line = trimmed(text + at, length);
        reading.line++;
        if (line.bytes && *line.at != '#')
            result = take_line(&reading, line);
        at += length + 1;
    }
    result = result == 0 ? reading_finish(&reading) : result;
    reading_free(&reading);
    return result;
}
