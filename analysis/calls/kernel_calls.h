// SPDX-License-Identifier: MIT
//
// Socket calls as the kernel's events have them, in the shape of the shim's log: of any program,
// as it runs. What only the shim sees is missing: when a receive call was entered (here it takes no
// time), and which wait call returned before it (no batches). A wait is known where the thread
// slept in it.
#ifndef ANALYSIS_CALLS_KERNEL_CALLS_H
#define ANALYSIS_CALLS_KERNEL_CALLS_H

#include <stddef.h>

#include "base/array.h"
#include "base/connection.h"
#include "profiler/bpf/event_log.h"
#include "shim/message_log.h"

// Times (entry_tsc, exit_tsc) are CLOCK_MONOTONIC. Processes are those of the threads, or the
// thread's number where its process was not recorded.
struct kernel_calls {
    struct ARRAY_OF(struct call) calls;             // by thread, then by entry
    struct ARRAY_OF(struct connection) connections; // those that have calls
    size_t adopted; // connections of the shim's table whose calls the kernel alone has
};

// From a capture's events and its table of sockets. Without such events both arrays are empty. -1:
// no memory. The caller frees either way.
int kernel_calls_build(const struct event *events, size_t count, const struct connection *sockets,
                       size_t socket_count, struct kernel_calls *out);
void kernel_calls_free(struct kernel_calls *calls);

// Leaves only what the shim does not have: calls on connections that are not in its table, or of
// which it has no call, as where a process is behind a filter of system calls; and waits of threads
// that are not in its log. The ids of the former become others than the shim's, of the latter the
// shim's. -1: no memory, or no more ids.
int kernel_calls_beside_shim(struct kernel_calls *kernel, const struct call *calls, size_t count,
                             const struct connection *connections, size_t connection_count);

#endif
