// SPDX-License-Identifier: MIT
//
// HTTP/1.1, client side: on connections kept alive, pipelined (RFC 9110, RFC 9112). What requests
// say besides method and key: workloads/protocols/http_words.h.
// Bodies are delimited by Content-Length, by chunks or by the connection's end. 2xx is a value, 404
// and 410 a miss, 5xx the server's error, the rest the client's; 1xx come in front of a reply and
// are none.
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "workloads/protocols/http_semantics.h"
#include "workloads/protocols/http_words.h"
#include "workloads/protocols/protocol.h"
#include "workloads/protocols/reply_parser.h"

static const uint64_t body_bytes_limit = (uint64_t)1 << 40;

static char usual_before[] = " /",
            usual_after[] = " HTTP/1.1\r\nHost: taillight\r\nUser-Agent: taillight\r\n";
static const struct http_words usual_words = {.before = usual_before,
                                              .before_bytes = sizeof usual_before - 1,
                                              .after = usual_after,
                                              .after_bytes = sizeof usual_after - 1};

enum { LENGTH_BYTES_MAX = 40 }; // of the header in front of a body

static size_t request_bytes_max(size_t key_bytes, size_t value_bytes)
{
    return strlen("DELETE") + http_words_bytes(&usual_words) + key_bytes + LENGTH_BYTES_MAX +
           strlen("\r\n") + value_bytes;
}

static char *put(char *out, const char *bytes, size_t count)
{
    memcpy(out, bytes, count);
    return out + count;
}

static size_t http_encode(const struct request *request, char *out, size_t out_bytes)
{
    const struct http_words *words = request->http ? request->http : &usual_words;
    const char *method = http_methods[request->operation];
    const size_t method_bytes = strlen(method), key_bytes = words->fixed ? 0 : request->key_bytes;
    size_t body_bytes = 0, length_bytes = 0;
    char length[LENGTH_BYTES_MAX];
    if (request->value) {
        body_bytes = request->value_bytes;
        length_bytes =
            (size_t)snprintf(length, sizeof length, "Content-Length: %zu\r\n", body_bytes);
    }
    const size_t bytes = method_bytes + http_words_bytes(words) + key_bytes + length_bytes +
                         strlen("\r\n") + body_bytes;
    if (bytes > out_bytes)
        return 0;
    out = put(out, method, method_bytes);
    out = put(out, words->before, words->before_bytes);
    out = put(out, request->key, key_bytes);
    out = put(out, words->after, words->after_bytes);
    out = put(out, length, length_bytes);
    out = put(out, "\r\n", strlen("\r\n"));
    if (body_bytes)
        put(out, request->value, body_bytes);
    return bytes;
}

// --- replies -------------------------------------------------------------------------------------

enum state {
    STATE_STATUS,     // a status line comes
    STATE_HEADERS,    // header lines, up to an empty one
    STATE_BODY,       // data_left bytes, or fewer if it is until_end
    STATE_CHUNK_SIZE, // the line in front of a chunk
    STATE_CHUNK,      // data_left bytes with their CR LF
    STATE_TRAILERS,   // lines behind the last chunk, up to an empty one
};

enum { KIND_INTERIM = REPLY_KINDS }; // of a 1xx, while its headers pass

// "HTTP/1.x <three digits> <reason>".
static enum reply_progress judge_status(struct reply_parser *parser, const struct reply_line *line)
{
    if (!line_starts_with(line, "HTTP/1.") || line->count < 12 || line->bytes[8] != ' ' ||
        (line->count > 12 && line->bytes[12] != ' '))
        return reply_lose(parser, REPLY_MALFORMED);
    const char *at = line->bytes + 9;
    uint64_t status;
    // 101: another protocol comes now, which nobody asked for.
    if (!line_digits(&at, line->bytes + 12, 999, &status) || at != line->bytes + 12 ||
        status < 100 || status == 101)
        return reply_lose(parser, REPLY_MALFORMED);
    parser->kind = (uint8_t)http_kind_of_status((unsigned)status);
    if (status / 100 == 1)
        parser->kind = KIND_INTERIM;
    parser->state = STATE_HEADERS;
    parser->closing = line->bytes[7] == '0'; // HTTP/1.0, unless a header says otherwise
    parser->closing_said = false;
    // These have no body, whatever they say, nor has what answers a HEAD (RFC 9112 6.3).
    parser->sized = status == 204 || status == 304 || parser->bodiless;
    parser->values = parser->sized;
    return REPLY_UNDER_WAY;
}

static void trim(const char **at, const char **end)
{
    while (*at < *end && (**at == ' ' || **at == '\t'))
        (*at)++;
    while (*end > *at && ((*end)[-1] == ' ' || (*end)[-1] == '\t'))
        (*end)--;
}

