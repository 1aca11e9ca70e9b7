// SPDX-License-Identifier: MIT
//
// What a lifetime's nanoseconds can be made of: every piece of it belongs to exactly one component.
// A component is a name at a core role, and a candidate cause. Some exist from the start
// (causes.tbl.h and EVENT_COMPONENT of profiler/bpf/events.tbl.h); the others are added when the
// first context of their name is met.
#ifndef ANALYSIS_DECOMPOSITION_COMPONENTS_H
#define ANALYSIS_DECOMPOSITION_COMPONENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/decomposition/categories.h"
#include "analysis/calls/applications.h"
#include "analysis/lifetime/holdups.h"
#include "analysis/hops/hop_stays.h"
#include "analysis/lifetime/lifetime.h"
#include "analysis/timeline/span.h"
#include "base/array.h"
#include "base/map.h"
#include "profiler/capsule/hop_spec.h"

enum cause_class {
#define CAUSE_CLASS(NAME, name, means) CAUSE_##NAME,
#include "analysis/decomposition/causes.tbl.h"
};

// "context", "gap", ..., as in summary.json and run.db.
const char *cause_class_name(enum cause_class class);

enum { CAUSE_NAME_BYTES = 144 }; // "lock wait (futex): held by worker-2, blocked in fsync"

// The components that always exist: causes.tbl.h.
enum fixed_component {
#define COMPONENT(NAME, name, ROLE, CLASS, explains, functions, category, means) COMPONENT_##NAME,
#include "analysis/decomposition/causes.tbl.h"
    FIXED_COMPONENTS
};

struct component {
    char name[CAUSE_NAME_BYTES];
    enum core_role role;
    enum cause_class class;
    bool explains;   // counts towards coverage
    bool apart;      // neither the server's nor the client's doing: the tool's, or that of the host
                     // of a virtual machine; never explains
    bool functions;  // its time is divided among functions where the backend sees them
    bool intrudes;   // a program has the load's core that is none of the load
    bool interrupts; // no task: it has the core of whom it interrupts
    const char *category;
    const char *part; // of `whole`, in words: "page faults"
    uint32_t whole;   // the component that is the cause, plus 1; 0: it is one itself
    char tier[64];    // the other server at which it is; "": the message's own
};
struct component_array ARRAY_OF(struct component);

struct component_table {
    struct component_array components;
    struct map by_name; // and role, but for the fixed ones
    const struct host_timeline *host;
    const struct categories *categories;
    uint8_t *spins;       // by name: component_spins() plus 1; 0: not asked yet
    uint32_t *by_context; // (name, kind, role) to component plus 1; 0: not met yet
    const struct host_timeline *client;
    uint32_t *by_client; // (name, kind) of the load's host, likewise
    // Between two hops, by part (enum stay_part), likewise.
    uint32_t by_link[HOPS_MAX][HOPS_MAX][STAY_PARTS];
};

// host and client (the load's host) may be NULL; categories must outlive the table, NULL: none. -1
// when memory runs out.
int component_table_init(struct component_table *table, const struct host_timeline *host,
                         const struct host_timeline *client, const struct categories *categories);
void component_table_fini(struct component_table *table);

// The component of time in which a thread waited for something other than its core: "lock wait
// (futex)", "waiting for a packet", "asleep in FUNCTION". -1: no memory.
int64_t component_of_wait(struct component_table *table, const char *name);

// Of page faults while the collector of the thread's process was at work beside it: a part of
// "garbage collection". -1: no memory.
int64_t component_of_collectors_pages(struct component_table *table);

// Of time in which it was another server's turn, or somebody waited for one whose turn it was:
// "waiting for redis-server (127.0.0.1:6379)"; the category is that of any but a wait for a free
// connection. -1: no memory.
int64_t component_of_peer(struct component_table *table, const char *name, const char *tier,
                          const char *category);

// The same component at another server, "redis-server: head-of-line blocking": located there, it
// explains. -1: no memory.
int64_t component_of_tier(struct component_table *table, uint32_t component, const char *tier);

// Whether a cause of that name is one of these, of that tier's; else somebody waited for the tier.
bool component_is_at_tier(const char *name, const char *tier);

// The component of a context (task, irq, softirq or vector) at role R or A. -1: no memory.
int64_t component_of_context(struct component_table *table, const struct span *span,
                             enum core_role role);

// The same on a core of the load's host, from table->client. -1: no memory.
int64_t component_of_client(struct component_table *table, const struct span *span);

