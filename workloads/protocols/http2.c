// SPDX-License-Identifier: MIT
//
// HTTP/2 (RFC 9113): the requests and the verdicts of HTTP/1.1 (workloads/protocols/http.c), on
// streams of one connection (workloads/protocols/http2_session.h). Over TCP the server is known to
// speak it (3.3), over TLS it says so (3.2).
#include <stdio.h>
#include <string.h>

#include "workloads/protocols/http2_session.h"
#include "workloads/protocols/http_semantics.h"

static const char *const headers[][2] = {{NULL, NULL}};

static size_t put_body(const struct request *request, char *out)
{
    memcpy(out, request->value, request->value_bytes);
    return request->value_bytes;
}

static enum reply_kind judge(const struct http2_reply *reply, uint64_t *value_bytes,
                             char said[REPLY_SAID_BYTES])
{
    enum reply_kind kind = http_kind_of_status(reply->status);
    *value_bytes = kind == REPLY_VALUE ? reply->body_bytes : 0;
    if (reply_is_fault(kind))
        snprintf(said, REPLY_SAID_BYTES, ":status %u", reply->status);
    return kind;
}

static const struct http2_dialect dialect = {
    .methods = http_methods,
    .path = "/{key}",
    .headers = headers,
    .states_length = true,
    .body = put_body,
    .judge = judge,
};

static size_t request_bytes_max(size_t key_bytes, size_t value_bytes)
{
    return http2_request_bytes_max(&dialect, key_bytes, value_bytes);
}

const struct protocol http2_protocol = {
    .name = http2_name,
    .speaks = "HTTP/2, over TCP with prior knowledge or over TLS by ALPN",
    .replies = "as `http`, each request a stream of its own; a stream that the server resets "
               "(RST_STREAM) is the server's error",
    .operations = http_operations,
    .operation_count = HTTP_METHODS,
    .usual_port = 80,
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
