// SPDX-License-Identifier: MIT
//
// The BPF programs of the `events` backend as a table, and how they get into the kernel: each is
// optional. A program whose tracepoint the running kernel lacks, or that it refuses, is left out
// with the reason, and the others go on without it (design §9).
#ifndef PROFILER_EVENTS_EVENTS_PROGRAMS_H
#define PROFILER_EVENTS_EVENTS_PROGRAMS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "profiler/events/segment_drops.h"

enum event_group {
    EVENT_GROUP_SCHEDULER = 1 << 0,
    EVENT_GROUP_INTERRUPTS = 1 << 1, // device interrupts, softirqs, system vectors
    EVENT_GROUP_FAULTS = 1 << 2,
    EVENT_GROUP_RECEIVE = 1 << 3,     // M(n) and M(h)
    EVENT_GROUP_TRANSMIT = 1 << 4,    // replies at the device
    EVENT_GROUP_CONNECTIONS = 1 << 5, // who the sockets are
    EVENT_GROUP_WAITS = 1 << 6,       // disks, and what threads do for the kernel's memory
    EVENT_GROUP_CALLS = 1 << 7,       // of whoever has the sockets, where there is no shim
    // Messages over UDP. Their programs are called after the tracepoint, with udp_ before.
    EVENT_GROUP_DATAGRAMS = 1 << 8,
    EVENT_GROUP_COLLECTIONS = 1 << 9, // of runtimes; attached to places in watched processes
    EVENT_GROUPS_ALL = (1 << 10) - 1,
    EVENT_GROUPS_DEFAULT = EVENT_GROUPS_ALL & ~(EVENT_GROUP_CALLS | EVENT_GROUP_DATAGRAMS),
};

enum {
    EVENT_PROGRAMS = 0
#define EVENT_PROGRAM(name, GROUP, iterator, gives, stand_in) +1
#include "profiler/bpf/events.tbl.h"
};

struct event_program {
    const char
        *name; // the program's and, but for iterator, datagrams and collections, the tracepoint's
    enum event_group group;
    bool iterator;     // attached when run, not a tracepoint
    const char *gives; // what is missing without it
    // A function whose entry or exit (fentry, fexit) replaces the tracepoint on kernels without it;
    // the program for that has the tracepoint's name with _stand_in. NULL: there is none. What has
    // the function's own name with _entry or _exit is for kernels that have the function.
    const char *stand_in;
};

extern const struct event_program event_programs[EVENT_PROGRAMS];

struct event_program_state {
    bool asked;       // its group was asked for, and the kernel has what it is for
    bool attached;    // it runs (an iterator, or one for processes: it can)
    bool stood_in;    // by its stand-in
    char reason[200]; // why not, in words; "" when attached
};

struct bpf_object;
struct events_bpf; // the skeleton that bpftool made of profiler/bpf/events.bpf.c

// Called on an opened object before it is loaded, to size its maps and fill in its data.
typedef int events_prepare(struct events_bpf *programs, void *context, struct error *err);

// Loads and attaches the programs of the groups (a set of enum event_group). Fills states for every
// program of the table, and reasons from the kernel's BTF. Fails when privileges are missing (the
// text names them), the kernel has no BTF, or not one program could be attached. The caller
// destroys *out with events_bpf__destroy.
int events_programs_attach(unsigned groups, events_prepare *prepare, void *context,
                           struct event_program_state states[EVENT_PROGRAMS],
                           struct segment_drop_reasons *reasons, struct events_bpf **out,
                           struct error *err);

// Which of the attached programs run: those that do not are detached until they are to run again.
enum events_running {
    EVENTS_RUN_ALL,
    EVENTS_RUN_SPARING, // all but EVENT_SPARED (profiler/events/events_budget.h)
    EVENTS_RUN_RESTING, // nor EVENT_FREQUENT
};

// One that cannot be attached again is noted in states.
void events_programs_run(struct events_bpf *programs,
                         struct event_program_state states[EVENT_PROGRAMS],
                         enum events_running which);

// How long they ran in all while the kernel's statistics were on (profiler/events/program_costs.h).
uint64_t events_programs_run_ns(const struct events_bpf *programs,
                                const struct event_program_state states[EVENT_PROGRAMS]);

// What became of each program of the table, by name: "attached", "stand_in", "gives", "reason";
// and, if it ran while the kernel's statistics were on (program_costs.h), "runs" and "mean_ns".
// The caller frees; NULL: no memory.
json_t *events_programs_json(const struct events_bpf *programs,
                             const struct event_program_state states[EVENT_PROGRAMS]);

// How often the kernel skipped a program because it had interrupted itself on the same core.
unsigned long long events_programs_skipped(const struct events_bpf *programs);

#endif
