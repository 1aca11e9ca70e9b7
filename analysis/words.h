// SPDX-License-Identifier: MIT
//
// Sentences piece by piece, and numbers with their signs as comparisons and verdicts say them.
#ifndef ANALYSIS_WORDS_H
#define ANALYSIS_WORDS_H

#include <stddef.h>

enum { WORDS_NUMBER_BYTES = 40 };

// Appends; what does not fit is cut.
void words_add(char *text, size_t bytes, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// A fraction as "+4.2" or "-38": in percent, with a decimal below ten. Returns out.
char *words_percent(double fraction, char out[WORDS_NUMBER_BYTES]);

// "+4.2 us". Returns out.
char *words_signed_ns(double ns, char out[WORDS_NUMBER_BYTES]);

#endif
