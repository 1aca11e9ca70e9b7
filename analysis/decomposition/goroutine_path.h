// SPDX-License-Identifier: MIT
//
// What a goroutine waited for. Go's scheduler runs it on whichever thread is free, and no record
// says on which: only which thread had read the request, and which one replies. Before it replied,
// something had that thread run the goroutine, and that is followed back: it was woken from its
// wait for work by another thread, whose time up to then counts in turn, by a timer or a packet; or
// it had been about something else itself, as who holds a lock is that sleeps in a call.
#ifndef ANALYSIS_DECOMPOSITION_GOROUTINE_PATH_H
#define ANALYSIS_DECOMPOSITION_GOROUTINE_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/decomposition/diagnosis_input.h"
#include "analysis/lifetime/lifetime.h"
#include "analysis/timeline/thread_states.h"

enum { GOROUTINE_PIECES = 16 };

struct goroutine_piece {
    enum {
        GOROUTINE_AT_WORK, // the thread's own time, which sleeps in calls of its own at most
        GOROUTINE_TIMER,   // a timer of the process, whichever thread it woke
        GOROUTINE_CHILD,   // the thread is of a process that the server forked, and ended its wait
        GOROUTINE_AWAITS,  // what ended `sleep`, of the thread that waited for work
        GOROUTINE_UNKNOWN, // nobody knows what
    } kind;
    uint32_t thread;
    int64_t begin_ns, end_ns;
    struct thread_period sleep; // GOROUTINE_AWAITS
};

// The pieces tile the time of which they are told, the last one first.
struct goroutine_path {
    struct goroutine_piece pieces[GOROUTINE_PIECES];
    size_t count;
    bool others; // somebody else's work was waited for: it had been begun before
};

// Whether a message was a goroutine's in [begin_ns, end_ns), which waited: the thread that had read
// it turned to other work or another one replied.
bool goroutine_waited(const struct diagnosis_input *in, const struct lifetime *life,
                      uint32_t replier, int64_t begin_ns, int64_t end_ns);

void goroutine_path_find(const struct diagnosis_input *in, const struct lifetime *life,
                         uint32_t replier, int64_t begin_ns, int64_t end_ns,
                         struct goroutine_path *path);

#endif
