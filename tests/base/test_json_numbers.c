// SPDX-License-Identifier: MIT
//
// A percentile of a document is what was put there: known, reached by requests that nobody
// answered, or reached by too few.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/json_numbers.h"

static void percentiles_come_back(void **state)
{
    (void)state;
    json_t *object = json_object();
    json_set_percentile(object, "p50", 12.5);
    json_set_percentile(object, "p99", INFINITY);
    json_set_percentile(object, "p99.9", NAN);
    assert_true(json_percentile(object, "p50") == 12.5);
    assert_true(isinf(json_percentile(object, "p99")));
    assert_true(isnan(json_percentile(object, "p99.9")));
    assert_true(isnan(json_percentile(NULL, "p50")));
    json_object_set_new(object, "max", json_string("12"));
    assert_true(isnan(json_percentile(object, "max")));
    json_decref(object);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(percentiles_come_back)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
