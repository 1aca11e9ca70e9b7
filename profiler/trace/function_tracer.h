// SPDX-License-Identifier: MIT
//
// The kernel's function_graph tracer (Linux, Documentation/trace/ftrace.rst): whether this host has
// it, and setting it up in tracefs. Kernels before 6.12 have a single such tracer for everybody, so
// it is only used when nobody else uses it, and every setting is restored however this program ends
// (base/guard.h).
#ifndef PROFILER_TRACE_FUNCTION_TRACER_H
#define PROFILER_TRACE_FUNCTION_TRACER_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/guard.h"

// The mount point of tracefs, "" without; and what prevents the tracing of functions.
struct function_tracer_support {
    const char *folder;
    bool ready;
    char found[100];  // the tracer
    char reason[300]; // why not; "" when ready
    char how[200];    // what to do about it
};
void function_tracer_find(struct function_tracer_support *out);

struct function_tracer_settings {
    cpu_set_t cores;       // empty: all
    const char *patterns;  // "tcp_*,schedule": kernel functions, NULL: those below
    uint64_t buffer_bytes; // of each core
};

enum { TRACER_SETTINGS = 6, TRACER_VALUE_BYTES = 1100 };

// The old settings, ready to be written back by system calls alone.
struct function_tracer {
    struct tracer_setting {
        char path[64];
        char before[TRACER_VALUE_BYTES];
    } settings[TRACER_SETTINGS];
    const char *folder;
    struct guard guard;
    unsigned functions; // how many patterns matched any
};

// Sets everything up, with tracing still off. ERROR_FAILED with the doctor's text if the tracer is
// not available; ERROR_INPUT when one of the given patterns matches no function.
int function_tracer_begin(struct function_tracer *tracer,
                          const struct function_tracer_settings *settings, struct error *err);
// Traces these cores from now on.
int function_tracer_set_cores(const struct function_tracer *tracer, const cpu_set_t *cores,
                              struct error *err);
int function_tracer_switch(const struct function_tracer *tracer, bool on, struct error *err);

// Restores everything. Harmless on a zeroed struct.
void function_tracer_end(struct function_tracer *tracer);

#endif
