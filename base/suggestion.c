// SPDX-License-Identifier: MIT
#include "base/suggestion.h"

#include <stdio.h>
#include <string.h>

enum { LONGEST_WORD = 64 };

static unsigned distance_min(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

// Optimal string alignment distance, three rows at a time.
static unsigned edit_distance(const char *a, size_t a_bytes, const char *b, size_t b_bytes)
{
    unsigned rows[3][LONGEST_WORD + 1];
    unsigned *before = rows[0], *last = rows[1], *row = rows[2];
    for (size_t j = 0; j <= b_bytes; j++)
        last[j] = (unsigned)j;
    for (size_t i = 1; i <= a_bytes; i++) {
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= b_bytes; j++) {
            unsigned cost = a[i - 1] != b[j - 1];
            row[j] = distance_min(distance_min(last[j] + 1, row[j - 1] + 1), last[j - 1] + cost);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = distance_min(row[j], before[j - 2] + 1);
        }
        unsigned *oldest = before;
        before = last;
        last = row;
        row = oldest;
    }
    return last[b_bytes];
}

unsigned suggestion_distance(const char *written, const char *word)
{
    size_t written_bytes = strlen(written), word_bytes = strlen(word);
    size_t longer = written_bytes > word_bytes ? written_bytes : word_bytes;
    if (longer >= LONGEST_WORD)
        return SUGGESTION_FAR;
    unsigned distance = edit_distance(written, written_bytes, word, word_bytes);
    return distance * 3 <= longer ? distance : SUGGESTION_FAR;
}

// The only one that begins so: "dur" for duration.
static const char *only_longer(const char *written, const char *const *words, size_t count)
{
    const char *found = NULL;
    size_t bytes = strlen(written);
    for (size_t i = 0; bytes >= 2 && i < count; i++) {
        if (strncmp(written, words[i], bytes) != 0)
            continue;
        if (found)
            return NULL;
        found = words[i];
    }
    return found;
}

const char *suggestion_nearest(const char *written, const char *const *words, size_t count)
{
    const char *nearest = NULL;
    unsigned best = SUGGESTION_FAR;
    for (size_t i = 0; i < count; i++) {
        unsigned distance = suggestion_distance(written, words[i]);
        if (distance < best) {
            best = distance;
            nearest = words[i];
        }
    }
    return nearest ? nearest : only_longer(written, words, count);
}

char *suggestion_write(const char *written, const char *const *words, size_t count, char *out,
                       size_t out_bytes)
{
    const char *nearest = suggestion_nearest(written, words, count);
    if (nearest) {
        snprintf(out, out_bytes, "; did you mean `%s`?", nearest);
        return out;
    }
    int used = snprintf(out, out_bytes, "%s", count ? "; it may be: " : "");
    for (size_t i = 0; i < count && used >= 0 && (size_t)used < out_bytes; i++)
        used += snprintf(out + used, out_bytes - (size_t)used, "%s%s", i ? ", " : "", words[i]);
    return out;
}
