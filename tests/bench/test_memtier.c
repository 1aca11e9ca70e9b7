// SPDX-License-Identifier: MIT
//
// memtier_benchmark as a peer of the load generator's benchmark: what it printed of a run, of one
// that found nothing, and without a server (2.0, whose table is one of several widths).
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/bench/memtier.h"

#define HEAD                                                                                       \
    "1         Threads\n16        Connections per thread\n2         Seconds\n\n\nALL STATS\n"      \
    "====================================================================================\n"       \
    "Type         Ops/sec     Hits/sec   Misses/sec    Avg. Latency     p50 Latency \n"            \
    "------------------------------------------------------------------------------------\n"
#define SETS                                                                                       \
    "Sets         4584.53          ---          ---         5.56015         1.75100 \n"            \
    "Gets        41226.85     41226.85         0.00         5.57330         1.75100 \n"            \
    "Waits           0.00          ---          ---             ---             --- \n"

static void a_run_is_taken(void **state)
{
    (void)state;
    struct error err;
    assert_int_equal(memtier_check(HEAD SETS "Totals      45811.38     41226.85         0.00       "
                                             "  5.57198         1.75100 \n",
                                   &err),
                     0);
}

static void what_is_no_peers_rate_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *output, *why;
    } cases[] = {
        {HEAD "Totals      45811.38        12.00     45799.38         5.57198 \n",
         "memtier_benchmark: 45799 of 45811 requests found nothing"},
        {HEAD "Totals          0.00         0.00         0.00            -nan \n",
         "memtier_benchmark: no requests were answered"},
        {HEAD SETS, "memtier_benchmark did not print its table"},
        {"Totals      45811.38     41226.85         0.00\n",
         "memtier_benchmark did not print its table"},
        {"", "memtier_benchmark did not print its table"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct error err;
        assert_int_equal(memtier_check(cases[i].output, &err), -ERROR_INPUT);
        assert_string_equal(err.text, cases[i].why);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_is_taken),
        cmocka_unit_test(what_is_no_peers_rate_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
