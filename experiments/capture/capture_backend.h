// SPDX-License-Identifier: MIT
//
// The backends of `taillight capture`: what it can record besides socket calls (the shim) and
// clocks, which it always records, and what its files share. Each is a file (backend_events.c, ...)
// and a row in CAPTURE_BACKENDS. Nobody else asks which backend is meant.
#ifndef EXPERIMENTS_CAPTURE_CAPTURE_BACKEND_H
#define EXPERIMENTS_CAPTURE_CAPTURE_BACKEND_H

#include <jansson.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/array.h"
#include "base/error.h"
#include "base/options.h"
#include "base/process_family.h"
#include "base/progress.h"
#include "experiments/capture/capture_lines.h"
#include "experiments/common/way_out.h"
#include "profiler/clock/clock_recorder.h"
#include "profiler/host/firewall_state.h"
#include "profiler/host/group_counters.h"
#include "profiler/host/network_counters.h"
#include "profiler/host/page_fault_cost.h"
#include "profiler/doctor/doctor_checks.h"
#include "profiler/host/running_servers.h"
#include "shim/message_collector.h"
#include "shim/ring.h"

// The row: backend_<name> is defined in capture/backend_<name>.c. They are started in this order;
// the last that records names the capture ("backend" of capture.json).
#define CAPTURE_BACKENDS(ROW) ROW(events) ROW(functions) ROW(samples) ROW(intel_pt)

#define CAPTURE_BACKEND_COUNT(name) +1
enum { CAPTURE_BACKENDS_COUNT = 0 CAPTURE_BACKENDS(CAPTURE_BACKEND_COUNT) };

// Of Intel PT.
struct capture_trace_options {
    const char *detail; // "light", "normal", "fine"; NULL: normal
    const char *event;  // perf's words in place of a preset; NULL: the preset
    const char *pids;   // these processes instead of cores; NULL: cores
    uint64_t buffer_bytes;
    uint64_t most_bytes;  // recording ends there; 0: the backend's own bound
    uint64_t expected_ns; // for how long it is to be recorded; 0: nobody knows
    uint64_t keep;        // snapshots at most; 0: any number
    cpu_set_t cores;      // of those that are recorded; empty: all of them
    bool per_thread, snapshot;
    bool code;  // the code that was traced is put beside the recording
    bool waits; // begins to record at a line "trace on" of standard input
};

struct capture_options {
    const char *out, *shim, *backend_name, *functions, *port_list;
    const char *pids, *cgroups, *units; // of servers that run already; NULL: none
    uint16_t ports[RING_PORTS];
    size_t port_count;
    size_t given_port_count; // of these, those of port_list
    uint64_t buffer_bytes, shim_memory_bytes;
    uint64_t segment_ns;           // how often one is written; 0: as needed
    double budget;                 // of a core, for recording; 0: as much as it takes
    uint64_t keep_bytes;           // of the latest segments; 0: all
    cpu_set_t cores, helper_cores; // empty: all
    cpu_set_t client_cores;        // beside them, for kernel events alone; empty: none
    bool client_alone;             // these are all: there is no server on this host
    bool no_events, quiet, shim_in_environment;
    bool commands;          // with which command begins what servers receive, as the shim sees it
    const char *calls_word; // of --calls; NULL: auto
    const char *framing;    // a protocol's name; NULL: no payload is looked at
    const struct framing_grammar *grammar; // the same
    const char *nic;                       // by whose clock messages arrive; NULL: the kernel's
    bool datagrams;                        // UDP goes to some of these ports
    bool kernel_calls;                     // socket calls are recorded by the kernel's events
    bool leaves_to_shim;                   // but of processes in which the shim works
    uint64_t sample_rate;
    const char *perf; // program; NULL: the one in PATH
    struct capture_trace_options trace;
};

