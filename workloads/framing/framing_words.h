// SPDX-License-Identifier: MIT
//
// The words and numbers in a line of a protocol, for its framing.
#ifndef WORKLOADS_FRAMING_FRAMING_WORDS_H
#define WORKLOADS_FRAMING_FRAMING_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A word of a line.
struct framing_word {
    const char *at;
    size_t count;
};

// The next word behind `at`, which moves on; count 0: there is none.
struct framing_word framing_next_word(const char **at, const char *end);
bool framing_word_is(struct framing_word word, const char *text);
// As framing_word_is, whatever the case.
bool framing_word_like(struct framing_word word, const char *text);

// A number in that base which is all of the bytes; false: it is none, or beyond 2^48.
bool framing_number(const char *at, size_t count, unsigned base, uint64_t *number);

#endif
