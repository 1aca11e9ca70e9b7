// SPDX-License-Identifier: MIT
#include "workloads/protocols/http2_session.h"

#include <inttypes.h>
#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/protocols/encode.h"
#include "workloads/protocols/http2_memory.h"
#include "workloads/protocols/http_words.h"
#include "workloads/protocols/reply_parser.h"

enum {
    FRAME_HEADER_BYTES = 9,
    FRAME_PAYLOAD_BYTES = 16384, // what any peer takes (RFC 9113, 4.2)
    SETTINGS_FRAME = 4,          // 11.2
    SETTING_BYTES = 6,
    HEADERS_MAX = 64,              // 4 pseudo headers, the dialect's, 32 of the workload's
    HEADER_OVERHEAD = 16,          // two lengths and a tag (RFC 7541, 6.2); Huffman never lengthens
    WINDOW_BYTES = 1 << 30,        // of replies: never in a server's way
    HEADER_LIST_BYTES = 256 << 10, // of a reply, as SETTINGS_MAX_HEADER_LIST_SIZE counts (6.5.2)
    HEADER_LIST_OVERHEAD = 32,     // of each header
    FRAMES_IN_VAIN = 10000,        // in a row, of which no reply comes nearer
    PSEUDO_METHOD = 0,
    PSEUDO_SCHEME,
    PSEUDO_AUTHORITY,
    PSEUDO_PATH,
    PSEUDO_HEADERS,
};

static const char key_mark[] = "{key}";

// A stream: a request under way.
struct stream {
    struct stream *next; // of those that are free
    uint64_t number;
    struct http2_reply reply;
    bool settled; // its event was called
    bool reset;   // the server ended it by RST_STREAM
};

struct http2_session {
    struct http2_settings settings;
    nghttp2_session *nghttp2; // NULL: between two connections
    nghttp2_session_callbacks *callbacks;
    nghttp2_option *option;
    struct http2_memory memory;
    struct stream *streams; // settings.depth of them, `used` of which were ever in use
    struct stream *free;    // of those: not at present
    uint32_t used, open;
    int32_t looked_for;   // the stream that was last; 0: none was
    struct stream *found; // and what it is; NULL: not ours, or it has ended
    uint32_t limit;       // MAX_CONCURRENT_STREAMS
    int32_t last_stream;  // after GOAWAY: the last one that the server looks at
    bool met;             // the first frame's header was right
    bool ready, going, ended, broken;
    bool quiet;              // there was nothing more to say, and nothing has come since
    bool noted;              // in these bytes: what is wrong with them
    bool own_words;          // what the parser has for people is this side's
    bool resets;             // this side has ended a stream, of which more may still come
    uint32_t surplus_stream; // the last one of which more came than its reply
    uint32_t in_vain;        // frames since a reply or a request last went on
    size_t header_list;      // of the headers that come
    nghttp2_nv headers[HEADERS_MAX];
    size_t header_count;
    char *names;             // the workload's own headers: lower case, with NULs
    char *path;              // of the request being put
    size_t path_begin_bytes; // in front of the key
    const char *path_end;    // behind the key; NULL: there is no key
    size_t path_end_bytes;
    char *body; // of the last request
    size_t body_bytes, body_said;
    int32_t body_stream; // 0: all of it was said
    char *out;           // while it says something
    size_t out_room, out_count;
    char head[FRAME_HEADER_BYTES]; // of the frame that comes
    size_t head_bytes;
    uint64_t frame_begin, frame_left; // its payload's bytes still to come
    const struct http2_place *place;
    char said[REPLY_SAID_BYTES]; // by the headers that come
};

bool http2_begins(const char *bytes, size_t count)
{
    return count >= FRAME_HEADER_BYTES && bytes[3] == SETTINGS_FRAME &&
           big_endian_read(bytes, 3) % SETTING_BYTES == 0 &&
           big_endian_read(bytes, 3) <= FRAME_PAYLOAD_BYTES && bytes[4] == 0 &&
           big_endian_read(bytes + 5, 4) == 0;
}

