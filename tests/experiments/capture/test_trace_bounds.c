// SPDX-License-Identifier: MIT
//
// How much trace is expected, whether it fits, and when a recording is to end.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "experiments/capture/trace_bounds.h"

static const uint64_t second_ns = 1000000000;

static void expectations(void **state)
{
    (void)state;
    uint64_t one = trace_expected_bytes(PROCESSOR_TRACE_NORMAL, 1, second_ns);
    assert_true(one > 0);
    assert_int_equal(trace_expected_bytes(PROCESSOR_TRACE_NORMAL, 4, 3 * second_ns), 12 * one);
    assert_true(trace_expected_bytes(PROCESSOR_TRACE_LIGHT, 1, second_ns) < one);
    assert_true(trace_expected_bytes(PROCESSOR_TRACE_FINE, 1, second_ns) > one);
    assert_true(trace_expected_bytes(PROCESSOR_TRACE_FINE, 4096, UINT64_MAX) >= one); // no wrap
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    struct error err = {0};
    struct trace_bounds bounds = {.reserve_bytes = 100 << 20};
    assert_int_equal(trace_bounds_check(&bounds, 200 << 20, 300 << 20, "/out", &err), 0);
    assert_int_equal(trace_bounds_check(&bounds, 200 << 20, UINT64_MAX, "/out", &err), 0);
    assert_int_equal(trace_bounds_check(&bounds, 201 << 20, 300 << 20, "/out", &err), -ERROR_INPUT);
    assert_non_null(strstr(err.text, "about 201 MiB of trace"));
    assert_non_null(strstr(err.text, "/out has room for 200 MiB"));
    assert_int_equal(trace_bounds_check(&bounds, 1 << 20, 50 << 20, "/out", &err), -ERROR_INPUT);
    assert_non_null(strstr(err.text, "room for 0 MiB"));
    bounds.most_bytes = 10 << 20; // it will end before
    assert_int_equal(trace_bounds_check(&bounds, 201 << 20, 300 << 20, "/out", &err), 0);
    bounds.held_bytes = 64 << 20; // it would end at once
    assert_int_equal(trace_bounds_check(&bounds, 201 << 20, 164 << 20, "/out", &err), 0);
    assert_int_equal(trace_bounds_check(&bounds, 201 << 20, 163 << 20, "/out", &err), -ERROR_INPUT);
}

static void where_it_ends(void **state)
{
    (void)state;
    char why[TRACE_WHY_BYTES];
    struct trace_bounds bounds = {.reserve_bytes = 100 << 20};
    assert_false(trace_bounds_reached(&bounds, UINT64_MAX, 100 << 20, why));
    assert_true(trace_bounds_reached(&bounds, 0, (100 << 20) - 1, why));
    assert_string_equal(why, "99 MiB are left on the disk, and kept free for the other logs and "
                             "for what perf has not written yet");
    bounds.held_bytes = 32 << 20; // which it writes when it is told to end
    assert_false(trace_bounds_reached(&bounds, UINT64_MAX, 132 << 20, why));
    assert_true(trace_bounds_reached(&bounds, 0, (132 << 20) - 1, why));
    bounds.held_bytes = 0;
    bounds.most_bytes = 5 << 20;
    assert_false(trace_bounds_reached(&bounds, (5 << 20) - 1, UINT64_MAX, why));
    assert_true(trace_bounds_reached(&bounds, 5 << 20, UINT64_MAX, why));
    assert_string_equal(why, "it has 5 MiB, and no more was asked for than 5");
    bounds.is_auto = true;
    assert_true(trace_bounds_reached(&bounds, 6 << 20, UINT64_MAX, why));
    assert_string_equal(why,
                        "it has 6 MiB, and unless intel_pt is asked for no more is taken than 5");
}

static void write_bytes(const char *path, size_t count)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (size_t i = 0; i < count; i++)
        fputc('x', file);
    assert_int_equal(fclose(file), 0);
}

// A recording with the kernel's code beside it is a folder, of which the code does not count.
static void what_is_recorded(void **state)
{
    (void)state;
    char folder[] = "/tmp/taillight-bounds-XXXXXX", path[64], code[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/data", folder);
    snprintf(code, sizeof code, "%s/kcore_dir", folder);
    assert_int_equal(trace_recorded_bytes(path), 0);
    write_bytes(path, 321);
    assert_int_equal(mkdir(code, 0700), 0);
    assert_int_equal(trace_recorded_bytes(path), 321);
    assert_int_equal(trace_recorded_bytes(folder), 321);
    unlink(path);
    rmdir(code);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(expectations),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(where_it_ends),
        cmocka_unit_test(what_is_recorded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
