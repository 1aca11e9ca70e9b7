// SPDX-License-Identifier: MIT
#include "base/array_sort.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

// As long as that on average, runs are merged: shorter ones are no order at all.
enum { RUN_LENGTH = 2 };

struct sorting {
    size_t size;
    int (*compare)(const void *, const void *);
    size_t *ends; // of the runs, as indices
    size_t run_count;
};

// How many items from `first` on, but not `end` and beyond, are in order.
static size_t run_end(const struct sorting *sorting, const char *items, size_t first, size_t end)
{
    const size_t size = sorting->size;
    size_t next = first + 1;
    while (next < end && sorting->compare(items + (next - 1) * size, items + next * size) <= 0)
        next++;
    return next < end ? next : end;
}

// False: there are more runs than are worth it, or no memory.
static bool find_runs(struct sorting *sorting, const char *items, size_t count)
{
    const size_t most = count / RUN_LENGTH;
    sorting->ends = malloc((most + 1) * sizeof *sorting->ends);
    if (!sorting->ends)
        return false;
    for (size_t first = 0; first < count; first = sorting->ends[sorting->run_count++]) {
        if (sorting->run_count >= most)
            return false;
        sorting->ends[sorting->run_count] = run_end(sorting, items, first, count);
    }
    return true;
}

// Two runs, one behind the other, into one at the same place of `to`. Items are moved in stretches
// that come from the same run.
static void merge(const struct sorting *sorting, const char *left, const char *middle,
                  const char *end, char *to)
{
    const size_t size = sorting->size;
    const char *right = middle;
    bool left_is_next = false; // known from the comparison that ended the last stretch
    while (left < middle && right < end) {
        const char *from = left;
        for (; left < middle && (left_is_next || sorting->compare(left, right) <= 0); left += size)
            left_is_next = false;
        memcpy(to, from, (size_t)(left - from));
        to += left - from;
        if (left == middle)
            break;
        from = right;
        do
            right += size;
        while (right < end && sorting->compare(left, right) > 0);
        memcpy(to, from, (size_t)(right - from));
        to += right - from;
        left_is_next = true;
    }
    memcpy(to, left, (size_t)(middle - left));
    memcpy(to + (middle - left), right, (size_t)(end - right));
}

// Neighbours become one run, all over.
static void merge_pairs(struct sorting *sorting, const char *from, char *to)
{
    const size_t size = sorting->size;
    size_t merged = 0, begin = 0;
    for (size_t run = 0; run < sorting->run_count; run += 2) {
        bool alone = run + 1 == sorting->run_count;
        size_t middle = sorting->ends[run], end = alone ? middle : sorting->ends[run + 1];
        merge(sorting, from + begin * size, from + middle * size, from + end * size,
              to + begin * size);
        sorting->ends[merged++] = begin = end;
    }
    sorting->run_count = merged;
}

void array_sort_raw(void *items, size_t count, size_t size,
                    int (*compare)(const void *, const void *))
{
    struct sorting sorting = {.size = size, .compare = compare};
    char *from = items, *other = NULL;
    if (count < 2 || run_end(&sorting, items, 0, count) == count)
        return;
    if (!find_runs(&sorting, items, count) || !(other = malloc(count * size))) {
        qsort(items, count, size, compare);
    } else {
        for (char *to = other; sorting.run_count > 1;) {
            merge_pairs(&sorting, from, to);
            char *merged = to;
            to = from;
            from = merged;
        }
        if (from == other)
            memcpy(items, other, count * size);
    }
    free(other);
    free(sorting.ends);
}
