// SPDX-License-Identifier: MIT
//
// What a capture's own figures say beside the verdict.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "analysis/run/run_limits.h"

static void expect_words(const char *capture, const char *words)
{
    char said[RUN_LIMITS_WORDS];
    json_error_t where;
    json_t *document = json_loads(capture, 0, &where);
    assert_non_null(document);
    assert_string_equal(run_limits_words(document, said), words);
    json_decref(document);
}

static void nothing_is_said_where_all_is_well(void **state)
{
    char said[RUN_LIMITS_WORDS];
    (void)state;
    assert_string_equal(run_limits_words(NULL, said), "");
    expect_words("{}", "");
    expect_words("{\"shim\": {\"doubtful_connections\": 0}, \"events\": {\"memory_full\": false, "
                 "\"nic\": {\"interface\": \"eth0\", \"error_ns\": 200, \"unread\": 0}}}",
                 "");
    expect_words("{\"shim\": 3, \"events\": [], \"intel_pt\": \"\"}", "");
}

static void every_figure_is_said(void **state)
{
    (void)state;
    expect_words("{\"shim\": {\"incomplete_connections\": 2, \"dropped_memory\": 1500}, "
                 "\"events\": {\"sockets_dropped\": 4464, \"memory_full\": true}}",
                 "socket calls are missing of 2 connections, there was no memory for 1,500 socket "
                 "calls at the end, the capture of kernel events had no room for 4,464 "
                 "connections, the memory for kernel events was full before the end");
}

static void the_nic_is_one_of_them(void **state)
{
    (void)state;
    expect_words(
        "{\"events\": {\"nic\": {\"interface\": \"eth0\", \"reason\": \"eth0 has no clock\"}}}",
        "M(n) is the kernel's, not the NIC's (eth0 has no clock)");
    expect_words(
        "{\"events\": {\"nic\": {\"interface\": \"eth0\", \"error_ns\": 1, \"unread\": 12}}}",
        "the NIC's clock could not be read 12 times");
}

static void a_trace_that_ended_early_says_why(void **state)
{
    (void)state;
    expect_words(
        "{\"intel_pt\": {\"on_ns\": 2000000000, \"ended\": {\"why\": \"perf was killed\"}}}",
        "the processor's trace ended early, after 2.00 s (perf was killed)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_said_where_all_is_well),
        cmocka_unit_test(every_figure_is_said),
        cmocka_unit_test(the_nic_is_one_of_them),
        cmocka_unit_test(a_trace_that_ended_early_says_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
