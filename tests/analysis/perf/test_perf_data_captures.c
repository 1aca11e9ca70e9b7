// SPDX-License-Identifier: MIT
//
// Real recordings of Intel PT: the figures they are known to have, and every event as perf itself
// reads it.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "analysis/perf/perf_data_events.h"
#include "analysis/perf/perf_data.h"
#include "tests/analysis/perf/capture_folder.h"
#include "tests/analysis/perf/perf_compare.h"

static struct capture_folder hase, quipper;

static void open_well(const char *path, struct perf_data *data)
{
    struct error err;
    if (perf_data_open(path, NULL, data, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(data->complaint_count, 0);
    assert_int_equal(data->unknown_records, 0);
    assert_int_equal(data->without_time, 0);
}

// perf leaves out the AUXTRACE records' place in a pipe by the 16 bytes of the header.
static void same_as_perf(const char *path, const struct perf_data *data)
{
    struct perf_dump dump;
    bool pipe = data->layout == PERF_LAYOUT_PIPE;
    if (!perf_dump_read(path, pipe, true, &dump)) {
        print_message("perf is not here: not compared with it\n");
        perf_dump_free(&dump);
        return;
    }
    print_message("%zu events compared with perf's\n", dump.events.count);
    assert_int_equal(perf_compare(data, &dump, true, pipe ? 16 : 0), 0);
    perf_dump_free(&dump);
}

static void snapshots_of_one_process(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint64_t bytes, switches, mmap2;
    } known[] = {{"control_flow-20180515T180451", 760, 292, 2},
                 {"loopy-20180514T145114", 648, 98, 5}};
    for (size_t i = 0; i < 2; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s/perf.data.1", hase.path, known[i].name);
        struct perf_data data;
        open_well(path, &data);
        assert_int_equal(data.layout, PERF_LAYOUT_FILE);
        assert_int_equal(data.streams.count, 1);
        assert_int_equal(data.streams.items[0].bytes, known[i].bytes);
        assert_int_equal(data.streams.items[0].cpu, 1);
        assert_int_equal(data.counts[PERF_SWITCH_CPU_WIDE], known[i].switches);
        assert_int_equal(data.counts[PERF_MMAP2], known[i].mmap2);
        assert_true(data.intel_pt.present && data.intel_pt.snapshot && data.intel_pt.per_cpu);
        assert_true(data.intel_pt.has_tsc);
        assert_false(data.intel_pt.has_mtc);
        assert_int_equal(data.intel_pt.switch_tracking, 3);
        assert_int_equal(data.intel_pt.max_non_turbo_ratio, 26);
        assert_int_equal(data.time.mult, 827867304);
        assert_int_equal(data.cpus_available, 4);
        assert_int_equal(data.cpu_model, 61);
        assert_string_equal(data.attrs.items[0].name, "intel_pt//u");
        // The stream is what the capture keeps of it besides.
        char raw_path[512];
        snprintf(raw_path, sizeof raw_path, "%s/%s/aux/aux-idx1.pt", hase.path, known[i].name);
        FILE *raw = fopen(raw_path, "r");
        uint8_t bytes[1024];
        assert_non_null(raw);
        assert_int_equal(fread(bytes, 1, sizeof bytes, raw), known[i].bytes);
        fclose(raw);
        assert_memory_equal(data.streams.items[0].extents.items[0].data, bytes, known[i].bytes);
        same_as_perf(path, &data);
        perf_data_free(&data);
    }
}

static void a_whole_system_in_a_file(void **state)
{
    (void)state;
    char path[512];
    snprintf(path, sizeof path, "%s/quipper/perf.data.intel_pt-4.14", quipper.path);
    struct perf_data data;
    open_well(path, &data);
    assert_int_equal(data.streams.count, 2);
    assert_int_equal(data.streams.items[0].bytes, 12240);
    assert_int_equal(data.streams.items[0].cpu, 0);
    assert_int_equal(data.streams.items[1].bytes, 137728);
    assert_int_equal(data.streams.items[1].cpu, 3);
    assert_int_equal(data.build_ids.count, 66);
    assert_true(data.intel_pt.has_mtc && data.intel_pt.has_tsc && !data.intel_pt.snapshot);
    assert_int_equal(data.intel_pt.tsc_ctc_numerator, 100);
    assert_int_equal(data.intel_pt.tsc_ctc_denominator, 2);
    assert_int_equal(data.intel_pt.mtc_period, 3);
    assert_int_equal(data.cpus.count, 4);
    assert_string_equal(data.os_release, "4.14.18");
    // The AUX records of a CPU tile its stream.
    for (size_t i = 0; i < data.streams.count; i++) {
        uint64_t expected = 0;
        for (size_t k = 0; k < data.events.count; k++) {
            struct perf_aux aux;
            if (data.events.items[k].type != PERF_AUX ||
                data.events.items[k].cpu != data.streams.items[i].cpu)
                continue;
            perf_event_aux(&data.events.items[k], &aux);
            assert_int_equal(aux.offset, expected);
            expected += aux.bytes;
        }
        assert_int_equal(expected, data.streams.items[i].bytes);
    }
    same_as_perf(path, &data);
    perf_data_free(&data);
}

static void a_whole_system_through_a_pipe(void **state)
{
    (void)state;
    char path[512];
    snprintf(path, sizeof path, "%s/quipper/perf.data.piped.intel_pt-4.14", quipper.path);
    struct perf_data data;
    open_well(path, &data);
    assert_int_equal(data.layout, PERF_LAYOUT_PIPE);
    assert_int_equal(data.streams.count, 2);
    assert_int_equal(data.counts[PERF_SWITCH_CPU_WIDE], 552);
    assert_int_equal(data.aux_bytes, 76400 + 68192);
    assert_int_equal(data.attrs.count, 4);
    assert_string_equal(data.hostname, "localhost");
    assert_int_equal(data.cpu_model, 78);
    same_as_perf(path, &data);
    perf_data_free(&data);
}

static void a_pipe_may_be_standard_input(void **state)
{
    (void)state;
    char path[512];
    snprintf(path, sizeof path, "cat %s/quipper/perf.data.piped.intel_pt-4.14", quipper.path);
    FILE *cat = popen(path, "r");
    assert_non_null(cat);
    int kept = dup(STDIN_FILENO);
    dup2(fileno(cat), STDIN_FILENO);
    struct perf_data data;
    struct error err;
    int result = perf_data_open("-", NULL, &data, &err);
    dup2(kept, STDIN_FILENO);
    close(kept);
    pclose(cat);
    assert_int_equal(result, 0);
    assert_int_equal(data.aux_bytes, 76400 + 68192);
    perf_data_free(&data);
}

int main(void)
{
    bool here = unpack_capture(&hase, "perf-data-hase.tar.xz") &&
                unpack_capture(&quipper, "perf-data-4.14-system.tar.xz");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(snapshots_of_one_process),
        cmocka_unit_test(a_whole_system_in_a_file),
        cmocka_unit_test(a_whole_system_through_a_pipe),
        cmocka_unit_test(a_pipe_may_be_standard_input),
    };
    int failed = here ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
    remove_capture(&hase);
    remove_capture(&quipper);
    return failed;
}
