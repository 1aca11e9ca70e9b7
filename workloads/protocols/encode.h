// SPDX-License-Identifier: MIT
//
// Writes the parts of requests for protocols' encoders: printf's formatting took a tenth of what a
// pipelined request cost.
#ifndef WORKLOADS_PROTOCOLS_ENCODE_H
#define WORKLOADS_PROTOCOLS_ENCODE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { NUMBER_DIGITS_MAX = 20 }; // of a uint64_t

// A text whose length is not counted for each request.
struct text {
    const char *bytes;
    size_t count;
};
#define TEXT(literal)                                                                              \
    {                                                                                              \
        literal, sizeof(literal) - 1                                                               \
    }

// Each writes at a place with enough room, without a NUL, and returns the place after it.

static inline char *append_bytes(char *at, const char *bytes, size_t count)
{
    memcpy(at, bytes, count);
    return at + count;
}

static inline char *append_text(char *at, const char *text)
{
    return append_bytes(at, text, strlen(text));
}

// In decimal.
static inline char *append_number(char *at, uint64_t number)
{
    unsigned digits = 1;
    for (uint64_t left = number; left >= 10; left /= 10)
        digits++;
    for (char *place = at + digits; place > at; number /= 10)
        *--place = (char)('0' + number % 10);
    return at + digits;
}

#endif
