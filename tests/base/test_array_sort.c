// SPDX-License-Identifier: MIT
//
// Sorting what is a few runs, or in order, or in none: the result is qsort's, equal items keep
// their order, and runs cost as many comparisons as merging them takes.
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/array.h"

enum { COUNT = 4096 };

struct item {
    uint32_t key, place;
    uint64_t more;
};

static size_t comparisons;

static int by_key(const void *left, const void *right)
{
    const struct item *a = left, *b = right;
    comparisons++;
    return order_of(a->key, b->key);
}

static uint32_t random_next(uint64_t *state)
{
    *state = *state * 6364136223846793005 + 1442695040888963407;
    return (uint32_t)(*state >> 33);
}

// So many runs one behind the other; as many as items: no order. Keys come several times.
static void fill(struct item *items, size_t count, size_t runs, uint64_t seed)
{
    uint32_t key = 0;
    for (size_t i = 0; i < count; i++) {
        bool begins = i * runs / count != (i + 1) * runs / count;
        items[i] = (struct item){.key = key, .place = (uint32_t)i, .more = i * 7};
        key = begins ? random_next(&seed) % 100 : key + random_next(&seed) % 3;
    }
}

static void check_sorted(const struct item *items, size_t count)
{
    static bool seen[COUNT];
    memset(seen, 0, sizeof seen);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(items[i].more, items[i].place * 7);
        assert_false(seen[items[i].place]);
        seen[items[i].place] = true;
        assert_true(i == 0 || items[i - 1].key < items[i].key ||
                    (items[i - 1].key == items[i].key && items[i - 1].place < items[i].place));
    }
}

static void any_runs_are_sorted_and_equal_items_keep_their_order(void **state)
{
    static struct item items[COUNT];
    (void)state;
    static const size_t counts[] = {0, 1, 2, 3, 7, 8, 9, 100, 1000, COUNT};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        for (size_t runs = 1; runs <= counts[c]; runs = runs < 20 ? runs + 1 : runs * 2) {
            fill(items, counts[c], runs, runs + c);
            array_sort_raw(items, counts[c], sizeof *items, by_key);
            check_sorted(items, counts[c]);
        }
    }
}

// One comparison an item to find the runs, and one in each round of merging.
static void runs_cost_what_merging_them_takes(void **state)
{
    static struct item items[COUNT];
    (void)state;
    for (size_t rounds = 0; rounds < 6; rounds++) {
        fill(items, COUNT, (size_t)1 << rounds, 3);
        comparisons = 0;
        array_sort_raw(items, COUNT, sizeof *items, by_key);
        assert_true(comparisons <= (rounds + 2) * COUNT);
        check_sorted(items, COUNT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_runs_are_sorted_and_equal_items_keep_their_order),
        cmocka_unit_test(runs_cost_what_merging_them_takes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
