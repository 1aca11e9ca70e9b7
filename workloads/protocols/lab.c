// SPDX-License-Identifier: MIT
#include "workloads/protocols/lab.h"

#include <string.h>

#include "workloads/protocols/reply_parser.h"

static const char request_magic[4] = {'L', 'A', 'B', 'Q'};
static const char reply_magic[4] = {'L', 'A', 'B', 'R'};

static const struct protocol_operation operations[] = {
    {.name = "call", .weight = 1, .states_size = true, .returns_value = true}};

static size_t request_bytes_max(size_t key_bytes, size_t value_bytes)
{
    (void)key_bytes, (void)value_bytes;
    return LAB_REQUEST_BYTES;
}

static size_t lab_encode(const struct request *request, char *out, size_t out_bytes)
{
    if (out_bytes < LAB_REQUEST_BYTES || request->value_bytes > LAB_PAYLOAD_BYTES_MAX)
        return 0;
    memcpy(out, request_magic, sizeof request_magic);
    big_endian_write(out + 4, 4, request->value_bytes);
    big_endian_write(out + 8, 8, request->number);
    big_endian_write(out + 16, 8, request->service_ns);
    return LAB_REQUEST_BYTES;
}

bool lab_request_read(const char *bytes, struct lab_request *request)
{
    *request = (struct lab_request){.payload_bytes = (uint32_t)big_endian_read(bytes + 4, 4),
                                    .id = big_endian_read(bytes + 8, 8),
                                    .service_ns = big_endian_read(bytes + 16, 8)};
    return memcmp(bytes, request_magic, sizeof request_magic) == 0 &&
           request->payload_bytes <= LAB_PAYLOAD_BYTES_MAX;
}

void lab_reply_write(char *out, uint64_t id, uint32_t payload_bytes)
{
    memcpy(out, reply_magic, sizeof reply_magic);
    big_endian_write(out + 4, 4, payload_bytes);
    big_endian_write(out + 8, 8, id);
}

static enum reply_progress lab_judge(struct reply_parser *parser)
{
    uint64_t payload = big_endian_read(parser->line + 4, 4);
    if (memcmp(parser->line, reply_magic, sizeof reply_magic) != 0)
        return reply_lose(parser, REPLY_MALFORMED);
    if (payload > LAB_PAYLOAD_BYTES_MAX)
        return reply_lose(parser, REPLY_OVERSIZED);
    bool in_order = big_endian_read(parser->line + 8, 8) == parser->number;
    parser->kind = in_order ? REPLY_VALUE : REPLY_OUT_OF_ORDER;
    parser->value_bytes = parser->data_left = payload;
    return payload ? REPLY_UNDER_WAY : REPLY_ENDED;
}

static bool lab_answers(unsigned operation, enum reply_kind kind)
{
    (void)operation;
    return kind != REPLY_MISS && kind != REPLY_STORED && kind != REPLY_NOT_STORED;
}

const struct protocol lab_protocol = {
    .name = lab_name,
    .speaks = "the laboratory server's own (`workloads/protocols/lab.h`)",
    .replies = "the reply's payload has the length of the key's value",
    .operations = operations,
    .operation_count = sizeof operations / sizeof *operations,
    .usual_port = 11211,
    .dataset = DATASET_NONE,
    .says_service = true,
    .value_bytes_max = LAB_PAYLOAD_BYTES_MAX,
    .request_bytes_max = request_bytes_max,
    .encode = lab_encode,
    .header_bytes = LAB_REPLY_BYTES,
    .header_begin = 'L',
    .judge_header = lab_judge,
    .end_data = reply_ends_with_data,
    .answers = lab_answers,
};
