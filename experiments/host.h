// SPDX-License-Identifier: MIT
//
// Where things run. A host gives every process its place (network namespace, cores) and every
// server its address. `netns` hosts are network namespaces without names, joined pairwise by veth
// cables made inside them, so nothing of them is seen on the machine and nothing of them can be
// left behind. RPS steers what each receives onto its own cores: the receive core of a server
// belongs to the server's host.
#ifndef EXPERIMENTS_HOST_H
#define EXPERIMENTS_HOST_H

#include <stddef.h>

#include "base/array.h"
#include "base/process.h"
#include "experiments/command_log.h"
#include "experiments/experiment.h"
#include "experiments/keeper.h"

struct host {
    const struct experiment_host *plan;
    struct keeper keeper;
    enum host_kind kind; // what it became: a netns host is local where namespaces cannot be made
    char address[16];    // IPv4, as every host of the run reaches it
    char netns[32];      // path of its namespace; empty: the machine's
};
struct host_array ARRAY_OF(struct host);

// Starts the keepers of all hosts of an experiment and makes their network.
// Where namespaces cannot be made, all hosts become local and `degraded` says why. On failure
// nothing is left. The experiment must outlive the hosts. With a log that is dry nothing is done.
int hosts_start(struct host_array *hosts, const struct experiment *experiment,
                struct command_log *log, struct error *degraded, struct error *err);

// Undoes everything on all hosts. The first thing that could not be undone is the error.
int hosts_end(struct host_array *hosts, struct command_log *log, struct error *err);

// The place of a process on the host, on these cores (kept by reference; NULL: the host's own).
struct process_place host_place(const struct host *host, const cpu_set_t *cores);

// Runs a short command there, to its end.
int host_run(const struct host *host, const char *const *argv, struct command_log *log,
             struct error *err);

#endif
