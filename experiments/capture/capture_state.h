// SPDX-License-Identifier: MIT
//
// What the files behind `taillight capture` share.
#ifndef EXPERIMENTS_CAPTURE_CAPTURE_STATE_H
#define EXPERIMENTS_CAPTURE_CAPTURE_STATE_H

#include <jansson.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/options.h"
#include "base/progress.h"
#include "profiler/clock_recorder.h"
#include "shim/message_collector.h"
#include "shim/ring.h"

enum { CAPTURE_STATES = 8 }; // backends at most

// Of Intel PT.
struct capture_trace_options {
    const char *detail; // "light", "normal", "fine"; NULL: normal
    const char *event;  // perf's words in place of a preset; NULL: the preset
    const char *pids;   // these processes instead of cores; NULL: cores
    uint64_t buffer_bytes;
    bool per_thread, snapshot;
};

struct capture_options {
    const char *out, *shim, *backend_name, *functions, *port_list;
    uint16_t ports[RING_PORTS];
    size_t port_count;
    uint64_t buffer_bytes;
    cpu_set_t cores, helper_cores; // empty: all
    bool no_events, quiet;
    uint64_t sample_rate;
    const char *perf; // program; NULL: the one in PATH
    struct capture_trace_options trace;
};

struct capture {
    struct capture_options options;
    struct progress progress;
    void *states[CAPTURE_STATES];        // by backend; NULL: it does not record
    bool needed[CAPTURE_STATES];         // it was chosen: without it there is no capture
    bool wanted[CAPTURE_STATES];         // needed, or wanted where it can be had
    struct message_collector *collector; // NULL: none
    struct clock_recorder clock;
    json_t *warnings, *document;
    int signals;
    char line[64]; // of standard input, as far as it was read
    size_t line_used;
};

// A warning on stderr that capture.json keeps.
void capture_warn(struct capture *capture, const char *text);

#endif
