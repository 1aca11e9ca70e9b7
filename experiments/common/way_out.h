// SPDX-License-Identifier: MIT
//
// A person who interrupts gets the prompt back: within WAY_OUT_MS of the first signal, whatever the
// program is at, and at once at the second one. A thread waits for that, beside a program that
// takes its signals from a descriptor and notices them between the steps of its work, some of which
// take longer than it can know: a command, a keeper's answer, a namespace that goes.
#ifndef EXPERIMENTS_COMMON_WAY_OUT_H
#define EXPERIMENTS_COMMON_WAY_OUT_H

#include <pthread.h>
#include <stdbool.h>

#include "base/error.h"

// Less than a second, by what the end of a process with its threads takes on a busy machine.
enum { WAY_OUT_MS = 700 };

// Called in the thread when it is time: to say what is left undone, and _exit. again: a second
// signal has come. It must need no lock that the program may hold.
typedef void way_out_fn(void *context, bool again);

struct way_out {
    int taken;     // an eventfd, counts the signals that the program has noticed; the caller's
    int signals;   // a signalfd; -1: there is no thread
    int within_ms; // WAY_OUT_MS, or what a test needs
    way_out_fn *leave;
    void *context;
    bool own_taken; // by way_out_open_second
    pthread_t thread;
};

// Starts the thread. SIGINT, SIGTERM and SIGHUP are blocked already; within_ms, taken, leave and
// context are set. Nothing else ends it but way_out_close.
int way_out_open(struct way_out *way_out, struct error *err);

// For a command that finishes what it has begun when the first signal comes, within so long of it
// (INT_MAX: however long that takes), and leaves at once at the second one. SIGINT, SIGTERM and
// SIGHUP are blocked already; the program calls way_out_take() for each one it notices. A program
// that dies with another one (PR_SET_PDEATHSIG) is ended by that, with as many signals as it likes:
// there is no thread then.
int way_out_open_second(struct way_out *way_out, int within_ms, way_out_fn *leave, void *context,
                        struct error *err);
void way_out_take(const struct way_out *way_out); // harmless where there is no thread

// For way_out_fn: a line on stderr, which waits for no reader.
void way_out_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

// All that was to be done is done. Harmless where there is no thread.
void way_out_close(struct way_out *way_out);

#endif
