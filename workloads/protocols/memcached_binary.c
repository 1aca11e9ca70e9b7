// SPDX-License-Identifier: MIT
//
// The memcached binary protocol, client side (memcached's doc/protocol-binary.txt): get, set and
// delete. The opaque field carries the request's number; a reply with another one is out of order.
// A multiget is a quiet get for each of its keys, which is answered where the key is there, and a
// no-op, which ends the reply. The opaques of the quiet ones say the key's place, too.
#include <string.h>

#include "base/error.h"
#include "workloads/protocols/encode.h"
#include "workloads/protocols/login.h"
#include "workloads/protocols/memcached_text.h"
#include "workloads/protocols/protocol.h"
#include "workloads/protocols/reply_parser.h"

enum {
    HEADER_BYTES = 24,
    SET_EXTRAS_BYTES = 8, // flags and expiry
    MAGIC_REQUEST = 0x80,
    MAGIC_REPLY = 0x81,
    OPCODE_GET = 0x00,
    OPCODE_SET = 0x01,
    OPCODE_DELETE = 0x04,
    OPCODE_GET_QUIET = 0x09,
    OPCODE_NO_OP = 0x0a,
    OPCODE_SASL_AUTH = 0x21,
};

// The opaque of a quiet get: the place of its key in front of the low bits of the number.
enum { NUMBER_BITS = 22 };
_Static_assert(MULTIGET_KEYS_MAX <= 1 << (32 - NUMBER_BITS), "a key's place has room");

static uint32_t quiet_opaque(uint64_t number, unsigned place)
{
    return (uint32_t)(number & ((1u << NUMBER_BITS) - 1)) | place << NUMBER_BITS;
}

static const uint64_t body_bytes_limit = (1u << 30) + 1024; // as for the text protocol

static size_t request_bytes_max(size_t key_bytes, size_t value_bytes)
{
    return HEADER_BYTES + SET_EXTRAS_BYTES + key_bytes + value_bytes;
}

static char *append_bare(char *at, int opcode, uint32_t opaque, const char *key, size_t key_bytes)
{
    memset(at, 0, HEADER_BYTES);
    at[0] = (char)MAGIC_REQUEST;
    at[1] = (char)opcode;
    big_endian_write(at + 2, 2, key_bytes);
    big_endian_write(at + 8, 4, key_bytes);
    big_endian_write(at + 12, 4, opaque);
    return append_bytes(at + HEADER_BYTES, key, key_bytes);
}

static size_t encode_multiget(const struct request *request, char *out, size_t out_bytes)
{
    const char *more = request->more_keys;
    if (request_bytes_max(request_keys_bytes(request), 0) + HEADER_BYTES > out_bytes)
        return 0;
    char *at = append_bare(out, OPCODE_GET_QUIET, quiet_opaque(request->number, 0), request->key,
                           request->key_bytes);
    for (unsigned i = 0; i < request->more_key_count; i++) {
        size_t key_bytes;
        const char *key = request_next_key(&more, &key_bytes);
        at =
            append_bare(at, OPCODE_GET_QUIET, quiet_opaque(request->number, i + 1), key, key_bytes);
    }
    at = append_bare(at, OPCODE_NO_OP, (uint32_t)request->number, "", 0);
    return (size_t)(at - out);
}

static size_t binary_encode(const struct request *request, char *out, size_t out_bytes)
{
    if (request->operation == MEMCACHED_MULTIGET)
        return encode_multiget(request, out, out_bytes);
    bool set = request->operation == WORKLOAD_SET;
    size_t extras = set ? SET_EXTRAS_BYTES : 0, value_bytes = set ? request->value_bytes : 0;
    size_t bytes = HEADER_BYTES + extras + request->key_bytes + value_bytes;
    if (bytes > out_bytes)
        return 0;
    memset(out, 0, HEADER_BYTES + extras);
    out[0] = (char)MAGIC_REQUEST;
    out[1] = set ? OPCODE_SET : request->operation == MEMCACHED_DELETE ? OPCODE_DELETE : OPCODE_GET;
    big_endian_write(out + 2, 2, request->key_bytes);
    out[4] = (char)extras;
    big_endian_write(out + 8, 4, bytes - HEADER_BYTES);
    big_endian_write(out + 12, 4, request->number);
    memcpy(out + HEADER_BYTES + extras, request->key, request->key_bytes);
    if (set) {
        big_endian_write(out + HEADER_BYTES + 4, 4, request->expiry_s);
        memcpy(out + HEADER_BYTES + extras + request->key_bytes, request->value, value_bytes);
    }
    return bytes;
}

// protocol-binary.txt, "Response Status".
// SASL PLAIN (RFC 4616): no other identity, the user, the password.
static int binary_log_in(const struct login *login, struct login_words *words, struct error *err)
{
    static const char mechanism[] = "PLAIN";
    const size_t key_bytes = sizeof mechanism - 1, user_bytes = strlen(login->user);
    const size_t password_bytes = strlen(login->password);
    const size_t body_bytes = key_bytes + 1 + user_bytes + 1 + password_bytes;
    if (memcached_check_login(login, err) < 0)
        return -ERROR_INPUT;
    char *at = words->bytes;
    memset(at, 0, HEADER_BYTES + body_bytes);
    at[0] = (char)MAGIC_REQUEST;
    at[1] = OPCODE_SASL_AUTH;
    big_endian_write(at + 2, 2, key_bytes);
    big_endian_write(at + 8, 4, body_bytes);
    memcpy(at + HEADER_BYTES, mechanism, key_bytes);
    memcpy(at + HEADER_BYTES + key_bytes + 1, login->user, user_bytes);
    memcpy(at + HEADER_BYTES + key_bytes + 1 + user_bytes + 1, login->password, password_bytes);
    words->count = HEADER_BYTES + body_bytes;
    words->answers = 1;
    return 0;
}

