// SPDX-License-Identifier: MIT
#include "experiments/capture/capture_command.h"

#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/new_file.h"
#include "base/one_wish.h"
#include "base/process.h"
#include "base/text.h"
#include "experiments/capture/capture_backend.h"
#include "experiments/capture/capture_cores.h"
#include "experiments/capture/capture_document.h"
#include "experiments/capture/capture_options.h"
#include "experiments/capture/capture_segments.h"
#include "experiments/capture/capture_servers.h"
#include "experiments/common/program_path.h"
#include "experiments/common/run_folder.h"
#include "experiments/common/supervisor.h"
#include "experiments/remote/deployment.h"
#include "shim/ring_directory.h"

enum { GROWING_BYTES = 256 << 10 };

// --- its end: the logs, and capture.json, which says what was recorded and what was lost ---------

static int write_calls(struct capture *capture, struct error *err)
{
    struct message_stats stats;
    if (!capture->collector)
        return 0;
    const char *out = capture->segments.stopped ? NULL : capture->options.out;
    int result = message_collector_finish(capture->collector, out, &stats, err);
    if (result == 0) {
        json_object_set_new(capture->document, "shim", message_stats_json(&stats));
        json_object_set_new(json_object_get(capture->document, "dropped"), "calls",
                            json_integer((json_int_t)stats.dropped));
        if (stats.warning[0])
            capture_warn(capture, stats.warning);
    }
    message_stats_free(&stats);
    return result;
}

static int write_backends(struct capture *capture, struct error *err)
{
    int result = 0;
    json_t *dropped = json_object_get(capture->document, "dropped");
    result = capture_cores_follow(capture, err);
    // First ends what costs the server time as long as it goes on.
    for (size_t i = 0; i < CAPTURE_BACKENDS_COUNT && result == 0; i++)
        if (capture->states[i])
            result = capture_backends[i]->disable(capture->states[i], err);
    capture_cores_warn(capture);
    for (size_t i = 0; i < CAPTURE_BACKENDS_COUNT && result == 0; i++) {
        json_t *document = NULL;
        if (!capture->states[i])
            continue;
        result = capture_backends[i]->stop(capture, capture->states[i], dropped, &document, err);
        if (result == 0)
            json_object_set_new(capture->document, capture_backends[i]->name, document);
    }
    return result;
}

// Ends what records and writes all logs, capture.json last: its being there says that they are
// whole.
static int write_capture(struct capture *capture, struct error *err)
{
    capture_servers_name_ports(capture);
    int result = capture_document_begin(capture, err);
    if (result == 0)
        result = write_backends(capture, err);
    if (result == 0)
        result = write_calls(capture, err);
    if (result == 0)
        clock_recorder_settle(&capture->clock);
    if (result == 0)
        result = capture_document_write_clock(capture, err);
    return result < 0 ? result : capture_document_write(capture, err);
}

// What was written before stays.
static void say_kept(const struct capture *capture)
{
    const struct capture_segments *segments = &capture->segments;
    if (segments->kept.count)
        fprintf(
            stderr,
            "taillight: what was captured but for the last %s is in %s: `taillight analyze %s`\n",
            TEXT_NS((double)((uint64_t)monotonic_ns() - segments->cut_ns)), capture->options.out,
            capture->options.out);
}

enum {
    POLL_MS = 50, // rings of the default size last at least ten times as long
    CLOCK_INTERVAL_NS = 100 * 1000 * 1000,
};

// --- arming --------------------------------------------------------------------------------------

static int start_backend(struct capture *capture, size_t i, struct error *err)
{
    const struct capture_backend *backend = capture_backends[i];
    char text[1200];
    if (!capture->wanted[i])
        return 0;
    int result = backend->start(capture, capture->needed[i], &capture->states[i], err);
    if (result == 0 || capture->needed[i] || process_is_interrupted())
        return result;
    if (capture->states[i])
        backend->free(capture->states[i]);
    capture->states[i] = NULL;
    snprintf(text, sizeof text, "%s: %s", backend->lack, err->text);
    capture_warn(capture, text);
    return 0;
}