static void say_fault(struct http2_session *session, const char *what, const char *which)
{
    struct reply_parser *parser = session->settings.parser;
    char text[REPLY_SAID_BYTES];
    int bytes = snprintf(text, sizeof text, "%s%s", what, which);
    session->own_words = false;
    parser->quoted = false;
    reply_note_said(parser, text, (size_t)bytes < sizeof text ? (size_t)bytes : sizeof text - 1);
}

// The same, but these are no words of the server.
static void say_own(struct http2_session *session, const char *what, const char *which)
{
    say_fault(session, what, which);
    session->own_words = true;
}

// The connection is to end, for that reason.
static void break_off(struct http2_session *session, const char *what, const char *which)
{
    session->broken = true;
    say_own(session, what, which);
}

// A server may end a stream, or all of them, with a number that no RFC has.
static const char *error_name(uint32_t code, char room[20])
{
    if (code <= NGHTTP2_HTTP_1_1_REQUIRED)
        return nghttp2_http2_strerror(code);
    snprintf(room, 20, "%" PRIu32, code);
    return room;
}

// --- requests ------------------------------------------------------------------------------------

size_t http2_request_bytes_max(const struct http2_dialect *dialect, size_t key_bytes,
                               size_t value_bytes)
{
    size_t head = FRAME_HEADER_BYTES + PSEUDO_HEADERS * HEADER_OVERHEAD +
                  strlen(":method:scheme:authority:pathDELETEhttpstaillight") +
                  strlen(dialect->path) + key_bytes + HEADER_OVERHEAD +
                  strlen("user-agenttaillight") + HEADER_OVERHEAD + strlen("content-length") +
                  NUMBER_DIGITS_MAX + HEADER_OVERHEAD;
    for (size_t i = 0; dialect->headers[i][0]; i++)
        head += strlen(dialect->headers[i][0]) + strlen(dialect->headers[i][1]) + HEADER_OVERHEAD;
    size_t body = dialect->prefix_bytes + value_bytes;
    return head + body + (body / FRAME_PAYLOAD_BYTES + 2) * FRAME_HEADER_BYTES;
}

static void add_header(struct http2_session *session, const char *name, const char *value,
                       size_t value_bytes)
{
    session->headers[session->header_count++] =
        (nghttp2_nv){.name = (uint8_t *)(uintptr_t)name,
                     .namelen = strlen(name),
                     .value = (uint8_t *)(uintptr_t)value,
                     .valuelen = value_bytes,
                     .flags = NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE};
}

// Those of a workload, which http_words_set has checked: "Name: value" CR LF, as in HTTP/1.1.
static bool add_own_headers(struct http2_session *session, const char *headers)
{
    bool names_agent = false;
    char *at = session->names = strdup(headers ? headers : "");
    if (!at)
        return false;
    for (char *end; *at; at = end + 2) {
        end = strstr(at, "\r\n");
        char *colon = strchr(at, ':'), *value = colon + 1, *last = end;
        for (char *name = at; name < colon; name++)
            *name = (char)(*name >= 'A' && *name <= 'Z' ? *name - 'A' + 'a' : *name);
        while (value < last && (*value == ' ' || *value == '\t'))
            value++;
        while (last > value && (last[-1] == ' ' || last[-1] == '\t'))
            last--;
        *colon = *end = '\0';
        add_header(session, at, value, (size_t)(last - value));
        names_agent |= strcmp(at, "user-agent") == 0;
    }
    if (!names_agent)
        add_header(session, "user-agent", "taillight", strlen("taillight"));
    return true;
}

