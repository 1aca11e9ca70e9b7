// SPDX-License-Identifier: MIT
//
// The list of watched network namespaces: a guess gives way to what is named, and where there is no
// room all are watched, for good.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "profiler/events/watched_namespaces.h"

static void a_guess_gives_way(void **state)
{
    (void)state;
    uint32_t list[EVENTS_NAMESPACES] = {77};
    bool named = false;
    assert_true(watched_namespaces_has(list, 77) && !watched_namespaces_has(list, 5));
    assert_true(watched_namespaces_add(list, &named, 5));
    assert_true(named && watched_namespaces_has(list, 5) && !watched_namespaces_has(list, 77));
    assert_false(watched_namespaces_add(list, &named, 5));
}

static void a_right_guess_stays(void **state)
{
    (void)state;
    uint32_t list[EVENTS_NAMESPACES] = {77};
    bool named = false;
    assert_false(watched_namespaces_add(list, &named, 77));
    assert_true(named && watched_namespaces_add(list, &named, 5));
    assert_true(watched_namespaces_has(list, 77) && watched_namespaces_has(list, 5));
}

static void without_room_all_are_watched(void **state)
{
    (void)state;
    uint32_t list[EVENTS_NAMESPACES] = {0};
    bool named = false;
    for (uint32_t i = 1; i <= EVENTS_NAMESPACES; i++)
        assert_true(watched_namespaces_add(list, &named, i));
    assert_false(watched_namespaces_has(list, 1000));
    assert_true(watched_namespaces_add(list, &named, 1000));
    assert_true(watched_namespaces_has(list, 1000) && watched_namespaces_has(list, 1001));
    watched_namespaces_add(list, &named, 1002);
    assert_true(watched_namespaces_has(list, 1001));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_guess_gives_way),
        cmocka_unit_test(a_right_guess_stays),
        cmocka_unit_test(without_room_all_are_watched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
