// SPDX-License-Identifier: MIT
//
// The state while a message is decomposed (decompose.h), and the functions that assign a piece of a
// core's time to a component. decompose.c follows the message's life, critical_path.c the threads
// that have it; both ask decompose_thread_time whom running time of the message's own thread was
// for, and assign time through this header.
#ifndef ANALYSIS_DECOMPOSITION_DECOMPOSER_H
#define ANALYSIS_DECOMPOSITION_DECOMPOSER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/decomposition/components.h"
#include "analysis/decomposition/diagnosis_input.h"
#include "analysis/timeline/pauses.h"
#include "analysis/timeline/span.h"
#include "analysis/timeline/thread_states.h"
#include "base/array.h"
#include "base/map.h"

// --- paths of calls ------------------------------------------------------------------------------
// Which functions a message's time went to, by path of calls: a node of the tree is a function
// called from another node, its root a component (components.h). For the message at hand each node
// holds how long control was in it or in what it called, and how often it was called.

struct path_node {
    uint32_t parent; // node; NO_PATH: the outermost function within its component
    uint32_t component;
    uint32_t name;  // of the function, index into the host's names
    uint32_t calls; // of the message at hand
    double ns;
    bool kernel; // the kernel's code
};
struct path_array ARRAY_OF(struct path_node);
enum { NO_PATH = 0xffffffff };

struct path_share {
    uint32_t path;
    uint32_t calls;
    double ns;
};
struct path_share_array ARRAY_OF(struct path_share);

struct call_paths {
    struct path_array nodes;      // a parent before what it calls
    struct map numbers;           // of nodes, by parent, component and name
    struct index_array touched;   // nodes of the message at hand
    uint32_t last[MAX_OPEN];      // path of the previous piece: its nodes
    uint32_t last_name[MAX_OPEN]; // and the functions of these nodes
    uint32_t last_component;
    unsigned last_count;
};

// Appends what was added for the message at hand, by ascending path, and clears it. out may be
// NULL.
int call_paths_take(struct call_paths *paths, struct path_share_array *out);

// --- the decomposer ------------------------------------------------------------------------------

// The function calls that are open inside the context of a piece of time.
struct decomposer_stack {
    const struct span *const *functions;
    unsigned count;
    int64_t context_begin_ns;
};

// The socket calls of one thread, and the index of the first one after the previous piece.
struct decomposer_calls {
    const struct application_call *items;
    size_t count, next;
    uint32_t thread;
    bool valid;
};

// The page faults of the thread that was asked for last.
struct decomposer_pages {
    struct thread_pages of;
    uint32_t thread;
    bool valid;
};

// Called for each piece of a core's time that is assigned to a component. core: NO_CORE for time
// that the message did not spend on a core.
typedef void component_piece(uint32_t component, uint16_t core, int64_t begin_ns, int64_t end_ns,
                             void *context);

// A thread's waits for another one that follow one another, and what ended the last of them.
struct wait_series {
    uint32_t thread;
    int64_t begin_ns, end_ns; // when the first and the last of them begin
    int64_t woken_ns;         // when the last of them was ended
    struct waker last;
};
enum { WAIT_SERIES = 8 }; // kept, one a thread

// The only thread that a peer's process has; 0: it has several, or none was seen.
struct only_thread {
    uint32_t process, thread;
};
enum { ONLY_THREADS = 16 }; // kept, one a process

struct decomposer {
    const struct diagnosis_input *in;
    struct component_table *table;
    double *ns; // by component, of the message at hand; zero between messages
    size_t capacity;
    bool out_of_memory;
    bool traced; // the functions of the latest message are known all through its time on the server
    struct call_paths paths;
    struct decomposer_stack stack;      // of the piece at hand
    struct decomposer_calls last_calls; // where the search for the next piece begins
    struct decomposer_pages last_pages;
    uint16_t core;                // of the piece at hand
    const struct holdup *holdups; // of the message at hand
    size_t holdup_count;
    const struct hop_stay *stays; // likewise
    size_t stay_count;
    struct wait_series series[WAIT_SERIES]; // by thread, the one found last
    struct only_thread only[ONLY_THREADS];  // by process, likewise
    // At another server, which the message's own has asked:
    const char *tier;   // its name; NULL: at the message's own
    const char *waited; // "waiting for redis-server (127.0.0.1:6379)": for what is not known there
    unsigned tiers;     // how far down
    uint32_t asker;     // the thread that asked; 0: none, the message is the load's or a client's
    // Follows a message of a peer (peers.lives) through it, within a time: decompose.c.
    void (*follow)(struct decomposer *decomposer, const struct peer_wait *wait, int64_t begin_ns,
                   int64_t end_ns);
    component_piece *piece; // NULL: not called
    void *piece_context;
};