static bool make_headers(struct http2_session *session)
{
    static const struct http_words none;
    const struct http_words *words = session->settings.words ? session->settings.words : &none;
    const struct http2_dialect *dialect = session->settings.dialect;
    const char *host = words->host ? words->host : "taillight";
    const char *path = words->path ? words->path : dialect->path, *mark = strstr(path, key_mark);
    const char *scheme = session->settings.tls ? "https" : "http";
    session->path = malloc(strlen(path) + WORKLOAD_KEY_BYTES_MAX + 1);
    if (!session->path)
        return false;
    session->path_begin_bytes = mark ? (size_t)(mark - path) : strlen(path);
    session->path_end = mark ? mark + strlen(key_mark) : NULL;
    session->path_end_bytes = mark ? strlen(session->path_end) : 0;
    memcpy(session->path, path, session->path_begin_bytes);
    add_header(session, ":method", "", 0);
    add_header(session, ":scheme", scheme, strlen(scheme));
    add_header(session, ":authority", host, strlen(host));
    add_header(session, ":path", session->path, session->path_begin_bytes);
    for (size_t i = 0; dialect->headers[i][0]; i++)
        add_header(session, dialect->headers[i][0], dialect->headers[i][1],
                   strlen(dialect->headers[i][1]));
    return add_own_headers(session, words->headers);
}

static ssize_t say_body(nghttp2_session *nghttp2, int32_t stream_id, uint8_t *out, size_t room,
                        uint32_t *flags, nghttp2_data_source *source, void *argument)
{
    struct http2_session *session = argument;
    size_t left = session->body_bytes - session->body_said, count = left < room ? left : room;
    (void)nghttp2, (void)stream_id, (void)source;
    memcpy(out, session->body + session->body_said, count);
    session->in_vain = 0;
    session->body_said += count;
    if (count == left) {
        *flags |= NGHTTP2_DATA_FLAG_EOF;
        session->body_stream = 0;
    }
    return (ssize_t)count;
}

void http2_session_put(struct http2_session *session, const struct request *request)
{
    const struct http2_dialect *dialect = session->settings.dialect;
    const char *method = dialect->methods[request->operation];
    const nghttp2_data_provider body = {.read_callback = say_body};
    struct stream *stream = session->free;
    char length[NUMBER_DIGITS_MAX];
    size_t headers = session->header_count;
    session->headers[PSEUDO_METHOD].value = (uint8_t *)(uintptr_t)method;
    session->headers[PSEUDO_METHOD].valuelen = strlen(method);
    if (session->path_end) {
        char *end = append_bytes(session->path + session->path_begin_bytes, request->key,
                                 request->key_bytes);
        end = append_bytes(end, session->path_end, session->path_end_bytes);
        session->headers[PSEUDO_PATH].valuelen = (size_t)(end - session->path);
    }
    const bool has_body = request->value || dialect->always_body;
    session->body_bytes = has_body ? dialect->body(request, session->body) : 0;
    session->body_said = 0;
    if (has_body && dialect->states_length) {
        add_header(session, "content-length", length, 0);
        session->headers[headers].valuelen =
            (size_t)(append_number(length, session->body_bytes) - length);
        session->headers[headers].flags &= (uint8_t)~NGHTTP2_NV_FLAG_NO_COPY_VALUE;
        session->header_count = headers;
        headers++;
    }
    if (stream)
        session->free = stream->next;
    else
        stream = &session->streams[session->used++];
    *stream = (struct stream){.number = request->number, .reply.code = -1};
    int32_t id = nghttp2_submit_request(session->nghttp2, NULL, session->headers, headers,
                                        session->body_bytes ? &body : NULL, stream);
    if (id < 0) { // no memory: the connection is to end, and with it all requests
        break_off(session, "nghttp2: ", nghttp2_strerror(id));
        return;
    }
    session->open++;
    session->quiet = false;
    session->looked_for = 0; // it may have been this one, before there was any
    session->body_stream = session->body_bytes ? id : 0;
}

