// SPDX-License-Identifier: MIT
//
// When a message's own thread did not run, though the message was with the application: another
// program had the core, a quota was used up, the thread slept. That time is part of the stage
// between M(a) and the reply, and not the application's doing.
#ifndef ANALYSIS_LIFETIME_OFF_CORE_H
#define ANALYSIS_LIFETIME_OFF_CORE_H

#include "analysis/calls/calls.h"
#include "analysis/lifetime/lifetime.h"

// Calls `each` for these pieces of the stage, in order of host time. There are none where nothing
// is known of the thread, nor of a message that one thread received and another answered.
typedef void off_core_visitor(int64_t begin_ns, int64_t end_ns, void *context);
void off_core_visit(const struct host_timeline *host, const struct application_calls *calls,
                    const struct lifetime *life, off_core_visitor *each, void *context);

// Their sum.
double off_core_ns(const struct host_timeline *host, const struct application_calls *calls,
                   const struct lifetime *life);

#endif
