// SPDX-License-Identifier: MIT
//
// The server under test: started in its place, with the shim in front of its sockets, and waited
// for until it answers.
#ifndef EXPERIMENTS_SERVER_H
#define EXPERIMENTS_SERVER_H

#include "base/process.h"
#include "experiments/hosts/command_log.h"
#include "experiments/spec/experiment.h"
#include "experiments/hosts/host.h"
#include "experiments/run_folder.h"
#include "experiments/hosts/supervisor.h"

struct server {
    const struct experiment_server *plan;
    struct process process;
    char what[64]; // "the server `cache`"
    char log_path[4300];
};

// Starts it and waits, 10 s at most, until `from` can connect to it. shim_path and shim_dir: NULL
// without the shim. A port that is taken, a program that is not there, one that ends at once (its
// last words are quoted) and one that never listens are ERROR_FAILED. On failure nothing runs. A
// kind that needs files of its own finds them in the run's folder, in <kind>-<name>. From
// its start on, the supervisor watches it.
int server_start(struct server *server, const struct experiment_server *plan, struct host *host,
                 struct host *from, const char *shim_path, const char *shim_dir,
                 const char *log_path, const struct run_folder *folder,
                 struct supervisor *supervisor, struct command_log *log, struct error *err);

// Ends it. Harmless when it does not run.
void server_stop(struct server *server, struct supervisor *supervisor);

#endif
