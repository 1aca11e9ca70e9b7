// SPDX-License-Identifier: MIT
//
// The reader of perf.data on files made here, byte by byte, whole and damaged.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "analysis/perf/perf_data.h"
#include "analysis/perf/perf_data_events.h"
#include "tests/analysis/perf/perf_data_maker.h"

static int parse(const struct maker *maker, struct perf_data *data, struct error *err)
{
    struct perf_input input = {"made", maker->bytes, maker->count};
    return perf_data_parse(&input, 1, NULL, data, err);
}

static void parse_well(struct maker *maker, struct perf_data *data)
{
    struct error err;
    make_file_end(maker);
    if (parse(maker, data, &err) < 0)
        fail_msg("%s", err.text);
}

// --- header ------------------------------------------------------------------------------------

static void expect_refusal(const struct maker *maker, const char *words)
{
    struct perf_data data;
    struct error err;
    assert_int_equal(parse(maker, &data, &err), -ERROR_INPUT);
    if (!strstr(err.text, words))
        fail_msg("\"%s\" does not say \"%s\"", err.text, words);
}

static void unusable_headers_are_refused_in_words(void **state)
{
    (void)state;
    struct maker maker = {0};
    make_bytes(&maker, "PERF", 4);
    expect_refusal(&maker, "too few");
    free(maker.bytes);

    maker = make_file();
    memcpy(maker.bytes, "2ELIFREP", 8);
    expect_refusal(&maker, "big-endian");
    memcpy(maker.bytes, "PERFFILE", 8);
    expect_refusal(&maker, "before Linux 3.6");
    memcpy(maker.bytes,
           "\x7f"
           "ELF1234",
           8);
    expect_refusal(&maker, "not a perf.data");
    memcpy(maker.bytes, "PERFILE2", 8);
    make_set_u64(&maker, 8, 105);
    expect_refusal(&maker, "offset 8");
    make_set_u64(&maker, 8, 104);
    make_set_u64(&maker, 16, 20);
    expect_refusal(&maker, "offset 16");
    make_set_u64(&maker, 16, MAKER_ATTR_BYTES + 16);
    make_set_u64(&maker, 24, UINT64_MAX - 5);
    expect_refusal(&maker, "offset 24");
    make_set_u64(&maker, 24, 104);
    make_set_u64(&maker, 40, 1 << 20);
    expect_refusal(&maker, "offset 40");
    free(maker.bytes);
}

static void a_recording_that_did_not_end_is_read_and_said(void **state)
{
    (void)state;
    struct maker maker = make_file();
    make_comm(&maker, 5, "five", 100, false);
    struct perf_data data;
    struct error err;
    assert_int_equal(parse(&maker, &data, &err), 0); // the length of the records is still 0
    assert_int_equal(data.events.count, 1);
    assert_int_equal(data.complaint_count, 1);
    assert_non_null(strstr(data.complaints.items[0].text, "did not end properly"));
    perf_data_free(&data);
    free(maker.bytes);
}

