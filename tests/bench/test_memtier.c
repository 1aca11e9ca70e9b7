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

#define TOTALS "Totals      45811.38     41226.85         0.00         5.57198         1.75100 \n"
#define PROGRESS                                                                                   \
    "[RUN #1] Launching threads now...\n"                                                          \
    "\r[RUN #1 50%,   1 secs]  1 threads:       45000 ops,   45000 (avg:   45000) ops/sec"         \
    "\r[RUN #1 101%,   2 secs]  0 threads:       91834 ops,   46834 (avg:   45811) ops/sec\n\n"

static void a_run_has_its_requests(void **state)
{
    (void)state;
    struct error err;
    double requests;
    assert_int_equal(memtier_read(HEAD SETS TOTALS, PROGRESS, &requests, &err), 0);
    assert_true(requests == 91834);
}

static void what_is_no_peers_rate_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *output, *progress, *why;
    } cases[] = {
        {HEAD "Totals      45811.38        12.00     45799.38         5.57198 \n", PROGRESS,
         "memtier_benchmark: 45799 of 45811 requests found nothing"},
        {HEAD "Totals          0.00         0.00         0.00            -nan \n", PROGRESS,
         "memtier_benchmark: no requests were answered"},
        {HEAD SETS TOTALS, "\r[RUN #1 100%,   0 secs]  0 threads:           0 ops",
         "memtier_benchmark: no requests were answered"},
        {HEAD SETS, PROGRESS, "memtier_benchmark did not print its result"},
        {HEAD SETS TOTALS, "", "memtier_benchmark did not print its result"},
        {TOTALS, PROGRESS, "memtier_benchmark did not print its result"},
        {"", "", "memtier_benchmark did not print its result"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct error err;
        double requests;
        assert_int_equal(memtier_read(cases[i].output, cases[i].progress, &requests, &err),
                         -ERROR_INPUT);
        assert_string_equal(err.text, cases[i].why);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_has_its_requests),
        cmocka_unit_test(what_is_no_peers_rate_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
