// SPDX-License-Identifier: MIT
//
// "did you mean": the word of a list that is nearest to what was written.
#ifndef EXPERIMENTS_SUGGESTION_H
#define EXPERIMENTS_SUGGESTION_H

#include <stddef.h>

// The nearest of `count` words by edit distance (insertions, deletions, substitutions and swaps of
// neighbours count 1), NULL when none is near enough to be what was meant: more than a third of
// the longer word's letters differ. Words of 64 bytes and more are never near.
const char *suggestion_nearest(const char *written, const char *const *words, size_t count);

// Writes "; did you mean `word`?" when one is near, else "; it may be: a, b, c". Returns out.
char *suggestion_write(const char *written, const char *const *words, size_t count, char *out,
                       size_t out_bytes);

#endif
