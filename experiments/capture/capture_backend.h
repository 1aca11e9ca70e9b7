// SPDX-License-Identifier: MIT
//
// The backends of `taillight capture`: what it can record besides socket calls (the shim) and
// clocks, which it always records. Each is a file (backend_events.c, ...) and a row in
// CAPTURE_BACKENDS. Nobody else asks which backend is meant.
#ifndef EXPERIMENTS_CAPTURE_CAPTURE_BACKEND_H
#define EXPERIMENTS_CAPTURE_CAPTURE_BACKEND_H

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"
#include "experiments/capture/capture_state.h"
#include "profiler/doctor/doctor_checks.h"

// The row: backend_<name> is defined in capture/backend_<name>.c. They are started in this order;
// the last that records names the capture ("backend" of capture.json).
#define CAPTURE_BACKENDS(ROW) ROW(events) ROW(functions) ROW(samples) ROW(intel_pt)

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
    // Writes its buffers to disk; *number: snapshots so far. Returns 1, or 0: it takes none.
    int (*take_snapshot)(struct capture *capture, void *state, int *number, struct error *err);
};

#define CAPTURE_BACKEND_DECLARE(name) extern const struct capture_backend backend_##name;
CAPTURE_BACKENDS(CAPTURE_BACKEND_DECLARE)

#define CAPTURE_BACKEND_COUNT(name) +1
enum { CAPTURE_BACKENDS_COUNT = 0 CAPTURE_BACKENDS(CAPTURE_BACKEND_COUNT) };
_Static_assert((int)CAPTURE_BACKENDS_COUNT <= (int)CAPTURE_STATES,
               "a capture has a state for each");

extern const struct capture_backend *const capture_backends[CAPTURE_BACKENDS_COUNT];

// For operations that a backend has no need of.
int backend_needs_no_disabling(void *state, struct error *err);
int backend_takes_no_snapshot(struct capture *capture, void *state, int *number, struct error *err);

// Has every backend examined (profiler/doctor/doctor.h).
void capture_backends_examine(struct doctor_items *items);

// What --backend takes: "auto", the backends' names, "none"; NULL behind the last.
const char *capture_choice_name(unsigned index);
// Whether more is recorded than sockets and clocks, so that a verdict can be expected.
bool capture_choice_records(unsigned index);

#endif
