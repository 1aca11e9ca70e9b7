// SPDX-License-Identifier: MIT
#include "experiments/watch/watch_capture.h"

#include <assert.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json_numbers.h"
#include "experiments/common/program_path.h"
#include "experiments/common/run_folder.h"
#include "experiments/common/supervisor.h"

enum {
    LINE_BYTES = 1024,
    ARM_MS = 60000,
    LOOK_MS = 100, // for a person who interrupts meanwhile
    END_MS = 10000,
};

// It ended by itself. What it found wrong with its options are ours.
static int has_ended(const struct watch_capture *capture, int status, struct error *err)
{
    supervisor_end_error(err, "the capture", status, capture->log);
    if (WIFEXITED(status) && WEXITSTATUS(status) == ERROR_INPUT)
        err->kind = ERROR_INPUT;
    return -(int)err->kind;
}

// When it began to record it says itself: this process may hear it much later. Of a line with more
// warnings than are read here that is not known, and it began no later than now.
static void take_ready(struct watch_capture *capture, const char *line)
{
    json_t *document = json_loads(line, 0, NULL);
    const json_t *since = json_object_get(document, "since_ns");
    capture->since_ns =
        json_is_integer(since) ? json_integer_value(since) : clock_now_ns(CLOCK_MONOTONIC_RAW);
    json_decref(document);
}

// What its process has taken so far, in clock ticks.
static uint64_t ticks_of(const struct watch_capture *capture)
{
    char path[64], text[600];
    unsigned long user = 0, system = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)capture->process.pid);
    FILE *file = fopen(path, "re");
    const char *after = file && fgets(text, sizeof text, file) ? strrchr(text, ')') : NULL;
    if (after)
        (void)sscanf(after + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
                     &system);
    if (file)
        fclose(file);
    return user + system;
}

void watch_segment_join(struct watch_segment *into, int64_t since_ns,
                        const struct watch_segment *later)
{
    const double first_ns = (double)(into->until_ns - since_ns),
                 second_ns = (double)(later->until_ns - into->until_ns),
                 recorded_ns = first_ns + second_ns;
    into->taken = (into->taken * first_ns + later->taken * second_ns) / recorded_ns;
    into->recorded = recorded_ns / (first_ns / into->recorded + second_ns / later->recorded);
    into->number = later->number;
    into->count += later->count;
    into->bytes += later->bytes;
    into->until_ns = later->until_ns;
}

int watch_capture_start(struct watch_capture *capture, const struct watch_capture_option *options,
                        size_t count, const char *log, struct error *err)
{
    char self[RUN_PATH_BYTES], line[LINE_BYTES];
    const char *argv[2 * WATCH_CAPTURE_OPTIONS + 4];
    size_t used = 0;
    const struct process_place how = {
        .log_path = log, .pipe_input = true, .pipe_output = true, .has_children = true};
    assert(count <= WATCH_CAPTURE_OPTIONS);
    if (program_path_self(self, sizeof self, err) < 0)
        return -ERROR_FAILED;
    capture->log = log;
    argv[used++] = self;
    argv[used++] = "capture";
    for (size_t i = 0; i < count; i++)
        if (options[i].value) {
            argv[used++] = options[i].name;
            argv[used++] = options[i].value;
        }
    argv[used++] = "--quiet";
    argv[used] = NULL;
    int status, result = process_start(&capture->process, argv, &how, err);
    if (result < 0)
        return result;
    const int64_t deadline_ms = monotonic_ms() + ARM_MS;
    do
        result = process_read_line(&capture->process, line, sizeof line, LOOK_MS, err);
    while (result == 0 && !process_has_ended(capture->process.pid) && !process_is_interrupted() &&
           monotonic_ms() < deadline_ms);
    if (result > 0) {
        take_ready(capture, line);
        capture->ticks = ticks_of(capture); // to load the programs is no interval's
        return 0;
    }
    if (result == 0 && process_is_interrupted())
        return error_set(err, ERROR_FAILED, "interrupted before the capture was armed");
    if (result == 0 && process_wait(&capture->process, END_MS, &status, err) > 0)
        return has_ended(capture, status, err);
    return result < 0 ? result
                      : error_set(err, ERROR_FAILED, "the capture was not armed after %d s",
                                  ARM_MS / 1000);
}

static int take_line(const char *line, struct watch_segment *ended, struct error *err)
{
    json_t *document = json_loads(line, 0, NULL);
    const json_t *segment = json_object_get(document, "segment"),
                 *until = json_object_get(document, "until_ns"),
                 *stopped = json_object_get(document, "stopped");
    int result = 1;
    if (json_is_string(stopped))
        result =
            error_set(err, ERROR_FAILED, "the capture has ended: %s", json_string_value(stopped));
    else if (json_is_integer(segment) && json_is_integer(until))
        *ended = (struct watch_segment){
            .number = (unsigned)json_integer_value(segment),
            .count = 1,
            .from_ns = json_integer_value(json_object_get(document, "from_ns")),
            .until_ns = json_integer_value(until),
            .recorded = json_number_value(json_object_get(document, "recorded")),
            .taken = json_number_value(json_object_get(document, "taken"))};
    json_decref(document); // others say which servers were found
    return result;
}

int watch_capture_listen(struct watch_capture *capture, int wait_ms, struct watch_segment *ended,
                         struct error *err)
{
    char line[LINE_BYTES];
    const int result = process_read_line(&capture->process, line, sizeof line, wait_ms, err);
    return result > 0 ? take_line(line, ended, err) : result;
}

int watch_capture_check(struct watch_capture *capture, struct error *err)
{
    int status;
    const int result = process_wait(&capture->process, 0, &status, err);
    return result > 0 ? has_ended(capture, status, err) : result;
}

double watch_capture_seconds(struct watch_capture *capture)
{
    const uint64_t before = capture->ticks;
    capture->ticks = ticks_of(capture);
    return (double)(capture->ticks - before) / (double)sysconf(_SC_CLK_TCK);
}

void watch_capture_charge(struct watch_capture *capture)
{
    char line[40];
    const int64_t now = clock_now_ns(CLOCK_PROCESS_CPUTIME_ID);
    const int bytes =
        snprintf(line, sizeof line, "read %lld\n", (long long)(now - capture->charged_ns));
    if (write(capture->process.input, line, (size_t)bytes) == bytes)
        capture->charged_ns = now;
}

void watch_capture_stop(struct watch_capture *capture)
{
    process_close_pipes(&capture->process);
    process_stop(&capture->process, END_MS);
}
