// SPDX-License-Identifier: MIT
//
// Where things run. A host gives every process its place (network namespace, cores) and every
// server its address. `netns` hosts are network namespaces without names, joined pairwise by veth
// cables made inside them, so nothing of them is seen on the machine and nothing of them can be
// left behind. RPS steers what each receives onto its own cores: the receive core of a server
// belongs to the server's host.
#ifndef EXPERIMENTS_HOSTS_HOST_H
#define EXPERIMENTS_HOSTS_HOST_H

#include <stddef.h>

#include "base/array.h"
#include "base/process.h"
#include "experiments/common/command_log.h"
#include "experiments/spec/experiment.h"
#include "experiments/keeper/keeper.h"
#include "experiments/remote/far_host.h"
#include "experiments/common/run_folder.h"

struct host {
    const struct experiment_host *plan;
    struct keeper keeper;
    enum host_kind kind;   // what it became: a netns host is local where namespaces cannot be made
    char address[16];      // IPv4, as every host of the run reaches it
    char netns[32];        // path of its namespace; empty: the machine's
    struct keeper outside; // of a netns host that changes what is the whole machine's
    char cgroup[KEEPER_TEXT_BYTES]; // folder of its control group; empty: none
    cpu_set_t cgroup_cores;
    struct far_host far; // of kind ssh
};
struct host_array ARRAY_OF(struct host);

// Starts the keepers of all hosts of an experiment and makes their network.
// Where namespaces cannot be made, all hosts become local and `degraded` says why. On failure
// nothing is left. The experiment must outlive the hosts. With a log that is dry nothing is done.
// What ssh says of a host goes into the folder's logs/ssh-<host>.log.
int hosts_start(struct host_array *hosts, const struct experiment *experiment,
                const struct run_folder *folder, struct command_log *log, struct error *degraded,
                struct error *err);

// Undoes everything on all hosts. The first thing that could not be undone is the error.
int hosts_end(struct host_array *hosts, struct command_log *log, struct error *err);

// Starts a process there. Of a host behind ssh, what fails only there shows when the process ends.
int host_start_process(const struct host *host, const char *const *argv,
                       const struct process_place *place, struct process *process,
                       struct error *err);

// The path, on that host, of what was built with this program: "taillight", "labserver",
// "libtaillight-shim.so".
int host_program(const struct host *host, const char *name, char path[RUN_PATH_BYTES],
                 struct error *err);

// Whether processes there are root's.
bool host_is_root(const struct host *host);

// The place of a process on the host, on these cores (kept by reference; NULL: the host's own).
// Where the host has a control group and its cores are among that one's, the process is in it.
struct process_place host_place(const struct host *host, const cpu_set_t *cores);

// The keeper to ask for what is the whole machine's and not a network namespace's; NULL: it cannot
// be had.
struct keeper *host_machine_keeper(struct host *host, struct error *err);

// Runs a short command there, to its end.
int host_run(const struct host *host, const char *const *argv, struct command_log *log,
             struct error *err);

#endif