// Of a sleep of the load's thread that is none for something to do: "client asleep: blocked in
// write to samples.tlog". -1: no memory.
int64_t component_of_client_sleep(struct component_table *table, const char *name);

// Of a thread of the message's server that serves nobody: "mc-lrumaint (own thread)", or of a
// process that it forked: "redis-server (forked child)". -1: no memory.
int64_t component_of_own_thread(struct component_table *table, const struct span *task,
                                enum core_role role, bool forked);

// Of another program's thread, told apart by its process from others of the same name:
// "redis-server (process 4711)". -1: no memory.
int64_t component_of_process(struct component_table *table, const struct span *task,
                             enum core_role role, uint32_t process);

// The component of time about which nothing is known, named after the SPAN_UNKNOWN that covers it
// (NULL: none does), as "lost records (unseen since init)". -1: no memory.
int64_t component_of_unknown(struct component_table *table, const struct span *span,
                             enum core_role role);

// The component of another application than the message's at role R or A: its threads, or its
// packets. -1: no memory.
int64_t component_of_application(struct component_table *table,
                                 const struct applications *applications, uint32_t application,
                                 enum core_role role);

// The component of time for which TCP, or a queueing discipline, held the message up: "Nagle's
// algorithm", "qdisc (tbf)". -1: no memory.
int64_t component_of_holdup(struct component_table *table, const struct holdup *holdup);

// The same of what a server asked another one: "Nagle's algorithm, asking redis-server
// (127.0.0.1:6379)". why: enum held_reason, one that is TCP's own doing. -1: no memory.
int64_t component_of_held_question(struct component_table *table, uint8_t why, const char *whom,
                                   bool of_others);

// The component of time between two hops of the network: "hop to0@switch -> to1@switch", or with
// the queueing discipline that lies between, "hop to0@switch -> eth0@server (qdisc tbf)", or, where
// the time in that is known, "in the queue of to0@switch (tbf)" and the rest by the hops. -1: no
// memory.
int64_t component_of_hop(struct component_table *table, const struct hop_stay *stay,
                         const struct hop_place *places);

// Of such time in which something else had the core that was to take the packet in: "hop to0@switch
// -> eth0@server, behind hog". context: of table->host. -1: no memory.
int64_t component_of_hop_behind(struct component_table *table, const struct hop_stay *stay,
                                const struct hop_place *places, const struct span *context);

// What a component of that name says that packets waited for between two hops: "behind hog"; NULL:
// it is another one's, or says nothing of the kind.
const char *component_hop_wait(const char *name, const struct hop_place *from,
                               const struct hop_place *to);

// Of such time in which a thread of the virtual machine between them could not do its part: "hop
// tap0@client -> eth0@guest, CPU 0/KVM behind hog". context: what had its core; NULL: `why` says
// what else held it back, "stopped by a signal", "throttled (CPU quota)".
int64_t component_of_hop_machine(struct component_table *table, const struct hop_stay *stay,
                                 const struct hop_place *places, const char *thread,
                                 const struct host_timeline *host, const struct span *context,
                                 const char *why);

// Whether the kernel spins in a function until another core releases a lock, or makes way to its
// holder.
bool component_spins(const struct component_table *table, const struct span *function);

// The component of time in which it does, after the function that asked for the lock: "spinning for
// a lock in nf_conntrack_in". functions: those open, each called by the one before; the last one
// spins. -1: no memory.
int64_t component_of_spin(struct component_table *table, const struct span *const *functions,
                          unsigned count, enum core_role role);

// The component of a function that deviates within the component `within`: it serves as a cause
// only and never gets time itself. -1: no memory.
enum function_anomaly { FUNCTION_SLOWER, FUNCTION_MORE_CALLS, FUNCTION_UNEXPECTED, ANOMALIES };
int64_t component_of_function(struct component_table *table, const char *function,
                              enum function_anomaly anomaly, uint32_t within, const char *category);

// How much of a task's name it has in common with those of its kind: what exists once for each
// core, or is one of a pool, is one cause. The remedy for "ksoftirqd/3" is the one for
// "ksoftirqd/0", that for "java:pool-1-thread-3" the one for "java:pool-1-thread-12".
int component_family_length(const char *name);

// What a context is called, by its span's name and kind: "NET_RX softirq", a task by its family.
// Returns out.
char *component_context_name(const char *name, enum span_kind kind, char *out, size_t bytes);

#endif