static ssize_t take_said(nghttp2_session *nghttp2, const uint8_t *bytes, size_t count, int flags,
                         void *argument)
{
    struct http2_session *session = argument;
    size_t taken = count < session->out_room ? count : session->out_room;
    (void)nghttp2, (void)flags;
    if (!taken)
        return NGHTTP2_ERR_WOULDBLOCK;
    memcpy(session->out + session->out_count, bytes, taken);
    session->out_count += taken;
    session->out_room -= taken;
    return (ssize_t)taken;
}

static bool has_said_all(const struct http2_session *session)
{
    return !session->body_stream && !nghttp2_session_want_write(session->nghttp2);
}

size_t http2_session_say(struct http2_session *session, char *out, size_t out_bytes)
{
    session->out = out;
    session->out_room = out_bytes;
    session->out_count = 0;
    session->place = NULL;
    if (nghttp2_session_send(session->nghttp2) < 0)
        session->broken = true;
    session->quiet = has_said_all(session);
    return session->out_count;
}

bool http2_session_whole(const struct http2_session *session)
{
    return session->quiet || has_said_all(session);
}

bool http2_session_takes(const struct http2_session *session)
{
    return session->open < session->settings.depth && session->open < session->limit &&
           !session->going && !session->broken &&
           nghttp2_session_check_request_allowed(session->nghttp2) && http2_session_whole(session);
}

enum http2_wait http2_session_waits(const struct http2_session *session)
{
    if (!session->ready || session->broken)
        return HTTP2_WAITS_NOT;
    return session->going && session->open ? HTTP2_WAITS_END
           : session->going                ? HTTP2_WAITS_NOT
           : session->body_stream          ? HTTP2_WAITS_WINDOW
           : session->open >= session->limit && session->limit < session->settings.depth
               ? HTTP2_WAITS_STREAM
               : HTTP2_WAITS_NOT;
}

// --- replies -------------------------------------------------------------------------------------

// nghttp2 looks it up in a hash map, and a reply's frames and headers all ask.
static struct stream *stream_of(struct http2_session *session, int32_t stream_id)
{
    if (stream_id != session->looked_for) {
        session->found = nghttp2_session_get_stream_user_data(session->nghttp2, stream_id);
        session->looked_for = stream_id;
    }
    return session->found;
}

static void end_reply(struct http2_session *session, struct stream *stream, enum reply_kind kind,
                      uint64_t value_bytes)
{
    const struct http2_place *place = session->place;
    const struct reply reply = {.kind = kind,
                                .begin = stream->reply.begin,
                                .end = place ? place->end : session->settings.parser->offset,
                                .value_bytes = value_bytes};
    stream->settled = true;
    session->in_vain = 0;
    session->settings.events->answered(session->settings.owner, stream->number, &reply);
}

static int begin_headers(nghttp2_session *nghttp2, const nghttp2_frame *frame, void *argument)
{
    struct http2_session *session = argument;
    struct stream *stream = stream_of(session, frame->hd.stream_id);
    (void)nghttp2;
    session->said[0] = '\0';
    session->header_list = 0;
    if (stream && !stream->reply.begun) {
        stream->reply.begun = true;
        stream->reply.begin = session->place ? session->place->begin : session->frame_begin;
    }
    return 0;
}

static int take_header(nghttp2_session *nghttp2, const nghttp2_frame *frame, const uint8_t *name,
                       size_t name_bytes, const uint8_t *value, size_t value_bytes, uint8_t flags,
                       void *argument)
{
    static const char status[] = ":status";
    struct http2_session *session = argument;
    const struct http2_dialect *dialect = session->settings.dialect;
    struct stream *stream = stream_of(session, frame->hd.stream_id);
    const struct http2_header header = {(const char *)name, (const char *)value, name_bytes,
                                        value_bytes};
    (void)nghttp2, (void)flags;
    session->header_list += name_bytes + value_bytes + HEADER_LIST_OVERHEAD;
    if (session->header_list > HEADER_LIST_BYTES) {
        break_off(session, "a reply with more than 256 KiB of headers", "");
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    }
    if (!stream)
        return 0;
    if (name_bytes == strlen(status) && memcmp(name, status, name_bytes) == 0) {
        const char *at = header.value;
        uint64_t number;
        line_digits(&at, at + value_bytes, 999, &number); // nghttp2 has seen that it is one
        stream->reply.status = (uint16_t)number;
    } else if (dialect->take_header) {
        dialect->take_header(&stream->reply, &header, session->said);
    }
    return 0;
}

