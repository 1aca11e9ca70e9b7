// SPDX-License-Identifier: MIT
//
// A lean reading of perf.data: what it keeps apart or leaves out, and that nothing else differs.
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
#include "analysis/perf/perf_data_events.h"
#include "tests/analysis/perf/perf_data_maker.h"

static struct perf_limits lean_limits(void)
{
    struct perf_limits limits = perf_default_limits;
    limits.lean = true;
    return limits;
}

static void parse(struct maker *maker, const struct perf_limits *limits, struct perf_data *data)
{
    struct error err;
    make_file_end(maker);
    struct perf_input input = {"made", maker->bytes, maker->count};
    if (perf_data_parse(&input, 1, limits, data, &err) < 0)
        fail_msg("%s", err.text);
    free(maker->bytes);
}

static void assert_run(const struct perf_switches *switches, size_t at, uint64_t time, uint32_t tid)
{
    assert_true(at < switches->stints.count);
    assert_int_equal(switches->stints.items[at].time, time);
    assert_int_equal(switches->stints.items[at].tid, tid);
}

static void switches_are_kept_by_cpu_in_order_of_time(void **state)
{
    (void)state;
    struct maker maker = make_file();
    struct perf_limits limits = lean_limits();
    make_pt_info(&maker, false);
    make_switch(&maker, true, 11, 12, 500, 2);
    make_switch(&maker, false, 12, 11, 500, 2);
    make_comm(&maker, 12, "twelve", 550, false);
    make_switch(&maker, false, 14, 13, 900, 2);
    make_switch(&maker, false, 13, 12, 700, 2); // late
    make_switch(&maker, true, 10, 11, 300, 2);  // later still, and yet the first
    make_switch(&maker, false, 21, 20, 600, 0);
    make_task(&maker, PERF_EXIT, 12, 1, 990);
    struct perf_data data;
    parse(&maker, &limits, &data);
    assert_int_equal(data.switches.count, 2);
    const struct perf_switches *second = perf_switches_of(&data, 2, 77);
    assert_non_null(second);
    assert_int_equal(second->records, 5);
    assert_int_equal(second->stints.count, 3);
    assert_run(second, 0, 500, 12);
    assert_run(second, 1, 700, 13);
    assert_run(second, 2, 900, 14);
    assert_true(second->has_before);
    assert_int_equal(second->before.tid, 10);
    const struct perf_switches *none = perf_switches_of(&data, 0, 0);
    assert_int_equal(none->stints.count, 1);
    assert_false(none->has_before);
    assert_null(perf_switches_of(&data, 1, 0));
    assert_null(perf_switches_of(&data, PERF_NO_CPU, 12));
    assert_int_equal(data.events.count, 1); // COMM
    assert_int_equal(data.counts[PERF_SWITCH_CPU_WIDE], 6);
    assert_int_equal(data.counts[PERF_EXIT], 1);
    assert_int_equal(data.complaint_count, 0);
    perf_data_free(&data);
}

static void a_recording_of_threads_has_them_by_thread(void **state)
{
    (void)state;
    struct maker maker = make_file();
    struct perf_limits limits = lean_limits();
    make_pt_info(&maker, false);
    memcpy(maker.bytes + maker.record + 16 + 9 * 8, "\0\0\0\0\0\0\0", 8); // not by CPU
    make_switch(&maker, false, 12, 11, 500, 2);
    make_switch(&maker, false, 12, 11, 700, 3);
    make_switch(&maker, false, 13, 11, 600, 3);
    struct perf_data data;
    parse(&maker, &limits, &data);
    assert_true(data.intel_pt.present);
    assert_false(data.intel_pt.per_cpu);
    const struct perf_switches *twelve = perf_switches_of(&data, PERF_NO_CPU, 12);
    assert_non_null(twelve);
    assert_int_equal(twelve->stints.count, 2);
    assert_run(twelve, 1, 700, 12);
    assert_int_equal(perf_switches_of(&data, PERF_NO_CPU, 13)->stints.count, 1);
    perf_data_free(&data);
}

