// SPDX-License-Identifier: MIT
//
// HTTP/1.1 (RFC 9112 §6): a start line, fields, and a body that Content-Length or chunks end. A
// reply's body that ends with its connection, an upgrade and a tunnel end what can be told apart.
#include "workloads/framing/framing.h"
#include "workloads/framing/framing_words.h"

#include <string.h>
#include <strings.h>

enum { START, FIELDS, CHUNK, TRAILERS };
enum { CHUNKED = 1 << 0, NO_BODY = 1 << 1, INTERIM = 1 << 2, END_BYTES = 2 };
enum { HEADLESS_BITS = 64 };

// In `pending`: what the fields have said so far, and the length above it.
enum { LENGTH_SHIFT = 8 };

// As far as both go.
static bool agrees(const char *bytes, size_t count, const char *text)
{
    size_t most = strlen(text);
    return count && memcmp(bytes, text, count < most ? count : most) == 0;
}

static bool begins(bool is_reply, const char *bytes, size_t count)
{
    static const char *const methods[] = {"GET ",    "HEAD ",    "POST ",  "PUT ",
                                          "DELETE ", "OPTIONS ", "PATCH ", "TRACE "};
    if (is_reply)
        return agrees(bytes, count, "HTTP/1.");
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (agrees(bytes, count, methods[i]))
            return true;
    return false;
}

static size_t head_bytes(const struct framing_stream *stream, unsigned char first)
{
    (void)stream;
    (void)first;
    return 0;
}

static enum framing_step take_request_line(struct framing *framing, const char *at, const char *end)
{
    struct framing_word method = framing_next_word(&at, end);
    uint64_t bit = 1ull << framing->asked % HEADLESS_BITS;
    if (method.count == 0)
        return FRAMING_NO_ANSWER; // an empty line between requests (RFC 9112 §2.2)
    if (framing_word_is(method, "CONNECT") ||
        (framing_word_is(method, "HEAD") &&
         framing->asked - framing->answered >= HEADLESS_BITS)) // its mark would be another's
        return FRAMING_GIVES_UP;
    framing->headless &= ~bit;
    if (framing_word_is(method, "HEAD"))
        framing->headless |= bit;
    return FRAMING_GOES_ON;
}

static enum framing_step take_status_line(const struct framing *framing,
                                          struct framing_stream *stream, const char *at,
                                          const char *end)
{
    uint64_t status;
    framing_next_word(&at, end);
    struct framing_word word = framing_next_word(&at, end);
    if (!framing_number(word.at, word.count, 10, &status) || status == 101)
        return FRAMING_GIVES_UP;
    if (status < 200)
        stream->pending |= INTERIM;
    if (status < 200 || status == 204 || status == 304 ||
        (framing->headless >> framing->answered % HEADLESS_BITS & 1))
        stream->pending |= NO_BODY;
    return FRAMING_GOES_ON;
}

static bool is_field(const char *at, const char *end, const char *name, const char **value)
{
    size_t bytes = strlen(name);
    if ((size_t)(end - at) <= bytes || strncasecmp(at, name, bytes) != 0 || at[bytes] != ':')
        return false;
    for (*value = at + bytes + 1; *value < end && (**value == ' ' || **value == '\t');)
        ++*value;
    return true;
}

// A length, or the same one several times (RFC 9110 8.6).
static enum framing_step take_length(struct framing_stream *stream, const char *at, const char *end)
{
    for (bool more = true; more;) {
        const char *comma = memchr(at, ',', (size_t)(end - at)), *last = comma ? comma : end;
        uint64_t length;
        while (at < last && (*at == ' ' || *at == '\t'))
            at++;
        while (last > at && (last[-1] == ' ' || last[-1] == '\t'))
            last--;
        if (!framing_number(at, (size_t)(last - at), 10, &length) ||
            (stream->has_length && length != stream->pending >> LENGTH_SHIFT))
            return FRAMING_GIVES_UP;
        stream->has_length = true;
        stream->pending = (stream->pending & ((1 << LENGTH_SHIFT) - 1)) | length << LENGTH_SHIFT;
        if ((more = comma))
            at = comma + 1;
    }
    return FRAMING_GOES_ON;
}

static enum framing_step take_field(struct framing_stream *stream, const char *at, const char *end)
{
    const char *value;
    if (is_field(at, end, "content-length", &value)) {
        return take_length(stream, value, end);
    } else if (is_field(at, end, "transfer-encoding", &value)) {
        stream->pending |= CHUNKED;
    }
    return FRAMING_GOES_ON;
}

// The empty line behind the fields.
static enum framing_step end_of_fields(const struct framing *framing, struct framing_stream *stream)
{
    uint64_t said = stream->pending, length = said >> LENGTH_SHIFT;
    stream->pending = 0;
    if (said & INTERIM) { // the reply is still to come
        stream->phase = START;
        stream->has_length = false;
        return FRAMING_GOES_ON;
    }
    if (said & NO_BODY)
        return FRAMING_ENDS;
    if (said & CHUNKED) {
        stream->phase = CHUNK;
        return FRAMING_GOES_ON;
    }
    if (!stream->has_length && stream == &framing->replies)
        return FRAMING_GIVES_UP; // its connection's end is the body's
    stream->skip = stream->has_length ? length : 0;
    return FRAMING_ENDS;
}

static enum framing_step take_chunk(struct framing_stream *stream, const char *at, const char *end)
{
    uint64_t bytes;
    size_t digits = 0;
    while (at + digits < end && !strchr("; \t", at[digits]))
        digits++;
    if (!framing_number(at, digits, 16, &bytes))
        return FRAMING_GIVES_UP;
    if (bytes)
        stream->skip = bytes + END_BYTES;
    else
        stream->phase = TRAILERS;
    return FRAMING_GOES_ON;
}

static enum framing_step take_head(struct framing *framing, struct framing_stream *stream,
                                   const char *head, size_t count)
{
    const char *end = head + count;
    while (end > head && (end[-1] == '\n' || end[-1] == '\r'))
        end--;
    switch (stream->phase) {
    case START:
        stream->phase = FIELDS;
        return stream == &framing->requests ? take_request_line(framing, head, end)
                                            : take_status_line(framing, stream, head, end);
    case FIELDS:
        return end == head ? end_of_fields(framing, stream) : take_field(stream, head, end);
    case CHUNK:
        return take_chunk(stream, head, end);
    default:
        return end == head ? FRAMING_ENDS : FRAMING_GOES_ON;
    }
}

const struct framing_grammar framing_http = {"http", begins, head_bytes, take_head};
