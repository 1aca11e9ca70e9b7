// SPDX-License-Identifier: MIT
//
// mutilate as a peer of the load generator's benchmark: what it printed of a run at depth 8, and of
// others that are none to compare with.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/bench/mutilate.h"

#define TABLE                                                                                      \
    "#type       avg     std     min     5th    10th    90th    95th    99th\n"                    \
    "read     1454.1  2849.4   106.7   383.1   437.9  2139.6  2868.7  7113.7\n"                    \
    "update   1417.9  2621.8   117.4   379.1   432.4  2120.5  2839.9  6372.5\n"                    \
    "op_q        8.0     0.1     1.0     7.4     7.5     8.1     8.1     8.1\n\n"

static void a_run_has_its_rate(void **state)
{
    (void)state;
    struct error err;
    struct peer_result result;
    assert_int_equal(mutilate_read(TABLE "Total QPS = 88227.6 (176476 / 2.0s)\n\n"
                                         "Misses = 0 (0.0%)\nSkipped TXs = 0 (0.0%)\n\n"
                                         "RX   44748706 bytes :   21.3 MB/s\n",
                                   &result, &err),
                     0);
    assert_true(result.rate == 88227.6 && result.requests == 176476);
}

static void what_is_no_peers_rate_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *output, *why;
    } cases[] = {
        {TABLE "Total QPS = 99000.0 (198000 / 2.0s)\n\nMisses = 178200 (100.0%)\n",
         "mutilate: 178200 of 198000 requests found nothing"},
        {TABLE "Total QPS = 0.0 (0 / 2.0s)\n\nMisses = 0 (-nan%)\n",
         "mutilate: 0 of 0 requests found nothing"},
        {TABLE "Total QPS = 88227.6 (176476 / 2.0s)\n", "mutilate did not print its result"},
        {TABLE, "mutilate did not print its result"},
        {"", "mutilate did not print its result"}, // without a server
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct error err;
        struct peer_result result;
        assert_int_equal(mutilate_read(cases[i].output, &result, &err), -ERROR_INPUT);
        assert_string_equal(err.text, cases[i].why);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_has_its_rate),
        cmocka_unit_test(what_is_no_peers_rate_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