static void what_is_over_the_limit_is_counted(void **state)
{
    (void)state;
    struct maker maker = make_file();
    struct perf_limits limits = lean_limits();
    limits.events = 3;
    for (uint64_t i = 0; i < 5; i++)
        make_switch(&maker, false, 12, 11, 500 + i, 2);
    struct perf_data data;
    parse(&maker, &limits, &data);
    assert_int_equal(perf_switches_of(&data, 2, 0)->stints.count, 3);
    assert_int_equal(data.events_over_limit, 2);
    assert_int_equal(data.complaint_count, 1);
    perf_data_free(&data);
}

// Losses are counted although they are no events; the events kept are the same.
static void the_rest_is_as_in_a_full_reading(void **state)
{
    (void)state;
    struct perf_data data[2];
    for (int lean = 0; lean < 2; lean++) {
        struct maker maker = make_file();
        struct perf_limits limits = perf_default_limits;
        limits.lean = lean;
        make_mmap2(&maker, 9, 0x1000, 0x1000, 0, "/bin/x", 40, 5);
        make_comm(&maker, 9, "nine", 30, true);
        make_task(&maker, PERF_FORK, 10, 9, 50);
        make_record(&maker, PERF_LOST, 0);
        make_u64(&maker, 7);
        make_u64(&maker, 123);
        make_sample_id(&maker, 9, 9, 60, 0, 7);
        make_switch(&maker, false, 9, 0, 45, 1);
        parse(&maker, &limits, &data[lean]);
    }
    assert_int_equal(data[0].lost_records, 123);
    assert_int_equal(data[1].lost_records, 123);
    assert_int_equal(data[0].events.count, 5);
    assert_int_equal(data[1].events.count, 3);
    const uint32_t kept[] = {PERF_COMM, PERF_MMAP2, PERF_FORK};
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(data[1].events.items[i].type, kept[i]);
    struct perf_mmap mapped;
    perf_event_mmap(&data[1].events.items[1], &mapped); // a copy: the maker's bytes are gone
    assert_string_equal(mapped.path, "/bin/x");
    perf_data_free(&data[0]);
    perf_data_free(&data[1]);
}

static long resident_kib(void)
{
    long pages = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%ld %ld", &pages, &resident) != 2)
        fail_msg("/proc/self/statm cannot be read");
    fclose(file);
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

// Reading the records of 64 MiB leaves hardly any of the file's pages behind, and the trace is
// there when it is asked for.
static void the_file_does_not_stay_in_memory(void **state)
{
    (void)state;
    enum { PIECES = 1024, PIECE = 64 << 10 };
    static uint8_t piece[PIECE];
    char path[] = "/tmp/taillight-lean-XXXXXX";
    FILE *file = fdopen(mkstemp(path), "wb");
    struct maker maker = make_file();
    assert_non_null(file);
    make_pt_info(&maker, false);
    make_set_u64(&maker, 48, maker.count - MAKER_RECORDS_AT + PIECES * (48ull + PIECE));
    fwrite(maker.bytes, 1, maker.count, file);
    for (uint64_t i = 0; i < PIECES; i++) {
        maker.count = 0;
        memset(piece, (int)(i % 251), sizeof piece);
        make_auxtrace(&maker, 0, 0, i * PIECE, piece, sizeof piece);
        fwrite(maker.bytes, 1, maker.count, file);
    }
    fclose(file);
    struct perf_limits limits = lean_limits();
    struct perf_data data;
    struct error err;
    long before = resident_kib();
    int result = perf_data_open(path, &limits, &data, &err);
    unlink(path);
    if (result < 0)
        fail_msg("%s", err.text);
    assert_true(resident_kib() - before < 8 << 10);
    assert_int_equal(data.aux_bytes, (uint64_t)PIECES * PIECE);
    assert_int_equal(data.streams.items[0].extents.items[500].data[17], 500 % 251);
    perf_data_free(&data);
    free(maker.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(switches_are_kept_by_cpu_in_order_of_time),
        cmocka_unit_test(a_recording_of_threads_has_them_by_thread),
        cmocka_unit_test(what_is_over_the_limit_is_counted),
        cmocka_unit_test(the_rest_is_as_in_a_full_reading),
        cmocka_unit_test(the_file_does_not_stay_in_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
