// SPDX-License-Identifier: MIT
//
// The verdict's words about causes: what stands out, what does not, and what stands apart.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "analysis/run/run_verdict.h"

enum { MESSAGES = 10 };

// Ten messages that took 20 us longer than the usual 40 us; each cause adds so much to each.
static void expect(const char *wanted, double yes_ns, double wake_up_ns, double stolen_ns)
{
    struct run_analysis run = {0};
    struct diagnosed_message messages[MESSAGES];
    struct cause causes[] = {
        {.name = "yes", .role = ROLE_A, .explains = true, .total_ns = yes_ns * MESSAGES},
        {.name = "wake-up latency",
         .role = ROLE_A,
         .explains = true,
         .total_ns = wake_up_ns * MESSAGES},
        {.name = "virtual CPU taken away",
         .role = ROLE_A,
         .apart = true,
         .total_ns = stolen_ns * MESSAGES},
    };
    struct diagnosis diagnosis = {
        .slice = {.low = 0.99, .high = 1},
        .reference_latency_ns = 40000,
        .messages = {.items = messages, .count = MESSAGES},
        .causes = {.items = causes, .count = sizeof causes / sizeof *causes},
    };
    for (size_t i = 0; i < MESSAGES; i++)
        messages[i] = (struct diagnosed_message){.lifetime = i, .deviation_ns = 20000};
    run.findings.diagnoses.items = &diagnosis;
    run.findings.diagnoses.count = 1;
    run_verdict(&run);
    print_message("%s\n", run.findings.verdict);
    assert_non_null(strstr(run.findings.verdict, wanted));
}

static void a_cause_stands_out_or_not(void **state)
{
    (void)state;
    expect(
        "yes (A) explains 75 %, wake-up latency (A) 10 %; apart from that, virtual CPU taken away "
        "(A) 15 %",
        15000, 2000, 3000);
    expect("nothing stands out: on average yes (A) adds 3.00 us, wake-up latency (A) adds 2.00 us; "
           "apart from that, virtual CPU taken away (A) 75 %",
           3000, 2000, 15000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cause_stands_out_or_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
