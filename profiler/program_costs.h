// SPDX-License-Identifier: MIT
//
// What a capture's BPF programs take, by the kernel's own statistics (bpf_enable_stats, Linux 5.8).
// They slow the programs down a little, and turning them on or off patches the kernel's code, which
// takes a core for 12 to 20 ms (seen on two cores of a virtual machine): they are only on for
// moments, and while somebody is measured only where a capture keeps to a budget.
#ifndef PROFILER_PROGRAM_COSTS_H
#define PROFILER_PROGRAM_COSTS_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "profiler/event_drain.h"
#include "profiler/events_programs.h"

struct program_costs {
    int fd;            // keeps the statistics on while open; -1: off
    unsigned measured; // how often it was begun to
    double record_ns;  // what programs take for a record, by the latest statistics
    // Of a measurement, as it began:
    uint64_t since_ns;
    uint64_t run_ns; // what the programs had taken
    uint64_t *heads; // how many records each core had
};

// cores: possible ones. -1: no memory. program_costs_free() is to be called either way.
int program_costs_init(struct program_costs *costs, unsigned cores);
void program_costs_free(struct program_costs *costs);

// Has the programs' own figures (events_programs_json) sampled, before the load: this thread sleeps
// and wakes some times on cores that are watched.
void program_costs_sample(struct program_costs *costs, const cpu_set_t *watched);

// Begins to measure. What a record takes is asked each seventh time.
void program_costs_begin(struct program_costs *costs, const struct events_bpf *programs,
                         const struct event_program_state states[EVENT_PROGRAMS],
                         const struct event_drain *drain);

// What the programs have taken since then of the core that recorded most, in ns, and in *records
// how many there were on all of them. Where the kernel lets this process have no statistics
// (CAP_SYS_ADMIN), and before it has any, a record counts as what one takes on slow machines.
double program_costs_so_far(struct program_costs *costs, const struct events_bpf *programs,
                            const struct event_program_state states[EVENT_PROGRAMS],
                            const struct event_drain *drain, uint64_t *records);

// Turns the statistics off, if they are on.
void program_costs_end(struct program_costs *costs);

#endif
