// SPDX-License-Identifier: MIT
//
// A run takes root's rights; what is made of its data takes none, and others wrote that data. So
// where `taillight run` is root, two processes share the work. This one keeps its rights, makes the
// runs, and reads nothing of what they recorded. The other has given up all rights before the first
// run begins; it orders each run here, and analyzes, judges and reports on what comes of it.
//
// Who took that process over can order the experiments that the user asked for, into the folder of
// this command, and nothing else.
#ifndef EXPERIMENTS_RUN_DIVIDED_RUN_H
#define EXPERIMENTS_RUN_DIVIDED_RUN_H

#include "experiments/run/run.h"
#include "experiments/run/run_orders.h"

// Calls work(settings, context), where settings->orders makes the runs, in a child that has given
// up all rights, and makes the runs that it orders, of these experiments (nothing but their seeds
// changes). owner: whose the folders are, and who the child is; NULL: root itself, without
// capabilities. Returns what `work` returned, an exit code, or negative where the child could not
// do it; its own errors it has reported.
int run_divided(const struct run_settings *settings, const struct person *owner,
                const struct experiment_list *experiments,
                int (*work)(const struct run_settings *settings, void *context), void *context,
                struct error *err);

// Whom a run of this process in that folder (NULL: a fresh one) is made for. False: for the process
// itself, since it is not root, nobody used sudo, or that user cannot reach the folder, which is
// warned of.
bool run_find_owner(const char *folder, struct person *owner);

#endif
