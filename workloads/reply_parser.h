// SPDX-License-Identifier: MIT
//
// What the parsers of replies share: lines and values gathered across feeds, and the bookkeeping
// of where a reply begins and ends. Every function takes at most the bytes it is given.
#ifndef WORKLOADS_REPLY_PARSER_H
#define WORKLOADS_REPLY_PARSER_H

#include "workloads/protocol.h"

struct reply_line {
    const char *bytes; // without its CR LF; valid until the next call
    size_t count;
    bool whole;    // false: its end is still to come
    bool too_long; // bytes hold nothing
};

// Notes where a reply begins. Call it whenever there is a byte to parse.
static inline void reply_begin(struct reply_parser *parser)
{
    if (parser->in_reply)
        return;
    parser->in_reply = true;
    parser->reply_begin = parser->offset;
}

// Takes bytes up to the end of the current line and returns how many. The line is not copied if the
// caller's bytes hold all of it.
size_t reply_take_line(struct reply_parser *parser, const char *bytes, size_t count,
                       struct reply_line *line);

// Takes bytes of a value whose length, parser->data_left, includes the CR LF behind it; sets
// data_damaged when those two are something else.
size_t reply_take_data(struct reply_parser *parser, const char *bytes, size_t count);

// Takes parser->data_left bytes that have no line end.
size_t reply_take_raw(struct reply_parser *parser, const char *bytes, size_t count);

// Gathers a binary header of `wanted` bytes in parser->line (parser->line_bytes of them so far).
size_t reply_take_header(struct reply_parser *parser, const char *bytes, size_t count,
                         size_t wanted);

// Skips bytes up to the next that may begin a reply (`first`), and then enters that state. Returns
// how many it skipped.
size_t reply_skip_to(struct reply_parser *parser, const char *bytes, size_t count, int first,
                     uint8_t state);

// The reply under way ends here.
void reply_finish(struct reply_parser *parser, enum reply_kind kind, struct reply *reply);

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