static int take_data(nghttp2_session *nghttp2, uint8_t flags, int32_t stream_id,
                     const uint8_t *bytes, size_t count, void *argument)
{
    struct http2_session *session = argument;
    struct stream *stream = stream_of(session, stream_id);
    (void)nghttp2, (void)flags;
    if (!stream)
        return 0;
    session->in_vain = 0;
    struct http2_reply *reply = &stream->reply;
    if (session->settings.dialect->take_body)
        session->settings.dialect->take_body(reply, bytes, count);
    reply->body_bytes += count;
    return 0;
}

static void take_goaway(struct http2_session *session, const nghttp2_goaway *goaway)
{
    session->going = true;
    session->last_stream = goaway->last_stream_id;
    session->ended = goaway->error_code != NGHTTP2_NO_ERROR;
    if (session->ended)
        say_fault(session, "GOAWAY ", nghttp2_http2_strerror(goaway->error_code));
}

static int take_frame(nghttp2_session *nghttp2, const nghttp2_frame *frame, void *argument)
{
    struct http2_session *session = argument;
    struct stream *stream = stream_of(session, frame->hd.stream_id);
    switch (frame->hd.type) {
    case NGHTTP2_SETTINGS:
        session->ready = true;
        session->limit =
            nghttp2_session_get_remote_settings(nghttp2, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
        break;
    case NGHTTP2_GOAWAY:
        take_goaway(session, &frame->goaway);
        break;
    case NGHTTP2_RST_STREAM:
        if (stream)
            stream->reset = true;
        break;
    case NGHTTP2_HEADERS:
    case NGHTTP2_DATA:
        if (stream && !stream->settled && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM)) {
            uint64_t value_bytes = 0;
            enum reply_kind kind =
                session->settings.dialect->judge(&stream->reply, &value_bytes, session->said);
            if (reply_is_fault(kind))
                say_fault(session, session->said, "");
            end_reply(session, stream, kind, value_bytes);
        }
        break;
    default:
        break;
    }
    return 0;
}

// What breaks the protocol: of one stream, which nghttp2 resets, or of all.
static int note_invalid(nghttp2_session *nghttp2, const nghttp2_frame *frame, int error,
                        void *argument)
{
    struct http2_session *session = argument;
    (void)nghttp2, (void)frame;
    session->noted = session->resets = true;
    say_own(session, "nghttp2: ", nghttp2_strerror(error));
    return 0;
}

static int end_stream(nghttp2_session *nghttp2, int32_t stream_id, uint32_t error, void *argument)
{
    struct http2_session *session = argument;
    struct stream *stream = stream_of(session, stream_id);
    (void)nghttp2;
    if (!stream)
        return 0;
    session->open--;
    if (session->body_stream == stream_id)
        session->body_stream = 0;
    if (!stream->settled && stream->reset) {
        char room[20];
        say_fault(session, "RST_STREAM ", error_name(error, room));
        end_reply(session, stream, REPLY_SERVER_ERROR, 0);
    } else if (!stream->settled && session->going && stream_id > session->last_stream) {
        stream->settled = true;
        session->settings.events->refused(session->settings.owner, stream->number);
    } else if (!stream->settled) {
        end_reply(session, stream, REPLY_MALFORMED, 0);
    }
    stream->next = session->free;
    session->free = stream;
    session->found = NULL;
    return 0;
}

