// SPDX-License-Identifier: MIT
//
// How labserver misbehaves when told to: one kind of fault, for a stated time, at regular
// intervals, each recorded in a fault log. Ground truth for the diagnosis (design §15).
#ifndef WORKLOADS_LAB_LAB_FAULT_H
#define WORKLOADS_LAB_LAB_FAULT_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "workloads/lab/ready_times.h"

// --- the log of faults ---------------------------------------------------------------------------
// When a server, or a program beside it, misbehaved on purpose: a diagnosis is compared with it. A
// text file of lines "BEGIN_NS END_NS KIND", in CLOCK_MONOTONIC_RAW (host time, design §5). It is
// mapped before the first fault, so that recording one costs no system call; unused space stays
// zero bytes.
//
// Where a fault is something to wait for, its log says of what part of it that is true: further
// lines, before the fault's own, say when a thread neither ran nor could have run (FAULT_LOG_WAITS)
// and when it could have, but something else had its core (FAULT_LOG_READY). Of FAULT_LOG_UNTOLD
// the kernel's records were lost: what is said of that time is not all.

#define FAULT_LOG_WAITS  "waits"
#define FAULT_LOG_READY  "ready"
#define FAULT_LOG_UNTOLD "untold"

enum { FAULT_LOG_LINES = 1 << 14, FAULT_LOG_LINE_BYTES = 64 };

struct fault_log {
    char *lines; // mapped
    uint32_t used;
};

// Makes the file, or empties it. The mapping lives as long as the process.
int fault_log_open(struct fault_log *log, const char *path, struct error *err);

// Any thread may call it. After FAULT_LOG_LINES nothing is recorded: the caller must then stop.
void fault_log_add(struct fault_log *log, int64_t begin_ns, int64_t end_ns, const char *kind);

// Now, in the log's clock.
int64_t fault_log_now(void);

enum lab_fault_kind {
    LAB_FAULT_NONE,
    LAB_FAULT_SLOW,   // one function takes that long
    LAB_FAULT_CALLS,  // a short function is called over and over for that long
    LAB_FAULT_PAGES,  // memory never used before is touched, page by page, for that long
    LAB_FAULT_HALVES, // a reply is sent in two halves, without TCP_NODELAY
    LAB_FAULT_SYNC, // a file beside the log is written to and synced, over and over, for that long
    LAB_FAULT_FORK, // it forks, and writes to pages that it then shares, for that long in all
    LAB_FAULT_SWAP, // memory that was paged out is touched, page by page, for that long
    LAB_FAULT_COMPACT, // it has the kernel compact memory, over and over, for that long
    LAB_FAULT_KERNEL,  // it has the kernel work in one call, which takes about that long
    LAB_FAULT_DEAF,    // its queue of connections is full and it takes none; it closes those it has
                       // after a reply
    LAB_FAULT_SYN,     // the same, but a firewall (nft) throws away what opens connections
    LAB_FAULT_ROOM,    // none of its own: it notes when it waits for somebody to read its reply
    LAB_FAULT_LOCK, // another thread holds the lock that every request takes, and sleeps that long
    LAB_FAULT_COLLECT, // the same, named like Java's that stops the world, works and waits by turns
};

struct lab_fault {
    enum lab_fault_kind kind;
    uint64_t length_ns, every_ns;
    struct fault_log log;
    int64_t due_ns;
    char *fresh; // memory not touched yet (pages), or the next page to be touched (fork, swap)
    size_t fresh_bytes; // or how much the kernel is to fill (kernel)
    char *memory; // what `fresh` lies in (fork, swap), what is written (sync), filled (kernel)
    int file;     // sync; what compacts memory (compact)
    struct ready_times *ready; // of the thread that serves (sync, swap, room), or holds the lock
    struct ready_span *spans;  // what that says, of one call
    bool watched;              // whether that was tried
    int64_t send_ns;           // since when a reply is being sent (room)
    pthread_mutex_t lock;      // taken by every request (lock, collect)
    pthread_t holder;          // (lock, collect, deaf, syn)
    _Atomic bool deaf;         // now
    int listener, epoll;       // where connections are taken, and what waits for them (deaf, syn)
};

// "KIND,LENGTH,EVERY" with the kinds slow, calls, pages, halves (whose length does not matter),
// sync, fork, swap, compact, kernel, lock, deaf, syn, collect and room (neither of which matters):
// "slow,1ms,20ms".
int lab_fault_parse(const char *text, struct lab_fault *fault, struct error *err);

// Begins. Without a kind it does nothing; listener and epoll are the server's by then. The fault
// must stay at its address until the process ends.
int lab_fault_start(struct lab_fault *fault, const char *log_path, struct error *err);

// Whether the reply that is about to be sent is to be sent in two halves.
bool lab_fault_halves(struct lab_fault *fault);

// Whether the connection is to be closed on which a reply has been sent.
bool lab_fault_closes(const struct lab_fault *fault);

// To be called around each call that sends a reply, by the one thread that does.
void lab_fault_begin_send(struct lab_fault *fault);
void lab_fault_end_send(struct lab_fault *fault);

// To be called around each request's service, by one thread at a time except with `lock`
// and `collect`.
void lab_fault_begin_service(struct lab_fault *fault);
void lab_fault_end_service(struct lab_fault *fault);

#endif
