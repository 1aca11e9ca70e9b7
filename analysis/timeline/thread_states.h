// SPDX-License-Identifier: MIT
//
// What a thread was doing when, told from its own scheduling records alone: it ran, was ready to
// run, was held back by a quota, or slept; and what woke it. What its core did meanwhile says
// nothing about a thread that was not ready to run.
#ifndef ANALYSIS_TIMELINE_THREAD_STATES_H
#define ANALYSIS_TIMELINE_THREAD_STATES_H

#include <stdint.h>

#include "analysis/timeline/span.h"

enum thread_state {
    THREAD_UNKNOWN,   // the records do not say
    THREAD_RUNS,      // on `core`
    THREAD_READY,     // waits for a core
    THREAD_THROTTLED, // ready, but its control group's CPU quota is used up
    THREAD_SLEEPS,    // until it is woken, if it ever was
};

struct thread_period {
    enum thread_state state;
    int64_t begin_ns, end_ns;          // host time; not empty
    const struct thread_stint *before; // its last stint that ended by then; NULL: none is known
    const struct thread_stint *next;   // the one that goes on, or comes next; NULL: none is known
    const struct waking *waking;       // THREAD_SLEEPS: what ended the sleep; NULL: not known
};

// Calls `each` for the periods that tile [begin_ns, end_ns) of a thread's time, in order.
typedef void thread_period_visitor(const struct thread_period *period, void *context);
void thread_periods(const struct host_timeline *host, uint32_t thread, int64_t begin_ns,
                    int64_t end_ns, thread_period_visitor *each, void *context);

// Whether no part of that time is THREAD_UNKNOWN.
bool thread_is_known(const struct host_timeline *host, uint32_t thread, int64_t begin_ns,
                     int64_t end_ns);

// The one of them that begins at begin_ns.
struct thread_period thread_period_at(const struct host_timeline *host, uint32_t thread,
                                      int64_t begin_ns, int64_t end_ns);

// The control group by whose quota a thread was held back after a stint, as the kernel named it
// last until then; NULL: it did not.
const char *thread_quota_group(const struct host_timeline *host, uint32_t thread,
                               const struct thread_stint *before, int64_t end_ns);

// What a thread was woken by.
enum waker_kind {
    WAKER_UNKNOWN, // nobody saw what the waking core did; `thread` may be the one, or interrupted
    WAKER_THREAD,  // `thread` itself, on core `waking->from`
    WAKER_PACKET,  // receive processing of the network
    WAKER_TIMER,
    WAKER_BLOCK,  // a block device had finished
    WAKER_DEVICE, // another device's interrupt
    WAKER_KERNEL, // another softirq or system vector
};

struct waker {
    enum waker_kind kind;
    uint32_t thread;
    const struct span *span; // the context that woke; NULL: WAKER_UNKNOWN
};

struct waker waker_of(const struct host_timeline *host, const struct waking *waking);

// The thread that sent the packet which woke another one, on the same host: who sends to it handles
// that packet right away. 0: a packet of another host's, or an interrupt brought it.
uint32_t waking_sender(const struct host_timeline *host, const struct waking *waking);

// The span of a thread's last stay on a core that began before end_ns; NULL: none was seen.
const struct span *thread_span_before(const struct host_timeline *host, uint32_t thread,
                                      int64_t end_ns);

#endif
