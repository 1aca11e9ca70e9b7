// SPDX-License-Identifier: MIT
//
// Drives a stock `perf record` as a child: its command line, and the commands it takes while it
// runs (perf-record(1), --control: enable, disable, snapshot, stop, ping, each answered "ack").
// perf's stdin and stdout are the two ends of that conversation, so there is nothing to clean up;
// perf dies with this process, also by kill -9. Every wait is bounded, and what perf said on stderr
// is in the error when it fails. Who interrupts does not wait for a perf that hangs: one that has
// done nothing for half a second, or run for two without reading or writing, is killed.
#ifndef PROFILER_TRACE_PERF_RECORDER_H
#define PROFILER_TRACE_PERF_RECORDER_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/process.h"

// --- whether cores can be sampled ----------------------------------------------------------------
// Whether the cores of this host can be sampled, by which perf event, and why not. `taillight
// doctor` and the capture give the same answer, because both ask here. The event is tried: a
// virtual machine may offer counters that do not interrupt.

struct sampling {
    bool ready;
    const char *event; // "cycles" where there is a PMU, else "cpu-clock": the timer's interrupts
    char perf[256];    // the program's path; "" where there is none
    char reason[200];  // why not, a sentence without its stop; "" when ready
    const char *how;   // what to do about it; NULL when ready
};

// Samples per second of each core in a capture. Not a multiple of usual timer frequencies, so that
// samples do not fall into step with timers.
enum { SAMPLING_FREQUENCY = 3989, SAMPLING_FREQUENCY_MOST = 100000 };

// Examines the host. perf: the program to use, NULL: the one in PATH.
void sampling_find(const char *perf, struct sampling *out);

// Samples per second of a core that the kernel allows now (kernel.perf_event_max_sample_rate; it
// lowers that by itself when taking samples takes too long); 0: unknown.
unsigned sampling_most_allowed(void);

struct perf_recorder_settings {
    const char *perf;   // program; NULL: "perf" in PATH
    const char *event;  // as after perf record -e
    const char *output; // perf.data; with kcore it becomes a folder
    const char *log;    // perf's stderr
    cpu_set_t cores;    // to record; empty: all
    const char *pids;   // "12,34": record these processes instead of cores; NULL: cores
    bool per_thread;    // with pids: a buffer for each thread instead of one for each core
    bool kcore;         // copy the kernel's code beside the recording
    unsigned frequency; // samples a second of each core; 0: the event is no sampled one
    bool host_time;     // records carry CLOCK_MONOTONIC_RAW; false: perf's clock
    bool switches;      // record who runs when
    bool mapped_ids;    // each mapping comes with its file's build-id, where perf and the kernel
                        // can (5.12): else perf reads all it wrote once more at its end for them
    bool snapshot;      // keep only what the AUX buffers hold, and write it when asked
    uint64_t aux_bytes; // AUX buffer of each core, a power of two times the page; 0: no AUX
    const cpu_set_t *place;  // where perf itself runs; NULL: anywhere
    const bool *interrupted; // set where a person has interrupted the program; NULL: nobody tells
    int answer_ms;           // longest wait for an answer; 0: 30 s
    int end_ms;              // longest wait for the end, when perf writes what is left; 0: 120 s
};

struct perf_recorder {
    struct process process;
    char log[4200];
    char command[2048]; // for people
    const bool *interrupted;
    int answer_ms, end_ms;
    unsigned snapshots; // taken
    bool ready;         // it has answered
    bool ending;        // it was told to end
};

// Fills argv (most of `most`) with perf's command line; the numbers it needs go to words. Exposed
// for tests. Returns the number of arguments.
struct perf_recorder_words {
    char cores[1024], aux[40], frequency[24];
};
enum { PERF_RECORDER_ARGUMENTS = 32 };
unsigned perf_recorder_arguments(const struct perf_recorder_settings *settings,
                                 struct perf_recorder_words *words,
                                 const char *argv[PERF_RECORDER_ARGUMENTS]);

// Starts perf with its events disabled; returns when it answers. On failure nothing is left
// running. That takes seconds; a person who interrupts (process_is_interrupted) ends it at once.
int perf_recorder_start(struct perf_recorder *recorder,
                        const struct perf_recorder_settings *settings, struct error *err);
int perf_recorder_enable(struct perf_recorder *recorder, struct error *err);
// Writes out what the AUX buffers hold now. Only for a recorder that was started for snapshots.
int perf_recorder_snapshot(struct perf_recorder *recorder, struct error *err);
// Fails when perf has ended by itself. Costs one system call.
int perf_recorder_check(struct perf_recorder *recorder, struct error *err);
int perf_recorder_disable(struct perf_recorder *recorder, struct error *err);
// Tells perf to write what is left, and does not wait for it: others may end meanwhile.
int perf_recorder_end(struct perf_recorder *recorder, struct error *err);
// The same, unless that was done, and waits until it has ended.
int perf_recorder_stop(struct perf_recorder *recorder, struct error *err);
// Ends perf if it still runs. Harmless on a zeroed struct.
void perf_recorder_fini(struct perf_recorder *recorder);

#endif
