// SPDX-License-Identifier: MIT
//
// The backends of `taillight capture`: what it can record besides socket calls (the shim) and
// clocks, which it always records, and what its files share. Each is a file (backend_events.c, ...)
// and a row in CAPTURE_BACKENDS. Nobody else asks which backend is meant.
#ifndef EXPERIMENTS_CAPTURE_CAPTURE_BACKEND_H
#define EXPERIMENTS_CAPTURE_CAPTURE_BACKEND_H

#include <jansson.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/options.h"
#include "base/progress.h"
#include "profiler/clock_recorder.h"
#include "profiler/network_counters.h"
#include "profiler/quota_counters.h"
#include "profiler/doctor/doctor_checks.h"
#include "shim/message_collector.h"
#include "shim/ring.h"

// The row: backend_<name> is defined in capture/backend_<name>.c. They are started in this order;
// the last that records names the capture ("backend" of capture.json).
#define CAPTURE_BACKENDS(ROW) ROW(events) ROW(functions) ROW(samples) ROW(intel_pt)

#define CAPTURE_BACKEND_COUNT(name) +1
enum { CAPTURE_BACKENDS_COUNT = 0 CAPTURE_BACKENDS(CAPTURE_BACKEND_COUNT) };

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
    uint64_t buffer_bytes, shim_memory_bytes;
    cpu_set_t cores, helper_cores; // empty: all
    cpu_set_t client_cores;        // beside them, for kernel events alone; empty: none
    bool no_events, quiet;
    uint64_t sample_rate;
    const char *perf; // program; NULL: the one in PATH
    struct capture_trace_options trace;
};

struct capture {
    struct capture_options options;
    struct progress progress;
    void *states[CAPTURE_BACKENDS_COUNT]; // by backend; NULL: it does not record
    // What backends record that do not find out which cores deliver: those that were asked for,
    // and those that are to receive. Empty: all.
    cpu_set_t cores;
    cpu_set_t followed;                  // others, which the former found meanwhile
    bool fixed[CAPTURE_BACKENDS_COUNT];  // it could not follow these
    bool needed[CAPTURE_BACKENDS_COUNT]; // it was chosen: without it there is no capture
    bool wanted[CAPTURE_BACKENDS_COUNT]; // needed, or wanted where it can be had
    struct message_collector *collector; // NULL: none
    struct clock_recorder clock;
    struct network_counters network; // as the capture began
    struct quota_counters quotas;    // likewise
    json_t *warnings, *document;
    int signals;
    char line[64]; // of standard input, as far as it was read
    size_t line_used;
};

// A warning on stderr that capture.json keeps.
void capture_warn(struct capture *capture, const char *text);

struct capture_backend {
    const char *name;  // for --backend, and of its member of capture.json
    const char *help;  // what it is, in a line
    const char *lack;  // how a warning begins when it cannot be had: "no kernel events"
    const char *files; // what it writes
    bool is_auto;      // `auto` has it where it can be had
    bool is_always;    // every choice but `none` has it

    // The operations. None may be missing (tests/experiments/test_kinds.c).

    // Adds what `taillight doctor` says of it: whether it can be had here, and how if not.
    void (*examine)(struct doctor_items *items);
    // Checks the options that are its own.
    int (*check)(const struct capture_options *options, bool chosen, struct error *err);
    // Begins to record. *state is for the other operations, until `free`. Where this machine cannot
    // and that is not worth a warning, returns 0 and *state stays NULL; never when it is needed.
    int (*start)(struct capture *capture, bool needed, void **state, struct error *err);
    // Reads what has been recorded, and checks that recording goes on.
    int (*poll)(void *state, struct error *err);
    // Ends the part of recording that costs the server time.
    int (*disable)(void *state, struct error *err);
    // Ends the recording and writes it. *document, which the caller owns, is its member of
    // capture.json; counts of lost records are added to `dropped`.
    int (*stop)(struct capture *capture, void *state, json_t *dropped, json_t **document,
                struct error *err);
    void (*free)(void *state);
    // Adds the cores that it records by now although they were not asked for, because they deliver
    // to the servers' sockets, or serve. Only before `stop`.
    void (*add_followed)(void *state, cpu_set_t *cores);
    // Records these cores as well from now on. Returns 1, or 0: its cores are fixed.
    int (*follow)(void *state, const cpu_set_t *cores, struct error *err);
    // Writes its buffers to disk; *number: snapshots so far. Returns 1, or 0: it takes none.
    int (*take_snapshot)(struct capture *capture, void *state, int *number, struct error *err);
};

#define CAPTURE_BACKEND_DECLARE(name) extern const struct capture_backend backend_##name;
CAPTURE_BACKENDS(CAPTURE_BACKEND_DECLARE)

extern const struct capture_backend *const capture_backends[CAPTURE_BACKENDS_COUNT];

// For operations that a backend has no need of.
int backend_needs_no_disabling(void *state, struct error *err);
void backend_adds_no_core(void *state, cpu_set_t *cores);
int backend_has_fixed_cores(void *state, const cpu_set_t *cores, struct error *err);
int backend_takes_no_snapshot(struct capture *capture, void *state, int *number, struct error *err);

// Has every backend examined (profiler/doctor/doctor.h).
void capture_backends_examine(struct doctor_items *items);

// What --backend takes: "auto", the backends' names, "none"; NULL behind the last.
const char *capture_choice_name(unsigned index);
// Whether more is recorded than sockets and clocks, so that a verdict can be expected.
bool capture_choice_records(unsigned index);

#endif