static void features_tell_of_the_host(void **state)
{
    (void)state;
    struct maker maker = make_file();
    make_comm(&maker, 5, "five", 100, false);
    make_file_end(&maker);
    maker.bytes[72] = 1 << PERF_FEATURE_BUILD_ID | 1 << PERF_FEATURE_HOSTNAME;
    maker.bytes[73] = 1 << (PERF_FEATURE_CPUID - 8);
    size_t table = maker.count;
    for (int i = 0; i < 6; i++)
        make_u64(&maker, 0);
    const char *strings[] = {"somewhere", "GenuineIntel,6,78,3"};
    size_t build_id = maker.count;
    make_record(&maker, 0, PERF_MISC_USER | PERF_MISC_BUILD_ID_SIZE);
    make_u32(&maker, PERF_NO_PID);
    make_bytes(&maker, "0123456789abcdefghij\x10\0\0\0", 24);
    make_text(&maker, "/usr/bin/true");
    make_record_end(&maker);
    make_set_u64(&maker, table, build_id);
    make_set_u64(&maker, table + 8, maker.count - build_id);
    for (size_t i = 0; i < 2; i++) {
        make_set_u64(&maker, table + 16 + 16 * i, maker.count);
        make_set_u64(&maker, table + 24 + 16 * i, 4 + 64);
        char padded[64] = "";
        snprintf(padded, sizeof padded, "%s", strings[i]);
        make_u32(&maker, sizeof padded);
        make_bytes(&maker, padded, sizeof padded);
    }
    struct perf_data data;
    struct error err;
    assert_int_equal(parse(&maker, &data, &err), 0);
    assert_int_equal(data.complaint_count, 0);
    assert_string_equal(data.hostname, "somewhere");
    assert_int_equal(data.cpu_family, 6);
    assert_int_equal(data.cpu_model, 78);
    assert_int_equal(data.cpu_stepping, 3);
    assert_int_equal(data.build_ids.count, 1);
    assert_int_equal(data.build_ids.items[0].size, 16);
    assert_memory_equal(data.build_ids.items[0].bytes, "0123456789abcdef", 16);
    assert_string_equal(data.build_ids.items[0].path, "/usr/bin/true");
    perf_data_free(&data);

    make_set_u64(&maker, table + 16, UINT64_MAX - 3); // the hostname lies nowhere
    assert_int_equal(parse(&maker, &data, &err), 0);
    assert_int_equal(data.complaint_count, 1);
    assert_string_equal(data.cpuid, "GenuineIntel,6,78,3");
    perf_data_free(&data);
    free(maker.bytes);
}

// --- records -----------------------------------------------------------------------------------

static void events_come_sorted_with_task_time_and_cpu(void **state)
{
    (void)state;
    struct maker maker = make_file();
    make_switch(&maker, true, 10, 11, 300, 2);
    make_switch(&maker, false, 11, 10, 301, 2);
    make_comm(&maker, 20, "twenty", 100, true);
    make_task(&maker, PERF_FORK, 21, 20, 150);
    make_task(&maker, PERF_EXIT, 21, 20, 301);
    make_comm(&maker, 1, "before", 0, false);
    struct perf_data data;
    parse_well(&maker, &data);
    assert_int_equal(data.complaint_count, 0);
    assert_int_equal(data.events.count, 6);
    const uint32_t order[] = {
        PERF_COMM, PERF_COMM, PERF_FORK, PERF_SWITCH_CPU_WIDE, PERF_SWITCH_CPU_WIDE, PERF_EXIT};
    const uint64_t times[] = {0, 100, 150, 300, 301, 301};
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(data.events.items[i].type, order[i]);
        assert_int_equal(data.events.items[i].time, times[i]);
    }
    const struct perf_event *events = data.events.items;
    assert_int_equal(events[0].tid, PERF_NO_PID); // synthesized: nobody's
    assert_int_equal(events[0].cpu, PERF_NO_CPU);
    assert_int_equal(events[3].tid, 10);
    assert_int_equal(events[3].cpu, 2);
    assert_int_equal(events[3].offset, MAKER_RECORDS_AT);

    struct perf_comm comm;
    perf_event_comm(&events[1], &comm);
    assert_string_equal(comm.name, "twenty");
    assert_true(comm.exec);
    struct perf_task task;
    perf_event_task(&events[2], &task);
    assert_int_equal(task.pid, 21);
    assert_int_equal(task.parent_pid, 20);
    struct perf_switch switched;
    perf_event_switch(&events[3], &switched);
    assert_true(switched.out);
    assert_false(switched.preempted);
    assert_int_equal(switched.other_tid, 11);
    perf_data_free(&data);
    free(maker.bytes);
}

