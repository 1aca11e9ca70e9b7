// SPDX-License-Identifier: MIT
#include "experiments/capture/capture_command.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "experiments/capture/capture_backend.h"
#include "experiments/capture/capture_options.h"
#include "experiments/capture/capture_output.h"

enum {
    POLL_MS = 50, // rings of the default size last at least ten times as long
    CLOCK_INTERVAL_NS = 100 * 1000 * 1000,
};

// --- arming --------------------------------------------------------------------------------------

static int open_signals(struct capture *capture, struct error *err)
{
    sigset_t taken;
    sigemptyset(&taken);
    sigaddset(&taken, SIGINT);
    sigaddset(&taken, SIGTERM);
    sigaddset(&taken, SIGHUP);
    sigaddset(&taken, SIGUSR1);
    sigprocmask(SIG_BLOCK, &taken, NULL);
    capture->signals = signalfd(-1, &taken, SFD_CLOEXEC);
    return capture->signals < 0 ? error_set_errno(err, ERROR_FAILED, "cannot listen for signals")
                                : 0;
}

static int start_backend(struct capture *capture, size_t i, struct error *err)
{
    const struct capture_backend *backend = capture_backends[i];
    char text[1200];
    if (!capture->wanted[i])
        return 0;
    int result = backend->start(capture, capture->needed[i], &capture->states[i], err);
    if (result == 0 || capture->needed[i])
        return result;
    if (capture->states[i])
        backend->free(capture->states[i]);
    capture->states[i] = NULL;
    snprintf(text, sizeof text, "%s: %s", backend->lack, err->text);
    capture_warn(capture, text);
    return 0;
}

static int arm_capture(struct capture *capture, struct error *err)
{
    const struct capture_options *o = &capture->options;
    if (mkdir(o->out, 0755) < 0 && errno != EEXIST)
        return error_set_errno(err, ERROR_FAILED, "cannot make the folder %s", o->out);
    if (CPU_COUNT(&o->helper_cores) &&
        sched_setaffinity(0, sizeof o->helper_cores, &o->helper_cores) < 0)
        return error_set_errno(err, ERROR_INPUT, "--helper-cores: cannot run there");
    int result = open_signals(capture, err);
    if (result == 0)
        result =
            clock_recorder_start(&capture->clock, CLOCK_INTERVAL_NS, CLOCK_RECORDER_KNOTS, err);
    if (result == 0)
        clock_recorder_settle(&capture->clock);
    if (result == 0 && o->shim)
        result =
            message_collector_create(o->shim, 0, o->ports, o->port_count, &capture->collector, err);
    for (size_t i = 0; i < CAPTURE_BACKENDS_COUNT && result == 0; i++)
        result = start_backend(capture, i, err);
    if (result < 0)
        return result;
    if (capture->collector)
        message_collector_enable(capture->collector);
    return 0;
}

// --- while it runs -------------------------------------------------------------------------------

// Prints a document as one line, and frees it.
static int print_line(json_t *line, struct error *err)
{
    int written = line ? json_dumpf(line, stdout, JSON_COMPACT) : -1;
    json_decref(line);
    if (written < 0 || putchar('\n') == EOF || fflush(stdout) == EOF)
        return error_set_errno(err, ERROR_FAILED, "cannot print on standard output");
    return 0;
}

static int print_ready(const struct capture *capture, struct error *err)
{
    json_t *line = json_pack("{s:b, s:b, s:O}", "ready", 1, "shim", capture->collector != NULL,
                             "warnings", capture->warnings);
    for (size_t i = 0; i < CAPTURE_BACKENDS_COUNT; i++)
        json_object_set_new(line, capture_backends[i]->name,
                            json_boolean(capture->states[i] != NULL));
    return print_line(line, err);
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
    return result > 0 ? print_line(json_pack("{s:i}", "snapshot", number), err) : result;
}

// Reads bytes of standard input: each line "snapshot" takes a snapshot.
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
        if (result == 0 && capture->collector)
            result = message_collector_poll(capture->collector, err);
        if (result == 0)
            result = wait_for_end(capture, err);
    }
    return result < 0 ? result : 0;
}

int capture_command(int argc, char **argv)
{
    struct error err = {0};
    struct capture capture = {.signals = -1};
    bool help = false;
    if (capture_read_options(&capture, argc, argv, &help, &err) < 0)
        return error_report(&err);
    if (help)
        return 0;
    progress_init(&capture.progress, capture.options.quiet);
    capture.warnings = json_array();
    progress_phase(&capture.progress, "arming the capture");
    int result = arm_capture(&capture, &err);
    if (result == 0) {
        progress_phase(&capture.progress, "capturing; Ctrl-D or Ctrl-C ends it");
        result = print_ready(&capture, &err);
    }
    if (result == 0)
        result = watch_until_end(&capture, &err);
    if (result == 0) {
        progress_phase(&capture.progress, "writing what was captured");
        result = capture_write(&capture, &err);
    }
    progress_end(&capture.progress);
    for (size_t i = 0; i < CAPTURE_BACKENDS_COUNT; i++)
        if (capture.states[i])
            capture_backends[i]->free(capture.states[i]);
    message_collector_free(capture.collector);
    clock_recorder_free(&capture.clock);
    json_decref(capture.warnings);
    json_decref(capture.document);
    if (capture.signals >= 0)
        close(capture.signals);
    return result < 0 ? error_report(&err) : 0;
}
