// SPDX-License-Identifier: MIT
//
// Recordings that this machine's perf makes now, in every layout it can: read, and compared with
// what perf itself reads in them.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "analysis/perf/perf_data.h"
#include "tests/analysis/perf/capture_folder.h"
#include "tests/analysis/perf/perf_compare.h"
#include "tests/skip.h"

static struct capture_folder folder;

#define WORK "sh -c 'for i in 1 2 3 4 5; do ls /usr >/dev/null; done; sleep 0.05'"

// Records and compares. `to` is where perf writes: "-o FILE", or a pipe.
static void record_and_compare(const char *options, bool pipe, enum perf_layout layout)
{
    char path[128], command[1024];
    snprintf(path, sizeof path, "%s/perf.data", folder.path);
    snprintf(command, sizeof command,
             "rm -rf '%s' && perf record -e cpu-clock %s -o %s%s -- " WORK " 2>'%s.log' </dev/null",
             path, options, pipe ? "- >" : "", path, path);
    if (!run_quietly(command))
        skip_case("perf record %s: not possible here", options);
    struct perf_data data;
    struct error err;
    if (perf_data_open(path, NULL, &data, &err) < 0)
        fail_msg("%s", err.text);
    for (size_t i = 0; i < data.complaints.count; i++)
        print_message("complaint at %" PRIu64 ": %s\n", data.complaints.items[i].offset,
                      data.complaints.items[i].text);
    assert_int_equal(data.complaint_count, 0);
    assert_int_equal(data.layout, layout);
    assert_true(data.counts[PERF_COMM] >= 6);
    assert_true(data.counts[PERF_MMAP2] >= 6);
    struct perf_dump dump;
    bool places = !strstr(options, "-z") && layout != PERF_LAYOUT_DIRECTORY;
    assert_true(perf_dump_read(path, pipe, places, &dump));
    print_message("%zu events compared with perf's\n", dump.events.count);
    assert_int_equal(perf_compare(&data, &dump, places, pipe ? 16 : 0), 0);
    perf_dump_free(&dump);
    if (strstr(options, "-z"))
        assert_true(data.decompressed_bytes > data.compressed_bytes);
    perf_data_free(&data);
}

static void a_plain_file(void **state)
{
    (void)state;
    record_and_compare("", false, PERF_LAYOUT_FILE);
}

static void context_switches_of_all_cpus(void **state)
{
    (void)state;
    record_and_compare("-a --switch-events", false, PERF_LAYOUT_FILE);
}

static void namespaces_cgroups_and_build_ids(void **state)
{
    (void)state;
    record_and_compare("-a --namespaces --all-cgroups --buildid-mmap", false, PERF_LAYOUT_FILE);
}

static void data_mappings_too(void **state)
{
    (void)state;
    record_and_compare("-d --switch-events", false, PERF_LAYOUT_FILE);
}

static void a_pipe(void **state)
{
    (void)state;
    record_and_compare("-a --switch-events", true, PERF_LAYOUT_PIPE);
}

static void a_compressed_file(void **state)
{
    (void)state;
    record_and_compare("-a -z --switch-events", false, PERF_LAYOUT_FILE);
}

static void a_compressed_pipe(void **state)
{
    (void)state;
    record_and_compare("-a -z --switch-events", true, PERF_LAYOUT_PIPE);
}

static void a_directory(void **state)
{
    (void)state;
    record_and_compare("-a --threads --switch-events", false, PERF_LAYOUT_DIRECTORY);
}

static void a_compressed_directory(void **state)
{
    (void)state;
    record_and_compare("-a -z --threads --switch-events", false, PERF_LAYOUT_DIRECTORY);
}

int main(void)
{
    snprintf(folder.path, sizeof folder.path, "/tmp/taillight-record-XXXXXX");
    if (!mkdtemp(folder.path))
        return 1;
    char command[256];
    snprintf(command, sizeof command,
             "perf record -e cpu-clock -a -o %s/try -- true >/dev/null 2>&1 </dev/null",
             folder.path);
    if (!run_quietly(command)) {
        remove_capture(&folder);
        puts("perf record does not work here (no perf, or not permitted)");
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plain_file),
        cmocka_unit_test(context_switches_of_all_cpus),
        cmocka_unit_test(namespaces_cgroups_and_build_ids),
        cmocka_unit_test(data_mappings_too),
        cmocka_unit_test(a_pipe),
        cmocka_unit_test(a_compressed_file),
        cmocka_unit_test(a_compressed_pipe),
        cmocka_unit_test(a_directory),
        cmocka_unit_test(a_compressed_directory),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    remove_capture(&folder);
    return failed;
}
