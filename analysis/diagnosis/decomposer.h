// SPDX-License-Identifier: MIT
//
// Internal to decompose*.c: a walk along a core's time while a message was there, piece by piece,
// and to whom a piece belongs.
#ifndef ANALYSIS_DIAGNOSIS_DECOMPOSE_WALK_H
#define ANALYSIS_DIAGNOSIS_DECOMPOSE_WALK_H

#include "analysis/diagnosis/decompose.h"

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
    uint32_t thread;                 // that has the message now
    int64_t runnable_since_ns;       // when the thread was woken, INT64_MAX: not
    const struct thread_run *before; // the thread's last run; NULL: none is known
    const char *gap_function;        // that it left its core in
    bool replied;                    // after the application's send call began
    bool moved;                      // it waits on another core than it ran on
    const struct span *receiver;     // the receive processing at hand
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
