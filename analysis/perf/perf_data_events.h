// SPDX-License-Identifier: MIT
//
// Sideband records: each is checked once, when it is read, so that the typed readers here cannot
// fail.
#ifndef ANALYSIS_PERF_PERF_DATA_EVENTS_H
#define ANALYSIS_PERF_PERF_DATA_EVENTS_H

#include "analysis/perf/perf_data.h"

struct perf_reader; // perf_data_reader.h

// Checks a kernel record, takes its sample_id and keeps it as an event.
void perf_read_sideband(struct perf_reader *reader, const uint8_t *record, size_t size);

// Sorts by time and keeps the order of equals. -1: out of memory.
int perf_sort_events(struct perf_event_array *events);

// --- what an event says. Each may be called only on an event of the named type; strings and bytes
// point into the record and live as long as the perf_data.

struct perf_mmap { // MMAP, MMAP2
    uint32_t pid, tid;
    uint64_t address, bytes, file_offset;
    uint32_t protection, flags; // as in mmap(2); MMAP: PROT_EXEC unless it says data
    uint32_t major, minor;
    uint64_t inode;
    uint8_t build_id[20];
    uint8_t build_id_size; // 0: none
    bool executable;
    bool kernel;
    const char *path;
};
void perf_event_mmap(const struct perf_event *event, struct perf_mmap *out);

struct perf_comm {
    uint32_t pid, tid;
    bool exec; // by execve, so the address space is new
    const char *name;
};
void perf_event_comm(const struct perf_event *event, struct perf_comm *out);

struct perf_task { // FORK, EXIT
    uint32_t pid, parent_pid, tid, parent_tid;
    uint64_t time;
};
void perf_event_task(const struct perf_event *event, struct perf_task *out);

struct perf_switch { // SWITCH, SWITCH_CPU_WIDE
    bool out;        // the task named by the event's pid and tid stops running (else: begins)
    bool preempted;
    uint32_t other_pid,
        other_tid; // CPU_WIDE: the next task (out) or the previous one (in); else PERF_NO_PID
};
void perf_event_switch(const struct perf_event *event, struct perf_switch *out);

struct perf_aux {
    uint64_t offset, bytes; // in the kernel's AUX ring, offset counted from the start
    uint64_t flags;         // PERF_AUX_*
};
void perf_event_aux(const struct perf_event *event, struct perf_aux *out);

struct perf_itrace_start {
    uint32_t pid, tid;
};
void perf_event_itrace_start(const struct perf_event *event, struct perf_itrace_start *out);

struct perf_lost { // LOST (records), LOST_SAMPLES
    uint64_t lost;
};
void perf_event_lost(const struct perf_event *event, struct perf_lost *out);

struct perf_text_poke {
    uint64_t address;
    uint16_t old_bytes, new_bytes;
    const uint8_t *old_code, *new_code;
};
void perf_event_text_poke(const struct perf_event *event, struct perf_text_poke *out);

struct perf_ksymbol {
    uint64_t address;
    uint32_t bytes;
    bool unregistered;
    bool bpf; // else: out-of-line code (optimised probes, trampolines)
    const char *name;
};
void perf_event_ksymbol(const struct perf_event *event, struct perf_ksymbol *out);

struct perf_bpf {
    bool loaded, unloaded;
    uint32_t program; // its id
};
void perf_event_bpf(const struct perf_event *event, struct perf_bpf *out);

struct perf_auxtrace_error {
    uint32_t type, code, cpu, pid, tid;
    uint64_t address, time;
    const char *message;
};
void perf_event_auxtrace_error(const struct perf_event *event, struct perf_auxtrace_error *out);

#endif
