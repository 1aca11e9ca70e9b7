// SPDX-License-Identifier: MIT
//
// What is said of the client while a load lasts: nothing that is not known, and who others keep
// from its core is not told to take more threads.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "loadgen/engine/live_view.h"

static void check(double behind_ns, double idle, double core, double cost_ns, const char *expected)
{
    char text[140];
    const struct live_client client = {behind_ns, idle, core, cost_ns};
    live_view_format_client(&client, text, sizeof text);
    if (!*expected)
        assert_string_equal(text, "");
    else if (!strstr(text, expected))
        fail_msg("%s: not %s", text, expected);
}

static void the_client_is_told_what_helps(void **state)
{
    (void)state;
    check(0, -1, -1, -1, "");
    check(0, 0.5, 1, 4200, "");
    check(0, 0.001, 1, 4200,
          "has no time left, at 4.20 us of CPU a request: more --threads, or agents");
    check(0, 0.001, -1, -1, "has no time left: more --threads, or agents");
    check(20e6, 0, 0.99, 4200, "20.0 ms behind, at 4.20 us of CPU a request: more --threads");
    check(0, 0, 0.36, 4200, "has its core for 36 % of the time");
    check(20e6, 0.3, 0.36, 4200, "has its core for 36 % of the time");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_client_is_told_what_helps)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
