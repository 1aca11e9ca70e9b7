// SPDX-License-Identifier: MIT
//
// Recordings: what is read is what is sent, and what is no recording is refused with its place.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/log_file.h"
#include "loadgen/engine/recording.h"
#include "loadgen/client/sample_log.h"

enum { SAMPLES = 1000 };

static int parse(const char *text, struct recording *recording, struct error *err)
{
    return recording_parse(text, strlen(text), "r.csv", recording, err);
}

static void times_come_back_at_any_rate(void **state)
{
    (void)state;
    struct recording recording;
    struct schedule schedule;
    struct workload workload = {0};
    struct error err;
    workload_defaults(&workload);
    assert_int_equal(parse("# seconds\n0.5\n\n 0.5\r\n1e0\n2\n", &recording, &err), 0);
    assert_int_equal(recording.requests.count, 4);
    assert_false(recording.complete);
    assert_true(recording_rate(&recording) == 2);
    assert_int_equal(recording_draw(&recording, &workload, 4, 900000000, 1, &schedule, &err), 0);
    assert_int_equal(schedule.count, 3); // the last, at 1 s, is cut off
    assert_int_equal(schedule.items[0].offset_ns, 250000000);
    assert_int_equal(schedule.items[2].offset_ns, 500000000);
    schedule_free(&schedule);
    recording_free(&recording);
    workload_free(&workload);
}

static void what_is_no_recording_is_refused_with_its_line(void **state)
{
    (void)state;
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"0\n1\nx\n", "r.csv:3: what stands here is no time in seconds"},
        {"0\n1,get\n", "r.csv:2: what stands here is no time in seconds"},
        {"nan\n", "r.csv:1: what stands here is no time"},
        {"0x1p3\n", "r.csv:1: what stands here is no time"},
        {"1\n0.5\n", "r.csv:2: what stands here is before the one above it"},
        {"-1\n2\n", "r.csv:1: what stands here is before"},
        {"0\n1e300\n", "r.csv:2: what stands here is later than a day"},
        {"1\n", "r.csv: a recording has two requests at least"},
        {"0\n0\n", "r.csv: a recording has two requests at least"},
        {"", "r.csv: a recording has two requests at least"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct recording recording;
        struct error err;
        assert_int_equal(parse(cases[i].text, &recording, &err), -ERROR_INPUT);
        assert_non_null(strstr(err.text, cases[i].error));
        assert_null(recording.requests.items);
    }
}

static void a_sample_log_is_repeated_whole(void **state)
{
    (void)state;
    static struct sample samples[SAMPLES];
    char path[] = "/tmp/met-recording-XXXXXX";
    struct recording recording;
    struct schedule schedule;
    struct workload workload = {0};
    struct error err;
    workload_defaults(&workload);
    close(mkstemp(path));
    for (size_t i = 0; i < SAMPLES; i++) // a TSC of 2 GHz, a request every 100 us
        samples[i] = (struct sample){.intended_tsc = 1000 + i * 200000,
                                     .sent_tsc = 9000 + i * 200000,
                                     .tx_ns = 77000 + i * 100000,
                                     .tx_source = STAMP_SOFTWARE,
                                     .operation = i % 2,
                                     .key = (uint32_t)i};
    assert_int_equal(log_write(path, LOG_SAMPLES, SAMPLE_LOG_VERSION, sizeof *samples, samples,
                               SAMPLES, 0, &err),
                     0);
    assert_int_equal(recording_load(path, &workload, &recording, &err), 0);
    assert_true(recording.complete);
    assert_int_equal(recording_draw(&recording, &workload, recording_rate(&recording), 10000000000,
                                    1, &schedule, &err),
                     0);
    assert_int_equal(schedule.count, SAMPLES);
    for (size_t i = 0; i < SAMPLES; i++) {
        assert_in_range(schedule.items[i].offset_ns, i * 100000 - (i > 0), i * 100000 + 1);
        assert_int_equal(schedule.items[i].key, i);
        assert_int_equal(schedule.items[i].operation, i % 2);
    }
    schedule_free(&schedule);
    recording_free(&recording);

    samples[500].key = UINT32_MAX;
    assert_int_equal(log_write(path, LOG_SAMPLES, SAMPLE_LOG_VERSION, sizeof *samples, samples,
                               SAMPLES, 0, &err),
                     0);
    assert_int_equal(recording_load(path, &workload, &recording, &err), -ERROR_INPUT);
    assert_non_null(strstr(err.text, "request 501 has a key beyond"));
    assert_int_equal(
        log_write(path, LOG_CALLS, SAMPLE_LOG_VERSION, sizeof *samples, samples, SAMPLES, 0, &err),
        0);
    assert_int_equal(recording_load(path, &workload, &recording, &err), -ERROR_INPUT);
    unlink(path);
    assert_int_equal(recording_load(path, &workload, &recording, &err), -ERROR_INPUT);
    assert_int_equal(recording_load("/tmp", &workload, &recording, &err), -ERROR_INPUT);
    workload_free(&workload);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_come_back_at_any_rate),
        cmocka_unit_test(what_is_no_recording_is_refused_with_its_line),
        cmocka_unit_test(a_sample_log_is_repeated_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
