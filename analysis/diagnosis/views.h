// SPDX-License-Identifier: MIT
//
// What a diagnosis shows besides causes: how many messages were ahead, of what kind (NSight's
// queuing breakdown, figure 19); which contexts the messages' cores were in (its core-context
// summary, figure 20); and which messages blocked which (head-of-line blocking), by name. Each view
// is made for the slice and for the reference it is compared with.
#ifndef ANALYSIS_DIAGNOSIS_VIEWS_H
#define ANALYSIS_DIAGNOSIS_VIEWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/diagnosis/culprits.h"
#include "analysis/lifetime/lifetime.h"
#include "base/array.h"

// What was ahead of a message.
enum queue_kind {
    QUEUE_APP_RECEIVE, // receive calls of its thread from its hand-off to its reply, not counting
                       // its own
    QUEUE_APP_SEND,    // send calls, likewise
    QUEUE_PROCESSING,  // requests that its thread served first; their time lies between the calls
    QUEUE_KERNEL_R,    // hand-offs on its R core from M(n) to M(h); the time is NET_RX's
    QUEUE_KERNEL_A,    // hand-offs on its A core from M(h) to the reply, likewise
    QUEUE_KINDS
};
const char *queue_kind_name(enum queue_kind kind); // "app receive", ...

// How a blocking message is related to the one it blocks; the closest relation first.
enum blocking_scope {
    BLOCKED_BY_CONNECTION, // the same connection
    BLOCKED_BY_BATCH,      // another connection of the same epoll_wait return
    BLOCKED_BY_THREAD,     // the same thread, an earlier return
    BLOCKED_BY_CORE_A,     // another thread of the application on the same core
    BLOCKED_BY_CORE_R,     // its hand-off came first on the same R core
    BLOCKING_SCOPES
};
const char *blocking_scope_name(enum blocking_scope scope); // "same connection", ...
enum core_role blocking_scope_role(enum blocking_scope scope);

struct blocker {
    uint64_t lifetime; // NO_LIFETIME: not a known request of the load
    uint32_t service;  // (service_order.h), or NOT_SERVED
    uint32_t culprit;  // of diagnosis_views.culprits, or NOT_SERVED
    float ns;          // how long it occupied the thread or core while the other waited
    uint8_t scope;
};
#define NO_LIFETIME UINT64_MAX
struct blocker_array ARRAY_OF(struct blocker);

// Only a message's longest blockers are listed; all of them are counted.
enum { NAMED_BLOCKERS = 16 };

struct message_view {
    uint32_t ahead[QUEUE_KINDS];
    float ahead_ns[QUEUE_KINDS];
    uint32_t blocked_by[BLOCKING_SCOPES]; // messages
    float blocked_ns[BLOCKING_SCOPES];
    uint32_t blockers;      // listed
    uint64_t first_blocker; // in diagnosis_views.blockers, longest first
    uint32_t contexts;      // that its cores were in
    uint64_t first_context; // in diagnosis_views.context_times
};
struct message_view_array ARRAY_OF(struct message_view);

struct spread {
    double mean, min, p25, median, p75, max; // NAN without values
};

// Sorts the values.
struct spread views_spread(double *values, size_t count);

enum { VIEW_SLICE, VIEW_REFERENCE, VIEW_SIDES };

struct queue_side {
    struct spread ahead, ns;
};

struct queue_summary {
    enum queue_kind kind;
    struct queue_side sides[VIEW_SIDES];
    uint64_t more; // messages of the slice with more ahead than the reference's median
};

struct blocking_summary {
    enum blocking_scope scope;
    enum core_role role;
    uint64_t messages; // messages of the slice blocked in this way
    double total_ns;
    double median_ns;           // over these messages
    double mean_ns[VIEW_SIDES]; // over all messages of the side
};

// A request that blocked many others, or blocked them for long.
struct named_blocker {
    uint64_t lifetime; // NO_LIFETIME: not a known request of the load
    uint32_t service;
    uint64_t messages; // of the slice that it blocked
    double total_ns;
    uint64_t last; // index + 1 of the last message counted, so that each is counted once
};
struct named_blocker_array ARRAY_OF(struct named_blocker);

struct core_context {
    char name[144];      // of a component
    enum core_role role; // R or A
    uint16_t core;
    double ns[VIEW_SIDES];    // of the messages' time from M(n) to server TX
    double share[VIEW_SIDES]; // of that time on all cores
    size_t place;             // core and name as a number, while the views are made
};
struct core_context_array ARRAY_OF(struct core_context);

// How long a message's core was in one of diagnosis_views.contexts.
struct context_time {
    uint32_t context;
    float ns;
};
struct context_time_array ARRAY_OF(struct context_time);

// A function, or the task, interrupt or softirq that it ran in, where one called it; the first is
// the root, and parents come before those that they called.
struct call_node {
    uint32_t parent;       // of diagnosis_views.calls
    uint32_t name;         // of the server's names
    uint8_t kind;          // enum span_kind
    double ns[VIEW_SIDES]; // in it, and in what it called
};
struct call_node_array ARRAY_OF(struct call_node);

struct diagnosis_views {
    bool available;                     // false: no verdict, or no socket calls were captured
    struct message_view_array messages; // as the diagnosis's messages
    struct blocker_array blockers;
    struct queue_summary queue[QUEUE_KINDS];
    struct blocking_summary blocking[BLOCKING_SCOPES];
    struct named_blocker_array worst;   // those that blocked longest, at most WORST_BLOCKERS
    struct culprit_array culprits;      // whose they were, longest first
    double blocked_ns;                  // how long they held up messages on their thread or core
    uint64_t slow_themselves;           // messages whose own service makes up half of what they
                                        // took longer than usual
    uint64_t slow_behind;               // messages of which waiting for others does
    struct core_context_array contexts; // by role, core, and the slice's time, most first
    double context_ns[VIEW_SIDES];      // their sums
    struct context_time_array context_times;
    struct call_node_array calls; // empty: no calls are known
    uint64_t reference_messages;  // that were examined
};
enum { WORST_BLOCKERS = 20 };

// Sets the contexts' shares, once all are there.
void views_share_contexts(struct diagnosis_views *views);

#endif
