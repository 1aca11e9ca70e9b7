// SPDX-License-Identifier: MIT
//
// The phases of a run, and what they share.
#ifndef EXPERIMENTS_RUN_RUN_PHASES_H
#define EXPERIMENTS_RUN_RUN_PHASES_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "analysis/run/input/run_path.h"
#include "base/progress.h"
#include "experiments/common/command_line.h"
#include "experiments/common/command_log.h"
#include "experiments/hosts/host.h"
#include "experiments/common/supervisor.h"
#include "experiments/servers/server.h"

#define SECOND_NS 1000000000ull

enum {
    STOP_GRACE_MS = 2000, // to end, after SIGTERM
    ORPHANS_GRACE_MS = 3000,
    LOG_PATH_BYTES = RUN_PATH_BYTES + 128
};

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

// What stamps packets on a machine.
struct hop_stamping {
    struct process process;
    char log[LOG_PATH_BYTES];
    uint32_t room_bytes; // how long packets may be there that carry over both machines
    cpu_set_t holders;   // cores of who has the other ends of taps there
};
enum stamped_machine { STAMPED_SERVER, STAMPED_CLIENT, STAMPED_MACHINES };

// What makes one of the experiment's loads.
struct loader {
    const struct experiment_load *plan;
    char folder[LOAD_FOLDER_BYTES]; // in the run's (run_load_folder)
    char directory[LOG_PATH_BYTES]; // that, on its host
    char log_path[LOG_PATH_BYTES];
    struct process process;
    struct text_buffer output;
    bool salvaged; // the run ends before its time, and what this measured until then is kept
};

struct run {
    const struct experiment *experiment;
    struct run_folder *folder;
    const struct person *owner; // whose the folder and the load are; NULL: ours
    int spared;                 // a child of ours that outlives the run; 0: none
    json_t *warnings; // list of strings: what this machine could not do, and what was unusual
    struct progress *progress;
    struct supervisor supervisor;
    struct command_log log;
    struct host_array hosts;
    json_t *tuned;                                 // for experiment.json: what was tuned, what not
    struct server servers[EXPERIMENT_SERVERS_MAX]; // as the experiment's
    struct process capture;
    char capture_log[LOG_PATH_BYTES];
    struct hop_stamping hops[STAMPED_MACHINES];
    struct loader *loaders; // one a load; the first is that of `load`
    size_t loader_count;
    struct process clock; // records the load host's clock and cores, where the server's are others
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
    bool loading;         // a load has begun: there is something that was measured
    unsigned trace_turns; // of its trace: 1 it was turned on, 2 and off again
};

// The hosts of the server that is loaded, and of the load.
struct host *run_server_host(struct run *run);
struct host *run_load_host(struct run *run);

// Writes a warning to stderr, to commands.log and into the run's warnings.
void run_warn(struct run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));

// A taillight command: what it is started with.
struct run_command {
    struct command_line *line; // its first word becomes the program's path
    bool input;                // its stdin is a pipe, too; so are those made that record, which on
                               // another machine keep off the load's cores as well
    const cpu_set_t *cores;    // what it runs on; NULL: cores that are not the server's
    const char *directory;     // its working directory (NULL: ours)
    const char *log_path;
    const char *last_words;  // on another machine: see struct process_place
    const struct person *as; // who it is there (NULL: as we are)
};

// Starts it on a host (NULL: here, on no host of the run), away from the server's cores, with its
// stdout in a pipe. Frees the line.
int run_start_command(struct run *run, struct host *host, const struct run_command *command,
                      struct process *process, struct error *err);

// Waits for a capture on a host (NULL: here, on no host of the run) to print a line of JSON in
// which this word is true; its warnings become the run's. said: gets the line, which the caller
// owns; NULL after an error; may be NULL.
int run_wait_word(struct run *run, const struct host *host, struct process *capture,
                  const char *word, const char *what, const char *log_path, json_t **said,
                  struct error *err);

// The first line of what a child has printed, as JSON; NULL: not one. The caller owns it.
json_t *run_first_line(const struct text_buffer *output);

// --- the phases of a run, in the order in which run.c calls them ---------------------------------
//
// Each uses struct run and none of the others, except that run_load starts and stops neighbours.
// All return 0 or an error.

// --- before the hosts ----------------------------------------------------------------------------

// Makes room for the neighbours (run_neighbours.c), and for what makes the loads (run_load.c).
int run_make_neighbours(struct run *run, struct error *err);
int run_make_loaders(struct run *run, struct error *err);
void run_free_loaders(struct run *run);

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
// Fetches what was written on other machines into the run's folder (run_fetch.c). A recording that
// does not come is a warning.
int run_fetch(struct run *run, struct error *err);
// The same of what the loads wrote alone.
int run_fetch_loads(struct run *run, struct error *err);

// --- capture and clock (run_capture.c) -----------------------------------------------------------

int run_start_capture(struct run *run, struct error *err);
int run_stop_capture(struct run *run, struct error *err);

// client/clock.tlog, where client and server may have different clocks, and client/events.tlog with
// what the load's cores did, where the server's capture does not see them.
int run_start_clock(struct run *run, struct error *err);
int run_stop_clock(struct run *run, struct error *err);

// --- packets (run_hops.c) ------------------------------------------------------------------------

// Stamps packets at the experiment's hops, into server/hops.tlog and capsule.json; those on the
// load's machine, where that is another, into client/.
int run_start_hops(struct run *run, struct error *err);
int run_stop_hops(struct run *run, struct error *err);

// --- load (run_load.c) ---------------------------------------------------------------------------

// Loads the dataset of each load and verifies it.
int run_prepare(struct run *run, struct error *err);

// Makes all loads, from their common begin to their summaries, and starts and stops neighbours
// meanwhile. The run's time is that of the first.
int run_load(struct run *run, struct error *err);

// Ends what is left of them.
void run_end_loads(struct run *run);

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
