// SPDX-License-Identifier: MIT
//
// Protobuf's wire format (protobuf.dev/programming-guides/encoding), written field by field: enough
// for the few messages of a trace or of metrics, which need no schema compiler.
#ifndef BASE_PROTOBUF_H
#define BASE_PROTOBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// What is written. A zeroed one is empty. Where memory runs out, `failed` stays set and what
// follows is lost: looked at once, at the end.
struct protobuf {
    uint8_t *items;
    size_t count, capacity;
    bool failed;
};

void protobuf_free(struct protobuf *out);

// A field of each wire type. Numbers are uint32, uint64, bool and enum; signed ones are sint32 and
// sint64 (zigzag).
void protobuf_number(struct protobuf *out, uint32_t field, uint64_t value);
void protobuf_signed(struct protobuf *out, uint32_t field, int64_t value);
void protobuf_fixed64(struct protobuf *out, uint32_t field, uint64_t value);
void protobuf_double(struct protobuf *out, uint32_t field, double value);
void protobuf_bytes(struct protobuf *out, uint32_t field, const void *bytes, size_t count);
void protobuf_text(struct protobuf *out, uint32_t field, const char *text);

// A message within the message: what is written between the two, the first of which says where that
// began, is the field's.
size_t protobuf_open(struct protobuf *out, uint32_t field);
void protobuf_close(struct protobuf *out, size_t opened);
// The same for a stream of messages, each behind its length.
size_t protobuf_open_delimited(struct protobuf *out);

#endif
