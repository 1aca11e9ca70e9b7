// SPDX-License-Identifier: MIT
//
// What the phases of a run (experiments/run/run_phases.h) share.
#ifndef EXPERIMENTS_RUN_RUN_STATE_H
#define EXPERIMENTS_RUN_RUN_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/progress.h"
#include "experiments/common/command_log.h"
#include "experiments/hosts/host.h"
#include "experiments/common/supervisor.h"
#include "experiments/servers/server.h"

#define SECOND_NS 1000000000ull

enum { STOP_GRACE_MS = 2000, LOG_PATH_BYTES = RUN_PATH_BYTES + 128 };

// A neighbour: a program that runs for part of the load, or a server that runs all along and is
// loaded for part of it.
struct neighbour {
    const struct experiment_neighbour *plan;
    struct process process; // the program, or the load of a neighbour that serves
    char log_path[LOG_PATH_BYTES];
    bool held; // behind ssh: a shell there waits for a line on its stdin to become the program
    bool started;
    struct experiment_server server_plan; // of a neighbour that serves
    struct server server;
};

struct run {
    const struct experiment *experiment;
    struct run_folder *folder;
    json_t *warnings; // list of strings: what this machine could not do, and what was unusual
    struct progress *progress;
    struct supervisor supervisor;
    struct command_log log;
    struct host_array hosts;
    json_t *tuned;                                 // for experiment.json: what was tuned, what not
    struct server servers[EXPERIMENT_SERVERS_MAX]; // as the experiment's
    struct process capture;
    char capture_log[LOG_PATH_BYTES];
    struct process load;
    char load_log[LOG_PATH_BYTES];
    struct process clock; // records the load host's clock, where the server's is not the same
    // Where they write, on their hosts. The load's agents may be elsewhere than their controller.
    char server_dir[LOG_PATH_BYTES], client_dir[LOG_PATH_BYTES], load_dir[LOG_PATH_BYTES];
    bool files_inside; // the workload names its files relative to the run's folder, or directory
                       // there
    bool
        load_here; // some agents are behind ssh: their controller is here, whatever the load's host
    struct neighbour *neighbours;
    json_t *neighbour_loads; // for experiment.json: the results of these loads
    json_t *server_cpu; // for experiment.json: how busy the server's cores were during the load
    char shim[RUN_PATH_BYTES];
    char shim_dir[128]; // empty: no shim
    bool capturing;
};

// The hosts of the server that is loaded, and of the load.
struct host *run_server_host(struct run *run);
struct host *run_load_host(struct run *run);

// Writes a warning to stderr, to commands.log and into the run's warnings.
void run_warn(struct run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Starts a taillight command on a host, away from the server's cores, with its stdout in a pipe.
// input: its stdin, too. argv[0] is host_program's. host NULL: here, on no host of the run.
// directory: its working directory (NULL: ours).
int run_start_command(struct run *run, struct host *host, const char *const *argv, bool input,
                      const char *directory, const char *log_path, struct process *process,
                      struct error *err);

// The first line of what a child has printed, as JSON; NULL: not one. The caller owns it.
json_t *run_first_line(const struct text_buffer *output);

#endif
