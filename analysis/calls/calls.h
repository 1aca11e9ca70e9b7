// SPDX-License-Identifier: MIT
//
// The socket calls of the server's threads on the axis of host time, in the order each thread made
// them: what a thread was doing, and for which connection, while a message waited.
#ifndef ANALYSIS_CALLS_CALLS_H
#define ANALYSIS_CALLS_CALLS_H

#include <stddef.h>
#include <stdint.h>

#include "analysis/timeline/time_source.h"
#include "base/array.h"
#include "base/error.h"
#include "shim/message_log.h"

struct application_call {
    int64_t entry_ns;
    int64_t exit_ns;
    uint64_t offset; // of its first byte in that direction's stream
    uint32_t length;
    uint32_t connection; // by the log's id
    uint32_t thread;
    uint32_t batch;
    uint16_t batch_position;
    uint16_t entry_core;
    uint16_t exit_core;
    uint8_t kind;    // enum call_kind
    uint8_t command; // of what it received (base/command_words.h); 0: not known
};

// By thread, then by entry.
struct application_calls ARRAY_OF(struct application_call);

// Converts and orders a call log. Records of an unknown kind or that end before they begin are left
// out and counted in *damaged. -ERROR_FAILED when memory runs out; the caller frees *out with
// array_free either way.
int application_calls_build(const struct call *calls, size_t count, const struct time_source *clock,
                            struct application_calls *out, uint64_t *damaged, struct error *err);

// The same where the last `by_kernel` calls are the kernel's (kernel_calls.h).
int application_calls_build_mixed(const struct call *calls, size_t count, size_t by_kernel,
                                  const struct time_source *clock, struct application_calls *out,
                                  uint64_t *damaged, struct error *err);

// The calls of one thread; NULL and 0 when there are none.
const struct application_call *application_calls_of(const struct application_calls *calls,
                                                    uint32_t thread, size_t *count);

// The first of a thread's calls that was entered after `time_ns`: an index in [0, count].
size_t application_calls_after(const struct application_call *calls, size_t count, int64_t time_ns);

#endif
