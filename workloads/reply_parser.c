// SPDX-License-Identifier: MIT
#include "workloads/reply_parser.h"

#include <string.h>

size_t reply_take_line(struct reply_parser *parser, const char *bytes, size_t count,
                       struct reply_line *line)
{
    const char *newline = memchr(bytes, '\n', count);
    size_t taken = newline ? (size_t)(newline - bytes) + 1 : count;
    parser->offset += taken;
    *line = (struct reply_line){.bytes = bytes, .count = taken, .whole = newline != NULL};
    if (!line->whole || parser->line_bytes || parser->skipping || taken > sizeof parser->line) {
        if (parser->line_bytes + taken > sizeof parser->line)
            parser->skipping = true;
        if (!parser->skipping) {
            memcpy(parser->line + parser->line_bytes, bytes, taken);
            parser->line_bytes += (uint32_t)taken;
        }
        line->bytes = parser->line;
        line->count = parser->skipping ? 0 : parser->line_bytes;
    }
    if (!line->whole)
        return taken;
    line->too_long = parser->skipping;
    parser->line_bytes = 0;
    parser->skipping = false;
    if (line->count && line->bytes[line->count - 1] == '\n')
        line->count--;
    if (line->count && line->bytes[line->count - 1] == '\r')
        line->count--;
    return taken;
}

size_t reply_take_data(struct reply_parser *parser, const char *bytes, size_t count)
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

size_t reply_take_raw(struct reply_parser *parser, const char *bytes, size_t count)
{
    (void)bytes;
    size_t taken = count < parser->data_left ? count : (size_t)parser->data_left;
    parser->data_left -= taken;
    parser->offset += taken;
    return taken;
}

size_t reply_take_header(struct reply_parser *parser, const char *bytes, size_t count,
                         size_t wanted)
{
    size_t missing = wanted - parser->line_bytes, taken = count < missing ? count : missing;
    memcpy(parser->line + parser->line_bytes, bytes, taken);
    parser->line_bytes += (uint32_t)taken;
    parser->offset += taken;
    return taken;
}

void reply_finish(struct reply_parser *parser, enum reply_kind kind, struct reply *reply)
{
    *reply = (struct reply){.kind = kind,
                            .begin = parser->reply_begin,
                            .end = parser->offset,
                            .value_bytes = parser->value_bytes};
    parser->number++;
    parser->data_left = parser->value_bytes = parser->elements = 0;
    parser->line_bytes = 0;
    parser->values = 0;
    parser->state = parser->kind = 0;
    parser->in_reply = parser->skipping = parser->data_damaged = false;
    parser->chunked = parser->sized = false;
}

bool line_starts_with(const struct reply_line *line, const char *word)
{
    size_t bytes = strlen(word);
    return line->count >= bytes && memcmp(line->bytes, word, bytes) == 0;
}

bool line_equals(const struct reply_line *line, const char *word)
{
    return line->count == strlen(word) && memcmp(line->bytes, word, line->count) == 0;
}

bool line_digits(const char **at, const char *end, uint64_t limit, uint64_t *out)
{
    uint64_t value = 0;
    const char *begin = *at;
    for (; *at < end && **at >= '0' && **at <= '9'; (*at)++) {
        uint64_t digit = (uint64_t)(**at - '0');
        value = value > limit || value > (limit - digit) / 10 ? limit + 1 : value * 10 + digit;
    }
    *out = value;
    return *at > begin;
}

size_t reply_skip_to(struct reply_parser *parser, const char *bytes, size_t count, int first,
                     uint8_t state)
{
    const char *found = memchr(bytes, first, count);
    size_t taken = found ? (size_t)(found - bytes) : count;
    parser->offset += taken;
    if (found)
        parser->state = state;
    return taken;
}
