// SPDX-License-Identifier: MIT
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <cmocka.h>

#include "base/room.h"

struct numbers ARRAY_OF(uint64_t);
enum { TABLES = 3, NUMBERS = 500000, PAGE_BYTES = 4096 };

static void fill(struct room *room, struct numbers *tables)
{
    for (uint64_t i = 0; i < NUMBERS; i++)
        for (uint64_t table = 0; table < TABLES; table++)
            assert_int_equal(room_push(room, &tables[table], i * TABLES + table), 0);
}

static void check_and_free(struct room *room, struct numbers *tables)
{
    for (uint64_t table = 0; table < TABLES; table++) {
        assert_int_equal(tables[table].count, NUMBERS);
        for (uint64_t i = 0; i < NUMBERS; i++)
            assert_true(tables[table].items[i] == i * TABLES + table);
        room_free_array(room, &tables[table]);
        assert_null(tables[table].items);
    }
}

// From the first, small block to megabytes, which lie beside those of other tables.
static void tables_keep_what_is_in_them_as_they_grow(void **state)
{
    (void)state;
    struct room room = {0}, without = {.lacks = true};
    struct room *const rooms[] = {&room, &without, NULL};
    for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++) {
        struct numbers tables[TABLES] = {0};
        fill(rooms[i], tables);
        check_and_free(rooms[i], tables);
    }
    assert_int_equal(without.part_count, 0);
    room_fini(&room);
    assert_int_equal(room.part_count, 0);
}

static void small_tables_need_no_room(void **state)
{
    (void)state;
    struct room room = {0};
    void *block = room_resize(&room, NULL, 0, ROOM_OPENS_BYTES - 1);
    assert_non_null(block);
    assert_int_equal(room.part_count, 0);
    room_free(&room, block, ROOM_OPENS_BYTES - 1);
    room_free(&room, NULL, 0);
    room_fini(&room);
}

static void who_expects_much_has_room_from_the_start(void **state)
{
    (void)state;
    struct room room = {.early = true};
    void *small = room_resize(&room, NULL, 0, ROOM_LEAST_BYTES - 1);
    assert_int_equal(room.part_count, 0);
    void *block = room_resize(&room, NULL, 0, ROOM_LEAST_BYTES);
    if (room.lacks)
        print_message("no huge pages here\n");
    else
        assert_int_equal(room.part_count, 1);
    room_free(&room, small, ROOM_LEAST_BYTES - 1);
    room_free(&room, block, ROOM_LEAST_BYTES);
    room_fini(&room);
}

static void what_was_given_back_is_used_again(void **state)
{
    (void)state;
    struct room room = {0};
    void *first = room_resize(&room, NULL, 0, 4 * ROOM_OPENS_BYTES);
    if (room.part_count) {
        size_t used = room.lists->parts[0].used;
        room_free(&room, first, 4 * ROOM_OPENS_BYTES);
        char *again = room_resize(&room, NULL, 0, ROOM_OPENS_BYTES);
        char *beside = room_resize(&room, NULL, 0, 2 * ROOM_OPENS_BYTES);
        assert_ptr_equal(again, first);
        assert_ptr_equal(beside, again + ROOM_OPENS_BYTES);
        assert_int_equal(room.lists->parts[0].used, used);
    } else {
        print_message("no huge pages here\n");
        room_free(&room, first, 4 * ROOM_OPENS_BYTES);
    }
    room_fini(&room);
}

static void what_cannot_fit_is_refused_and_changes_nothing(void **state)
{
    (void)state;
    struct room room = {0};
    struct numbers numbers = {0};
    assert_int_equal(room_push(&room, &numbers, 7), 0);
    assert_int_equal(room_reserve(&room, &numbers, SIZE_MAX), -1);
    assert_int_equal(room_reserve(&room, &numbers, SIZE_MAX / 8), -1);
    assert_int_equal(room_reserve(&room, &numbers, SIZE_MAX / 64), -1);
    assert_int_equal(numbers.count, 1);
    assert_int_equal(numbers.items[0], 7);
    room_free_array(&room, &numbers);
    room_fini(&room);
}

static long page_faults(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}

static bool huge_pages_came(void)
{
    char line[256];
    long kib = 0;
    FILE *file = fopen("/proc/self/smaps_rollup", "re");
    while (file && kib == 0 && fgets(line, sizeof line, file))
        sscanf(line, "AnonHugePages: %ld", &kib);
    if (file)
        fclose(file);
    return kib > 0;
}

static void large_tables_take_few_page_faults(void **state)
{
    (void)state;
    struct room room = {0};
    struct numbers tables[TABLES] = {0};
    long before = page_faults(), taken;
    fill(&room, tables);
    taken = page_faults() - before;
    bool came = huge_pages_came();
    print_message("%ld page faults%s\n", taken, came ? "" : " (no huge pages here)");
    if (came)
        assert_true(taken < (long)(TABLES * NUMBERS * sizeof(uint64_t) / PAGE_BYTES / 2));
    check_and_free(&room, tables);
    room_fini(&room);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_tables_take_few_page_faults),
        cmocka_unit_test(tables_keep_what_is_in_them_as_they_grow),
        cmocka_unit_test(small_tables_need_no_room),
        cmocka_unit_test(who_expects_much_has_room_from_the_start),
        cmocka_unit_test(what_was_given_back_is_used_again),
        cmocka_unit_test(what_cannot_fit_is_refused_and_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
