// SPDX-License-Identifier: MIT
//
// "did you mean": the word of a list that is nearest to what was written.
#ifndef BASE_SUGGESTION_H
#define BASE_SUGGESTION_H

#include <stddef.h>

enum { SUGGESTION_FAR = 64 };

// The edit distance of two words: insertions, deletions, substitutions and swaps of neighbours
// count 1. SUGGESTION_FAR when more than a third of the longer word's letters differ, which is too
// much for a typing mistake. Words of 64 bytes and more are never near.
unsigned suggestion_distance(const char *written, const char *word);

// The nearest of `count` words; if none is near, the only one that begins with what was written, of
// two letters or more; else NULL.
const char *suggestion_nearest(const char *written, const char *const *words, size_t count);

// Writes "; did you mean `word`?" when one is near, else "; it may be: a, b, c". Returns out.
char *suggestion_write(const char *written, const char *const *words, size_t count, char *out,
                       size_t out_bytes);

#endif