// The value of a header of that name, blanks trimmed; false: it is another header.
static bool header_is(const struct reply_line *line, const char *name, const char **value,
                      const char **end)
{
    size_t bytes = strlen(name);
    if (line->count <= bytes || line->bytes[bytes] != ':' ||
        strncasecmp(line->bytes, name, bytes) != 0)
        return false;
    *value = line->bytes + bytes + 1;
    *end = line->bytes + line->count;
    trim(value, end);
    return true;
}

// Whether a list of words has that one, in any case (RFC 9110 5.6.1).
static bool lists(const char *at, const char *end, const char *word)
{
    const size_t bytes = strlen(word);
    while (at < end) {
        const char *comma = memchr(at, ',', (size_t)(end - at)), *last = comma ? comma : end;
        const char *next = last + 1;
        trim(&at, &last);
        if ((size_t)(last - at) == bytes && strncasecmp(at, word, bytes) == 0)
            return true;
        at = next;
    }
    return false;
}

// A length, or a list of the same one again and again, as of several such headers that somebody on
// the way made one (RFC 9110 8.6).
static enum reply_progress judge_length(struct reply_parser *parser, const char *value,
                                        const char *end)
{
    bool more;
    do {
        const char *comma = memchr(value, ',', (size_t)(end - value)), *last = comma ? comma : end;
        uint64_t length;
        trim(&value, &last);
        if (!line_digits(&value, last, body_bytes_limit, &length) || value != last ||
            (parser->sized && length != parser->elements))
            return reply_lose(parser, REPLY_MALFORMED);
        if (length > body_bytes_limit)
            return reply_lose(parser, REPLY_OVERSIZED);
        parser->sized = true;
        parser->elements = length;
        if ((more = comma))
            value = comma + 1;
    } while (more);
    return REPLY_UNDER_WAY;
}

// Headers say how the body is delimited; until it comes parser->elements holds its length.
static enum reply_progress judge_header(struct reply_parser *parser, const struct reply_line *line)
{
    const char *value, *end;
    if (line->too_long)
        return REPLY_UNDER_WAY; // no header that matters is that long
    if (header_is(line, "Connection", &value, &end)) {
        if (lists(value, end, "close")) // it prevails, in whichever of several (RFC 9112 9.3)
            parser->closing = parser->closing_said = true;
        else if (lists(value, end, "keep-alive"))
            parser->closing = parser->closing_said;
        return REPLY_UNDER_WAY;
    }
    if (parser->values)
        return REPLY_UNDER_WAY; // a reply without body needs none of the others
    if (header_is(line, "Transfer-Encoding", &value, &end)) {
        // Chunked is the last of the encodings, or the connection's end is the body's (RFC
        // 9112 6.3).
        parser->chunked = end - value >= 7 && strncasecmp(end - 7, "chunked", 7) == 0;
        parser->until_end = !parser->chunked;
    } else if (header_is(line, "Content-Length", &value, &end)) {
        return judge_length(parser, value, end);
    }
    return REPLY_UNDER_WAY;
}

// The empty line behind the headers.
static enum reply_progress end_headers(struct reply_parser *parser)
{
    if (parser->kind == KIND_INTERIM) {
        parser->state = STATE_STATUS;
        parser->chunked = parser->sized = parser->until_end = false;
        parser->elements = 0;
        return REPLY_UNDER_WAY;
    }
    if (parser->chunked) { // it overrides a length (RFC 9112 6.3)
        parser->state = STATE_CHUNK_SIZE;
        return REPLY_UNDER_WAY;
    }
    parser->until_end = !parser->values && (parser->until_end || !parser->sized);
    if (parser->until_end) {
        parser->elements = body_bytes_limit + 1;
        parser->closing = true;
    }
    parser->state = STATE_BODY;
    parser->data_left = parser->value_bytes = parser->values ? 0 : parser->elements;
    parser->raw_data = true;
    return parser->data_left ? REPLY_UNDER_WAY : REPLY_ENDED;
}

// "<hexadecimal length>[;extension]".
static enum reply_progress judge_chunk_size(struct reply_parser *parser,
                                            const struct reply_line *line)
{
    uint64_t length = 0;
    size_t i = 0;
    for (; i < line->count; i++) {
        char digit = line->bytes[i];
        int value = digit >= '0' && digit <= '9'   ? digit - '0'
                    : digit >= 'a' && digit <= 'f' ? digit - 'a' + 10
                    : digit >= 'A' && digit <= 'F' ? digit - 'A' + 10
                                                   : -1;
        if (value < 0)
            break;
        length = length > body_bytes_limit ? length : length * 16 + (uint64_t)value;
    }
    if (i == 0 || (i < line->count && !strchr("; \t", line->bytes[i])))
        return reply_lose(parser, REPLY_MALFORMED);
    if (length > body_bytes_limit || parser->value_bytes + length > body_bytes_limit)
        return reply_lose(parser, REPLY_OVERSIZED);
    parser->value_bytes += length;
    parser->data_left = length ? length + 2 : 0;
    parser->state = length ? STATE_CHUNK : STATE_TRAILERS;
    return REPLY_UNDER_WAY;
}

