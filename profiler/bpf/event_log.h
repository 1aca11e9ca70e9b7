// SPDX-License-Identifier: MIT
//
// The event log of the `events` backend: what the kernel did on the captured cores, in 32-byte
// records, written by BPF (profiler/bpf/events.bpf.c). The records of a core stand together, in
// order of time; cores ascend. Files in a run folder: server/events.tlog (LOG_EVENTS) and
// server/sockets.tlog (LOG_CONNECTIONS: the kernel's view of each connection; struct connection.id
// is the event's id, the low half of the cookie; opened_time is CLOCK_MONOTONIC).
//
// This header is read by the BPF compiler too: plain types, no libc.
#ifndef PROFILER_BPF_EVENT_LOG_H
#define PROFILER_BPF_EVENT_LOG_H

#ifndef __bpf__
#include <stdint.h>
#endif

enum { EVENT_LOG_VERSION = 1 };

enum event_kind {
    // Scheduler. time is CLOCK_MONOTONIC for all events.
    EVENT_SWITCH = 1, // id: next thread (0: idle), payload: its comm, flags: enum switch_flags
    EVENT_WAKING = 2, // id: woken thread, payload.a: the core it ran on last, payload.b: the thread
                      // that wakes it, or that was interrupted by what wakes it (0: idle)
    // Interrupts: entry and exit nest properly on a core.
    EVENT_IRQ_ENTRY = 3, // id: irq number, payload: the action's name
    EVENT_IRQ_EXIT = 4,
    EVENT_SOFTIRQ_ENTRY =
        5, // id: vector number as in /proc/softirqs (0 HI, 1 TIMER, 2 NET_TX, ...)
    EVENT_SOFTIRQ_EXIT = 6,
    EVENT_VECTOR_ENTRY = 7, // id: enum event_vector (x86 system vectors)
    EVENT_VECTOR_EXIT = 8,
    EVENT_PAGE_FAULT = 9, // payload.a: address, payload.b: instruction; flags: 1 user, 0 kernel;
                          // id: thread
    // Messages, by socket and byte offset (design §4). Offsets count payload: neither SYN nor FIN.
    EVENT_SEGMENT = 10,  // M(n). id: socket, payload.a: stream offset after the segment,
                         // payload.b: skb->tstamp (CLOCK_REALTIME ns; 0: none). TCP looked at it
                         // at `time`: later than its arrival when the socket was busy.
    EVENT_HANDOFF = 11,  // M(h). id: socket, payload.a: stream offset ready for the application,
                         // payload.b: offset the application has read up to
    EVENT_TRANSMIT = 12, // id: socket, payload.a: stream offset after the last byte handed to the
                         // device, payload.b: bytes in this buffer. A retransmission repeats its
                         // offset; stacked devices (VLAN, bond) report a buffer once each.
    EVENT_ARRIVAL = 13,  // M(n) where the link is virtual (veth, loopback): a segment as its sender
                         // put it onto this host's backlog. id: socket, payload.a: stream offset
                         // after the segment. There skb->tstamp is set only when IP delivers it
    // What stands in where the kernel delivered no HANDOFF (see SWITCH_UNSEEN).
    EVENT_TAKEN = 14, // the application took bytes after a time unseen. id: socket, payload.a:
                      // stream offset it has read up to, payload.b: when the socket's last segment
                      // was processed (tcp_sock.tcp_clock_cache, CLOCK_MONOTONIC ns)
    // Why a thread does not run.
    EVENT_BLOCKED = 15, // id: a user thread that leaves its core to sleep, just before its SWITCH;
                        // payload.a: the system call it is in (x86-64 number, BLOCKED_NO_CALL:
                        // none), payload.b: its state (task_struct.__state). Waits for sockets to
                        // become ready (epoll_wait, poll, select) and the end of a thread are not
                        // recorded
    EVENT_MIGRATE = 16, // id: a thread that the scheduler moves, payload.a: the core it was on,
                        // payload.b: the core it goes to
    // Whose a thread is.
    EVENT_PROCESS = 17, // id: a thread that is not its process's first, before the first SWITCH to
                        // it; payload: the name of the process (more than once is no harm)
    // How long a page fault lasts.
    EVENT_FAULT_END = 18, // id: the thread whose latest PAGE_FAULT on this core has got its page:
                          // it ends now. Faults that change no page count (write to a shared page,
                          // NUMA hints), and kernels before 6.2, tell of none
    EVENT_UNSEEN = 19,    // just before a SWITCH with SWITCH_UNSEEN: id: the thread that leaves,
                          // payload: its name
    EVENT_STOLEN = 20, // the host of this virtual machine had the core for others since the record
                       // before, by its own account. payload.a: for how many ns
};

enum switch_flags {
    SWITCH_PREEMPTED = 1 << 0, // the thread that left was still runnable
    SWITCH_EXITED = 1 << 1,    // the thread that left is dead
    // The thread that leaves is not the one last recorded to come: what happened in between was not
    // delivered. Some kernels deliver no tracing events while certain threads run.
    SWITCH_UNSEEN = 1 << 2,
};

#define BLOCKED_NO_CALL 0xffffffffffffffffull
enum { BLOCKED_STOPPED = 0x4 | 0x8 }; // bits of the state: stopped by a signal, or by a tracer

enum transmit_flags {
    // TCP had already counted these bytes as sent: a retransmission, or a buffer that a queueing
    // discipline held back.
    TRANSMIT_AGAIN = 1 << 0,
};

enum event_vector {
    VECTOR_LOCAL_TIMER = 1,
    VECTOR_RESCHEDULE = 2,
    VECTOR_CALL_FUNCTION = 3,
    VECTOR_CALL_FUNCTION_SINGLE = 4,
    VECTOR_IRQ_WORK = 5,
    VECTOR_OTHER = 6,
};

struct event {
    uint64_t time; // CLOCK_MONOTONIC ns
    uint8_t kind;  // enum event_kind; written last: 0 means "not yet whole"
    uint8_t flags;
    uint16_t core;
    uint32_t id;
    union {
        struct {
            uint64_t a, b;
        };
        char text[16]; // NUL-padded, not necessarily terminated
    } payload;
};
_Static_assert(sizeof(struct event) == 32, "the log format is fixed");

#endif
