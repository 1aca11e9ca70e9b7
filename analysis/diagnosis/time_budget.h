// SPDX-License-Identifier: MIT
//
// Where the time of the server's threads went, in absolute terms: of each thread, and of those of a
// name together, how long it ran for requests or for itself, could have run, sat in page faults,
// was blocked in what, or waited for work. It needs no whole lifetime and no reference, so it is
// there also where no verdict is possible, and shows what slows every request alike.
#ifndef ANALYSIS_DIAGNOSIS_TIME_BUDGET_H
#define ANALYSIS_DIAGNOSIS_TIME_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/calls/applications.h"
#include "analysis/lifetime/busy_times.h"
#include "analysis/lifetime/service_order.h"
#include "analysis/timeline/span.h"
#include "base/array.h"

enum budget_state {
#define BUDGET_STATE(NAME, name, busy, colour, means) BUDGET_##NAME,
#include "analysis/diagnosis/time_budget.tbl.h"
    BUDGET_STATES
};
const char *budget_state_name(enum budget_state state);
const char *budget_state_colour(enum budget_state state);

// What a blocked thread slept in.
struct budget_wait {
    uint32_t pause; // named by pause_name()
    uint64_t times;
    double ns;
};

struct thread_budget {
    char name[64];    // "redis-server", "memcached:mc-worker"
    uint32_t thread;  // 0: several, by name
    uint32_t threads; // how many
    double ns[BUDGET_STATES];
    double whole_ns; // how long they were there, in the window; the states add up to it
    double busy_ns;  // the states in which they had something to do
    struct ARRAY_OF(struct budget_wait) waits; // of BUDGET_BLOCKED, the longest first
};
struct thread_budget_array ARRAY_OF(struct thread_budget);

struct time_budget {
    int64_t begin_ns, end_ns;
    bool has_calls;                     // running time is divided into requests and own work
    struct thread_budget_array threads; // the busiest first
    struct thread_budget_array names;   // the same by name
};

struct time_budget_input {
    const struct host_timeline *host;
    const uint32_t *threads; // the servers', ascending: those that made socket calls
    size_t thread_count;
    const struct applications *applications; // NULL: not known
    const struct busy_time_array *busy;      // NULL: no calls were captured
    const struct service_order *order;       // with `busy`: what of it was the server's own work
    int64_t begin_ns, end_ns;
};

// Takes the other threads of their processes along, and the processes that these forked; by name
// where the capture does not say whose a thread is. Threads that never ran on a recorded core are
// left out. -1: no memory. The caller frees either way.
int time_budget_build(struct time_budget *out, const struct time_budget_input *in);
void time_budget_free(struct time_budget *budget);

// A part of a budget: a state, or a wait by name. The largest first, up to `most`, those of at
// least `share` of the whole. Returns how many.
struct budget_part {
    char name[64];
    enum budget_state state;
    double ns;
};
size_t thread_budget_parts(const struct thread_budget *budget, double share,
                           struct budget_part *out, size_t most);

#endif
