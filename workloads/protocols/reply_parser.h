// SPDX-License-Identifier: MIT
//
// The parser of replies, of all protocols: it gathers headers, lines and values across feeds and
// notes where a reply begins and ends. The protocol judges what has been gathered.
#ifndef WORKLOADS_PROTOCOLS_REPLY_PARSER_H
#define WORKLOADS_PROTOCOLS_REPLY_PARSER_H

#include "workloads/protocols/protocol.h"

enum { REPLY_LINE_BYTES_MAX = 64 << 10 }; // one that goes on for longer never ends

// What is kept of a reply to a request of many keys (workloads/multiget.h) while it comes in: how
// many values it may have, and those it had.
struct reply_list {
    uint64_t number; // of the request on its connection
    uint64_t place;  // and in the schedule, of one that was recorded
    uint16_t due;    // keys that were asked for
    uint16_t told;   // of them: the reply says of so many what there is, or that there is nothing
    uint16_t count;  // values
    bool apart;      // each key has a reply of its own, which are one together
    struct listed_value {
        uint64_t key_hash; // of the key that it names; 0: it names none, and is that of `place`
        uint64_t bytes;    // UINT64_MAX: something that is no value
        uint16_t place;
    } values[]; // in the order they came in; room for `due`
};

// Parses bytes of the stream, up to the end of at most replies_max replies or of one that is broken
// (reply_is_broken), or of what stands in front of one (parser->aside), and returns how many it
// took: at least one. Of a connection that the server refuses (parser->refused) it takes all, and
// nothing is a reply.
size_t reply_parse(const struct protocol *protocol, struct reply_parser *parser, const char *bytes,
                   size_t count, struct reply *replies, size_t replies_max, size_t *reply_count);

// Whether bytes, the first that a server says, are one of the protocol's refusals.
bool reply_refuses(const struct protocol *protocol, const char *bytes, size_t count);

// The stream has ended in order. True: so has the reply under way, which nothing else delimits.
bool reply_end_with_stream(struct reply_parser *parser, struct reply *reply);

// Lists a value of the reply under way, and returns what that is then: REPLY_MALFORMED where there
// are more than keys were asked for. key_hash 0: it is the value of the key at that place.
enum reply_kind reply_list_value(struct reply_parser *parser, unsigned place, uint64_t key_hash,
                                 uint64_t bytes);

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
