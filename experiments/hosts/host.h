// SPDX-License-Identifier: MIT
//
// Where things run. A host gives every process its place (network namespace, cores) and every
// server its address. How it does that depends on its kind (experiments/hosts/host_kind.h).
#ifndef EXPERIMENTS_HOSTS_HOST_H
#define EXPERIMENTS_HOSTS_HOST_H

#include <stddef.h>

#include "base/array.h"
#include "base/process.h"
#include "experiments/common/command_log.h"
#include "experiments/plan/experiment.h"
#include "experiments/keeper/keeper.h"
#include "experiments/common/run_folder.h"
#include "experiments/keeper/process_tree.h"

struct host_kind;

struct host {
    const struct experiment_host *plan;
    const struct host_kind *kind; // its plan's kind, or the fallback of that
    struct keeper keeper;
    char mark[TREE_MARK_BYTES]; // in the environment of all processes there
    char address[16];           // IPv4, as every host of the run reaches it
    char netns[32];             // path of its namespace; empty: the machine's
    char agent_place[440]; // as `taillight load --agent` takes it, "netns=PATH"; empty: where it is
    struct keeper outside; // of a host in a namespace: for settings of the whole machine
    char cgroup[KEEPER_TEXT_BYTES]; // folder of its control group; empty: none
    cpu_set_t cgroup_cores;
    bool is_root; // processes there are root's
    // Of one that is elsewhere:
    char what[64];           // "host server"
    char directory[256];     // there, for what is the run's
    char log_path[4300];     // here: stderr of the link and of our programs there
    cpu_set_t helpers;       // where our own work runs: off the host's cores, if there are others
    unsigned stale_journals; // of runs that did not live to undo their changes there
    int64_t clock_offset_ns; // how far its CLOCK_MONOTONIC is ahead of ours; 0: it is ours
    void *state;             // its kind's own
};
struct host_array ARRAY_OF(struct host);

// Starts the keepers of all hosts of an experiment and makes their network.
// Where namespaces cannot be made, all hosts become local and `degraded` says why. On failure
// nothing is left. The experiment must outlive the hosts. With a log that is dry nothing is done.
// What ssh says of a host goes into the folder's logs/ssh-<host>.log.
int hosts_start(struct host_array *hosts, const struct experiment *experiment,
                const struct run_folder *folder, struct command_log *log, struct error *degraded,
                struct error *err);

// Undoes everything on all hosts. The error is the first thing that could not be undone. hurried: a
// person waits, and other machines have a moment to say that they are through.
int hosts_end(struct host_array *hosts, bool hurried, struct command_log *log, struct error *err);

// The place of a process on the host, on these cores (kept by reference; NULL: the host's own).
// Where the host has a control group and its cores are among that one's, the process is in it.
struct process_place host_place(const struct host *host, const cpu_set_t *cores);

// The environment that a process at that place gets in addition: the place's own, and the host's
// mark. Returns list.
enum { HOST_VARIABLES = 32 };
const char *const *host_environment(const struct host *host, const struct process_place *place,
                                    const char *list[HOST_VARIABLES + 1]);

// The keeper for settings that belong to the whole machine and not to a network namespace; NULL: it
// could not be started.
struct keeper *host_machine_keeper(struct host *host, struct error *err);

// Runs a short command there, to its end.
int host_run(const struct host *host, const char *const *argv, struct command_log *log,
             struct error *err);

#endif