static void every_kind_of_event_is_read(void **state)
{
    (void)state;
    struct maker maker = make_file();
    make_mmap2(&maker, 5, 0x1000, 0x2000, 0x3000, "/lib/x.so", 1, 5);
    make_record(&maker, PERF_MMAP2, PERF_MISC_USER | PERF_MISC_MMAP_BUILD_ID);
    make_bytes(&maker, "\5\0\0\0\5\0\0\0", 8);
    for (int i = 0; i < 3; i++)
        make_u64(&maker, 0x5000);
    make_bytes(&maker, "\x14\0\0\0abcdefghijklmnopqrst", 24);
    make_u32(&maker, 5);
    make_u32(&maker, 2);
    make_text(&maker, "/lib/y.so");
    make_sample_id(&maker, 5, 5, 2, 0, 7);
    make_record(&maker, PERF_MMAP, PERF_MISC_KERNEL);
    make_u32(&maker, PERF_NO_PID);
    make_u32(&maker, 0);
    make_u64(&maker, 0xffffffff81000000);
    make_u64(&maker, 0x1000000);
    make_u64(&maker, 0xffffffff81000000);
    make_text(&maker, "[kernel.kallsyms]_text");
    make_sample_id(&maker, 0, 0, 3, 0, 7);
    make_record(&maker, PERF_AUX, 0);
    make_u64(&maker, 0x100);
    make_u64(&maker, 0x40);
    make_u64(&maker, PERF_AUX_TRUNCATED | PERF_AUX_PARTIAL);
    make_sample_id(&maker, 5, 5, 4, 1, 7);
    make_record(&maker, PERF_ITRACE_START, 0);
    make_u32(&maker, 5);
    make_u32(&maker, 6);
    make_sample_id(&maker, 5, 6, 5, 1, 7);
    make_record(&maker, PERF_LOST, 0);
    make_u64(&maker, 7);
    make_u64(&maker, 1000);
    make_sample_id(&maker, 5, 6, 6, 1, 7);
    make_record(&maker, PERF_LOST_SAMPLES, 0);
    make_u64(&maker, 12);
    make_sample_id(&maker, 5, 6, 7, 1, 7);
    make_record(&maker, PERF_TEXT_POKE, 0);
    make_u64(&maker, 0xffffffff81000010);
    make_u16(&maker, 2);
    make_u16(&maker, 2);
    make_bytes(&maker, "\x66\x90\xeb\x10", 4);
    make_sample_id(&maker, 0, 0, 8, 1, 7);
    make_record(&maker, PERF_KSYMBOL, 0);
    make_u64(&maker, 0xffffffffc0000000);
    make_u32(&maker, 64);
    make_u16(&maker, 1);
    make_u16(&maker, 0);
    make_text(&maker, "bpf_prog_1");
    make_sample_id(&maker, 0, 0, 9, 1, 7);
    make_record(&maker, PERF_AUXTRACE_ERROR, 0);
    const uint32_t error[] = {1, 5, 3, 5, 6, 1};
    make_bytes(&maker, error, sizeof error);
    make_u64(&maker, 0x1234);
    make_u64(&maker, 10);
    char message[64] = "overflow packet";
    make_bytes(&maker, message, sizeof message);
    make_record_end(&maker);

    struct perf_data data;
    parse_well(&maker, &data);
    assert_int_equal(data.complaint_count, 0);
    assert_int_equal(data.events.count, 10);
    const struct perf_event *events = data.events.items;
    struct perf_mmap mmap;
    perf_event_mmap(&events[0], &mmap);
    assert_int_equal(mmap.address, 0x1000);
    assert_int_equal(mmap.bytes, 0x2000);
    assert_int_equal(mmap.file_offset, 0x3000);
    assert_int_equal(mmap.inode, 77);
    assert_string_equal(mmap.path, "/lib/x.so");
    assert_true(mmap.executable);
    assert_int_equal(mmap.build_id_size, 0);
    perf_event_mmap(&events[1], &mmap);
    assert_int_equal(mmap.build_id_size, 20);
    assert_memory_equal(mmap.build_id, "abcdefghijklmnopqrst", 20);
    assert_int_equal(mmap.inode, 0);
    perf_event_mmap(&events[2], &mmap);
    assert_true(mmap.kernel);
    assert_string_equal(mmap.path, "[kernel.kallsyms]_text");
    struct perf_aux aux;
    perf_event_aux(&events[3], &aux);
    assert_int_equal(aux.offset, 0x100);
    assert_int_equal(aux.bytes, 0x40);
    assert_int_equal(data.aux_truncated, 1);
    assert_int_equal(data.aux_gaps, 1);
    assert_int_equal(data.trace_errors, 1);
    struct perf_itrace_start start;
    perf_event_itrace_start(&events[4], &start);
    assert_int_equal(start.tid, 6);
    struct perf_lost lost;
    perf_event_lost(&events[5], &lost);
    assert_int_equal(lost.lost, 1000);
    assert_int_equal(data.lost_records, 1000);
    assert_int_equal(data.lost_samples, 12);
    struct perf_text_poke poke;
    perf_event_text_poke(&events[7], &poke);
    assert_int_equal(poke.new_bytes, 2);
    assert_memory_equal(poke.old_code, "\x66\x90", 2);
    assert_memory_equal(poke.new_code, "\xeb\x10", 2);
    struct perf_ksymbol symbol;
    perf_event_ksymbol(&events[8], &symbol);
    assert_int_equal(symbol.bytes, 64);
    assert_true(symbol.bpf);
    assert_string_equal(symbol.name, "bpf_prog_1");
    struct perf_auxtrace_error trouble;
    perf_event_auxtrace_error(&events[9], &trouble);
    assert_int_equal(trouble.cpu, 3);
    assert_int_equal(trouble.time, 10);
    assert_string_equal(trouble.message, "overflow packet");
    perf_data_free(&data);
    free(maker.bytes);
}