// What is on disk of a capture that goes on (capture_segments.h).
struct capture_segment {
    uint64_t bytes;
    int64_t from_ns, until_ns; // host time: since when and until when all is in it
    bool rests;                // nothing was recorded between it and the next one
    double recorded;           // what part that is of the time since the segment before
    double taken;              // of a core, by what records, meanwhile; 0: not known
    bool sockets;              // with a log of connections that ended
    json_t *counted;           // by the kernel, from the capture's begin to its end
};

struct capture_segments {
    struct ARRAY_OF(struct capture_segment) kept; // those that are on disk
    unsigned first;                               // number of the first of them
    json_t *counted;        // until the end of the one before that; NULL: there was none
    int64_t from_ns;        // host time: since when all is in them; 0: since the capture began
    int64_t until_ns;       // until when
    uint64_t cut_ns;        // CLOCK_MONOTONIC of the last cut
    int64_t begun_ns;       // host time of it
    uint64_t reserve_bytes; // left free on the disk, for the load's result
    bool stopped;           // nothing is written any more
    char why[600];          // not
};

struct capture {
    struct capture_options options;
    struct progress progress;
    void *states[CAPTURE_BACKENDS_COUNT]; // by backend; NULL: it does not record
    // What backends record that do not find out which cores deliver: those that were asked for,
    // and those that are to receive. Empty: all.
    cpu_set_t cores;
    cpu_set_t machine;                   // the cores that the capture's own programs may be on
    cpu_set_t followed;                  // others, which the former found meanwhile
    bool fixed[CAPTURE_BACKENDS_COUNT];  // it could not follow these
    bool needed[CAPTURE_BACKENDS_COUNT]; // it was chosen: without it there is no capture
    bool wanted[CAPTURE_BACKENDS_COUNT]; // needed, or wanted where it can be had
    struct message_collector *collector; // NULL: none
    size_t watched;                      // processes of the collector's that backends were told of
    struct running_servers *running;     // NULL: servers are known by their ports
    struct listening_array found;        // where they listen
    size_t found_watched;                // of these: that backends were told of
    int64_t looked_ns;                   // when processes were last looked for that came later
    struct clock_recorder clock;
    struct network_counters network;   // as the capture began
    struct group_counters groups;      // likewise
    struct firewall_state firewall;    // likewise
    struct process_family own;         // likewise: those of this run
    struct page_fault_cost page_fault; // what one costs on this machine
    struct capture_segments segments;
    json_t *warnings, *document;
    int signals;
    bool interrupted;       // by one of them
    struct way_out way_out; // at the second one
    struct capture_lines lines;
    char line[64]; // of standard input, as far as it was read
    size_t line_used;
};

// A warning on stderr that capture.json keeps.
void capture_warn(struct capture *capture, const char *text);

struct capture_backend {
    const char *name;  // for --backend, and of its member of capture.json
    const char *help;  // what it is, in a line
    const char *lack;  // how a warning begins when it cannot be had: "no kernel events"
    const char *files; // what it writes
    // The keys of an experiment's `capture` that are for it alone, NULL behind the last; NULL:
    // none.
    const char *const *keys;
    bool is_auto;   // `auto` has it where it can be had
    bool is_always; // every choice but `none` has it

    // The operations. None may be missing (tests/experiments/definition/test_kinds.c).

