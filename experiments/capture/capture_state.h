// SPDX-License-Identifier: MIT
//
// What the files behind `taillight capture` share: its options (capture_options.c), what runs while
// it captures (capture_command.c), and what it writes in the end (capture_output.c).
#ifndef EXPERIMENTS_CAPTURE_CAPTURE_STATE_H
#define EXPERIMENTS_CAPTURE_CAPTURE_STATE_H

#include <jansson.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/options.h"
#include "base/progress.h"
#include "experiments/capture/capture_samples.h"
#include "experiments/capture/capture_trace.h"
#include "profiler/clock_recorder.h"
#include "profiler/events_capture.h"
#include "profiler/function_recorder.h"
#include "shim/message_collector.h"
#include "shim/ring.h"

struct capture_options {
    const char *out, *shim, *backend_name, *functions, *port_list;
    uint16_t ports[RING_PORTS];
    size_t port_count;
    uint64_t buffer_bytes;
    cpu_set_t cores, helper_cores;
    bool no_events, need_events, quiet;
    uint64_t sample_rate;
    struct capture_trace_options trace;
};

struct capture {
    struct capture_options options;
    struct progress progress;
    struct events_capture *events;       // NULL: none
    struct message_collector *collector; // NULL: none
    struct capture_trace trace;
    bool tracing, trace_needed, trace_wanted;
    struct capture_samples samples;
    bool sampling, samples_wanted;
    bool functions_wanted;
    struct function_recorder *functions; // NULL: none
    struct clock_recorder clock;
    json_t *warnings, *document;
    int signals;
    char line[64]; // of standard input, as far as it was read
    size_t line_used;
};

// Reads the command line into capture->options and what follows from it. *help: it asks for help
// only, which was printed.
int capture_take_options(struct capture *capture, int argc, char **argv, bool *help,
                         struct error *err);

// A warning on stderr that capture.json keeps.
void capture_warn(struct capture *capture, const char *text);

// Ends what records and writes all logs, capture.json last: its being there says that they are
// whole.
int capture_write(struct capture *capture, struct error *err);

#endif
