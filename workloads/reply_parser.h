// SPDX-License-Identifier: MIT
//
// The parser of replies, of all protocols: it gathers headers, lines and values across feeds and
// notes where a reply begins and ends. The protocol judges what has been gathered.
#ifndef WORKLOADS_REPLY_PARSER_H
#define WORKLOADS_REPLY_PARSER_H

#include "workloads/protocol.h"

// Parses bytes of the stream, up to the end of at most replies_max replies or of one that is broken
// (reply_is_broken), and returns how many it took: at least one.
size_t reply_parse(const struct protocol *protocol, struct reply_parser *parser, const char *bytes,
                   size_t count, struct reply *replies, size_t replies_max, size_t *reply_count);

// Keeps how the reply under way, a fault, began, for people; what is said first counts.
void reply_note_said(struct reply_parser *parser, const char *bytes, size_t count);

// --- what judges return --------------------------------------------------------------------------

static inline enum reply_progress reply_end(struct reply_parser *parser, enum reply_kind kind)
{
    parser->kind = (uint8_t)kind;
    return REPLY_ENDED;
}

static inline enum reply_progress reply_lose(struct reply_parser *parser, enum reply_kind kind)
{
    parser->kind = (uint8_t)kind;
    return REPLY_LOST;
}

// The end_data of replies that end with their value.
enum reply_progress reply_ends_with_data(struct reply_parser *parser);

// The same, where the value's line end must be right.
enum reply_progress reply_ends_with_line(struct reply_parser *parser);

// --- pieces of lines -----------------------------------------------------------------------------

bool line_starts_with(const struct reply_line *line, const char *word);
bool line_equals(const struct reply_line *line, const char *word);

// Parses decimal digits at *at. Returns false when there are none. A number above limit is returned
// as limit + 1, with all its digits consumed; limit < UINT64_MAX.
bool line_digits(const char **at, const char *end, uint64_t limit, uint64_t *out);

// --- big-endian numbers, at any alignment --------------------------------------------------------

static inline uint64_t big_endian_read(const char *bytes, size_t count)
{
    uint64_t value = 0;
    for (size_t i = 0; i < count; i++)
        value = value << 8 | (unsigned char)bytes[i];
    return value;
}

static inline void big_endian_write(char *out, size_t count, uint64_t value)
{
    for (size_t i = count; i-- > 0; value >>= 8)
        out[i] = (char)(value & 0xff);
}

#endif
