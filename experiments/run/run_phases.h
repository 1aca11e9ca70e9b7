// SPDX-License-Identifier: MIT
//
// The phases of a run, in the order in which run.c calls them. Each knows struct run and none the
// others, but that neighbours come and go while run_load lasts. All return 0 or an error.
#ifndef EXPERIMENTS_RUN_RUN_PHASES_H
#define EXPERIMENTS_RUN_RUN_PHASES_H

#include "experiments/run/run_state.h"

// --- before the hosts ----------------------------------------------------------------------------

// Makes room for the neighbours (run_neighbours.c).
int run_make_neighbours(struct run *run, struct error *err);

// What is in the folder from the start: experiment.yaml as it was given, client/workload.yaml, its
// categories.csv, client/, server/, logs/ (run_files.c).
int run_write_inputs(const struct run_folder *folder, const struct experiment *experiment,
                     struct error *err);

// --- hosts (run_hosts.c) -------------------------------------------------------------------------

// Makes them; an end of the way to one elsewhere ends the run, until it is not watched any more.
int run_start_hosts(struct run *run, struct error *err);
void run_unwatch_links(struct run *run);

// facts.json: what the server's machine is and can measure; of other machines facts-<host>.json.
int run_look_around(struct run *run, struct error *err);
// What a dry run can say of that: the question to other machines, which has no answer yet.
int run_ask_around(struct run *run, struct error *err);

int run_tune(struct run *run, struct error *err);

// --- files (run_files.c) -------------------------------------------------------------------------

// Where capture and load write; hosts elsewhere get what they need there.
int run_choose_directories(struct run *run, struct error *err);
// What they wrote there, into the run's folder.
int run_fetch(struct run *run, struct error *err);

// --- capture and clock (run_capture.c) -----------------------------------------------------------

int run_start_capture(struct run *run, struct error *err);
int run_stop_capture(struct run *run, struct error *err);

// client/clock.tlog, where client and server may have different clocks.
int run_start_clock(struct run *run, struct error *err);
int run_stop_clock(struct run *run, struct error *err);

// --- load (run_load.c) ---------------------------------------------------------------------------

// Loads the dataset and verifies it.
int run_prepare(struct run *run, struct error *err);

// The load from its start to its summary, neighbours coming and going meanwhile.
int run_load(struct run *run, struct error *err);

// --- neighbours (run_neighbours.c) ---------------------------------------------------------------

// Starts those that are there all along.
int run_start_neighbours(struct run *run, struct error *err);

// Does what is due by now and says when something is due next (UINT64_MAX: nothing).
int run_tend_neighbours(struct run *run, uint64_t begin_ns, uint64_t now_ns, uint64_t *next_ns,
                        struct error *err);

// A neighbour may well end by itself; that it failed is worth saying.
void run_check_neighbours(struct run *run);

// The load has ended: so does what came for it. keep: what their loads found is waited for.
void run_send_neighbours_away(struct run *run, bool keep);

// Ends everything of theirs. Harmless when nothing runs.
void run_end_neighbours(struct run *run);

#endif