// This side ends a connection, or a stream, only when the other breaks the protocol.
static int note_end(nghttp2_session *nghttp2, const nghttp2_frame *frame, void *argument)
{
    struct http2_session *session = argument;
    (void)nghttp2;
    session->resets |= frame->hd.type == NGHTTP2_RST_STREAM;
    if (frame->hd.type == NGHTTP2_GOAWAY) {
        session->broken = true;
        if (!session->noted)
            say_own(session, nghttp2_http2_strerror(frame->goaway.error_code), "");
    }
    return 0;
}

// A frame begins. Those of a reply whose stream has ended nghttp2 passes over.
static void look_for_surplus(struct http2_session *session)
{
    const unsigned type = (uint8_t)session->head[3];
    const uint32_t id = (uint32_t)big_endian_read(session->head + 5, 4) & INT32_MAX;
    const struct stream *stream = stream_of(session, (int32_t)id);
    const bool asked = id % 2 == 1 && id < nghttp2_session_get_next_stream_id(session->nghttp2);
    if ((type != NGHTTP2_HEADERS && type != NGHTTP2_DATA) || !asked || session->resets ||
        (stream && !stream->settled))
        return;
    if (type == NGHTTP2_HEADERS || id != session->surplus_stream)
        session->settings.events->surplus(session->settings.owner);
    session->surplus_stream = id;
}

// How many of the bytes belong to the frame under way, *head_bytes of them to its header.
static size_t frame_bytes(struct http2_session *session, const char *bytes, size_t count,
                          size_t *head_bytes)
{
    size_t used = 0;
    *head_bytes = 0;
    if (!session->frame_left) {
        if (!session->head_bytes)
            session->frame_begin = session->settings.parser->offset;
        const size_t missing = FRAME_HEADER_BYTES - session->head_bytes;
        used = *head_bytes = missing < count ? missing : count;
        memcpy(session->head + session->head_bytes, bytes, used);
        session->head_bytes += used;
        if (session->head_bytes < FRAME_HEADER_BYTES)
            return used;
        session->head_bytes = 0;
        session->frame_left = big_endian_read(session->head, 3);
        look_for_surplus(session);
        if (++session->in_vain > FRAMES_IN_VAIN)
            break_off(session, "10,000 frames in a row that are of no reply", "");
    }
    size_t payload =
        session->frame_left < count - used ? (size_t)session->frame_left : count - used;
    session->frame_left -= payload;
    return used + payload;
}

// The first frame's header is there: a server that speaks something else is quoted.
static bool is_foreign(struct http2_session *session, const char *rest, size_t count)
{
    char text[REPLY_SAID_BYTES];
    session->met = true;
    if (http2_begins(session->head, FRAME_HEADER_BYTES))
        return false;
    const size_t most = sizeof text - 1 - FRAME_HEADER_BYTES;
    const char *end = memchr(rest, '\r', count < most ? count : most);
    size_t more = end ? (size_t)(end - rest) : count < most ? count : most;
    memcpy(text, session->head, FRAME_HEADER_BYTES);
    memcpy(text + FRAME_HEADER_BYTES, rest, more);
    session->settings.parser->quoted = false;
    reply_note_said(session->settings.parser, text, FRAME_HEADER_BYTES + more);
    return true;
}

bool http2_session_take(struct http2_session *session, const char *bytes, size_t count,
                        const struct http2_place *place)
{
    session->place = place;
    session->noted = session->quiet = false;
    while (count && !session->broken) {
        size_t head_bytes, part = frame_bytes(session, bytes, count, &head_bytes);
        if (!session->met && !session->head_bytes &&
            is_foreign(session, bytes + head_bytes, count - head_bytes)) {
            session->broken = true;
            break;
        }
        session->settings.parser->offset += part;
        ssize_t taken = nghttp2_session_mem_recv(session->nghttp2, (const uint8_t *)bytes, part);
        if (taken < 0 && !session->broken)
            break_off(session, "nghttp2: ", nghttp2_strerror((int)taken));
        bytes += part;
        count -= part;
    }
    return !session->broken;
}

