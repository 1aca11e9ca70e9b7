// SPDX-License-Identifier: MIT
//
// Which of the signals that ask a program to end are one wish. Signals that come so soon after the
// first one: a parent of several threads dies one after the other, each of which tells its children
// (PR_SET_PDEATHSIG), and timeout(1) tells a process and then its group. What a parent asks and
// then says once more by its death, however much later. And the first one that a person sends while
// the program writes what it has: it is ending. Whoever ends at once at a second signal waits for
// another wish. What is left after the first one is for who reads the result: nobody need read it.
#ifndef BASE_ONE_WISH_H
#define BASE_ONE_WISH_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

enum { ONE_WISH_MS = 100, ONE_WISH_READER_MS = 500 };

// Whether this signal is what the parent's death brings (PR_SET_PDEATHSIG), and so the one by which
// it asks. It means the first time what it always means: the parent, or whoever clears up after it,
// kills (SIGKILL) what takes too long.
bool one_wish_of_parent(int number);

// Takes what comes of these signals, which are blocked, until ONE_WISH_MS after told_ns, the time
// of the first one (monotonic_ns()), so that it does not end the program when they are open again.
void one_wish_take_rest(const sigset_t *signals, int64_t told_ns);

// Restores the mask after work that was ended by such signals, so that its results can be written:
// the parent's stays blocked.
void one_wish_reopen(const sigset_t *before);

// The next SIGINT and the next SIGTERM have no effect; those after them the one they have now.
// Harmless where they are ignored.
void one_wish_spare_next(void);

// Somebody who takes these signals from a descriptor has taken this one; a spared one notes itself.
void one_wish_note(int number);

// Whether one was noted: what can be left out should be.
bool one_wish_is_noted(void);

// From here on results are only handed to who reads them, which may take until somebody does. Of a
// program that was told to end, or is meanwhile, the signal has its effect all the same once the
// calling thread has waited for ONE_WISH_READER_MS: not while it works, or others have its core.
void one_wish_hand_over(void);

#endif
