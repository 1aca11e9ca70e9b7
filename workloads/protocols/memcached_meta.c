// SPDX-License-Identifier: MIT
//
// memcached's meta commands, client side (memcached's doc/protocol.txt, "Meta Commands"): mg, ms
// and md. A multiget is an mg for each of its keys; none is quiet, so that each says whether it is
// there. The opaque token carries the request's number; where a reply brings another one back it is
// out of order (a miss, EN, brings none).
#include <string.h>

#include "workloads/protocols/encode.h"
#include "workloads/protocols/memcached_text.h"
#include "workloads/protocols/protocol.h"
#include "workloads/protocols/reply_parser.h"

enum { HEADER_BYTES_MAX = 80 }; // of "ms  <length> T<expiry> O<number>\r\n\r\n"

static size_t request_bytes_max(size_t key_bytes, size_t value_bytes)
{
    return key_bytes + value_bytes + HEADER_BYTES_MAX;
}

static char *append_opaque(char *at, const struct request *request)
{
    return append_text(append_number(append_text(at, " O"), request->number), "\r\n");
}

static char *append_get(char *at, const struct request *request, const char *key, size_t key_bytes)
{
    at = append_bytes(append_text(at, "mg "), key, key_bytes);
    return append_opaque(append_text(at, " v"), request);
}

static size_t meta_encode(const struct request *request, char *out, size_t out_bytes)
{
    const bool set = request->operation == WORKLOAD_SET;
    const bool removes = request->operation == MEMCACHED_DELETE;
    if (request_bytes_max(request_keys_bytes(request), set ? request->value_bytes : 0) > out_bytes)
        return 0;
    if (removes) {
        char *at = append_bytes(append_text(out, "md "), request->key, request->key_bytes);
        return (size_t)(append_opaque(at, request) - out);
    }
    if (!set) {
        const char *more = request->more_keys;
        char *at = append_get(out, request, request->key, request->key_bytes);
        for (unsigned i = 0; i < request->more_key_count; i++) {
            size_t key_bytes;
            const char *key = request_next_key(&more, &key_bytes);
            at = append_get(at, request, key, key_bytes);
        }
        return (size_t)(at - out);
    }
    char *at = append_bytes(append_text(out, "ms "), request->key, request->key_bytes);
    at = append_number(append_text(at, " "), request->value_bytes);
    if (request->expiry_s)
        at = append_number(append_text(at, " T"), request->expiry_s);
    at = append_opaque(at, request);
    at = append_text(append_bytes(at, request->value, request->value_bytes), "\r\n");
    return (size_t)(at - out);
}

// The flags after a code: " O17 ...". Returns kind, unless the opaque token shows another request.
static enum reply_kind check_flags(const struct reply_parser *parser, const char *at,
                                   const char *end, enum reply_kind kind)
{
    while (at < end) {
        uint64_t number;
        if (*at++ != ' ')
            return REPLY_MALFORMED;
        if (at < end && *at == 'O') {
            at++;
            if (!line_digits(&at, end, UINT64_MAX - 1, &number))
                return REPLY_MALFORMED;
            if (number != parser->number)
                return REPLY_OUT_OF_ORDER;
        }
        while (at < end && *at != ' ')
            at++;
    }
    return kind;
}

// "VA <bytes> <flags>*".
static enum reply_progress judge_value(struct reply_parser *parser, const struct reply_line *line)
{
    const char *at = line->bytes + 3, *end = line->bytes + line->count;
    uint64_t bytes;
    if (!line_digits(&at, end, MEMCACHED_VALUE_BYTES_MAX, &bytes) || (at < end && *at != ' '))
        return reply_end(parser, REPLY_MALFORMED);
    if (bytes > MEMCACHED_VALUE_BYTES_MAX)
        return reply_end(parser, REPLY_OVERSIZED);
    parser->kind = (uint8_t)check_flags(parser, at, end, REPLY_VALUE);
    parser->value_bytes = bytes;
    parser->data_left = bytes + 2;
    return REPLY_UNDER_WAY;
}

static enum reply_progress meta_judge(struct reply_parser *parser, const struct reply_line *line)
{
    static const struct {
        char code[4];
        enum reply_kind kind;
    } codes[] = {{"HD", REPLY_STORED},
                 {"EN", REPLY_MISS},
                 {"NS", REPLY_NOT_STORED},
                 {"EX", REPLY_NOT_STORED},
                 {"NF", REPLY_NOT_STORED}};
    if (line_starts_with(line, "VA "))
        return judge_value(parser, line);
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (line_starts_with(line, codes[i].code))
            return reply_end(parser, check_flags(parser, line->bytes + 2, line->bytes + line->count,
                                                 codes[i].kind));
    if (parser->login && line_equals(line, "STORED"))
        return reply_end(parser, REPLY_STORED); // a login is a `set`
    return reply_end(parser, memcached_error_kind(line));
}

static const struct protocol_operation operations[MEMCACHED_OPERATIONS] =
    MEMCACHED_OPERATIONS_WITH(.keys_apart = true);

const struct protocol memcached_meta_protocol = {
    .name = memcached_meta_name,
    .speaks = "memcached's meta commands (`mg`, `ms`, `md`)",
    .replies = "`EN` is a miss, `NF` a delete that is done, else `NS`/`EX`/`NF` not stored; the "
               "opaque token must be the request's "
               "number on its connection, else `out_of_order`",
    .operations = operations,
    .operation_count = MEMCACHED_OPERATIONS,
    .usual_port = 11211,
    PROTOCOL_PROBE("mn\r\n"),
    .probe_answers = {"MN", MEMCACHED_IS_FULL},
    .refusals = {MEMCACHED_IS_FULL},
    MEMCACHED_WANTS_LOGIN,
    .dataset = DATASET_MEMCACHED,
    .over_udp = true,
    .request_bytes_max = request_bytes_max,
    .encode = meta_encode,
    .judge_line = meta_judge,
    .end_data = reply_ends_with_line,
    .log_in = memcached_log_in,
    .answers = memcached_answers,
};
