// SPDX-License-Identifier: MIT
//
// What a capture's BPF programs take, by the kernel's own statistics (bpf_enable_stats, Linux 5.8).
// They slow the programs down a little, and turning them on or off patches the kernel's code, which
// takes a core for 12 to 20 ms (seen on two cores of a virtual machine): they are only on for
// a moment, as a capture begins.
#ifndef PROFILER_EVENTS_PROGRAM_COSTS_H
#define PROFILER_EVENTS_PROGRAM_COSTS_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "profiler/events/event_drain.h"
#include "profiler/events/events_programs.h"

struct program_costs {
    double record_ns; // what programs take for a record
    uint64_t *heads;  // how many records each core had, as a measurement began
};

// cores: possible ones. -1: no memory. program_costs_free() is to be called either way.
int program_costs_init(struct program_costs *costs, unsigned cores);
void program_costs_free(struct program_costs *costs);

// Has the programs' own figures (events_programs_json) sampled, before the load: this thread sleeps
// and wakes some times on cores that are watched. A record then takes what it took meanwhile, which
// is rather too much: switches take more than most. Where the kernel lets this process have no
// statistics (CAP_SYS_ADMIN) it counts as what one takes on slow machines.
void program_costs_sample(struct program_costs *costs, const struct events_bpf *programs,
                          const struct event_program_state states[EVENT_PROGRAMS],
                          const struct event_drain *drain, const cpu_set_t *watched);

// Begins to measure.
void program_costs_begin(struct program_costs *costs, const struct event_drain *drain);

// What the programs have taken since then of the core that recorded most, in ns, and in *records
// how many there were on all of them.
double program_costs_so_far(const struct program_costs *costs, const struct event_drain *drain,
                            uint64_t *records);

// Of these cores the one that has recorded least since then.
unsigned program_costs_calm_core(const struct program_costs *costs, const struct event_drain *drain,
                                 const cpu_set_t *cores);

#endif
