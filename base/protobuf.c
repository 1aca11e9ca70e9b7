// SPDX-License-Identifier: MIT
#include "base/protobuf.h"

#include <string.h>

#include "base/array.h"

enum { WIRE_NUMBER = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, LONGEST_NUMBER = 10 };

static size_t encode(uint8_t to[LONGEST_NUMBER], uint64_t value)
{
    size_t count = 0;
    for (; value >= 0x80; value >>= 7)
        to[count++] = (uint8_t)(value | 0x80);
    to[count++] = (uint8_t)value;
    return count;
}

static void put(struct protobuf *out, const void *bytes, size_t count)
{
    if (out->failed || array_reserve(out, out->count + count) < 0) {
        out->failed = true;
        return;
    }
    if (count)
        memcpy(out->items + out->count, bytes, count);
    out->count += count;
}

static void put_number(struct protobuf *out, uint64_t value)
{
    uint8_t bytes[LONGEST_NUMBER];
    put(out, bytes, encode(bytes, value));
}

static void put_key(struct protobuf *out, uint32_t field, unsigned wire_type)
{
    put_number(out, (uint64_t)field << 3 | wire_type);
}

void protobuf_number(struct protobuf *out, uint32_t field, uint64_t value)
{
    put_key(out, field, WIRE_NUMBER);
    put_number(out, value);
}

void protobuf_signed(struct protobuf *out, uint32_t field, int64_t value)
{
    protobuf_number(out, field, (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0));
}

void protobuf_fixed64(struct protobuf *out, uint32_t field, uint64_t value)
{
    uint8_t bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(value >> 8 * i);
    put_key(out, field, WIRE_FIXED64);
    put(out, bytes, sizeof bytes);
}

void protobuf_double(struct protobuf *out, uint32_t field, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    protobuf_fixed64(out, field, bits);
}

void protobuf_bytes(struct protobuf *out, uint32_t field, const void *bytes, size_t count)
{
    put_key(out, field, WIRE_BYTES);
    put_number(out, count);
    put(out, bytes, count);
}

void protobuf_text(struct protobuf *out, uint32_t field, const char *text)
{
    protobuf_bytes(out, field, text, strlen(text));
}

// A byte is reserved for the length; if it needs more, the message moves.
size_t protobuf_open_delimited(struct protobuf *out)
{
    put(out, "", 1);
    return out->count;
}

size_t protobuf_open(struct protobuf *out, uint32_t field)
{
    put_key(out, field, WIRE_BYTES);
    return protobuf_open_delimited(out);
}

void protobuf_close(struct protobuf *out, size_t opened)
{
    uint8_t length[LONGEST_NUMBER];
    if (out->failed)
        return;
    size_t bytes = out->count - opened, wanted = encode(length, bytes);
    put(out, length, wanted - 1); // makes room
    if (out->failed)
        return;
    memmove(out->items + opened - 1 + wanted, out->items + opened, bytes);
    memcpy(out->items + opened - 1, length, wanted);
}

void protobuf_free(struct protobuf *out)
{
    array_free(out);
}
