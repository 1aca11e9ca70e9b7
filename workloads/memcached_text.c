// SPDX-License-Identifier: MIT
#include "workloads/memcached_text.h"

#include <stdio.h>
#include <string.h>

#include "workloads/workload.h"

// memcached refuses items above 1 GiB at any setting (-I); a length beyond that is no length.
static const uint64_t value_bytes_limit = 1u << 30;

enum { HEADER_BYTES_MAX = 64 }; // of "set  0 0 <length>\r\n\r\n", without the key

static size_t request_bytes_max(size_t key_bytes, size_t value_bytes)
{
    return key_bytes + value_bytes + HEADER_BYTES_MAX;
}

static char *append(char *at, const char *bytes, size_t count)
{
    memcpy(at, bytes, count);
    return at + count;
}

static size_t encode(const struct request *request, char *out, size_t out_bytes)
{
    bool set = request->operation == WORKLOAD_SET;
    if (request_bytes_max(request->key_bytes, set ? request->value_bytes : 0) > out_bytes)
        return 0;
    char *at = append(out, set ? "set " : "get ", 4);
    at = append(at, request->key, request->key_bytes);
    if (set) {
        at += sprintf(at, " 0 0 %zu\r\n", request->value_bytes);
        at = append(at, request->value, request->value_bytes);
    }
    at = append(at, "\r\n", 2);
    return (size_t)(at - out);
}

static bool starts_with(const char *line, size_t line_bytes, const char *word)
{
    size_t bytes = strlen(word);
    return line_bytes >= bytes && memcmp(line, word, bytes) == 0;
}

static bool equals(const char *line, size_t line_bytes, const char *word)
{
    return line_bytes == strlen(word) && memcmp(line, word, line_bytes) == 0;
}

static bool parse_digits(const char **at, const char *end, uint64_t limit, uint64_t *out)
{
    uint64_t value = 0;
    const char *begin = *at;
    while (*at < end && **at >= '0' && **at <= '9') {
        if (value > limit)
            break;
        value = value * 10 + (uint64_t)(**at - '0');
        (*at)++;
    }
    *out = value;
    return *at > begin;
}

// "VALUE <key> <flags> <bytes>[ <cas>]". Returns REPLY_VALUE with the length, or what is wrong.
static enum reply_kind parse_value_line(const char *line, size_t line_bytes, uint64_t *value_bytes)
{
    const char *at = line + 6, *end = line + line_bytes;
    const char *space = memchr(at, ' ', (size_t)(end - at));
    uint64_t flags, cas;
    if (!space || space == at || space - at > WORKLOAD_KEY_BYTES_MAX)
        return REPLY_MALFORMED;
    at = space + 1;
    if (!parse_digits(&at, end, UINT32_MAX, &flags) || at == end || *at++ != ' ')
        return REPLY_MALFORMED;
    if (!parse_digits(&at, end, value_bytes_limit, value_bytes))
        return REPLY_MALFORMED;
    if (*value_bytes > value_bytes_limit)
        return REPLY_OVERSIZED;
    if (at < end && (*at++ != ' ' || !parse_digits(&at, end, UINT64_MAX / 10 - 1, &cas)))
        return REPLY_MALFORMED;
    return at == end ? REPLY_VALUE : REPLY_MALFORMED;
}

// Judges a whole line (without its end). Returns true when it ends a reply, of *kind.
static bool judge_line(struct reply_parser *parser, const char *line, size_t line_bytes,
                       enum reply_kind *kind)
{
    if (starts_with(line, line_bytes, "VALUE ")) {
        uint64_t bytes = 0;
        *kind = parse_value_line(line, line_bytes, &bytes);
        if (*kind != REPLY_VALUE)
            return true;
        parser->data_left = bytes + 2; // its CR LF belongs to the protocol
        parser->value_bytes += bytes;
        if (parser->values < UINT16_MAX)
            parser->values++;
        return false;
    }
    if (equals(line, line_bytes, "END"))
        *kind = parser->values ? REPLY_VALUE : REPLY_MISS;
    else if (parser->values)
        *kind = REPLY_MALFORMED; // after a value only END or another value may come
    else if (equals(line, line_bytes, "STORED"))
        *kind = REPLY_STORED;
    else if (equals(line, line_bytes, "NOT_STORED"))
        *kind = REPLY_NOT_STORED;
    else if (starts_with(line, line_bytes, "SERVER_ERROR"))
        *kind = REPLY_SERVER_ERROR;
    else if (equals(line, line_bytes, "ERROR") || starts_with(line, line_bytes, "CLIENT_ERROR"))
        *kind = REPLY_CLIENT_ERROR;
    else
        *kind = REPLY_MALFORMED;
    return true;
}

