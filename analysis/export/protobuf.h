// SPDX-License-Identifier: MIT
//
// Writes protobuf's wire format (protobuf.dev/programming-guides/encoding) into memory, field by
// field: enough for the few messages of analysis/export/perfetto.h, which need no schema compiler.
#ifndef ANALYSIS_EXPORT_PROTOBUF_H
#define ANALYSIS_EXPORT_PROTOBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A zeroed one is empty. Where memory runs out, `failed` stays set and what follows is lost.
struct protobuf {
    uint8_t *items;
    size_t count, capacity;
    bool failed;
};

void protobuf_number(struct protobuf *out, uint32_t field, uint64_t value);
void protobuf_fixed64(struct protobuf *out, uint32_t field, uint64_t value);
void protobuf_text(struct protobuf *out, uint32_t field, const char *text);
void protobuf_bytes(struct protobuf *out, uint32_t field, const void *bytes, size_t count);

// What is written between begin and end is a message inside the field. Messages nest.
size_t protobuf_open(struct protobuf *out, uint32_t field);
void protobuf_close(struct protobuf *out, size_t opened);

void protobuf_free(struct protobuf *out);

#endif
