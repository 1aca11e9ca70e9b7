// SPDX-License-Identifier: MIT
//
// What an event loop does for itself between the last request that it read and the first reply.
//
// A loop that answers only when it has read from every connection that was ready works for itself
// in between, too: Redis' beforeSleep() has keys expire there. By its place that time is the last
// request's. Whose it truly is shows where a turn of the loop read several requests: heavy requests
// are as heavy when others are read after them, the loop's own work is always behind the last.
#ifndef ANALYSIS_CALLS_LOOP_WORK_H
#define ANALYSIS_CALLS_LOOP_WORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/calls/calls.h"
#include "analysis/timeline/span.h"

// No less is called the server's own work.
#define OWN_WORK_LEAST_NS 1000.0
#define NO_OWN_WORK       INT64_MAX

// Calls [first, end) are one thread's. is_guest: by call, whether it is of a connection that is
// none of the load's: a client that asks for few heavy things may well come alone each time, so
// what is behind its requests stays theirs. host may be NULL. own_from: by call, from when on
// what the thread did before its next call was its own (ns); set where that is proven. -1: no
// memory.
int loop_work_mark(const struct application_calls *calls, size_t first, size_t end,
                   const struct host_timeline *host, const bool *is_guest, int64_t *own_from);

#endif