static void finish_reply(struct reply_parser *parser, enum reply_kind kind, struct reply *reply)
{
    *reply = (struct reply){.kind = kind,
                            .begin = parser->reply_begin,
                            .end = parser->offset,
                            .value_bytes = parser->value_bytes};
    parser->in_reply = false;
    parser->values = 0;
    parser->value_bytes = 0;
    parser->data_damaged = false;
}

// Takes bytes of a value and the CR LF behind it; the two last must be that.
static size_t take_data(struct reply_parser *parser, const char *bytes, size_t count)
{
    uint64_t left = parser->data_left;
    size_t taken = count < left ? count : (size_t)left;
    for (size_t i = left > 2 ? (size_t)(left - 2) : 0; i < taken; i++)
        if (bytes[i] != (left - i == 2 ? '\r' : '\n'))
            parser->data_damaged = true;
    parser->data_left -= taken;
    parser->offset += taken;
    return taken;
}

// Takes bytes up to the end of the line under way. Sets *whole when the end was there; the line is
// then at *line, without CR LF, in the caller's bytes where it can be.
static size_t take_line(struct reply_parser *parser, const char *bytes, size_t count,
                        const char **line, size_t *line_bytes, bool *whole)
{
    const char *newline = memchr(bytes, '\n', count);
    size_t taken = newline ? (size_t)(newline - bytes) + 1 : count;
    *whole = newline != NULL;
    parser->offset += taken;
    if (*whole && parser->line_bytes == 0 && taken <= sizeof parser->line) {
        *line = bytes;
        *line_bytes = taken;
    } else {
        if (parser->line_bytes + taken > sizeof parser->line)
            parser->skipping = true;
        if (!parser->skipping) {
            memcpy(parser->line + parser->line_bytes, bytes, taken);
            parser->line_bytes += (uint32_t)taken;
        }
        *line = parser->line;
        *line_bytes = parser->line_bytes;
    }
    if (*whole && *line_bytes > 0) {
        (*line_bytes)--; // LF
        if (*line_bytes > 0 && (*line)[*line_bytes - 1] == '\r')
            (*line_bytes)--;
    }
    return taken;
}

static size_t parse(struct reply_parser *parser, const char *bytes, size_t count,
                    struct reply *replies, size_t replies_max, size_t *reply_count)
{
    size_t used = 0;
    *reply_count = 0;
    while (used < count && *reply_count < replies_max) {
        if (!parser->in_reply) {
            parser->in_reply = true;
            parser->reply_begin = parser->offset;
        }
        if (parser->data_left) {
            used += take_data(parser, bytes + used, count - used);
            continue;
        }
        const char *line;
        size_t line_bytes;
        bool whole;
        used += take_line(parser, bytes + used, count - used, &line, &line_bytes, &whole);
        if (!whole)
            continue;
        enum reply_kind kind = REPLY_OVERSIZED;
        bool ended = parser->skipping || judge_line(parser, line, line_bytes, &kind);
        if (ended && parser->data_damaged && kind == REPLY_VALUE)
            kind = REPLY_MALFORMED;
        parser->line_bytes = 0;
        parser->skipping = false;
        if (ended)
            finish_reply(parser, kind, &replies[(*reply_count)++]);
    }
    return used;
}

static bool answers(unsigned operation, enum reply_kind kind)
{
    switch (kind) {
    case REPLY_VALUE:
    case REPLY_MISS:
        return operation == WORKLOAD_GET;
    case REPLY_STORED:
    case REPLY_NOT_STORED:
        return operation == WORKLOAD_SET;
    default:
        return true; // an error can answer anything
    }
}

const struct protocol memcached_text_protocol = {
    .name = "memcached",
    .request_bytes_max = request_bytes_max,
    .encode = encode,
    .parse = parse,
    .answers = answers,
};
