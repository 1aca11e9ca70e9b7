// SPDX-License-Identifier: MIT
//
// A run's hold on its processor trace: what the capture is told when it is started, when the trace
// begins and ends, and when a reply was slow, so that a snapshot is worth taking.
#ifndef EXPERIMENTS_RUN_RUN_TRACE_H
#define EXPERIMENTS_RUN_RUN_TRACE_H

#include "experiments/run/run_phases.h"

// Room for the texts that the capture's command line keeps pointers to.
struct run_trace_words {
    char cores[256];
};

// Adds what the experiment says of the trace to the capture's command line.
void run_add_trace(const struct run *run, struct run_trace_words *words, struct command_line *line);

// Adds to the load's command line that it is to tell of slow replies, where somebody asks.
void run_add_slow(const struct run *run, struct command_line *line);

// Begins and ends the trace as its window says; *next_ns is lowered to when there is more to do.
void run_turn_trace(struct run *run, uint64_t begin_ns, uint64_t now_ns, uint64_t *next_ns);

// Has a snapshot taken: a reply was slow.
void run_take_snapshot(struct run *run);

#endif
