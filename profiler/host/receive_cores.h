// SPDX-License-Identifier: MIT
//
// Which cores receive processing will run on, as far as that can be told before anything arrives:
// for recorders that do not see who delivers (perf, the function tracer). The events backend needs
// none of it: it follows the cores that deliver.
#ifndef PROFILER_HOST_RECEIVE_CORES_H
#define PROFILER_HOST_RECEIVE_CORES_H

#include <sched.h>

// Adds to *out, for each network device of this network namespace that is up, the cores of its RPS
// masks, or, where there are none, those that its interrupts go to. A device that has neither
// (loopback, virtual cables) adds nothing: what comes over it is received where its sender runs.
// root: "" or a folder that replaces "/" (its proc and sys; for tests). What cannot be read adds
// nothing.
void receive_cores_find(const char *root, cpu_set_t *out);

#endif
