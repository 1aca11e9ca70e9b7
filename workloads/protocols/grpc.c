// SPDX-License-Identifier: MIT
//
// Unary calls of gRPC over HTTP/2 (gRPC's PROTOCOL-HTTP2.md): a message each way, each behind a
// byte that says whether it is compressed and four with its length; the verdict is the trailer
// grpc-status. The method is the workload's path, "/package.Service/Method". A message is one of
// protocol buffers whose first field is the key, and whose second the value; or a value as it is.
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "workloads/protocols/encode.h"
#include "workloads/protocols/http2_session.h"
#include "workloads/protocols/http_semantics.h"
#include "workloads/protocols/reply_parser.h"

enum { CALL, CALL_WITH_VALUE, CALL_RAW, OPERATIONS };
static const struct protocol_operation operations[OPERATIONS] = {
    [CALL] = {.name = "call", .weight = 1},
    [CALL_WITH_VALUE] = {.name = "send", .carries_value = true},
    [CALL_RAW] = {.name = "raw", .carries_value = true},
};
static const char *const methods[OPERATIONS] = {"POST", "POST", "POST"};
static const char *const headers[][2] = {
    {"content-type", "application/grpc"}, {"te", "trailers"}, {NULL, NULL}};

enum {
    FIELD_KEY = 1 << 3 | 2, // of protocol buffers: number and "bytes with their length"
    FIELD_VALUE = 2 << 3 | 2,
    VARINT_BYTES_MAX = 10,
    FIELDS_BYTES_MAX = 2 * (1 + VARINT_BYTES_MAX) + WORKLOAD_KEY_BYTES_MAX,
    CODE_OK = 0,
    CODE_NOT_FOUND = 5,
    CODES = 17,
    CODE_IS_NONE = INT16_MAX, // what stands there is no number, or is beyond any
};

// By gRPC's statuscodes.md: what the server could not do, and what was wrong with the request.
static const uint8_t kinds[CODES] = {
    [0] = REPLY_VALUE,         [1] = REPLY_CLIENT_ERROR,  [2] = REPLY_SERVER_ERROR,
    [3] = REPLY_CLIENT_ERROR,  [4] = REPLY_SERVER_ERROR,  [5] = REPLY_MISS,
    [6] = REPLY_CLIENT_ERROR,  [7] = REPLY_CLIENT_ERROR,  [8] = REPLY_SERVER_ERROR,
    [9] = REPLY_CLIENT_ERROR,  [10] = REPLY_SERVER_ERROR, [11] = REPLY_CLIENT_ERROR,
    [12] = REPLY_CLIENT_ERROR, [13] = REPLY_SERVER_ERROR, [14] = REPLY_SERVER_ERROR,
    [15] = REPLY_SERVER_ERROR, [16] = REPLY_CLIENT_ERROR,
};

static char *append_field(char *at, char tag, const char *bytes, size_t count)
{
    size_t length = count;
    *at++ = tag;
    for (; length >= 0x80; length >>= 7)
        *at++ = (char)(0x80 | (length & 0x7f));
    *at++ = (char)length;
    return append_bytes(at, bytes, count);
}

static size_t put_body(const struct request *request, char *out)
{
    char *begin = out + HTTP2_PREFIX_BYTES, *end = begin;
    if (request->operation == CALL_RAW) {
        end = append_bytes(end, request->value, request->value_bytes);
    } else {
        end = append_field(end, FIELD_KEY, request->key, request->key_bytes);
        if (request->operation == CALL_WITH_VALUE)
            end = append_field(end, FIELD_VALUE, request->value, request->value_bytes);
    }
    out[0] = 0;
    big_endian_write(out + 1, HTTP2_PREFIX_BYTES - 1, (uint64_t)(end - begin));
    return (size_t)(end - out);
}

static bool header_is(const struct http2_header *header, const char *name)
{
    return header->name_bytes == strlen(name) &&
           memcmp(header->name, name, header->name_bytes) == 0;
}

// Percent-encoded, as URLs are; what is not so stands for itself.
static void take_message(const struct http2_header *header, char said[REPLY_SAID_BYTES])
{
    const char *at = header->value, *end = at + header->value_bytes;
    size_t count = 0;
    while (at < end && count + 1 < REPLY_SAID_BYTES) {
        const int high = end - at > 2 && *at == '%' ? hex_digit(at[1]) : -1;
        const int low = high >= 0 ? hex_digit(at[2]) : -1;
        const int byte = low >= 0 ? high << 4 | low : *at;
        said[count++] = (char)byte;
        at += low >= 0 ? 3 : 1;
    }
    said[count] = '\0';
}

