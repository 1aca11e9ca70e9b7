// SPDX-License-Identifier: MIT
//
// The hash map over a caller's array, with keys whose hashes meet, too; the numbers of names; and
// the binary search that hand-written ones were replaced by.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/name_pool.h"

struct keys ARRAY_OF(uint64_t);

static uint32_t find(const struct map *map, const struct keys *keys, uint64_t key, uint64_t hash)
{
    return map_find(map, hash, at, keys->items[at] == key);
}

static void check_with(uint64_t (*hash_of)(uint64_t), uint64_t count)
{
    struct map map = {0};
    struct keys keys = {0};
    for (uint64_t i = 0; i < count; i++) {
        uint64_t key = i * 977;
        assert_int_equal(find(&map, &keys, key, hash_of(key)), MAP_NONE);
        assert_int_equal(array_push(&keys, key), 0);
        assert_int_equal(map_add(&map, hash_of(key), keys.count - 1), 0);
    }
    assert_int_equal(map.count, count);
    assert_true(map.slot_count >= 2 * map.count);
    for (uint64_t i = 0; i < count; i++) {
        assert_int_equal(find(&map, &keys, i * 977, hash_of(i * 977)), i);
        assert_int_equal(find(&map, &keys, i * 977 + 1, hash_of(i * 977 + 1)), MAP_NONE);
    }
    map_free(&map);
    assert_int_equal(find(&map, &keys, 0, 0), MAP_NONE);
    array_free(&keys);
}

static uint64_t good_hash(uint64_t key)
{
    return hash64(key);
}

static uint64_t no_hash(uint64_t key)
{
    (void)key;
    return 42;
}

// Always the last slots, so that every search goes round the end.
static uint64_t high_hash(uint64_t key)
{
    return UINT32_MAX - key % 3;
}

static void finds_what_was_added(void **state)
{
    (void)state;
    check_with(good_hash, 100000);
    check_with(no_hash, 300);
    check_with(high_hash, 300);
}

static void refuses_a_position_that_would_mean_none(void **state)
{
    (void)state;
    struct map map = {0};
    assert_int_equal(map_add(&map, 1, MAP_NONE), -1);
    assert_int_equal(map.count, 0);
    map_free(&map);
}

static void names_have_numbers(void **state)
{
    (void)state;
    struct name_pool *pool = name_pool_alloc();
    char text[32];
    for (uint32_t i = 0; i < 5000; i++) {
        int length = snprintf(text, sizeof text, "name %u and more", i);
        assert_int_equal(name_pool_find(pool, text, (size_t)length), UINT32_MAX);
        assert_int_equal(name_pool_add(pool, text, (size_t)length), i);
        assert_int_equal(name_pool_add(pool, text, (size_t)length), i);
    }
    assert_string_equal(name_pool_text(pool, 4999), "name 4999 and more");
    assert_string_equal(name_pool_text(pool, 5000), "[unknown]");
    assert_int_equal(name_pool_count(pool), 5000);
    name_pool_free(pool);
}

static void bound_is_the_first_that_fails(void **state)
{
    (void)state;
    const int items[] = {1, 3, 3, 3, 8, 9};
    const size_t count = sizeof items / sizeof *items;
    for (int wanted = 0; wanted < 11; wanted++) {
        size_t below = 0, up_to = 0;
        while (below < count && items[below] < wanted)
            below++;
        while (up_to < count && items[up_to] <= wanted)
            up_to++;
        assert_int_equal(array_bound(0, count, at, items[at] < wanted), below);
        assert_int_equal(array_bound(0, count, at, items[at] <= wanted), up_to);
    }
    assert_int_equal(array_bound(2, 4, at, items[at] < 100), 4);
    assert_int_equal(array_bound(2, 4, at, items[at] < 0), 2);
    assert_int_equal(array_bound(0, 0, at, items[at] < 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_what_was_added),
        cmocka_unit_test(refuses_a_position_that_would_mean_none),
        cmocka_unit_test(names_have_numbers),
        cmocka_unit_test(bound_is_the_first_that_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