static enum reply_progress http_judge(struct reply_parser *parser, const struct reply_line *line)
{
    switch (parser->state) {
    case STATE_STATUS:
        if (parser->resync && (line->too_long || !line_starts_with(line, "HTTP/1.")))
            return REPLY_UNDER_WAY; // lines that are not understood, up to a status line
        parser->resync = false;
        return line->too_long ? reply_lose(parser, REPLY_OVERSIZED) : judge_status(parser, line);
    case STATE_HEADERS:
        return line->count == 0 && !line->too_long ? end_headers(parser)
                                                   : judge_header(parser, line);
    case STATE_CHUNK_SIZE:
        return line->too_long ? reply_lose(parser, REPLY_OVERSIZED)
                              : judge_chunk_size(parser, line);
    default: // trailers
        return line->count == 0 && !line->too_long ? REPLY_ENDED : REPLY_UNDER_WAY;
    }
}

static enum reply_progress http_end_data(struct reply_parser *parser)
{
    if (parser->until_end)
        return reply_lose(parser, REPLY_OVERSIZED);
    if (parser->state == STATE_BODY)
        return REPLY_ENDED;
    if (parser->data_damaged)
        return reply_lose(parser, REPLY_MALFORMED);
    parser->state = STATE_CHUNK_SIZE;
    return REPLY_UNDER_WAY;
}

// Whether a header line may be one of those that say where the reply ends: Connection,
// Content-Length, Transfer-Encoding. Others may look so.
static bool may_matter(const char *line, size_t count)
{
    const char first = *line | 0x20; // in lower case
    return (first == 'c' && count > 10 && line[10] == ':') ||
           (first == 'c' && count > 14 && line[14] == ':') ||
           (first == 't' && count > 17 && line[17] == ':');
}

// The length in a line of that many bytes, if it is "Content-Length: <digits>" as most write it.
static bool usual_length(const char *line, size_t count, uint64_t *length)
{
    static const char name[] = "Content-Length: ";
    enum { NAME_BYTES = sizeof name - 1, DIGITS_MAX = 9 };
    if (count <= NAME_BYTES + strlen("\r\n") || count > NAME_BYTES + DIGITS_MAX + strlen("\r\n") ||
        memcmp(line, name, NAME_BYTES) != 0)
        return false;
    const char *at = line + NAME_BYTES, *end = line + count;
    for (*length = 0; *at >= '0' && *at <= '9'; at++)
        *length = *length * 10 + (uint64_t)(*at - '0');
    return end - at == 2 && *at == '\r';
}

// A 200 with a length, behind which the connection stays.
static size_t http_take_usual(const char *bytes, size_t count, struct reply *reply)
{
    static const char status[] = "HTTP/1.1 200 ", kept[] = "Connection: keep-alive\r\n";
    enum { STATUS_BYTES = sizeof status - 1, KEPT_BYTES = sizeof kept - 1 };
    const char *const end = bytes + count, *line = bytes, *newline;
    uint64_t length = 0;
    bool sized = false;
    if (count < STATUS_BYTES || memcmp(bytes, status, STATUS_BYTES) != 0)
        return 0;
    while ((newline = memchr(line, '\n', (size_t)(end - line)))) {
        const size_t line_bytes = (size_t)(newline + 1 - line);
        if (line_bytes == 2 && *line == '\r')
            break;
        if (may_matter(line, line_bytes)) {
            if (!sized && usual_length(line, line_bytes, &length))
                sized = true;
            else if (line_bytes != KEPT_BYTES || memcmp(line, kept, KEPT_BYTES) != 0)
                return 0;
        } else if (line_bytes == 1) {
            return 0;
        }
        line = newline + 1;
    }
    if (!newline || !sized || (size_t)(end - newline - 1) < length ||
        newline - bytes > REPLY_LINE_BYTES_MAX)
        return 0;
    *reply = (struct reply){.kind = REPLY_VALUE, .value_bytes = length};
    return (size_t)(newline + 1 - bytes) + length;
}

const struct protocol http_protocol = {
    .name = http_name,
    .speaks = "HTTP/1.1 on connections kept alive",
    .replies =
        "`GET /<key>`, or what `http` says, keep-alive; a put or post carries the key's "
        "value; a reply to a head has no body; 2xx and 304 a value, 404 and 410 a miss, 5xx the "
        "server's error, the rest the "
        "client's",
    .operations = http_operations,
    .operation_count = HTTP_METHODS,
    .usual_port = 80,
    .tls_port = 443,
    PROTOCOL_PROBE("OPTIONS * HTTP/1.1\r\nHost: taillight\r\nConnection: close\r\n\r\n"),
    .probe_answers = {"HTTP/1."},
    .dataset = DATASET_NONE,
    .takes_http_words = true,
    .request_bytes_max = request_bytes_max,
    .encode = http_encode,
    .judge_line = http_judge,
    .take_usual = http_take_usual,
    .end_data = http_end_data,
    .answers = http_answers,
};
