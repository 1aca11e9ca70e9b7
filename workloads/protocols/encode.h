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
    char digits[NUMBER_DIGITS_MAX];
    unsigned first = NUMBER_DIGITS_MAX;
    do
        digits[--first] = (char)('0' + number % 10);
    while (number /= 10);
    return append_bytes(at, digits + first, NUMBER_DIGITS_MAX - first);
}

#endif