static enum reply_kind kind_of_status(uint64_t opcode, uint64_t status)
{
    const bool gets = opcode == OPCODE_GET || opcode == OPCODE_GET_QUIET;
    switch (status) {
    case 0x00:
        return gets ? REPLY_VALUE : REPLY_STORED;
    case 0x01: // key not found
        return gets ? REPLY_MISS : REPLY_NOT_STORED;
    case 0x02: // key exists
    case 0x05: // item not stored
        return REPLY_NOT_STORED;
    case 0x03: // value too large: SERVER_ERROR in memcached's other protocols, too
    case 0x82: // out of memory
    case 0x84: // internal error
    case 0x85: // busy
    case 0x86: // temporary failure
        return REPLY_SERVER_ERROR;
    case 0x04: // invalid arguments
    case 0x06: // not a number
    case 0x07: // wrong server
    case 0x08: // authentication error
    case 0x09: // authentication continue
    case 0x20: // authentication required
    case 0x21: // authentication further step
    case 0x81: // unknown command
    case 0x83: // not supported
        return REPLY_CLIENT_ERROR;
    default:
        return REPLY_MALFORMED;
    }
}

// A message of the reply ends: the reply goes on behind a quiet one.
static enum reply_progress binary_end(struct reply_parser *parser)
{
    if (!parser->list || reply_is_broken(parser->kind))
        return REPLY_ENDED;
    if (parser->state) {
        if (reply_is_fault(parser->kind) && !parser->part_fault)
            parser->part_fault = parser->kind;
        parser->line_bytes = 0;
        return REPLY_UNDER_WAY;
    }
    parser->list->told = parser->list->due;
    if (parser->kind == REPLY_STORED) // the no-op was done
        parser->kind = REPLY_MISS;    // unless there are values
    return REPLY_ENDED;
}

static void take_value(struct reply_parser *parser, unsigned place, uint64_t bytes)
{
    parser->value_bytes += bytes;
    if (parser->list)
        parser->kind = (uint8_t)reply_list_value(parser, place, 0, bytes);
}

static enum reply_progress binary_judge(struct reply_parser *parser)
{
    const char *header = parser->line;
    uint64_t opcode = (unsigned char)header[1], key_bytes = big_endian_read(header + 2, 2);
    uint64_t extras = (unsigned char)header[4], status = big_endian_read(header + 6, 2);
    uint64_t body = big_endian_read(header + 8, 4), opaque = big_endian_read(header + 12, 4);
    if (body > body_bytes_limit)
        return reply_lose(parser, REPLY_OVERSIZED);
    parser->data_left = body;
    const bool quiet = parser->list && opcode == OPCODE_GET_QUIET;
    bool asked = parser->login  ? opcode == OPCODE_SASL_AUTH
                 : parser->list ? quiet || opcode == OPCODE_NO_OP
                                : opcode <= OPCODE_SET || opcode == OPCODE_DELETE;
    const unsigned place = quiet ? (unsigned)(opaque >> NUMBER_BITS) : 0;
    const uint32_t expected =
        quiet ? quiet_opaque(parser->number, place) : (uint32_t)parser->number;
    parser->state = quiet;
    if (!asked || header[5] != 0 || key_bytes + extras > body)
        parser->kind = REPLY_MALFORMED;
    else if (opaque != expected)
        parser->kind = REPLY_OUT_OF_ORDER;
    else
        parser->kind = (uint8_t)kind_of_status(opcode, status);
    if (parser->kind == REPLY_VALUE)
        take_value(parser, place, body - key_bytes - extras);
    return body ? REPLY_UNDER_WAY : binary_end(parser);
}

static const struct protocol_operation operations[MEMCACHED_OPERATIONS] =
    MEMCACHED_OPERATIONS_WITH();

const struct protocol memcached_binary_protocol = {
    .name = memcached_binary_name,
    .speaks = "memcached's binary protocol",
    .replies = "by status; the opaque must be the request's number on its connection, else "
               "`out_of_order`",
    .operations = operations,
    .operation_count = MEMCACHED_OPERATIONS,
    .usual_port = 11211,
    // "No-op". Behind it the end of a line, for servers that wait for one.
    PROTOCOL_PROBE("\x80\x0a\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\r\n"),
    .probe_answers = {"\x81", MEMCACHED_IS_FULL},
    .refusals = {MEMCACHED_IS_FULL},
    PROTOCOL_WANTS_LOGIN("\x81\x0a\0\0\0\0\0\x20"), // authentication required
    .dataset = DATASET_MEMCACHED,
    .over_udp = true,
    .request_bytes_max = request_bytes_max,
    .encode = binary_encode,
    .header_bytes = HEADER_BYTES,
    .header_begin = (char)MAGIC_REPLY,
    .header_begin_alone = true,
    .judge_header = binary_judge,
    .end_data = binary_end,
    .log_in = binary_log_in,
    .answers = memcached_answers,
};