static uint32_t thread_here(void *context, uint64_t namespace, uint32_t inside)
{
    struct capture *capture = context;
    uint32_t found = 0;
    for (size_t i = 0; i < CAPTURE_BACKENDS_COUNT && !found; i++)
        if (capture->states[i])
            found = capture_backends[i]->thread_here(capture->states[i], namespace, inside);
    return found;
}

// Whether this program was put onto a host behind ssh for one run. There each of its programs has a
// far end of its own, and no tree of processes holds them all.
static bool is_deployed(void)
{
    char path[RUN_PATH_BYTES];
    struct error err = {0};
    if (program_path_self(path, sizeof path - sizeof DEPLOYMENT_ADOPTED, &err) < 0)
        return false;
    memcpy(strrchr(path, '/') + 1, DEPLOYMENT_ADOPTED, sizeof DEPLOYMENT_ADOPTED);
    return access(path, F_OK) == 0;
}

// A second signal while it writes what it recorded. The kernel takes out what it had attached, and
// perf ends, with this process; what is on disk whole stays.
static void leave(void *context, bool again)
{
    const struct capture *capture = context;
    (void)again;
    way_out_say("%staillight: interrupted again: %s has what was written until now, and no more\n",
                capture->progress.terminal ? "\n" : "", capture->options.out);
    new_file_abandon_all();
    _exit(ERROR_FAILED);
}

static void remove_abandoned(const char *shim)
{
    unsigned removed = ring_directories_remove_abandoned(shim);
    if (removed)
        fprintf(stderr,
                "taillight: removed %u director%s of the shim's, left by captures that were "
                "killed\n",
                removed, removed == 1 ? "y" : "ies");
}

static int arm_capture(struct capture *capture, struct error *err)
{
    const struct capture_options *o = &capture->options;
    if (mkdir(o->out, 0700) < 0 && errno != EEXIST)
        return error_set_errno(err, ERROR_FAILED, "cannot make the folder %s", o->out);
    if (sched_getaffinity(0, sizeof capture->machine, &capture->machine) < 0)
        return error_set_errno(err, ERROR_FAILED, "cannot find out which cores there are");
    if (CPU_COUNT(&o->helper_cores) &&
        sched_setaffinity(0, sizeof o->helper_cores, &o->helper_cores) < 0)
        return error_set_errno(err, ERROR_INPUT, "--helper-cores: cannot run there");
    capture_segments_begin(capture);
    capture->signals = supervisor_open_signals(SIGUSR1, NULL, err);
    int result = capture->signals < 0
                     ? capture->signals
                     : way_out_open_second(&capture->way_out, INT_MAX, leave, capture, err);
    if (result == 0)
        result =
            clock_recorder_start(&capture->clock, CLOCK_INTERVAL_NS, CLOCK_RECORDER_KNOTS, err);
    if (result == 0)
        clock_recorder_settle(&capture->clock);
    network_counters_read(&capture->network);
    group_counters_read(&capture->groups);
    firewall_state_read(&capture->firewall);
    capture->page_fault = page_fault_cost_try();
    if (result == 0 && !is_deployed())
        result = process_family_read(&capture->own) < 0
                     ? error_set(err, ERROR_FAILED, "out of memory")
                     : 0;
    if (result == 0 && o->shim)
        remove_abandoned(o->shim);
    if (result == 0 && o->shim)
        result = message_collector_create(o->shim, o->shim_memory_bytes, o->ports, o->port_count,
                                          &capture->collector, err);
    if (result == 0 && o->shim)
        message_collector_watch_peers(capture->collector);
    if (result == 0 && o->shim && o->commands)
        message_collector_watch_commands(capture->collector);
    // The one that follows cores first: it shows the others where to look.
    for (size_t i = 0; i < CAPTURE_BACKENDS_COUNT && result == 0; i++)
        result = capture_backends[i]->is_always ? start_backend(capture, i, err) : 0;
    capture_cores_widen(capture);
    for (size_t i = 0; i < CAPTURE_BACKENDS_COUNT && result == 0; i++)
        result = capture_backends[i]->is_always ? 0 : start_backend(capture, i, err);
    if (result < 0)
        return result;
    // Who is there already is known before anything is recorded of others, and before the load.
    if (capture->collector)
        result = message_collector_poll(capture->collector, err);
    capture_servers_watch(capture);
    if (!capture->collector)
        return result;
    message_collector_ask(capture->collector, thread_here, capture);
    message_collector_enable(capture->collector);
    return result;
}

