// SPDX-License-Identifier: MIT
//
// The phases of a run, in the order in which run.c calls them. Each uses struct run and none of the
// others, except that run_load starts and stops neighbours. All return 0 or an error.
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

// Starts the hosts. From now on the end of a link to another machine ends the run, until
// run_unwatch_links is called.
int run_start_hosts(struct run *run, struct error *err);
void run_unwatch_links(struct run *run);

// facts.json: what the server's machine is and can measure; of other machines facts-<host>.json.
int run_collect_facts(struct run *run, struct error *err);
// The same in a dry run, which only logs the commands that would ask other machines.
int run_log_fact_questions(struct run *run, struct error *err);

int run_tune(struct run *run, struct error *err);

// --- files (run_files.c) -------------------------------------------------------------------------

// Chooses where capture and load write, and sends the files that other machines need.
int run_choose_directories(struct run *run, struct error *err);
// Fetches what was written on other machines into the run's folder.
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

// Makes the load, from its start to its summary, and starts and stops neighbours meanwhile.
int run_load(struct run *run, struct error *err);

// --- neighbours (run_neighbours.c) ---------------------------------------------------------------

// Starts the neighbours that serve, and what must be ready on other machines.
int run_start_neighbours(struct run *run, struct error *err);

// Starts and stops what is due by now_ns. *next_ns: when something is due next (UINT64_MAX:
// nothing).
int run_update_neighbours(struct run *run, uint64_t begin_ns, uint64_t now_ns, uint64_t *next_ns,
                          struct error *err);

// Warns of neighbours whose program has failed; ending by itself is no failure.
void run_check_neighbours(struct run *run);

// Stops the neighbours' programs and loads. keep: waits for the summaries of the loads.
void run_stop_neighbours(struct run *run, bool keep);

// Ends all neighbours, also those that serve. Harmless when nothing runs.
void run_end_neighbours(struct run *run);

#endif
