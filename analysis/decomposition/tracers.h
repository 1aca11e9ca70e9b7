// SPDX-License-Identifier: MIT
//
// Who traces a thread (ptrace), as strace and debuggers do: whoever ends its stops. What tracing
// costs the thread is more than these stops: after each it is woken anew, and where the tracer
// shares its core it waits for that one.
#ifndef ANALYSIS_DECOMPOSITION_TRACERS_H
#define ANALYSIS_DECOMPOSITION_TRACERS_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/timeline/thread_states.h"

// Who ended the thread's last stop by a tracer before time_ns. False: there was none lately.
bool tracer_of(const struct host_timeline *host, uint32_t thread, int64_t time_ns,
               struct waker *tracer);

// Whether it is that stop which began after a stint.
bool tracer_stopped(const struct host_timeline *host, const struct thread_stint *stint);

#endif
