// SPDX-License-Identifier: MIT
//
// `taillight report` with what it cannot work on: exit code 2, and nothing written.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "analysis/report_command.h"
#include "base/error.h"

static int report(char *first, char *second)
{
    char name[] = "report";
    char *argv[] = {name, first, second, NULL};
    return report_command(!first ? 1 : !second ? 2 : 3, argv);
}

static void test_bad_usage(void **state)
{
    (void)state;
    char unknown[] = "--colour", one[] = "/nowhere/a", two[] = "/nowhere/b", help[] = "--help";
    assert_int_equal(report(NULL, NULL), ERROR_INPUT);
    assert_int_equal(report(one, two), ERROR_INPUT);
    assert_int_equal(report(one, unknown), ERROR_INPUT);
    assert_int_equal(report(help, NULL), 0);
}

static void test_not_a_run(void **state)
{
    (void)state;
    char nowhere[] = "/nowhere/run", quiet[] = "--quiet", page[128];
    assert_int_equal(report(nowhere, quiet), ERROR_INPUT);
    char empty[] = "/tmp/test-report-XXXXXX";
    assert_non_null(mkdtemp(empty));
    assert_int_equal(report(empty, quiet), ERROR_INPUT);
    snprintf(page, sizeof page, "%s/report.html", empty);
    assert_int_equal(access(page, F_OK), -1);
    assert_int_equal(rmdir(empty), 0); // nothing was left in it
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_usage),
        cmocka_unit_test(test_not_a_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
