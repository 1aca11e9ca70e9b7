// SPDX-License-Identifier: MIT
//
// Starts a server on its host, with the shim in front of its sockets, and waits until it answers.
// What differs between kinds is in experiments/servers/server_kind.h.
#ifndef EXPERIMENTS_SERVERS_SERVER_H
#define EXPERIMENTS_SERVERS_SERVER_H

#include "base/process.h"
#include "experiments/common/command_log.h"
#include "experiments/hosts/host.h"
#include "experiments/common/supervisor.h"
#include "experiments/plan/experiment.h"
#include "experiments/common/run_folder.h"

struct server {
    const struct experiment_server *plan;
    struct process process;
    char what[64]; // "the server `cache`"
    char log_path[4300];
};

// What a server is started with. All but the paths must outlive it.
struct server_surroundings {
    struct host *host;
    struct host *from;     // the host that must be able to reach it
    const char *shim_path; // there, as the next; NULL: without the shim
    const char *shim_dir;
    const char *log_path;
    const struct run_folder *folder;
    struct supervisor *supervisor;
    struct command_log *log;
};

// Starts it and waits, 10 s at most, until `from` can connect to it. A port that is taken, a
// program that is not there, one that ends at once (its last words are quoted) and one that never
// listens are ERROR_FAILED. On failure nothing runs. A kind that needs files of its own finds them
// in the run's folder, in <kind>-<name>. From its start on, the supervisor watches it.
int server_start(struct server *server, const struct experiment_server *plan,
                 const struct server_surroundings *around, struct error *err);

// The IPv4 address on which the load reaches it.
const char *server_address(const struct experiment_server *plan, const struct host *host);

// Ends it, if it was started. Harmless when it does not run.
void server_stop(struct server *server, struct supervisor *supervisor);

#endif