// As many CPUs' buffers would give them: runs of any length, many events at the same time.
static void any_order_is_sorted_and_equals_keep_theirs(void **state)
{
    (void)state;
    srand(1);
    for (int round = 0; round < 60; round++) {
        struct maker maker = make_file();
        uint32_t count = (uint32_t)rand() % 300;
        uint64_t time = 1, most = 1 + (uint64_t)rand() % 400;
        for (uint32_t i = 0; i < count; i++) {
            time = rand() % (1 + round) == 0 ? 1 + (uint64_t)rand() % most
                                             : time + (uint64_t)rand() % 3;
            make_comm(&maker, i, "x", time, false);
        }
        struct perf_data data;
        parse_well(&maker, &data);
        assert_int_equal(data.events.count, count);
        uint64_t sum = 0;
        for (uint32_t i = 0; i < count; i++) {
            const struct perf_event *event = &data.events.items[i];
            sum += event->pid;
            if (!i)
                continue;
            assert_true(event[-1].time <= event->time);
            if (event[-1].time == event->time)
                assert_true(event[-1].pid < event->pid);
        }
        assert_int_equal(sum, (uint64_t)count * (count - (count > 0)) / 2);
        perf_data_free(&data);
        free(maker.bytes);
    }
}

// Two attributes with sample_ids of different length: the id says which.
static void each_record_ends_as_its_attribute_says(void **state)
{
    (void)state;
    struct maker maker = {0};
    make_bytes(&maker, "PERFILE2", 8);
    make_u64(&maker, 16);
    for (uint64_t i = 0; i < 2; i++) {
        make_record(&maker, PERF_HEADER_ATTR, 0);
        make_attr(&maker, 1, 9,
                  i ? PERF_SAMPLE_HAS_TIME | PERF_SAMPLE_HAS_IDENTIFIER : MAKER_SAMPLE_TYPE);
        make_u64(&maker, 100 + i);
        make_record_end(&maker);
    }
    make_record(&maker, PERF_SWITCH, 0);
    make_sample_id(&maker, 3, 4, 1000, 5, 100);
    make_record(&maker, PERF_SWITCH, PERF_MISC_SWITCH_OUT | PERF_MISC_SWITCH_PREEMPT);
    make_u64(&maker, 2000);
    make_u64(&maker, 101);
    make_record_end(&maker);
    make_record(&maker, PERF_SWITCH, 0);
    make_sample_id(&maker, 3, 4, 3000, 5, 102); // nobody's
    struct perf_data data;
    struct error err;
    assert_int_equal(parse(&maker, &data, &err), 0);
    assert_int_equal(data.layout, PERF_LAYOUT_PIPE);
    assert_int_equal(data.attrs.count, 2);
    assert_int_equal(data.events.count, 3);
    const struct perf_event *events = data.events.items;
    assert_int_equal(events[1].time, 1000);
    assert_int_equal(events[1].pid, 3);
    assert_int_equal(events[1].tid, 4);
    assert_int_equal(events[1].cpu, 5);
    assert_int_equal(events[2].time, 2000);
    assert_int_equal(events[2].cpu, PERF_NO_CPU);
    struct perf_switch switched;
    perf_event_switch(&events[2], &switched);
    assert_true(switched.out && switched.preempted);
    assert_int_equal(switched.other_tid, PERF_NO_PID);
    assert_int_equal(data.complaint_count, 1);
    assert_int_equal(data.without_time, 1);
    assert_non_null(strstr(data.complaints.items[0].text, "event 102"));
    perf_data_free(&data);
    free(maker.bytes);
}

