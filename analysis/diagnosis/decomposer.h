// SPDX-License-Identifier: MIT
//
// The state of taking a message apart (decompose.h), and how a piece of a core's time is given to a
// component. decompose.c goes along the message's life and asks blocking.c about the time of the
// message's own thread; both give what they find away here.
#ifndef ANALYSIS_DIAGNOSIS_DECOMPOSER_H
#define ANALYSIS_DIAGNOSIS_DECOMPOSER_H

#include <stddef.h>
#include <stdint.h>

#include "analysis/diagnosis/call_paths.h"
#include "analysis/diagnosis/components.h"
#include "analysis/diagnosis/diagnosis.h"

// The functions open above the context that a piece of time is given to.
struct decomposer_stack {
    const struct span *const *functions;
    unsigned count;
    int64_t context_begin_ns;
};

// The socket calls of one thread, and the first of them after the piece before.
struct decomposer_calls {
    const struct application_call *items;
    size_t count, next;
    uint32_t thread;
    bool valid;
};

// Is told of each piece of a core's time that a component gets. core: NO_CORE for time that the
// message spent on none.
typedef void component_piece(uint32_t component, uint16_t core, int64_t begin_ns, int64_t end_ns,
                             void *context);

struct decomposer {
    const struct diagnosis_input *in;
    struct component_table *table;
    double *ns; // by component, of the message at hand; zero between messages
    size_t capacity;
    bool out_of_memory;
    bool traced; // the functions of the latest message are known all through its time on the server
    struct call_paths paths;
    struct decomposer_stack stack;      // of the piece at hand
    struct decomposer_calls last_calls; // where the piece before was found
    uint16_t core;                      // of the piece at hand
    component_piece *piece;             // NULL: nobody asks
    void *piece_context;
};

void decomposer_init(struct decomposer *decomposer, const struct diagnosis_input *input,
                     struct component_table *table);
void decomposer_fini(struct decomposer *decomposer);

// Gives a component time of the message at hand.
void decomposer_add(struct decomposer *decomposer, int64_t component, double ns);
// The same for a `share` of a piece of a core's time, which its functions get, too.
void decomposer_add_piece(struct decomposer *decomposer, int64_t component, int64_t begin_ns,
                          int64_t end_ns, double share);

// --- a walk along a core's time while a message was there, piece by piece ------------------------

// What a piece's visitor needs to know of the message and of the pieces before.
struct walk {
    struct decomposer *decomposer;
    const struct lifetime *life;
    const struct core_timeline *core;
    int64_t begin_ns; // of what is walked along on this core
    enum core_role role;
    // Role R.
    bool receiving;          // receive processing has begun
    int64_t last_handoff_ns; // of other data on that core before this message's
    // Role A.
    uint32_t thread;                     // that has the message now
    int64_t runnable_since_ns;           // when the thread was woken, INT64_MAX: not
    const struct thread_stretch *before; // the thread's last stretch; NULL: none is known
    const char *gap_function;            // that it left its core in
    bool replied;                        // after the application's send call began
    bool moved;                          // it waits on another core than it ran on
    const struct span *receiver;         // the receive processing at hand
};

// The context of a piece: its innermost span that is no function; NULL where nobody knows.
// Interrupts too short to be told apart count as the context they interrupted. What functions it
// was in goes to the decomposer.
const struct span *walk_context(struct walk *walk, const struct span *const *open, unsigned depth);

// Each piece but a walk's first begins with an event, whose record took time: taken off the piece,
// unless its functions are known and show that time. Returns where the rest begins.
int64_t walk_overhead(struct walk *walk, int64_t begin_ns, int64_t end_ns);

bool walk_receives(const struct walk *walk, const struct span *context);

// A thread's application, where there are several; the message's own for every thread of the server
// where there is one; else NO_APPLICATION.
uint32_t walk_application_of(const struct walk *walk, uint32_t thread);

// Give time to a component, a context, another application.
void walk_add(struct walk *walk, int64_t component, int64_t begin_ns, int64_t end_ns);
void walk_add_context(struct walk *walk, const struct span *context, int64_t begin_ns,
                      int64_t end_ns);
void walk_add_application(struct walk *walk, uint32_t application, int64_t begin_ns,
                          int64_t end_ns);

// Receive processing works for the hand-off that comes next, at last_ns at the latest: what it did
// for other applications is theirs, the rest is given to `rest`. Nothing where there is one
// application. Returns where that ends.
typedef void walk_rest(struct walk *walk, int64_t begin_ns, int64_t end_ns);
int64_t walk_add_packets(struct walk *walk, int64_t begin_ns, int64_t end_ns, int64_t last_ns,
                         walk_rest *rest);

#endif
