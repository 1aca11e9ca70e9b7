// SPDX-License-Identifier: MIT
#include "workloads/protocols/reply_parser.h"

#include <ctype.h>
#include <string.h>

void reply_note_said(struct reply_parser *parser, const char *bytes, size_t count)
{
    size_t said = count < sizeof parser->said ? count : sizeof parser->said - 1;
    if (parser->quoted || !count)
        return;
    for (size_t i = 0; i < said; i++)
        parser->said[i] = (char)(isprint((unsigned char)bytes[i]) ? bytes[i] : '?');
    parser->said[said] = '\0';
    parser->quoted = true;
}

enum reply_kind reply_list_value(struct reply_parser *parser, unsigned place, uint64_t key_hash,
                                 uint64_t bytes)
{
    struct reply_list *list = parser->list;
    if (list->count >= list->due || place >= list->due)
        return REPLY_MALFORMED;
    list->values[list->count++] =
        (struct listed_value){.key_hash = key_hash, .bytes = bytes, .place = (uint16_t)place};
    return REPLY_VALUE;
}

// Takes bytes up to the end of the current line and returns how many. *whole: the line is, and not
// copied if the caller's bytes hold all of it. Of one that is too long parser->line has the begin.
static size_t take_line(struct reply_parser *parser, const char *bytes, size_t count,
                        struct reply_line *line, bool *whole)
{
    const char *newline = memchr(bytes, '\n', count);
    size_t taken = newline ? (size_t)(newline - bytes) + 1 : count;
    *whole = newline != NULL;
    *line = (struct reply_line){.bytes = bytes, .count = taken};
    if (!newline || parser->line_bytes || parser->skipping || taken > sizeof parser->line) {
        const size_t room = parser->skipping ? 0 : sizeof parser->line - parser->line_bytes;
        if (room)
            memcpy(parser->line + parser->line_bytes, bytes, taken < room ? taken : room);
        parser->skipping |= taken > room;
        parser->line_bytes += (uint32_t)taken;
        line->bytes = parser->line;
        line->count = parser->skipping ? 0 : parser->line_bytes;
    }
    if (!newline)
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

// Takes bytes of a value. Unless it is raw, parser->data_left includes the CR LF behind it.
static size_t take_data(struct reply_parser *parser, const char *bytes, size_t count)
{
    uint64_t left = parser->data_left;
    size_t taken = count < left ? count : (size_t)left;
    const uint64_t words = parser->raw_data ? left : left > 2 ? left - 2 : 0;
    if (reply_is_fault(parser->kind))
        reply_note_said(parser, bytes, taken < words ? taken : (size_t)words);
    for (size_t i = left > 2 ? (size_t)(left - 2) : 0; i < taken && !parser->raw_data; i++)
        if (bytes[i] != (left - i == 2 ? '\r' : '\n'))
            parser->data_damaged = true;
    parser->data_left -= taken;
    return taken;
}

// How long the refusal is that these words begin, or that begins them; 0: they are none.
static size_t refusal_bytes(const struct protocol *protocol, const char *words, size_t count)
{
    for (size_t i = 0; i < PROTOCOL_REFUSALS && protocol->refusals[i]; i++) {
        const size_t bytes = strlen(protocol->refusals[i]);
        if (memcmp(words, protocol->refusals[i], count < bytes ? count : bytes) == 0)
            return bytes;
    }
    return 0;
}

bool reply_refuses(const struct protocol *protocol, const char *bytes, size_t count)
{
    const size_t refusal = refusal_bytes(protocol, bytes, count);
    return refusal && count >= refusal;
}

// Takes what begins as no header does: words, of which only a refusal's are waited for.
static size_t take_words(const struct protocol *protocol, struct reply_parser *parser,
                         const char *bytes, size_t count, enum reply_progress *progress)
{
    const char *end = memchr(bytes, '\r', count);
    size_t taken = 0, refusal;
    do {
        parser->line[parser->line_bytes++] = bytes[taken++];
        refusal = parser->reply_begin ? 0 // said later it is no refusal
                                      : refusal_bytes(protocol, parser->line, parser->line_bytes);
    } while (taken < count && parser->line_bytes < refusal);
    if (parser->line_bytes < refusal)
        return taken;
    *progress = reply_lose(parser, REPLY_MALFORMED);
    if (parser->line_bytes == taken)
        reply_note_said(parser, bytes, end ? (size_t)(end - bytes) : count);
    else
        reply_note_said(parser, parser->line, parser->line_bytes);
    return taken;
}

static size_t take_header(struct reply_parser *parser, const char *bytes, size_t count,
                          size_t wanted)
{
    size_t missing = wanted - parser->line_bytes, taken = count < missing ? count : missing;
    memcpy(parser->line + parser->line_bytes, bytes, taken);
    parser->line_bytes += (uint32_t)taken;
    return taken;
}

// Takes the next part of the reply under way. Returns how many bytes that was.
static size_t take_part(const struct protocol *protocol, struct reply_parser *parser,
                        const char *bytes, size_t count, enum reply_progress *progress)
{
    const size_t header_bytes = protocol->header_bytes;
    struct reply_line line;
    size_t taken;
    bool whole;
    *progress = REPLY_UNDER_WAY;
    if (protocol->take) {
        taken = protocol->take(protocol, parser, bytes, count, progress);
    } else if (parser->data_left) {
        taken = take_data(parser, bytes, count);
        if (parser->data_left == 0)
            *progress = protocol->end_data(parser);
    } else if (!header_bytes) {
        const uint32_t before = parser->line_bytes;
        taken = take_line(parser, bytes, count, &line, &whole);
        const bool endless = before + taken > REPLY_LINE_BYTES_MAX; // also if its end came with it
        if (endless)
            *progress = reply_lose(parser, REPLY_OVERSIZED);
        else if (whole)
            *progress = protocol->judge_line(parser, &line);
        if (endless)
            reply_note_said(parser, parser->line, sizeof parser->line);
        // An error's words may be the data behind it; those of a reply to another request are not.
        if (whole && reply_is_fault(parser->kind) &&
            (!parser->data_left || reply_is_broken(parser->kind)))
            reply_note_said(parser, line.bytes, line.count);
    } else if (parser->resync) {
        const char *found = memchr(bytes, protocol->header_begin, count);
        taken = found ? (size_t)(found - bytes) : count;
        parser->resync = !found;
    } else if (protocol->header_begin_alone &&
               (parser->line_bytes ? *parser->line : *bytes) != protocol->header_begin) {
        taken = take_words(protocol, parser, bytes, count, progress);
    } else {
        taken = take_header(parser, bytes, count, header_bytes);
        parser->raw_data = true;
        if (parser->line_bytes == header_bytes)
            *progress = protocol->judge_header(parser);
    }
    return taken;
}

static void finish_reply(struct reply_parser *parser, bool lost, struct reply *reply)
{
    if (parser->list && parser->list->count && parser->kind == REPLY_MISS)
        parser->kind = REPLY_VALUE; // of others than its last key
    *reply = (struct reply){.kind = parser->kind,
                            .begin = parser->reply_begin,
                            .end = parser->offset,
                            .value_bytes = parser->value_bytes,
                            .key_hash = parser->key_hash};
    parser->number++;
    parser->key_hash = 0;
    parser->quoted = false;
    parser->data_left = parser->value_bytes = parser->elements = 0;
    parser->line_bytes = 0;
    parser->values = 0;
    parser->state = parser->kind = 0;
    parser->parts_due = parser->parts_past = parser->part_fault = 0;
    parser->list = NULL;
    parser->in_reply = parser->skipping = parser->data_damaged = false;
    parser->chunked = parser->sized = parser->raw_data = false;
    parser->until_end = parser->bodiless = false;
    parser->resync = lost;
}

// True for words that refuse the connection: neither a greeting nor a request is answered by them.
static bool take_refusal(const struct protocol *protocol, struct reply_parser *parser)
{
    if (parser->reply_begin || !reply_is_fault(parser->kind) || !parser->quoted ||
        !reply_refuses(protocol, parser->said, strlen(parser->said)))
        return false;
    parser->in_reply = false;
    return parser->refused = parser->closing = true;
}

static bool is_greeting(const struct protocol *protocol, const struct reply_parser *parser)
{
    return protocol->greets && !parser->login && !parser->number && !parser->greeted;
}

// True for the reply to the greeting in front of the first request, which ends here. What it says
// is passed over: the request's own reply shows whether the server knows the greeting.
static bool pass_greeting(const struct protocol *protocol, struct reply_parser *parser)
{
    if (!is_greeting(protocol, parser) || parser->kind >= REPLY_MALFORMED)
        return false;
    parser->greeted = true;
    parser->state = 0;
    parser->value_bytes = 0;
    return true;
}

// Of a reply in which each key has a part: one ends here.
static void list_part(struct reply_parser *parser)
{
    struct reply_list *list = parser->list;
    if (!list || !list->apart || reply_is_broken(parser->kind))
        return;
    if (reply_finds(parser->kind))
        list->told++;
    if (parser->kind == REPLY_VALUE)
        parser->kind =
            (uint8_t)reply_list_value(parser, parser->parts_past, 0, parser->value_bytes);
}

// Whether a part in front of the last one says that its command was taken.
static bool part_is_good(const struct reply_parser *parser)
{
    return parser->list ? reply_finds(parser->kind) : parser->kind == REPLY_STORED;
}

// True for a part in front of the reply's last one, which ends here. Where one was not taken, the
// first that says so is the reply, whatever comes after it.
static bool pass_part(struct reply_parser *parser)
{
    if (!parser->parts_due || reply_is_broken(parser->kind))
        return false;
    if (!parser->part_fault && !part_is_good(parser)) {
        if (!reply_is_fault(parser->kind)) {
            parser->kind = REPLY_MALFORMED;
            return false;
        }
        parser->part_fault = parser->kind;
    }
    parser->parts_due--;
    parser->parts_past++;
    parser->state = parser->kind = 0;
    parser->value_bytes = 0;
    return true;
}

// Whether a reply begins of which nothing is known beforehand.
static bool may_be_usual(const struct protocol *protocol, const struct reply_parser *parser)
{
    return protocol->take_usual && !parser->in_reply && !parser->resync && !parser->parts_due &&
           !parser->list && !parser->bodiless && !parser->closing && !is_greeting(protocol, parser);
}

// Takes whole replies of the usual kinds, up to the first other one: nothing of them is gathered in
// the parser, and so nothing is to be forgotten after each. Returns how many bytes that was.
static size_t take_usual(const struct protocol *protocol, struct reply_parser *parser,
                         const char *bytes, size_t count, struct reply *replies, size_t replies_max,
                         size_t *reply_count)
{
    const uint64_t offset = parser->offset;
    size_t used = 0, found = 0, taken;
    while (found < replies_max &&
           (taken = protocol->take_usual(bytes + used, count - used, &replies[found]))) {
        replies[found].begin = offset + used;
        used += taken;
        replies[found++].end = offset + used;
    }
    parser->offset += used;
    parser->number += found;
    *reply_count += found;
    return used;
}

size_t reply_parse(const struct protocol *protocol, struct reply_parser *parser, const char *bytes,
                   size_t count, struct reply *replies, size_t replies_max, size_t *reply_count)
{
    size_t used = 0;
    *reply_count = 0;
    bool broken = false; // what is behind such a reply may be no reply
    parser->aside = false;
    while (used < count && *reply_count < replies_max && !broken && !parser->aside &&
           !parser->refused) {
        if (may_be_usual(protocol, parser))
            used += take_usual(protocol, parser, bytes + used, count - used, replies + *reply_count,
                               replies_max - *reply_count, reply_count);
        if (used == count || *reply_count == replies_max)
            break;
        enum reply_progress progress;
        if (!parser->in_reply)
            parser->reply_begin = parser->offset;
        parser->in_reply = true;
        struct reply_list *const list = parser->list;
        if (is_greeting(protocol, parser))
            parser->list = NULL; // its values are not those that were asked for
        size_t taken = take_part(protocol, parser, bytes + used, count - used, &progress);
        parser->list = list;
        used += taken;
        parser->offset += taken;
        parser->aside = progress == REPLY_ASIDE && !parser->parts_past;
        if (progress >= REPLY_ENDED && take_refusal(protocol, parser))
            break;
        if (progress < REPLY_ENDED || pass_greeting(protocol, parser))
            continue;
        list_part(parser);
        if (!pass_part(parser)) {
            broken = reply_is_broken(parser->kind);
            if (parser->part_fault && !broken)
                parser->kind = parser->part_fault;
            finish_reply(parser, progress == REPLY_LOST, &replies[(*reply_count)++]);
        }
    }
    if (!parser->refused)
        return used;
    parser->offset += count - used; // nobody asked for any of it
    return count;
}

bool reply_end_with_stream(struct reply_parser *parser, struct reply *reply)
{
    if (!parser->until_end || !parser->data_left)
        return false; // its header is not whole yet
    parser->value_bytes -= parser->data_left;
    finish_reply(parser, false, reply);
    return true;
}

enum reply_progress reply_ends_with_data(struct reply_parser *parser)
{
    (void)parser;
    return REPLY_ENDED;
}

enum reply_progress reply_ends_with_line(struct reply_parser *parser)
{
    if (parser->data_damaged && parser->kind == REPLY_VALUE)
        parser->kind = REPLY_MALFORMED;
    return REPLY_ENDED;
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
    enum { DIGITS_SAFE = 19 }; // of any number below 2^64
    const char *begin = *at, *here = begin;
    const char *safe = end - begin > DIGITS_SAFE ? begin + DIGITS_SAFE : end;
    uint64_t value = 0;
    for (; here < safe && *here >= '0' && *here <= '9'; here++)
        value = value * 10 + (uint64_t)(*here - '0');
    value = value > limit ? limit + 1 : value;
    for (; here < end && *here >= '0' && *here <= '9'; here++) {
        const uint64_t digit = (uint64_t)(*here - '0');
        value = value > limit || digit > limit || value > (limit - digit) / 10 ? limit + 1
                                                                               : value * 10 + digit;
    }
    *at = here;
    *out = value;
    return here > begin;
}