// Every field that a sample_id can have, without IDENTIFIER: the id stands in the middle.
static void the_id_may_stand_in_the_middle(void **state)
{
    (void)state;
    struct maker maker = {0};
    make_bytes(&maker, "PERFILE2", 8);
    make_u64(&maker, 16);
    for (uint64_t i = 0; i < 2; i++) {
        make_record(&maker, PERF_HEADER_ATTR, 0);
        make_attr(&maker, 1, 9,
                  PERF_SAMPLE_HAS_TIME | PERF_SAMPLE_HAS_ID | PERF_SAMPLE_HAS_STREAM_ID |
                      PERF_SAMPLE_HAS_CPU | (i ? 0 : PERF_SAMPLE_HAS_TID));
        make_u64(&maker, 100 + i);
        make_record_end(&maker);
    }
    for (uint64_t i = 0; i < 2; i++) {
        make_record(&maker, PERF_SWITCH, 0);
        if (!i)
            make_bytes(&maker, "\3\0\0\0\4\0\0\0", 8); // pid 3, tid 4
        make_u64(&maker, 1000 + i);
        make_u64(&maker, 100 + i);
        make_u64(&maker, 55);
        make_u64(&maker, 6 + i);
        make_record_end(&maker);
    }
    struct perf_data data;
    struct error err;
    assert_int_equal(parse(&maker, &data, &err), 0);
    assert_int_equal(data.complaint_count, 0);
    assert_int_equal(data.events.count, 2);
    assert_int_equal(data.events.items[0].time, 1000);
    assert_int_equal(data.events.items[0].tid, 4);
    assert_int_equal(data.events.items[0].cpu, 6);
    assert_int_equal(data.events.items[1].time, 1001);
    assert_int_equal(data.events.items[1].tid, PERF_NO_PID);
    assert_int_equal(data.events.items[1].cpu, 7);
    perf_data_free(&data);
    free(maker.bytes);
}

