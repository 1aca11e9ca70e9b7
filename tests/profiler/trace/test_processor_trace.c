// SPDX-License-Identifier: MIT
//
// What is said of Intel PT on made-up hosts, and the perf events for what their processors can do.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "profiler/trace/processor_trace.h"
#include "tests/skip.h"

static char root[] = "/tmp/taillight-host-XXXXXX";

// Writes a file below the made-up root, with the folders it lies in.
static void put(const char *path, const char *text)
{
    char full[512];
    snprintf(full, sizeof full, "%s%s", root, path);
    for (char *slash = full + sizeof root; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(full, 0755);
        *slash = '/';
    }
    FILE *file = fopen(full, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static int clear(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'/*", root);
    return system(command);
}

#define DEVICE "/sys/bus/event_source/devices/intel_pt/"

// A Skylake, as its sysfs tells it.
static void put_skylake(void)
{
    put("/proc/cpuinfo", "vendor_id\t: GenuineIntel\nflags\t\t: fpu intel_pt sse\n");
    put("/proc/sys/kernel/perf_event_paranoid", "-1\n");
    put(DEVICE "type", "8\n");
    put(DEVICE "caps/mtc", "1\n");
    put(DEVICE "caps/mtc_periods", "249\n"); // 0, 3, 6, 9
    put(DEVICE "caps/psb_cyc", "1\n");
    put(DEVICE "caps/cycle_thresholds", "1fff\n");
    put(DEVICE "caps/psb_periods", "3f\n");
}

static void another_vendor_has_none(void **state)
{
    (void)state;
    struct processor_trace trace;
    put("/proc/cpuinfo", "vendor_id\t: AuthenticAMD\nflags\t\t: fpu sse\n");
    processor_trace_find(root, "/bin/true", &trace);
    assert_int_equal(trace.obstacle, PROCESSOR_TRACE_NO_CPU);
    assert_string_equal(trace.reason, "the CPU is AuthenticAMD, which has none");
    assert_true(trace.how[0]);
}

static void a_guest_that_is_not_given_it(void **state)
{
    (void)state;
    struct processor_trace trace;
    put("/proc/cpuinfo", "vendor_id\t: GenuineIntel\nflags\t\t: fpu sse\n");
    processor_trace_find(root, "/bin/true", &trace);
    assert_int_equal(trace.obstacle, PROCESSOR_TRACE_NO_CPU);
    assert_non_null(strstr(trace.reason, "no intel_pt among its flags"));
}

static void a_kernel_that_does_not_offer_it(void **state)
{
    (void)state;
    struct processor_trace trace;
    put("/proc/cpuinfo", "vendor_id\t: GenuineIntel\nflags\t\t: fpu intel_pt sse\n");
    processor_trace_find(root, "/bin/true", &trace);
    assert_int_equal(trace.obstacle, PROCESSOR_TRACE_NO_DEVICE);
    assert_non_null(strstr(trace.reason, "/sys/bus/event_source/devices/intel_pt"));
}

static void no_perf_in_the_path(void **state)
{
    (void)state;
    struct processor_trace trace;
    char *path = strdup(getenv("PATH"));
    put_skylake();
    setenv("PATH", root, 1);
    processor_trace_find(root, NULL, &trace);
    setenv("PATH", path, 1);
    free(path);
    assert_int_equal(trace.obstacle, PROCESSOR_TRACE_NO_PERF);
    assert_non_null(strstr(trace.how, "linux-perf"));
}

static void no_privilege(void **state)
{
    (void)state;
    struct processor_trace trace;
    if (geteuid() == 0)
        skip_case("root holds every capability");
    put_skylake();
    put("/proc/sys/kernel/perf_event_paranoid", "2\n");
    processor_trace_find(root, "/bin/true", &trace);
    assert_int_equal(trace.obstacle, PROCESSOR_TRACE_NO_PRIVILEGE);
    assert_non_null(strstr(trace.reason, "perf_event_paranoid is 2"));
}

static void events_ask_for_what_there_is(void **state)
{
    (void)state;
    struct processor_trace trace;
    enum processor_trace_detail detail;
    static const struct {
        const char *word, *event;
    } known[] = {
        {"light", "intel_pt/tsc=1,mtc=1,mtc_period=6,psb_period=5/"},
        {"normal", "intel_pt/tsc=1,cyc=1,cyc_thresh=5,mtc=1,mtc_period=3,psb_period=3/"},
        {"fine", "intel_pt/tsc=1,cyc=1,cyc_thresh=0,mtc=1,mtc_period=0,psb_period=0/"},
    };
    put_skylake();
    processor_trace_find(root, "/bin/true", &trace);
    assert_int_equal(trace.obstacle, PROCESSOR_TRACE_READY);
    assert_int_equal(trace.pmu_type, 8);
    assert_string_equal(trace.perf, "/bin/true");
    char event[128];
    for (size_t i = 0; i < 3; i++) {
        assert_true(processor_trace_parse_detail(known[i].word, &detail));
        assert_string_equal(processor_trace_event(&trace, detail, event, sizeof event),
                            known[i].event);
    }
    assert_false(processor_trace_parse_detail("finest", &detail));
    put(DEVICE "caps/mtc_periods", "40\n"); // only 6, which is coarser than asked for
    put(DEVICE "caps/psb_cyc", "0\n");
    processor_trace_find(root, "/bin/true", &trace);
    assert_string_equal(processor_trace_event(&trace, PROCESSOR_TRACE_NORMAL, event, sizeof event),
                        "intel_pt/tsc=1,mtc=1,mtc_period=6/");
    put(DEVICE "caps/mtc", "0\n"); // Broadwell
    processor_trace_find(root, "/bin/true", &trace);
    assert_string_equal(processor_trace_event(&trace, PROCESSOR_TRACE_FINE, event, sizeof event),
                        "intel_pt/tsc=1/");
}

int main(void)
{
    if (!mkdtemp(root))
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(another_vendor_has_none, clear),
        cmocka_unit_test_setup(a_guest_that_is_not_given_it, clear),
        cmocka_unit_test_setup(a_kernel_that_does_not_offer_it, clear),
        cmocka_unit_test_setup(no_perf_in_the_path, clear),
        cmocka_unit_test_setup(no_privilege, clear),
        cmocka_unit_test_setup(events_ask_for_what_there_is, clear),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    clear(NULL);
    rmdir(root);
    return failed;
}