// --- while it runs -------------------------------------------------------------------------------

static int print_ready(struct capture *capture, struct error *err)
{
    json_t *line = json_pack("{s:b, s:I, s:b, s:O}", "ready", 1, "since_ns",
                             (json_int_t)clock_now_ns(CLOCK_MONOTONIC_RAW), "shim",
                             capture->collector != NULL, "warnings", capture->warnings);
    for (size_t i = 0; i < CAPTURE_BACKENDS_COUNT; i++)
        json_object_set_new(line, capture_backends[i]->name,
                            json_boolean(capture->states[i] != NULL));
    return capture_lines_say(&capture->lines, line, err);
}

static int take_snapshot(struct capture *capture, struct error *err)
{
    int number = 0, result = 0;
    for (size_t i = 0; i < CAPTURE_BACKENDS_COUNT && result == 0; i++)
        if (capture->states[i])
            result = capture_backends[i]->take_snapshot(capture, capture->states[i], &number, err);
    if (result == 0)
        capture_warn(capture, "a snapshot was asked for, but none can be taken: no --snapshot, or "
                              "no trace");
    return result > 0
               ? capture_lines_say(&capture->lines, json_pack("{s:i}", "snapshot", number), err)
               : result;
}

static int turn_trace(struct capture *capture, bool on, struct error *err)
{
    int result = 0;
    for (size_t i = 0; i < CAPTURE_BACKENDS_COUNT && result >= 0; i++)
        if (capture->states[i])
            result = capture_backends[i]->turn(capture->states[i], on, err);
    return result < 0 ? result : 0;
}

static void charge(struct capture *capture, uint64_t ns)
{
    for (size_t i = 0; i < CAPTURE_BACKENDS_COUNT; i++)
        if (capture->states[i])
            capture_backends[i]->charge(capture->states[i], ns);
}

// Reads bytes of standard input: each line "snapshot" takes a snapshot, "trace on" and "trace off"
// begin and end the trace; "read NS" says that the reader of the segments took so much processor
// time.
static int take_input(struct capture *capture, const char *bytes, size_t count, struct error *err)
{
    int result = 0;
    for (size_t i = 0; result == 0 && i < count; i++) {
        if (bytes[i] != '\n') {
            if (capture->line_used < sizeof capture->line - 1)
                capture->line[capture->line_used++] = bytes[i];
            continue;
        }
        capture->line[capture->line_used] = '\0';
        capture->line_used = 0;
        if (strcmp(capture->line, "snapshot") == 0)
            result = take_snapshot(capture, err);
        else if (strcmp(capture->line, "trace on") == 0 || strcmp(capture->line, "trace off") == 0)
            result = turn_trace(capture, strcmp(capture->line, "trace on") == 0, err);
        else if (strncmp(capture->line, "read ", 5) == 0)
            charge(capture, strtoull(capture->line + 5, NULL, 10));
    }
    return result;
}

