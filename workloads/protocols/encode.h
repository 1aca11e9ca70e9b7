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

// Keys and commands are short: then a call costs more than the copying.
static inline char *append_bytes(char *at, const char *bytes, size_t count)
{
    uint64_t first, last;
    if (!__builtin_constant_p(count) && count >= sizeof first && count <= 2 * sizeof first) {
        memcpy(&first, bytes, sizeof first);
        memcpy(&last, bytes + count - sizeof last, sizeof last);
        memcpy(at, &first, sizeof first);
        memcpy(at + count - sizeof last, &last, sizeof last);
    } else {
        memcpy(at, bytes, count);
    }
    return at + count;
}

static inline char *append_text(char *at, const char *text)
{
    return append_bytes(at, text, strlen(text));
}

// Writes the last digits of a number in decimal up to `end`, no more than there is room for from
// `begin` on, and returns where the first stands: two at a time, since dividing takes longest.
static inline char *write_digits(char *begin, char *end, uint64_t number)
{
    static const char pairs[] = "00010203040506070809101112131415161718192021222324"
                                "25262728293031323334353637383940414243444546474849"
                                "50515253545556575859606162636465666768697071727374"
                                "75767778798081828384858687888990919293949596979899";
    for (; number >= 10 && end - begin >= 2; number /= 100)
        memcpy(end -= 2, pairs + number % 100 * 2, 2);
    if (number && end > begin)
        *--end = (char)('0' + number % 10);
    return end;
}

// In decimal.
static inline char *append_number(char *at, uint64_t number)
{
    unsigned digits = 1;
    for (uint64_t left = number; left >= 10; left /= 10)
        digits++;
    *at = '0';
    write_digits(at, at + digits, number);
    return at + digits;
}

// Its value; -1: it is none.
static inline int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

#endif
