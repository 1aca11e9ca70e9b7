// SPDX-License-Identifier: MIT
//
// A whole run folder: the logs of a scenario (scenario.h) on disk, as they are or in segments, to
// be analyzed. Header-only: each test binary stands alone.
#ifndef TESTS_ANALYSIS_RUN_MADE_FOLDER_H
#define TESTS_ANALYSIS_RUN_MADE_FOLDER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "analysis/run/run_analysis.h"
#include "analysis/run/run_analyze.h"
#include "base/log_file.h"
#include "profiler/clock/clock_log.h"
#include "tests/analysis/diagnosis/scenario.h"

struct folder {
    char path[200];
    struct scenario scenario;
};

static inline const char *in_folder(const struct folder *f, const char *name)
{
    static char path[400];
    snprintf(path, sizeof path, "%s/%s", f->path, name);
    return path;
}

static inline void write_text(const struct folder *f, const char *name, const char *text)
{
    FILE *file = fopen(in_folder(f, name), "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

#define WRITE_LOG(f, name, kind, version, array)                                                   \
    assert_int_equal(log_write(in_folder(f, name), kind, version, sizeof *(array)->items,          \
                               (array)->items, (array)->count, 0, &err),                           \
                     0)

// Knots of the scenario's clocks, every 100 ms of that time.
static inline void write_clock_of(const struct folder *f, const char *name, int64_t from,
                                  int64_t until)
{
    struct ARRAY_OF(struct clock_reading) readings = {0};
    struct error err = {0};
    const int64_t ahead[HOST_CLOCKS] = {
        [HOST_CLOCK_MONOTONIC] = MONOTONIC_AHEAD_NS, [HOST_CLOCK_REALTIME] = REALTIME_AHEAD_NS};
    for (int64_t at = from; at < until; at += 100000000)
        for (uint32_t clock = HOST_CLOCK_RAW; clock < HOST_CLOCKS; clock++)
            SCENARIO_PUSH(&readings, (struct clock_reading){.clock = clock,
                                                            .width = 20,
                                                            .tsc = (uint64_t)at * CYCLES_PER_NS,
                                                            .ns = at + ahead[clock]});
    WRITE_LOG(f, name, LOG_CLOCK, CLOCK_LOG_VERSION, &readings);
    array_free(&readings);
}

// From before its begin to after its end.
static inline void write_clock(const struct folder *f, const char *name)
{
    write_clock_of(f, name, SCENARIO_BEGIN_NS / 2, SCENARIO_BEGIN_NS + 1000000000);
}

static const char experiment[] =
    "{\"name\": \"noisy\", \"workload\": {\"mix\": {\"get\": 9, \"set\": 1}}, \"diagnose\": "
    "{\"slice\": \"p99-100\", \"windows\": ["
    "{\"from_ns\": 0, \"to_ns\": 120000000},"
    "{\"from_ns\": 120000000, \"to_ns\": 300000000}]}}";

static inline void make_folder(struct folder *f)
{
    struct error err = {0};
    struct scenario_options options = {.requests = 4000,
                                       .connections = 16,
                                       .gap_ns = 60000,
                                       .fault = FAULT_HOG,
                                       .faults = 10,
                                       .fault_ns = 400000,
                                       .fault_from_ns = 130000000,
                                       .fin = true,
                                       .seed = 3};
    snprintf(f->path, sizeof f->path, "%s/ana-test-XXXXXX",
             getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    assert_non_null(mkdtemp(f->path));
    assert_int_equal(mkdir(in_folder(f, "client"), 0755), 0);
    assert_int_equal(mkdir(in_folder(f, "server"), 0755), 0);
    scenario_build(&f->scenario, &options);
    struct scenario *s = &f->scenario;
    s->samples.items[7].status = SAMPLE_TIMED_OUT;
    s->samples.items[7].reply_tsc = s->samples.items[7].reply_end = 0;
    WRITE_LOG(f, "client/samples.tlog", LOG_SAMPLES, SAMPLE_LOG_VERSION, &s->samples);
    WRITE_LOG(f, "client/connections.tlog", LOG_CONNECTIONS, 1, &s->client);
    WRITE_LOG(f, "server/events.tlog", LOG_EVENTS, EVENT_LOG_VERSION, &s->events);
    WRITE_LOG(f, "server/sockets.tlog", LOG_CONNECTIONS, 1, &s->sockets);
    WRITE_LOG(f, "server/calls.tlog", LOG_CALLS, MESSAGE_LOG_VERSION, &s->calls);
    WRITE_LOG(f, "server/connections.tlog", LOG_CONNECTIONS, 1, &s->shim);
    write_clock(f, "server/clock.tlog");
    write_text(f, "experiment.json", experiment);
    write_text(f, "server/capture.json", "{\"dropped\": {}}");
}

// The logs as a capture leaves them that was written in segments, of SEGMENT_NS each; the last of
// them is what it wrote when it ended by itself.
enum { SEGMENTS = 3, SEGMENT_NS = 70000000 };

static inline const char *segment_name(unsigned number, const char *what)
{
    static char name[60];
    snprintf(name, sizeof name, "server/%s-%06u.tlog", what, number);
    return name;
}

static inline void split_logs(const struct folder *f, unsigned n)
{
    struct error err = {0};
    struct ARRAY_OF(struct event) events = {0};
    struct ARRAY_OF(struct call) calls = {0};
    const struct scenario *s = &f->scenario;
    const uint64_t begin = SCENARIO_BEGIN_NS + n * (uint64_t)SEGMENT_NS, from = n ? begin : 0,
                   to = n < SEGMENTS ? begin + SEGMENT_NS : UINT64_MAX / 8;
    for (size_t i = 0; i < s->events.count; i++) {
        uint64_t at = s->events.items[i].time - MONOTONIC_AHEAD_NS;
        if (at >= from && at < to)
            SCENARIO_PUSH(&events, s->events.items[i]);
    }
    for (size_t i = 0; i < s->calls.count; i++) {
        uint64_t at = s->calls.items[i].exit_tsc / CYCLES_PER_NS;
        if (at >= from && at < to)
            SCENARIO_PUSH(&calls, s->calls.items[i]);
    }
    WRITE_LOG(f, n < SEGMENTS ? segment_name(n + 1, "events") : "server/events.tlog", LOG_EVENTS,
              EVENT_LOG_VERSION, &events);
    WRITE_LOG(f, n < SEGMENTS ? segment_name(n + 1, "calls") : "server/calls.tlog", LOG_CALLS,
              MESSAGE_LOG_VERSION, &calls);
    array_free(&events);
    array_free(&calls);
}

// Half of the server's connections, but for one that is in both, ended before the last segment.
static inline void split_sockets(const struct folder *f)
{
    struct error err = {0};
    const struct connection *all = f->scenario.sockets.items;
    const size_t count = f->scenario.sockets.count;
    assert_true(count >= 2);
    assert_int_equal(log_write(in_folder(f, segment_name(2, "sockets")), LOG_CONNECTIONS, 1,
                               sizeof *all, all, count / 2 + 1, 0, &err),
                     0);
    assert_int_equal(log_write(in_folder(f, "server/sockets.tlog"), LOG_CONNECTIONS, 1, sizeof *all,
                               all + count / 2, count - count / 2, 0, &err),
                     0);
}

static inline void remove_folder(struct folder *f)
{
    static const char *const names[] = {"client/samples.tlog",
                                        "client/connections.tlog",
                                        "client/load.json",
                                        "client/clock.tlog",
                                        "client",
                                        "server/events.tlog",
                                        "server/sockets.tlog",
                                        "server/calls.tlog",
                                        "server/connections.tlog",
                                        "server/clock.tlog",
                                        "server/capture.json",
                                        "server",
                                        "experiment.json",
                                        "experiment.yaml",
                                        "categories.csv",
                                        "own.csv",
                                        "facts.json",
                                        "run.db",
                                        "summary.json"};
    for (unsigned i = 0; i < 2 * SEGMENTS; i++)
        remove(in_folder(f, segment_name(i / 2 + 1, i % 2 ? "calls" : "events")));
    remove(in_folder(f, segment_name(2, "sockets")));
    remove(in_folder(f, "server/capture.json"));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        remove(in_folder(f, names[i]));
    assert_int_equal(rmdir(f->path), 0);
    scenario_free(&f->scenario);
}

static inline int analyze(const struct folder *f, struct run_analysis *run, struct error *err)
{
    struct progress progress;
    progress_init(&progress, true);
    *err = (struct error){0};
    return run_analyze(&(struct run_request){.run_dir = f->path}, &progress, run, err);
}

static inline double number_in(json_t *object, const char *key)
{
    json_t *value = json_object_get(object, key);
    assert_true(json_is_number(value));
    return json_number_value(value);
}

static inline void assert_top_cause(json_t *diagnosis, const char *name, const char *role)
{
    json_t *first = json_array_get(json_object_get(diagnosis, "causes"), 0);
    assert_string_equal(json_string_value(json_object_get(first, "cause")), name);
    assert_string_equal(json_string_value(json_object_get(first, "role")), role);
    assert_true(number_in(first, "messages") > 0);
    assert_true(number_in(first, "total_us") >= number_in(first, "median_us"));
}

#endif
