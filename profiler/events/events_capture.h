// SPDX-License-Identifier: MIT
//
// The `events` backend of a capture: loads the BPF programs, keeps what they record, and writes
// <out_dir>/events.tlog and <out_dir>/sockets.tlog (profiler/bpf/event_log.h) at the end.
//
//     struct events_capture *capture;
//     if (events_capture_open(&settings, &capture, &err) < 0) ...
//     while (running) { events_capture_poll(capture); sleep for at most 100 ms }
//     events_capture_stop(capture, out_dir, &stats, &err);
//     events_capture_free(capture);
#ifndef PROFILER_EVENTS_EVENTS_CAPTURE_H
#define PROFILER_EVENTS_EVENTS_CAPTURE_H

#include <jansson.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "profiler/bpf/event_log.h"
#include "profiler/events/events_budget.h"
#include "profiler/events/events_programs.h"

struct framing_grammar;

struct events_capture_settings {
    // Whose scheduler, interrupt and fault events to record; empty: all. Those of another core are
    // recorded as soon as it delivers to a watched socket, or gets a thread that reads from one.
    cpu_set_t cores;
    const uint16_t *ports; // local TCP ports whose sockets to watch, on whatever core
    size_t port_count;     // 0: no messages are recorded
    unsigned groups;       // set of enum event_group; 0: EVENT_GROUPS_DEFAULT
    uint64_t ring_bytes;   // per captured core; 0: 32 MiB. Other cores get the same as long as they
                           // take at most 128 MiB together, and at least a sixteenth.
    uint64_t memory_bytes; // memory for drained records in all; 0: 2 GiB
    const char *nic;       // whose stamps to take of what it receives; NULL: none
    const struct framing_grammar *grammar; // by which messages are told apart: the first bytes of
                                           // calls are looked at (with EVENT_GROUP_CALLS); NULL: no
    // What the programs and the records' readers may take of a core, and how long segments are
    // (profiler/events/events_budget.h); 0: as much as it takes.
    double budget;
    uint64_t segment_ns;
    uint32_t connections; // how many the table of sockets holds at once; 0: 65536. Those that have
                          // ended make room for others
};

struct events_capture;

// Loads and attaches. Connections that exist already are looked up in the network namespace of the
// caller, and later in those of watched processes. Missing privileges are ERROR_FAILED and named.
// The capture runs until stop or free. A person who interrupts meanwhile (process_is_interrupted)
// is ERROR_FAILED at once; the process should then end soon, since what was begun goes on until
// then.
int events_capture_open(const struct events_capture_settings *settings, struct events_capture **out,
                        struct error *err);

// Drains rings that hold more than a few thousand records, in steps short enough for whoever shares
// the core. Costs two loads per core when there is nothing to do. Call it often enough that a ring
// cannot fill in between: 32 MiB are 1,000,000 events.
void events_capture_poll(struct events_capture *capture);

// Watches the sockets of that process's network namespace, and from the first such call on only of
// such namespaces; looks up its connections that exist already. port: watched beside those that
// were given, in all of these namespaces; 0: none. Until then: of the caller's own namespace where
// somebody in it listens on one of the ports, else of all.
void events_capture_watch_process(struct events_capture *capture, uint32_t process, uint16_t port);

// From now on no socket calls of that process are recorded: somebody else does.
void events_capture_leave_calls(struct events_capture *capture, uint32_t process);

// The number here of a thread that has the other in its own PID namespace (an inode), which is not
// the machine's first; 0: it has not run on a recorded core. Until events_capture_free.
uint32_t events_capture_thread(const struct events_capture *capture, uint64_t namespace,
                               uint32_t inside);

// Why the NIC that was asked for does not stamp; NULL: it does, or none was asked for.
const char *events_capture_nic_lack(const struct events_capture *capture);

// Somebody else took so long to read what was recorded: it counts for the budget.
void events_capture_charge(struct events_capture *capture, uint64_t ns);

// How many bytes of records wait in the rings and in memory.
uint64_t events_capture_kept(const struct events_capture *capture);

// The bytes of all rings that are surely used.
uint64_t events_capture_ring_bytes(const struct events_capture *capture);

// Drains all rings, writes the records since the last cut to <out_dir>/events-<number>.tlog, the
// sockets that left the table since then, if any, to sockets-<number>.tlog, those that are in it to
// sockets.tlog, and forgets what it wrote. out_dir NULL: forgets it unwritten.
int events_capture_cut(struct events_capture *capture, const char *out_dir, unsigned number,
                       struct events_segment *segment, struct error *err);

// Its figures until the last cut, as those of events_capture_stop, for who finds what a capture
// left that was killed. The caller owns them; NULL: no memory.
json_t *events_capture_so_far(const struct events_capture *capture);

// Which programs run, and the reasons why others do not. states[EVENT_PROGRAMS] is valid as long as
// the capture is.
const struct event_program_state *events_capture_programs(const struct events_capture *capture);

// The cores that were not asked for and are recorded by now, because they deliver or serve.
void events_capture_followed(const struct events_capture *capture, cpu_set_t *out);

// Detaches, drains, sorts per core and writes the two logs (events.tlog has what came after the
// last cut); with out_dir NULL it writes nothing. *stats (may be NULL) becomes a JSON object that
// the caller owns:
//   {"programs": {NAME: {"attached": bool, "reason": "…", "runs": n, "mean_ns": x}}, "events":
//   {KIND: count}, "records": n,
//    "dropped": n, "dropped_per_core": {CORE: n}, "unfinished": n, "skipped": n,
//    "unseen_switches": n, "sockets": n,
//    "sockets_dropped": n, "receive_stamps": "on", "memory_full": bool, "cores": "0-1",
//    "followed": "2",
//    "ports": [...], "segments_dropped": {REASON: n},
//    "collections": {"probed": n, "refused": n, "why": "…"},
//    "nic": {"interface": "eth0", "error_ns": n, "unread": n} or {…, "reason": "…"},
//    "framing": {"protocol": "redis", …} (profiler/events/payload_frames.h; only with a grammar)}
// runs, mean_ns: as a sample, as the capture begins; else left out, as of programs that did not run
// then.
// collections: processes whose garbage collections are recorded, and those where the kernel refused
// to. nic: the one that was asked for; error_ns: how far a stamp may be off by the readings of its
// clock; unread: readings that failed. dropped: the ring was full. sockets_dropped: the table of
// sockets was. unfinished: records a program never completed. skipped: the kernel did not run a
// program that would have interrupted itself. unseen_switches: threads that left without having
// been seen to come. Call once.
int events_capture_stop(struct events_capture *capture, const char *out_dir, json_t **stats,
                        struct error *err);

// Detaches if need be and frees. Harmless on NULL.
void events_capture_free(struct events_capture *capture);

#endif