// Waits for a command on stdin or a signal, for POLL_MS at most. Returns 1 when it is time to stop,
// else 0.
static int wait_for_end(struct capture *capture, struct error *err)
{
    char bytes[256];
    struct pollfd ready[2] = {{.fd = 0, .events = POLLIN},
                              {.fd = capture->signals, .events = POLLIN}};
    if (poll(ready, 2, POLL_MS) <= 0)
        return 0;
    if (ready[1].revents) {
        struct signalfd_siginfo signal;
        bool trigger = read(capture->signals, &signal, sizeof signal) == sizeof signal &&
                       signal.ssi_signo == SIGUSR1;
        if (!trigger) {
            capture->interrupted = true;
            way_out_take(&capture->way_out);
            one_wish_note((int)signal.ssi_signo);
        }
        return trigger ? take_snapshot(capture, err) : 1;
    }
    ssize_t got = read(0, bytes, sizeof bytes);
    if (got > 0)
        return take_input(capture, bytes, (size_t)got, err);
    return got == 0 || (errno != EINTR && errno != EAGAIN);
}

static int watch_until_end(struct capture *capture, struct error *err)
{
    int result = 0;
    while (result == 0) {
        clock_recorder_poll(&capture->clock);
        for (size_t i = 0; i < CAPTURE_BACKENDS_COUNT && result == 0; i++)
            if (capture->states[i])
                result = capture_backends[i]->poll(capture->states[i], err);
        if (result == 0)
            result = capture_cores_follow(capture, err);
        if (result == 0 && capture->collector)
            result = message_collector_poll(capture->collector, err);
        if (result == 0)
            result = capture_servers_look(capture, err);
        capture_servers_watch(capture);
        if (result == 0)
            result = capture_segments_poll(capture, err);
        if (result == 0)
            result = capture_lines_flush(&capture->lines, err);
        if (result == 0)
            result = wait_for_end(capture, err);
    }
    return result < 0 ? result : 0;
}

// What is kept grows while the load runs, and its core is often the load generator's: the kernel
// moves what the C library has mapped by itself, and would have it copied otherwise. That it maps
// nothing by itself after the first large one is freed is its default.
static void grow_in_place(void)
{
    mallopt(M_MMAP_THRESHOLD, GROWING_BYTES);
}

int capture_command(int argc, char **argv)
{
    struct error err = {0};
    struct capture capture = {.signals = -1, .way_out.signals = -1};
    bool help = false;
    grow_in_place();
    capture.warnings = json_array();
    if (capture_options_read(&capture, argc, argv, &help, &err) < 0 || help ||
        capture_servers_find(&capture, &err) < 0) {
        json_decref(capture.warnings);
        running_servers_free(capture.running);
        array_free(&capture.found);
        return help ? 0 : error_report(&err);
    }
    progress_init(&capture.progress, capture.options.quiet);
    progress_phase(&capture.progress, "arming the capture");
    int result = arm_capture(&capture, &err);
    if (result == 0) {
        capture.segments.cut_ns = (uint64_t)monotonic_ns(); // the first is as long as the others
        capture.segments.begun_ns = clock_now_ns(CLOCK_MONOTONIC_RAW);
        progress_phase(&capture.progress, "capturing; Ctrl-D or Ctrl-C ends it");
        result = print_ready(&capture, &err);
    }
    if (result == 0)
        result = watch_until_end(&capture, &err);
    if (result == 0) {
        progress_phase(&capture.progress, "writing what was captured");
        result = write_capture(&capture, &err);
        one_wish_hand_over(); // what follows is for who reads it
        if (result < 0)
            say_kept(&capture);
    }
    if (result == 0)
        result = capture_lines_finish(&capture.lines, capture.interrupted, &err);
    way_out_close(&capture.way_out);
    progress_end(&capture.progress);
    for (size_t i = 0; i < CAPTURE_BACKENDS_COUNT; i++)
        if (capture.states[i])
            capture_backends[i]->free(capture.states[i]);
    array_free(&capture.own);
    message_collector_free(capture.collector);
    running_servers_free(capture.running);
    array_free(&capture.found);
    clock_recorder_free(&capture.clock);
    capture_segments_free(&capture.segments);
    capture_lines_free(&capture.lines);
    json_decref(capture.warnings);
    json_decref(capture.document);
    if (capture.signals >= 0)
        close(capture.signals);
    return result < 0 ? error_report(&err) : 0;
}
