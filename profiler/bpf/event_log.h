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

// What is recorded, and what it carries: profiler/bpf/events.tbl.h. Times are CLOCK_MONOTONIC.
enum event_kind {
#define EVENT(NAME, number, name, becomes, carries, means) EVENT_##NAME = number,
#include "profiler/bpf/events.tbl.h"
};

enum {
    EVENT_KINDS = 1 // numbers below this are kinds, but for 0
#define EVENT(NAME, number, name, becomes, carries, means) +1
#include "profiler/bpf/events.tbl.h"
};
#define EVENT(NAME, number, name, becomes, carries, means)                                         \
    _Static_assert((number) > 0 && (number) < EVENT_KINDS, "the kinds are numbered without a "     \
                                                           "gap");
#include "profiler/bpf/events.tbl.h"

// A bit of the flags of SEGMENT, HANDOFF, TRANSMIT, ARRIVAL and DROPPED: of a datagram. id: the
// server's port; a: the datagram's key (base/datagram_key.h) in place of an offset; b: of a SEGMENT
// and TRANSMIT what it is of TCP's, else 0.
enum { EVENT_OF_DATAGRAM = 1 << 7 };

enum dropped_flags {
    DROPPED_TO_CLIENT = 1 << 0, // a reply, else a request
    DROPPED_BY_SOCKET = 1 << 1, // its socket's receive buffer was full, else on its way
};

enum framed_flags {
    FRAMED_REPLY = 1 << 0,      // else a request
    FRAMED_UNANSWERED = 1 << 1, // one to which no reply comes: it has no number
    FRAMED_WAITS = 1 << 2,      // one that asks to be kept waiting, as BLPOP does
};

enum sparing_flags {
    SPARING_BEGINS = 1 << 0, // else it has ended
};

enum switch_flags {
    SWITCH_PREEMPTED = 1 << 0, // the thread that left was still runnable
    SWITCH_EXITED = 1 << 1,    // the thread that left is dead
    // The thread that leaves is not the one last recorded as switched in: what happened in between
    // was not delivered. Some kernels deliver no tracing events while certain threads run.
    SWITCH_UNSEEN = 1 << 2,
    SWITCH_WAITS = 1 << 3,     // the thread that left waits for sockets or the like to become ready
    SWITCH_THROTTLED = 1 << 4, // it was runnable, but its control group's CPU quota is used up
};

enum migrate_flags {
    MIGRATE_FORCED = 1 << 0, // it may not run any more on the core that it was on
};

enum fault_flags {
    FAULT_USER = 1 << 0,   // of a program, else inside the kernel
    FAULT_COPIES = 1 << 1, // it writes to a page that is there
};

enum fault_end_flags {
    FAULT_SWAPPED_IN = 1 << 0, // the page was in swap
};

enum waking_flags {
    WAKING_THROTTLED = 1 << 0, // its control group's CPU quota is used up
};

enum watched_flags {
    // The core was not recorded before: it is none that the capture was asked for, but now delivers
    // to a watched socket, or gets a thread that reads from one.
    WATCHED_LATE = 1 << 0,
};

#define BLOCKED_NO_CALL 0xffffffffffffffffull
enum blocked_flags {
    BLOCKED_CONDITION = 1 << 0, // futex: it waits with a bit set, as glibc does for all but mutexes
    BLOCKED_FROZEN = 1 << 1,    // its control group is frozen
    BLOCKED_INTERPRETER = 1 << 2, // futex: on the lock of its process's interpreter
    BLOCKED_PARKED =
        1 << 3, // futex: its process is one of Go's or Erlang's, whose scheduler has parked it
};

// What a FILE is: its payload is a name, or for sockets the peer's address.
enum file_kind {
    FILE_NAMED,
    FILE_PIPE, // without a name
    FILE_PEER, // a: its IPv4 address, network byte order, 0: another kind of address; b: its port
    FILE_ON_FROZEN = 1 << 7, // with FILE_NAMED: nobody may change what is on its file system
};

enum file_lock_flags {
    FILE_LOCK_REFUSED = 1 << 0,
    FILE_LOCK_GRANTED = 1 << 1,
    FILE_LOCK_RELEASED = 1 << 2,
    FILE_LOCK_NAME = 1 << 3,  // nothing but that
    FILE_LOCK_FLOCK = 1 << 4, // by flock, else by fcntl
    FILE_LOCK_FILE = 1 << 5,  // by a file that must not be there yet: O_EXCL, mkdir, link
};

// Bits of the state.
enum {
    BLOCKED_SIGNALLED = 0x4, // stopped by a signal
    BLOCKED_TRACED = 0x8,    // by a tracer
    BLOCKED_STOPPED = BLOCKED_SIGNALLED | BLOCKED_TRACED,
};

enum handoff_flags {
    HANDOFF_UNACCEPTED = 1 << 0, // the application had not accepted the connection yet
};

#define FUTEX_LIMIT_UNKNOWN 0xffffffffu // of a BLOCKED in futex

enum asked_flags {
    ASKED_ANSWERED = 1 << 0, // it took the answer, or a part of it
    ASKED_IPV6 = 1 << 1,     // the other end's address is in the record before
    ASKED_ADDRESS = 1 << 2,  // nothing but that: the payload is an IPv6 address
};

enum transmit_flags {
    // TCP had already counted these bytes as sent: a retransmission, or a buffer that a queueing
    // discipline held back.
    TRANSMIT_AGAIN = 1 << 0,
};

enum stamped_flags {
    STAMPED_MERGED = 1 << 0, // of the first packet; the segment ends in a later one
};

enum retransmit_flags {
    RETRANSMIT_TIMEOUT = 1 << 0,   // its timer expired (RTO)
    RETRANSMIT_FAST = 1 << 1,      // later bytes were acknowledged. Neither: a tail loss probe
    RETRANSMIT_BY_CLIENT = 1 << 2, // it is on its way to the server: offsets are those of requests
};

// Why TCP did not send what it had.
enum held_reason {
    HELD_OTHER,      // not known
    HELD_WINDOW,     // the peer's receive window is full: it does not read
    HELD_CONGESTION, // the congestion window is full
    HELD_NAGLE,      // less than a segment waits for the acknowledgement of what was sent before
    HELD_CORK,       // less than a segment waits for more: TCP_CORK, MSG_MORE
    HELD_PACING,     // the connection's pacing rate
    HELD_BELOW,      // enough lies below TCP (TSQ): in a queueing discipline, at the device
    HELD_REASONS
};

enum queued_flags {
    QUEUED_BY_CLIENT = 1 << 7, // it is on its way to the server: offsets are those of requests
    QUEUED_IN = 0x7f,          // enum event_queue
};

enum event_queue {
#define EVENT_QUEUE(NAME, number, name) QUEUE_##NAME = number,
#include "profiler/bpf/events.tbl.h"
};

enum event_loss {
#define EVENT_LOSS(NAME, number, words) LOSS_##NAME = number,
#include "profiler/bpf/events.tbl.h"
    EVENT_LOSSES
};

enum event_detour {
#define EVENT_DETOUR(NAME, number, cause) DETOUR_##NAME = number,
#include "profiler/bpf/events.tbl.h"
};

// The flags of a DISK_DONE: enum req_op of the kernel.
enum disk_operation {
    DISK_READS = 0,
    DISK_WRITES = 1,
    DISK_FLUSHES = 2,
    DISK_DISCARDS = 3,
};

enum event_vector {
#define EVENT_VECTOR(NAME, number, name) VECTOR_##NAME = number,
#include "profiler/bpf/events.tbl.h"
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