    // Adds what `taillight doctor` says of it: whether it can be had here, and how if not.
    void (*examine)(struct doctor_items *items);
    // Checks the options that are its own.
    int (*check)(const struct capture_options *options, bool chosen, struct error *err);
    // Begins to record. *state is for the other operations, until `free`. Where this machine cannot
    // and that is not worth a warning, returns 0 and *state stays NULL; never when it is needed.
    int (*start)(struct capture *capture, bool needed, void **state, struct error *err);
    // Reads what has been recorded, and checks that recording goes on.
    int (*poll)(void *state, struct error *err);
    // How many bytes it holds back that a cut would write, and how many it may hold anyway.
    uint64_t (*kept)(const void *state);
    uint64_t (*ring_bytes)(const void *state);
    // Writes that to the segment of this number in `out`, or forgets it if that is NULL. Where it
    // did not record all the time, says so in *segment.
    int (*cut)(void *state, const char *out, unsigned number, struct capture_segment *segment,
               struct error *err);
    // Its figures until the last cut; NULL: it has none before its end. The caller owns them.
    json_t *(*so_far)(void *state, json_t *dropped);
    // Ends the part of recording that costs the server time.
    int (*disable)(void *state, struct error *err);
    // Ends the recording and writes it. *document, which the caller owns, is its member of
    // capture.json; counts of lost records are added to `dropped`.
    int (*stop)(struct capture *capture, void *state, json_t *dropped, json_t **document,
                struct error *err);
    void (*free)(void *state);
    // Adds the cores that it records by now although they were not asked for, because they deliver
    // to the servers' sockets, or serve. Only before `stop`.
    void (*add_followed)(void *state, cpu_set_t *cores);
    // Records these cores as well from now on. Returns 1, or 0: its cores are fixed.
    int (*follow)(void *state, const cpu_set_t *cores, struct error *err);
    // Watches this server's process (0: none), and whoever shares its network namespace; and a
    // port beside those that were given (0: none).
    void (*watch)(void *state, uint32_t process, uint16_t port);
    // Records no socket calls of that process any more: the shim does.
    void (*leave_calls)(void *state, uint32_t process);
    // The number here of a thread of another PID namespace (shim/message_collector.h); also after
    // `stop`. 0: not known.
    uint32_t (*thread_here)(void *state, uint64_t namespace, uint32_t inside);
    // Begins or ends to record, as a line "trace on" or "trace off" of standard input says. Returns
    // 1, or 0: it records all along.
    int (*turn)(void *state, bool on, struct error *err);
    // Somebody else took so much processor time to read what it recorded.
    void (*charge)(void *state, uint64_t ns);
    // Writes its buffers to disk; *number: snapshots so far. Returns 1, or 0: it takes none.
    int (*take_snapshot)(struct capture *capture, void *state, int *number, struct error *err);
};

#define CAPTURE_BACKEND_DECLARE(name) extern const struct capture_backend backend_##name;
CAPTURE_BACKENDS(CAPTURE_BACKEND_DECLARE)

extern const struct capture_backend *const capture_backends[CAPTURE_BACKENDS_COUNT];

// For operations that a backend has no need of.
uint64_t backend_keeps_nothing(const void *state);
int backend_needs_no_cut(void *state, const char *out, unsigned number,
                         struct capture_segment *segment, struct error *err);
json_t *backend_has_figures_at_its_end(void *state, json_t *dropped);
int backend_needs_no_disabling(void *state, struct error *err);
void backend_adds_no_core(void *state, cpu_set_t *cores);
int backend_has_fixed_cores(void *state, const cpu_set_t *cores, struct error *err);
void backend_records_no_calls(void *state, uint32_t process);
void backend_watches_cores(void *state, uint32_t process, uint16_t port);
uint32_t backend_knows_no_thread(void *state, uint64_t namespace, uint32_t inside);
int backend_records_always(void *state, bool on, struct error *err);
void backend_has_no_budget(void *state, uint64_t ns);
int backend_takes_no_snapshot(struct capture *capture, void *state, int *number, struct error *err);

// Has every backend examined (profiler/doctor/doctor.h).
void capture_backends_examine(struct doctor_items *items);

// What --backend takes: "auto", the backends' names, "none"; NULL behind the last.
const char *capture_choice_name(unsigned index);
// The backend that it names; NULL: none.
const struct capture_backend *capture_choice_backend(unsigned index);
// Whether it is a processor's trace, with a buffer and bounds of its own.
bool capture_traces(unsigned index);
// Whose record of socket calls the kernel's events are to have beside the shim's.
enum capture_calls {
    CAPTURE_CALLS_AUTO,   // of servers that have no shim
    CAPTURE_CALLS_KERNEL, // of all
    CAPTURE_CALLS_NONE,
};
const char *capture_calls_name(unsigned index); // "auto", ...; NULL behind the last

// Whether more is recorded than sockets and clocks, so that a verdict can be expected.
bool capture_choice_records(unsigned index);

#endif