void decomposer_init(struct decomposer *decomposer, const struct diagnosis_input *input,
                     struct component_table *table);
void decomposer_fini(struct decomposer *decomposer);

// Assigns time of the message at hand to a component.
void decomposer_add(struct decomposer *decomposer, int64_t component, double ns);

// The page faults of a thread's running time, all zero where functions are traced, which show them
// themselves.
struct page_time {
    double faults_ns, copies_ns; // what it writes to after its process forked is copied
};
struct page_time decomposer_page_time(struct decomposer *decomposer, uint32_t thread,
                                      int64_t begin_ns, int64_t end_ns);

// --- a sweep along a core's time while a message was there, piece by piece -----------------------

// What the visitor of a piece needs to know about the message and the previous pieces.
struct sweep {
    struct decomposer *decomposer;
    const struct lifetime *life;
    const struct core_timeline *core;
    int64_t begin_ns; // of the time that is swept on this core
    enum core_role role;
    // Role R.
    bool receiving;          // the core has begun receive processing
    int64_t last_handoff_ns; // of other data on that core before this message's
    // Role A.
    uint32_t thread;                   // the thread that has the message now
    const struct thread_stint *before; // the thread's last stint; NULL: none is known
    const struct thread_stint *next;   // of time in which it was ready: the one that follows
    const char *gap_function;          // the function in which a thread left its core
    bool replied;                      // after the application's send call began
    bool moved;                        // it waits on another core than it ran on,
    bool forced;                       // because it may not run on that one any more
    const struct span *receiver;       // the receive processing at hand
};

// The context of a piece: its innermost span that is no function; NULL where nobody knows.
// Interrupts too short to be told apart count as the context they interrupted. The functions it was
// in go to decomposer->stack.
const struct span *sweep_context(struct sweep *sweep, const struct span *const *open,
                                 unsigned depth);

// Each piece but the first of a sweep begins with an event. Recording that event took time, which
// is taken off the piece unless its traced functions show it. Returns where the rest begins.
int64_t sweep_overhead(struct sweep *sweep, int64_t begin_ns, int64_t end_ns);

bool sweep_receives(const struct sweep *sweep, const struct span *context);

// Assign time to a component, a context.
void sweep_add(struct sweep *sweep, int64_t component, int64_t begin_ns, int64_t end_ns);
void sweep_add_context(struct sweep *sweep, const struct span *context, int64_t begin_ns,
                       int64_t end_ns);

// Whether a thread belongs to a process that the message's server forked, and that serves nobody.
bool sweep_is_forked(const struct sweep *sweep, uint32_t thread);

// Assigns time in which the core ran a task that is not the message's thread: another of its
// application, one of another's, or a bystander.
void sweep_add_task(struct sweep *sweep, const struct span *task, int64_t begin_ns, int64_t end_ns);

// Receive processing works for the hand-off that comes next, at last_ns at the latest. Time that it
// spent for other applications is assigned to them; the rest is passed to `rest`. Does nothing
// where there is only one application. Returns where the time it assigned ends.
typedef void sweep_rest(struct sweep *sweep, int64_t begin_ns, int64_t end_ns);
int64_t sweep_add_packets(struct sweep *sweep, int64_t begin_ns, int64_t end_ns, int64_t last_ns,
                          sweep_rest *rest);

// The call in which the kernel works while the thread runs from `begin_ns` on, "kernel work in
// munmap", as far as it was seen in one; false: it is the program's own time, or functions show it
// themselves. *end_ns, where to look up to, becomes that of the one or the other.
bool decomposer_kernel_work(struct decomposer *decomposer, uint32_t thread, int64_t begin_ns,
                            int64_t *end_ns, char *name, size_t name_bytes);

// Assigns a `share` of time in which a thread runs for the message.
void decompose_own_time(struct decomposer *decomposer, uint32_t thread, int64_t begin_ns,
                        int64_t end_ns, double share);

// --- waiting for other messages ------------------------------------------------------------------

// Divides the running time [begin_ns, end_ns) of the message's thread between work for the message
// and work for requests ahead of it.
void decompose_thread_time(struct decomposer *decomposer, const struct lifetime *life,
                           uint32_t thread, int64_t begin_ns, int64_t end_ns);

#endif
