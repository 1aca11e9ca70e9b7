// SPDX-License-Identifier: MIT
//
// Sorts what mostly is in order already: what several cores or connections recorded is a few runs,
// each in order, one behind the other. Such runs are merged (natural merge sort, Knuth, TAOCP 3,
// 5.2.4, Algorithm N), which takes n log(runs) comparisons where qsort takes n log n.
#ifndef BASE_ARRAY_SORT_H
#define BASE_ARRAY_SORT_H

#include <stddef.h>

// Sorts by a comparison as qsort's; equal items keep their order. What is in order costs one
// comparison an item and no memory, else it needs as much memory again; where there is none, or
// where runs are short, it is qsort's work.
void array_sort_raw(void *items, size_t count, size_t size,
                    int (*compare)(const void *, const void *));

#endif
