// SPDX-License-Identifier: MIT
//
// Which delivery to a socket brought the bytes that a receive call returned, where only the times
// of deliveries are known and not to which socket they went: a processor's trace shows each call of
// sock_def_readable, and no arguments. The kernel puts a socket onto the list of what epoll_wait
// returns when something is delivered to it, so that the ready sockets of one return stand in the
// order of their deliveries. Where no more were delivered since the thread's last return than are
// ready now, and one receive call for each follows, they belong together one by one; each return
// settled so leaves fewer deliveries for other threads' returns. A trace that also shows when a
// thread began to sleep in its wait call, and which deliveries woke a thread, settles more: the
// first delivery for a sleeper is one that woke a thread, and while its core still idled nothing
// had. Without that last, one delivery of which it is not known whose it was would leave a choice
// to each other thread that slept then, and these to the next, without end. In all other cases it
// stays unknown.
#ifndef ANALYSIS_CALLS_DELIVERIES_H
#define ANALYSIS_CALLS_DELIVERIES_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/calls/calls.h"
#include "base/array.h"

struct delivery {
    int64_t delivered_ns; // to the socket
    int64_t arrived_ns;   // what brought it entered the protocol
    uint16_t core;
    bool arrival_known; // arrived_ns is: else the bytes had waited for the socket's owner
    bool wakes;         // a thread that slept
    bool lost; // not a delivery but a hole: the core is unknown from delivered_ns to arrived_ns
};
struct delivery_array ARRAY_OF(struct delivery);

// When a thread's wait call found nothing ready and went to sleep.
struct thread_sleep {
    int64_t time_ns;
    int64_t idle_ns; // since when the core idled before it ran the thread again; before time_ns:
                     // not known
    uint32_t thread;
};
struct thread_sleeps ARRAY_OF(struct thread_sleep);

struct delivered_call {
    uint32_t call;     // index into the calls
    uint32_t delivery; // index into the deliveries
};
struct delivered_calls ARRAY_OF(struct delivered_call);

// Deliveries ascend by delivered_ns, sleeps by thread and time; none: the trace shows no sleeping
// and no waking. *unknown: receive calls whose delivery is not known. -1: no memory. The caller
// frees *out, which ascends by call, with array_free.
int deliveries_match(const struct delivery_array *deliveries, const struct thread_sleeps *sleeps,
                     const struct application_calls *calls, struct delivered_calls *out,
                     uint64_t *unknown);

#endif
