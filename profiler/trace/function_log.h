// SPDX-License-Identifier: MIT
//
// The function log: what kernel functions began and ended on each core, as the kernel's
// function_graph tracer saw it. Files in a run folder: server/functions.tlog (LOG_FUNCTIONS) and
// server/functions.sym, which names the addresses: lines "<address in hex> <name>", ascending.
//
// Records of one core are in order of time; cores may be mixed. Calls nest by thread: an interrupt
// that comes while a thread runs counts as a call of that thread.
#ifndef PROFILER_TRACE_FUNCTION_LOG_H
#define PROFILER_TRACE_FUNCTION_LOG_H

#include <stdint.h>

enum { FUNCTION_LOG_VERSION = 1 };

enum function_event_kind {
    FUNCTION_ENTER = 1,
    FUNCTION_EXIT = 2,
    FUNCTION_WATCHED = 3,   // from here on the core's functions are recorded ...
    FUNCTION_UNWATCHED = 4, // ... up to here
    FUNCTION_LOST = 5,      // an unknown number of records before this one are missing
};

struct function_event {
    uint64_t time;    // host time: CLOCK_MONOTONIC_RAW, ns
    uint64_t address; // of the function; unused by the first two kinds
    uint32_t thread;
    uint16_t core;
    uint8_t kind; // enum function_event_kind
    uint8_t reserved;
};
_Static_assert(sizeof(struct function_event) == 24, "the log format is fixed");

#endif
