// SPDX-License-Identifier: MIT
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/array.h"

struct numbers ARRAY_OF(uint64_t);

static void items_stay_where_they_were_put(void **state)
{
    (void)state;
    struct numbers numbers = {0};
    for (uint64_t i = 0; i < 10000; i++)
        assert_int_equal(array_push(&numbers, i * i), 0);
    assert_int_equal(numbers.count, 10000);
    for (uint64_t i = 0; i < 10000; i++)
        assert_int_equal(numbers.items[i], i * i);
    array_free(&numbers);
    assert_null(numbers.items);
    assert_int_equal(numbers.count, 0);
}

static void what_cannot_fit_is_refused_and_changes_nothing(void **state)
{
    (void)state;
    struct numbers numbers = {0};
    assert_int_equal(array_push(&numbers, 7), 0);
    assert_int_equal(array_reserve(&numbers, SIZE_MAX), -1);
    assert_int_equal(array_reserve(&numbers, SIZE_MAX / 8), -1);
    assert_int_equal(numbers.count, 1);
    assert_int_equal(numbers.items[0], 7);
    array_free(&numbers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_stay_where_they_were_put),
        cmocka_unit_test(what_cannot_fit_is_refused_and_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
