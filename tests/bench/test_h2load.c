// SPDX-License-Identifier: MIT
//
// h2load as a peer of the load generator's benchmark: what it printed for answers of 200, of 404,
// at a connection that ended, and without a server (nghttp2 1.52).
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/bench/h2load.h"

static void a_run_without_failures_has_its_rate(void **state)
{
    (void)state;
    struct error err;
    struct peer_result result;
    assert_int_equal(h2load_read("progress: 100% done\n\n"
                                 "finished in 2.38ms, 16792.61 req/s, 1.11MB/s\n"
                                 "requests: 40 total, 40 started, 40 done, 40 succeeded, 0 failed, "
                                 "0 errored, 0 timeout\n"
                                 "status codes: 40 2xx, 0 3xx, 0 4xx, 0 5xx\n",
                                 &result, &err),
                     0);
    assert_true(result.rate == 16792.61 && result.requests == 40);
}

static void failing_requests_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *output, *why;
    } cases[] = {
        {"finished in 1.55ms, 25789.81 req/s, 1.71MB/s\n"
         "requests: 40 total, 40 started, 40 done, 0 succeeded, 40 failed, 0 errored, 0 timeout\n",
         "h2load: 0 of 40 requests succeeded"},
        {"finished in 1.00s, 2000.00 req/s, 130.99KB/s\n"
         "requests: 2001 total, 2002 started, 2001 done, 2000 succeeded, 1 failed, 1 errored, "
         "0 timeout\n",
         "h2load: 2000 of 2001 requests succeeded"},
        {"finished in 972us, 0.00 req/s, 0B/s\n"
         "requests: 20 total, 0 started, 0 done, 0 succeeded, 20 failed, 20 errored, 0 timeout\n",
         "h2load: 0 of 20 requests succeeded"},
        {"finished in 1us, 0.00 req/s, 0B/s\n"
         "requests: 0 total, 0 started, 0 done, 0 succeeded, 0 failed, 0 errored, 0 timeout\n",
         "h2load: 0 of 0 requests succeeded"},
        {"finished in 1us, 0.00 req/s, 0B/s\n", "h2load did not print its result"},
        {"requests: 4 total, 4 started, 4 done, 4 succeeded\n", "h2load did not print its result"},
        {"", "h2load did not print its result"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct error err;
        struct peer_result result;
        assert_int_equal(h2load_read(cases[i].output, &result, &err), -ERROR_INPUT);
        assert_string_equal(err.text, cases[i].why);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_without_failures_has_its_rate),
        cmocka_unit_test(failing_requests_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