static void take_header(struct http2_reply *reply, const struct http2_header *header,
                        char said[REPLY_SAID_BYTES])
{
    if (header_is(header, "grpc-status")) {
        const char *at = header->value, *end = at + header->value_bytes;
        uint64_t code;
        reply->code = line_digits(&at, end, CODE_IS_NONE - 1, &code) && at == end ? (int16_t)code
                                                                                  : CODE_IS_NONE;
    } else if (header_is(header, "grpc-message")) {
        take_message(header, said);
    } else if (header_is(header, "content-type")) {
        static const char type[] = "application/grpc"; // of which there are kinds: +proto, ;...
        reply->foreign = header->value_bytes < strlen(type) ||
                         strncasecmp(header->value, type, strlen(type)) != 0;
    }
}

// A prefix and its message, and whatever comes behind: a stream's reply is several of them.
static void take_body(struct http2_reply *reply, const uint8_t *bytes, size_t count)
{
    while (count) {
        size_t taken = 1;
        if (reply->prefix_bytes == 0 && reply->messages == 0)
            reply->compressed = bytes[0] != 0;
        if (reply->prefix_bytes < HTTP2_PREFIX_BYTES) {
            if (reply->prefix_bytes++ > 0)
                reply->message_left = reply->message_left << 8 | bytes[0];
            if (reply->prefix_bytes == HTTP2_PREFIX_BYTES && reply->messages == 0)
                reply->first_bytes = reply->message_left;
        } else {
            taken = count < reply->message_left ? count : (size_t)reply->message_left;
            reply->message_left -= taken;
        }
        if (reply->prefix_bytes == HTTP2_PREFIX_BYTES && reply->message_left == 0) {
            reply->messages += reply->messages < UINT32_MAX;
            reply->prefix_bytes = 0;
        }
        bytes += taken;
        count -= taken;
    }
}

static enum reply_kind malformed(char said[REPLY_SAID_BYTES], const char *why)
{
    snprintf(said, REPLY_SAID_BYTES, "%s", why);
    return REPLY_MALFORMED;
}

// A proxy may answer by HTTP's status alone.
static enum reply_kind judge(const struct http2_reply *reply, uint64_t *value_bytes,
                             char said[REPLY_SAID_BYTES])
{
    char words[REPLY_SAID_BYTES];
    if ((reply->code < 0 || reply->foreign) && reply->status / 100 != 2) {
        snprintf(said, REPLY_SAID_BYTES, ":status %u", reply->status);
        return http_kind_of_status(reply->status);
    }
    if (reply->foreign)
        return malformed(said, "a content-type that is not gRPC's");
    if (reply->code < 0)
        return malformed(said, "no grpc-status");
    if (reply->code == CODE_IS_NONE)
        return malformed(said, "a grpc-status that is no number");
    if (reply->code != CODE_OK) {
        enum reply_kind kind = reply->code < CODES ? kinds[reply->code] : REPLY_SERVER_ERROR;
        snprintf(words, sizeof words, "grpc-status %d: %.70s", reply->code, said);
        memcpy(said, words, sizeof words);
        return kind;
    }
    if (reply->body_bytes < HTTP2_PREFIX_BYTES)
        return malformed(said, "no message");
    if (reply->prefix_bytes)
        return malformed(said, "a message of another length than it says");
    if (reply->messages > 1) {
        snprintf(said, REPLY_SAID_BYTES, "%s messages, and a unary call has one: does it stream?",
                 TEXT_COUNT(reply->messages));
        return REPLY_MALFORMED;
    }
    if (reply->compressed)
        return malformed(said, "a compressed message, and none was asked for");
    *value_bytes = reply->first_bytes;
    return REPLY_VALUE;
}

static const struct http2_dialect dialect = {
    .methods = methods,
    .path = "/taillight.Load/Call",
    .headers = headers,
    .always_body = true,
    .prefix_bytes = HTTP2_PREFIX_BYTES + FIELDS_BYTES_MAX,
    .body = put_body,
    .take_body = take_body,
    .take_header = take_header,
    .judge = judge,
};

static size_t request_bytes_max(size_t key_bytes, size_t value_bytes)
{
    return http2_request_bytes_max(&dialect, key_bytes, value_bytes);
}

const struct protocol grpc_protocol = {
    .name = grpc_name,
    .speaks = "unary calls of gRPC over HTTP/2",
    .replies =
        "`http: {path: \"/package.Service/Method\"}` says the method; a call's message is {1: "
        "key}, "
        "a send's {1: key, 2: value}, a raw's the value as it is; grpc-status 0 is a value, 5 a "
        "miss, 2, 4, 8, 10 and 13 to 15 the server's error, the rest the client's; compressed "
        "messages, and what has another content-type, are malformed",
    .operations = operations,
    .operation_count = OPERATIONS,
    .usual_port = 50051,
    .tls_port = 443,
    PROTOCOL_PROBE(HTTP2_PROBE),
    .probe_begins = http2_begins,
    .dataset = DATASET_NONE,
    .takes_http_words = true,
    .alpn = HTTP2_ALPN,
    .http2 = &dialect,
    .request_bytes_max = request_bytes_max,
    .answers = http_answers,
};