static void malformed_records_are_left_out_and_located(void **state)
{
    (void)state;
    struct maker maker = make_file();
    make_comm(&maker, 5, "good", 1, false);
    size_t bad_comm = maker.count;
    make_record(&maker, PERF_COMM, 0);
    make_u64(&maker, 5);
    make_bytes(&maker, "nonulatall______", 16);
    make_sample_id(&maker, 5, 5, 2, 0, 7);
    size_t short_aux = maker.count;
    make_record(&maker, PERF_AUX, 0);
    make_u64(&maker, 5);
    make_sample_id(&maker, 5, 5, 3, 0, 7);
    make_record(&maker, 4000, 0); // unknown to everybody
    make_u64(&maker, 5);
    make_record_end(&maker);
    size_t bad_poke = maker.count;
    make_record(&maker, PERF_TEXT_POKE, 0);
    make_u64(&maker, 1);
    make_u16(&maker, 4);
    make_u16(&maker, 40);
    make_u32(&maker, 0);
    make_sample_id(&maker, 5, 5, 4, 0, 7);
    make_comm(&maker, 5, "good too", 5, false);
    struct perf_data data;
    parse_well(&maker, &data);
    assert_int_equal(data.events.count, 2);
    assert_int_equal(data.unknown_records, 1);
    assert_int_equal(data.complaint_count, 3);
    assert_int_equal(data.complaints.items[0].offset, bad_comm);
    assert_int_equal(data.complaints.items[1].offset, short_aux);
    assert_int_equal(data.complaints.items[2].offset, bad_poke);
    perf_data_free(&data);
    free(maker.bytes);
}

// Every type with every small length: the fields that are not there must not be looked for.
static void records_too_short_for_their_fields_are_complained_about(void **state)
{
    (void)state;
    for (uint32_t type = 1; type < PERF_RECORD_TYPES; type++) {
        for (size_t bytes = 0; bytes < 100; bytes++) {
            struct maker maker = make_file();
            uint8_t ones[100];
            memset(ones, 0xff, sizeof ones);
            make_record(&maker, type, 0xffff);
            make_bytes(&maker, ones, bytes);
            make_record_end(&maker);
            make_file_end(&maker);
            uint8_t *exact = malloc(maker.count); // so that a sanitizer sees any step beyond it
            memcpy(exact, maker.bytes, maker.count);
            struct perf_input input = {"short", exact, maker.count};
            struct perf_data data;
            struct error err;
            assert_int_equal(perf_data_parse(&input, 1, NULL, &data, &err), 0);
            assert_true(data.events.count <= 1);
            if (bytes < 32 && type < PERF_HEADER_ATTR && type != PERF_SAMPLE &&
                perf_record_name(type)) // not even room for its sample_id
                assert_int_equal(data.complaint_count, 1);
            perf_data_free(&data);
            free(exact);
            free(maker.bytes);
        }
    }
}

static void a_record_without_length_ends_the_reading(void **state)
{
    (void)state;
    struct maker maker = make_file();
    make_comm(&maker, 5, "good", 1, false);
    size_t bad = maker.count;
    make_record(&maker, PERF_COMM, 0);
    make_comm(&maker, 5, "never seen", 1, false);
    struct perf_data data;
    parse_well(&maker, &data);
    assert_int_equal(data.events.count, 1);
    assert_int_equal(data.complaint_count, 1);
    assert_int_equal(data.complaints.items[0].offset, bad);
    perf_data_free(&data);
    free(maker.bytes);
}

static void more_events_than_allowed_are_counted(void **state)
{
    (void)state;
    struct maker maker = make_file();
    for (uint64_t i = 0; i < 10; i++)
        make_comm(&maker, 5, "x", i + 1, false);
    make_file_end(&maker);
    struct perf_input input = {"made", maker.bytes, maker.count};
    struct perf_limits limits = {.events = 4, .copy_bytes = 1, .decompressed_bytes = 1};
    struct perf_data data;
    struct error err;
    assert_int_equal(perf_data_parse(&input, 1, &limits, &data, &err), 0);
    assert_int_equal(data.events.count, 4);
    assert_int_equal(data.events_over_limit, 6);
    assert_int_equal(data.complaint_count, 1);
    perf_data_free(&data);
    free(maker.bytes);
}

