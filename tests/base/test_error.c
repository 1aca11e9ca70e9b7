// SPDX-License-Identifier: MIT
//
// What a command prints of an error that came from another of our own.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/error.h"

static void our_name_comes_once(void **state)
{
    (void)state;
    struct error err;
    char printed[200] = "";
    int fds[2], before = dup(STDERR_FILENO);
    assert_int_equal(pipe(fds), 0);
    error_set(&err, ERROR_INPUT, "%s",
              "taillight: watch: the capture: taillight: --pid: taillight: no 7; "
              "try `taillight doctor`");
    dup2(fds[1], STDERR_FILENO);
    int code = error_report(&err);
    dup2(before, STDERR_FILENO);
    assert_true(read(fds[0], printed, sizeof printed - 1) > 0);
    assert_int_equal(code, ERROR_INPUT);
    assert_string_equal(printed,
                        "taillight: watch: the capture: --pid: no 7; try `taillight doctor`\n");
    close(fds[0]);
    close(fds[1]);
    close(before);
}

static void a_prefix_comes_once(void **state)
{
    (void)state;
    struct error err;
    error_set(&err, ERROR_INPUT, "host a: no core 7");
    assert_int_equal(error_prefix(&err, "host %s", "a"), -ERROR_INPUT);
    assert_string_equal(err.text, "host a: no core 7");
    error_prefix(&err, "host");
    assert_string_equal(err.text, "host: host a: no core 7");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(our_name_comes_once),
                                       cmocka_unit_test(a_prefix_comes_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