// --- a session -----------------------------------------------------------------------------------

bool http2_session_ready(const struct http2_session *session)
{
    return session->ready;
}

bool http2_session_says_itself(const struct http2_session *session)
{
    return session->own_words;
}

bool http2_session_is_broken(const struct http2_session *session)
{
    return session->broken;
}

bool http2_session_is_ended(const struct http2_session *session)
{
    return session->ended;
}

// Also where no number is left for another stream (RFC 9113, 5.1.1).
bool http2_session_is_ending(const struct http2_session *session)
{
    return session->going || nghttp2_session_get_next_stream_id(session->nghttp2) > INT32_MAX;
}

static bool make_nghttp2(struct http2_session *session)
{
    if (nghttp2_session_callbacks_new(&session->callbacks) < 0 ||
        nghttp2_option_new(&session->option) < 0)
        return false;
    nghttp2_session_callbacks *callbacks = session->callbacks;
    nghttp2_session_callbacks_set_send_callback(callbacks, take_said);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, take_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, take_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, take_frame);
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks, note_invalid);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, end_stream);
    nghttp2_session_callbacks_set_before_frame_send_callback(callbacks, note_end);
    nghttp2_option_set_no_closed_streams(session->option, 1);
    return true;
}

struct http2_session *http2_session_new(const struct http2_settings *settings)
{
    struct http2_session *session = calloc(1, sizeof *session);
    if (!session)
        return NULL;
    session->settings = *settings;
    session->streams = calloc(settings->depth, sizeof *session->streams);
    session->body = calloc(1, settings->dialect->prefix_bytes + settings->value_bytes + 1);
    if (!session->streams || !session->body || !make_headers(session) || !make_nghttp2(session)) {
        http2_session_free(session);
        return NULL;
    }
    return session;
}

void http2_session_end(struct http2_session *session)
{
    nghttp2_session_del(session->nghttp2);
    session->nghttp2 = NULL;
    session->ready = false; // between two connections nothing can be said
}

void http2_session_leave(struct http2_session *session)
{
    session->noted = true; // it is no fault
    session->quiet = false;
    nghttp2_session_terminate_session(session->nghttp2, NGHTTP2_NO_ERROR);
}

void http2_session_free(struct http2_session *session)
{
    if (!session)
        return;
    http2_session_end(session);
    nghttp2_session_callbacks_del(session->callbacks);
    nghttp2_option_del(session->option);
    http2_memory_fini(&session->memory);
    free(session->streams);
    free(session->names);
    free(session->path);
    free(session->body);
    free(session);
}

bool http2_session_begin(struct http2_session *session)
{
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, WINDOW_BYTES},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, HEADER_LIST_BYTES},
    };
    http2_session_end(session);
    session->met = session->going = session->ended = session->broken = session->noted =
        session->resets = session->quiet = false;
    session->looked_for = 0;
    session->found = NULL;
    session->surplus_stream = session->in_vain = 0;
    session->used = session->open = 0;
    session->limit = 0;
    session->body_stream = 0;
    session->head_bytes = 0;
    session->frame_begin = session->frame_left = 0;
    session->free = NULL;
    nghttp2_mem memory = http2_memory_use(&session->memory);
    return nghttp2_session_client_new3(&session->nghttp2, session->callbacks, session,
                                       session->option, &memory) == 0 &&
           nghttp2_submit_settings(session->nghttp2, NGHTTP2_FLAG_NONE, settings,
                                   sizeof settings / sizeof *settings) == 0 &&
           nghttp2_session_set_local_window_size(session->nghttp2, NGHTTP2_FLAG_NONE, 0,
                                                 WINDOW_BYTES) == 0;
}
