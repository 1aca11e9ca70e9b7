// SPDX-License-Identifier: MIT
//
// `openssl s_time` as a peer of the load generator's benchmark: what it printed of full handshakes,
// of resumed ones, of some that were to be resumed and were not (TLS 1.3 without -www), and without
// a server (OpenSSL 3.0).
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/bench/s_time.h"

#define FULL                                                                                       \
    "Collecting connection statistics for 1 seconds\n****\n\n"                                     \
    "4 connections in 0.49s; 1332.65 connections/user sec, bytes read 1376\n"                      \
    "4 connections in 2 real seconds, 344 bytes read per connection\n"
#define RESUMED(marks, bytes)                                                                      \
    "\n\nNow timing with session id reuse.\nstarting\n" marks "\n\n"                               \
    "3 connections in 0.30s; 2276.67 connections/user sec, bytes read " bytes "\n"                 \
    "3 connections in 2 real seconds, 344 bytes read per connection\n"

static void connections_of_one_kind_are_counted(void **state)
{
    (void)state;
    struct error err;
    double connections;
    assert_int_equal(s_time_read(FULL, false, &connections, &err), 0);
    assert_true(connections == 4);
    assert_int_equal(s_time_read(RESUMED("rrr", "1032"), true, &connections, &err), 0);
    assert_true(connections == 3);
}

static void others_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *output;
        bool resumed;
        const char *why;
    } cases[] = {
        {RESUMED("***", "1032"), true, "openssl s_time: 0 of 3 handshakes were resumed"},
        {RESUMED("r*r", "1032"), true, "openssl s_time: 1 of 3 handshakes were resumed"},
        {RESUMED("rrr", "1032"), false, "openssl s_time: 0 of 3 handshakes were full"},
        {RESUMED("rrr", "0"), true, "openssl s_time: no page came"},
        {"Collecting connection statistics for 1 seconds\n\n\n"
         "0 connections in 0.00s; -nan connections/user sec, bytes read 0\n",
         false, "openssl s_time: 0 of 0 handshakes were full"},
        {"0 connections in 0.00s; -nan connections/user sec, bytes read 0\n", false,
         "openssl s_time did not print its result"},
        {"Collecting connection statistics for 1 seconds\n", false,
         "openssl s_time did not print its result"},
        {"", true, "openssl s_time did not print its result"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct error err;
        double connections;
        assert_int_equal(s_time_read(cases[i].output, cases[i].resumed, &connections, &err),
                         -ERROR_INPUT);
        assert_string_equal(err.text, cases[i].why);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(connections_of_one_kind_are_counted),
        cmocka_unit_test(others_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