// --- truncation --------------------------------------------------------------------------------

static void any_prefix_is_read_without_harm(void **state)
{
    (void)state;
    struct maker maker = make_file();
    make_pt_info(&maker, false);
    for (uint64_t i = 0; i < 5; i++)
        make_switch(&maker, true, 10, 11, 300 + i, 2);
    make_auxtrace(&maker, 0, 2, 0, "0123456789abcdef0123456789abcdef", 32);
    make_comm(&maker, 5, "last", 400, false);
    make_file_end(&maker);
    size_t seen = 0;
    for (size_t bytes = 0; bytes <= maker.count; bytes++) {
        // A copy of just these bytes, so that a sanitizer sees any step beyond them.
        uint8_t *copy = malloc(bytes ? bytes : 1);
        memcpy(copy, maker.bytes, bytes);
        struct perf_input input = {"cut", copy, bytes};
        struct perf_data data;
        struct error err;
        if (perf_data_parse(&input, 1, NULL, &data, &err) == 0) {
            assert_true(data.events.count >= seen);
            seen = data.events.count;
            assert_true((data.complaint_count > 0) == (bytes < maker.count));
            perf_data_free(&data);
        } else {
            assert_true(bytes < MAKER_RECORDS_AT);
            assert_int_equal(err.kind, ERROR_INPUT);
        }
        free(copy);
    }
    assert_int_equal(seen, 6);
    free(maker.bytes);
}

// --- directories -------------------------------------------------------------------------------

static void a_directory_is_read_as_one(void **state)
{
    (void)state;
    struct maker maker = make_file();
    make_comm(&maker, 1, "one", 10, false);
    make_file_end(&maker);
    struct maker first = {0}, second = {0};
    make_comm(&first, 2, "two", 30, false);
    make_comm(&second, 3, "three", 20, false);
    make_record(&second, PERF_COMM, 0);
    make_record_end(&second);
    second.bytes[second.record + 6] = 200; // longer than the file
    struct perf_input inputs[] = {{"data", maker.bytes, maker.count},
                                  {"data.0", first.bytes, first.count},
                                  {"data.1", second.bytes, second.count}};
    struct perf_data data;
    struct error err;
    assert_int_equal(perf_data_parse(inputs, 3, NULL, &data, &err), 0);
    assert_int_equal(data.layout, PERF_LAYOUT_DIRECTORY);
    assert_int_equal(data.events.count, 3);
    assert_int_equal(data.events.items[1].input, 2);
    assert_int_equal(data.events.items[2].input, 1);
    assert_int_equal(data.complaint_count, 1);
    assert_int_equal(data.complaints.items[0].input, 2);
    assert_int_equal(data.complaints.items[0].offset, second.record);
    perf_data_free(&data);
    free(maker.bytes);
    free(first.bytes);
    free(second.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unusable_headers_are_refused_in_words),
        cmocka_unit_test(a_recording_that_did_not_end_is_read_and_said),
        cmocka_unit_test(features_tell_of_the_host),
        cmocka_unit_test(events_come_sorted_with_task_time_and_cpu),
        cmocka_unit_test(every_kind_of_event_is_read),
        cmocka_unit_test(any_order_is_sorted_and_equals_keep_theirs),
        cmocka_unit_test(each_record_ends_as_its_attribute_says),
        cmocka_unit_test(the_id_may_stand_in_the_middle),
        cmocka_unit_test(malformed_records_are_left_out_and_located),
        cmocka_unit_test(records_too_short_for_their_fields_are_complained_about),
        cmocka_unit_test(a_record_without_length_ends_the_reading),
        cmocka_unit_test(more_events_than_allowed_are_counted),
        cmocka_unit_test(any_prefix_is_read_without_harm),
        cmocka_unit_test(a_directory_is_read_as_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
