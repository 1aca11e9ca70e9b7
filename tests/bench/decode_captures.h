// SPDX-License-Identifier: MIT
//
// Real captures (the README beside them), decoded once, where starting up and learning the code is
// most of it, and repeated to 16 MB: by a plain walk, into call spans on one core, and on all. What
// a second core can bring here at all is seen from two decoders at once, each with one thread and a
// core of its own, which share nothing but the machine. What they count must agree. Each
// measurement is a process of its own; all take turns. What one thread takes is its processor time,
// which a busy machine leaves much as it is.
#ifndef TESTS_BENCH_DECODE_CAPTURES_H
#define TESTS_BENCH_DECODE_CAPTURES_H

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "analysis/pt/pt_result.h"
#include "base/quantile.h"
#include "tests/analysis/pt/pt_captures.h"
#include "tests/bench/bench_json.h"

enum { CAPTURE_ROUNDS = 7, CAPTURE_LONG_BYTES = 16 << 20 };

enum capture_way { CAPTURE_PLAIN, CAPTURE_ONE, CAPTURE_ALL, CAPTURE_PAIR, CAPTURE_WAYS };

struct capture_outcome {
    double seconds, cpu_seconds;
    uint64_t bytes, instructions, errors, spans, followed;
};

static inline double capture_now(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

// Replaces the stream by copies of it; packets do not continue from one to the next.
static inline int capture_repeat(struct pt_trace_stream *stream, uint64_t copies)
{
    struct pt_bytes *bytes = &stream->stream.bytes;
    uint64_t length = bytes->bytes;
    uint8_t *data = malloc(length * copies);
    uint64_t *breaks = calloc(copies, sizeof *breaks);
    if (!data || !breaks)
        return -1;
    memcpy(data, pt_bytes_view(bytes, 0, length, data), length);
    for (uint64_t i = 1; i < copies; i++) {
        memcpy(data + i * length, data, length);
        breaks[i - 1] = i * length;
    }
    *bytes = (struct pt_bytes){
        .bytes = length * copies, .data = data, .breaks = breaks, .break_count = copies - 1};
    pt_packets_free(&stream->packets);
    return 0;
}

static inline int capture_plainly(struct pt_trace *trace, uint64_t copies,
                                  struct capture_outcome *out)
{
    struct error err;
    struct pt_image *image;
    struct plain_walk walk = {0};
    uint32_t space = (uint32_t)trace->code.places.count - 1; // the only process's
    struct pt_code_view *code = pt_code_view_alloc(&trace->memory, &err);
    int result = code ? pt_code_view_image(code, space, &image, &err) : -1;
    for (size_t i = 0; result == 0 && i < trace->streams.count; i++) {
        const struct pt_stream *stream = &trace->streams.items[i]->stream;
        uint64_t length = stream->bytes.bytes / copies;
        for (uint64_t copy = 0; result == 0 && copy < copies; copy++)
            result = plain_walk(image, &stream->recorder, stream->bytes.data + copy * length,
                                length, &walk);
    }
    pt_code_view_free(code);
    out->instructions = walk.instructions;
    out->errors = walk.errors;
    return result;
}

static inline int capture_spans(struct pt_trace *trace, unsigned threads,
                                struct capture_outcome *out)
{
    struct pt_decode_options how = {.threads = threads};
    struct pt_result decoded = {0};
    struct error err;
    trace->threads = threads;
    for (size_t i = 0; i < trace->streams.count; i++)
        pt_packets_free(&trace->streams.items[i]->packets); // scanning is part of the work
    int result = pt_trace_scan(trace, &err);
    if (result == 0)
        result = pt_result_decode(trace, &how, NULL, NULL, &decoded, &err);
    for (size_t i = 0; result == 0 && i < trace->streams.count; i++) {
        out->instructions += decoded.streams[i].counts.instructions;
        out->followed += decoded.streams[i].counts.followed_bytes;
        out->errors += decoded.streams[i].error_count;
        out->spans += decoded.streams[i].calls.spans;
    }
    return result;
}

// The trace, and `copies` of each of its streams.
static inline int capture_prepare(const struct capture *capture, const char *dir, bool once,
                                  struct pt_trace *trace, uint64_t *copies,
                                  struct capture_outcome *out)
{
    struct error err;
    if (capture_load(capture, dir, trace, &err) < 0) {
        fprintf(stderr, "%s: %s\n", capture->name, err.text);
        return -1;
    }
    for (size_t i = 0; i < trace->streams.count; i++)
        out->bytes += trace->streams.items[i]->stream.bytes.bytes;
    *copies = once ? 1 : CAPTURE_LONG_BYTES / out->bytes + 1;
    for (size_t i = 0; i < trace->streams.count; i++)
        if (capture_repeat(trace->streams.items[i], *copies) < 0)
            return -1;
    out->bytes *= *copies;
    return 0;
}

static inline int capture_decode(struct pt_trace *trace, uint64_t copies, enum capture_way way,
                                 struct capture_outcome *out)
{
    double begin = capture_now(CLOCK_MONOTONIC);
    double cpu_begin = capture_now(CLOCK_PROCESS_CPUTIME_ID);
    int result = way == CAPTURE_PLAIN ? capture_plainly(trace, copies, out)
                                      : capture_spans(trace, way == CAPTURE_ALL ? 0 : 1, out);
    out->seconds = capture_now(CLOCK_MONOTONIC) - begin;
    out->cpu_seconds = capture_now(CLOCK_PROCESS_CPUTIME_ID) - cpu_begin;
    return result;
}

// Keeps the process on the nth of the cores that it may use; stays where it is if there are fewer.
static inline void capture_pin(int nth)
{
    cpu_set_t may, only;
    if (sched_getaffinity(0, sizeof may, &may) < 0)
        return;
    for (size_t core = 0; core < CPU_SETSIZE; core++)
        if (CPU_ISSET(core, &may) && nth-- == 0) {
            CPU_ZERO(&only);
            CPU_SET(core, &only);
            sched_setaffinity(0, sizeof only, &only);
            return;
        }
}

// The pipes of a child that measures: it says that it is prepared, is told to begin, says what came
// out.
struct capture_child {
    pid_t pid;
    int from[2], to[2];
};

static inline void capture_child(const struct capture *capture, const char *dir,
                                 enum capture_way way, bool once, const struct capture_child *self)
{
    struct capture_outcome outcome = {0};
    struct pt_trace trace;
    uint64_t copies;
    char word = 0;
    bool fine = capture_prepare(capture, dir, once, &trace, &copies, &outcome) == 0 &&
                write(self->from[1], &word, 1) == 1 && read(self->to[0], &word, 1) == 1 &&
                capture_decode(&trace, copies, way, &outcome) == 0 &&
                write(self->from[1], &outcome, sizeof outcome) == sizeof outcome;
    _exit(fine ? 0 : 1);
}

static inline int capture_start(const struct capture *capture, const char *dir,
                                enum capture_way way, bool once, int nth,
                                struct capture_child *child)
{
    *child = (struct capture_child){.pid = -1};
    if (pipe(child->from) < 0 || pipe(child->to) < 0)
        return -1;
    child->pid = fork();
    if (child->pid == 0) {
        if (way == CAPTURE_PAIR)
            capture_pin(nth);
        close(child->from[0]);
        close(child->to[1]);
        capture_child(capture, dir, way, once, child);
    }
    close(child->from[1]);
    close(child->to[0]);
    return child->pid < 0 ? -1 : 0;
}

static inline int capture_finish(struct capture_child *child, struct capture_outcome *out)
{
    int status = -1;
    ssize_t got = read(child->from[0], out, sizeof *out);
    close(child->from[0]);
    close(child->to[1]);
    return waitpid(child->pid, &status, 0) == child->pid && status == 0 && got == sizeof *out ? 0
                                                                                              : -1;
}

// Of a pair, the time of the slower one.
static inline int capture_measure(const struct capture *capture, const char *dir,
                                  enum capture_way way, bool once, struct capture_outcome *out)
{
    struct capture_child children[2];
    int count = way == CAPTURE_PAIR ? 2 : 1, started = 0, result = 0;
    char word = 0;
    for (; result == 0 && started < count; started++)
        result = capture_start(capture, dir, way, once, started, &children[started]);
    for (int i = 0; i < started && result == 0; i++)
        result = read(children[i].from[0], &word, 1) == 1 ? 0 : -1;
    for (int i = 0; i < started && result == 0; i++)
        result = write(children[i].to[1], &word, 1) == 1 ? 0 : -1;
    for (int i = 0; i < started; i++) {
        struct capture_outcome one = {0};
        if (capture_finish(&children[i], &one) < 0)
            result = -1;
        if (i == 0 || one.seconds > out->seconds)
            *out = one;
    }
    return result;
}

// Medians of rounds in turns.
static inline int capture_compare(const struct capture *capture, const char *dir, bool once,
                                  struct bench_json *json)
{
    double seconds[CAPTURE_WAYS][CAPTURE_ROUNDS], cpu_seconds[CAPTURE_WAYS][CAPTURE_ROUNDS];
    double one_faster[CAPTURE_ROUNDS], all_faster[CAPTURE_ROUNDS]; // than the plain walk
    struct capture_outcome one[CAPTURE_WAYS];
    char metric[128];
    for (int round = 0; round < CAPTURE_ROUNDS; round++) {
        for (int way = 0; way < CAPTURE_WAYS; way++) {
            if (capture_measure(capture, dir, (enum capture_way)way, once, &one[way]) < 0)
                return -1;
            if (one[way].instructions != one[CAPTURE_PLAIN].instructions) {
                fprintf(stderr, "%s: %llu instructions, by libipt %llu\n", capture->name,
                        (unsigned long long)one[way].instructions,
                        (unsigned long long)one[CAPTURE_PLAIN].instructions);
                return -1;
            }
            seconds[way][round] = one[way].seconds;
            cpu_seconds[way][round] = one[way].cpu_seconds;
        }
        one_faster[round] = one[CAPTURE_PLAIN].cpu_seconds / one[CAPTURE_ONE].cpu_seconds;
        all_faster[round] = one[CAPTURE_PLAIN].seconds / one[CAPTURE_ALL].seconds;
    }
    for (int way = 0; way < CAPTURE_WAYS; way++) {
        quantile_sort(seconds[way], CAPTURE_ROUNDS);
        quantile_sort(cpu_seconds[way], CAPTURE_ROUNDS);
    }
    quantile_sort(one_faster, CAPTURE_ROUNDS);
    quantile_sort(all_faster, CAPTURE_ROUNDS);
    const int middle = CAPTURE_ROUNDS / 2;
    double megabytes = (double)one[CAPTURE_ONE].bytes / 1e6;
    double all_of_one = seconds[CAPTURE_ONE][middle] / seconds[CAPTURE_ALL][middle];
    double pair_of_one = 2 * seconds[CAPTURE_ONE][middle] / seconds[CAPTURE_PAIR][middle];
    printf("  %-13s %9.4f %8.1f %8.1f %8.1f MB/s %7.2f %8.2f %8.2f %8.2f %8.2f %8.2f %7.0f %%\n",
           capture->name, megabytes, megabytes / cpu_seconds[CAPTURE_PLAIN][middle],
           megabytes / cpu_seconds[CAPTURE_ONE][middle], megabytes / seconds[CAPTURE_ALL][middle],
           one_faster[middle], all_faster[middle], all_of_one, pair_of_one,
           all_of_one / pair_of_one,
           cpu_seconds[CAPTURE_ALL][middle] / cpu_seconds[CAPTURE_ONE][middle],
           100 * (double)one[CAPTURE_ONE].followed / (double)one[CAPTURE_ONE].bytes);
    snprintf(metric, sizeof metric, "%s_%s_speedup_over_plain_walk_one_core", capture->name,
             once ? "once" : "repeated");
    bench_json_add(json, metric, "times", one_faster, CAPTURE_ROUNDS);
    snprintf(metric, sizeof metric, "%s_%s_speedup_over_plain_walk", capture->name,
             once ? "once" : "repeated");
    bench_json_add(json, metric, "times", all_faster, CAPTURE_ROUNDS);
    snprintf(metric, sizeof metric, "%s_%s_all_cores_speedup", capture->name,
             once ? "once" : "repeated");
    bench_json_add(json, metric, "times", &all_of_one, 1);
    snprintf(metric, sizeof metric, "%s_%s_two_decoders_speedup", capture->name,
             once ? "once" : "repeated");
    bench_json_add(json, metric, "times", &pair_of_one, 1);
    return 0;
}

// 0 also where there are no captures.
static inline int captures_compare(struct bench_json *json)
{
    char data[4096], dir[] = "/tmp/taillight-captures-XXXXXX", command[64];
    if (access(capture_data(data), R_OK) < 0) {
        printf("no captures under %s; set TAILLIGHT_DATA to where they are\n", data);
        return 0;
    }
    if (!mkdtemp(dir))
        return -1;
    int result = 0;
    for (int once = 1; result == 0 && once >= 0; once--) {
        printf("captures, %s; the walk and one core by processor time; how many times as fast as "
               "the walk, all as one core, two decoders at once (a core each, nothing shared: what "
               "the machine allows) as one, all of these two, and all's processor time of one's\n"
               "  %-13s %9s %8s %8s %8s %12s %8s %8s %8s %8s %8s %9s\n",
               once ? "once" : "repeated", "", "MB", "walk", "one core", "all", "one", "all",
               "all/one", "two/one", "all/two", "time", "followed");
        for (size_t i = 0; result == 0 && i < CAPTURES; i++) {
            char path[4200];
            snprintf(path, sizeof path, "%s/%s.tar.xz", data, captures[i].archive);
            if (access(path, R_OK) < 0)
                continue;
            result = capture_unpack(&captures[i], dir);
            if (result == 0)
                result = capture_compare(&captures[i], dir, once, json);
        }
    }
    snprintf(command, sizeof command, "rm -rf %s", dir);
    return system(command) == 0 ? result : -1;
}

#endif
