// SPDX-License-Identifier: MIT
//
// A host behind ssh, for as long as a run lasts: one shared connection (OpenSSH's ControlMaster,
// its socket in a private directory here), this program copied into a private directory there, and
// a keeper there. Any process there is then a `taillight link` here
// (experiments/remote/near_end.h).
#ifndef EXPERIMENTS_REMOTE_FAR_HOST_H
#define EXPERIMENTS_REMOTE_FAR_HOST_H

#include <sched.h>

#include "base/process.h"
#include "experiments/plan/experiment.h"
#include "experiments/keeper/keeper.h"

enum { FAR_PATH_BYTES = 400 };

struct far_host {
    struct keeper here;             // removes our private directory on this machine in the end
    char link_file[FAR_PATH_BYTES]; // experiments/remote/link_file.h
    char directory[256];            // there
    char log_path[4300];            // stderr of ssh and of our programs there
    char what[64];                  // "host server"
    char address[16], boot_id[40], kernel[72];
    cpu_set_t cores;         // of the machine there
    cpu_set_t helpers;       // where our own work runs: off the host's cores, if there are others
    int64_t clock_offset_ns; // how far its CLOCK_MONOTONIC is ahead of ours
    uint64_t clock_bound_ns; // the bound of that offset's error
    bool is_root;
    unsigned stale_journals; // experiments/keeper/keeper_journal.h, when the connection was made
};

// Connects, copies, starts the keeper there (*keeper; the caller ends it before far_host_end).
// Errors name the host and quote ssh. On failure nothing is left on either side. log_path: where
// ssh and our programs there write what they say; NULL: into a file of the connection's own, which
// goes with it, however this process ends.
int far_host_start(struct far_host *far, struct keeper *keeper, const struct experiment_host *plan,
                   const char *log_path, struct error *err);
void far_host_end(struct far_host *far);

// For a dry run: fills in what is known of a host without connecting, which is all but the cores
// for our own work.
void far_host_pretend(struct far_host *far, const struct experiment_host *plan);

// The command line of ssh that reaches the host, without the command for it. Returns out.
char *far_host_describe(const struct experiment_host *plan, char *out, size_t out_bytes);

// Starts a process there: as process_start, with the place's cores, environment and log. Programs
// of ours are given by their path there; a working directory can only be that of the run there. A
// failure there (no such program) shows when the process ends, as the last line of its log.
int far_host_process(const struct far_host *far, const char *const *argv,
                     const struct process_place *place, struct process *process, struct error *err);

// The path of what was copied: "taillight", "labserver", "libtaillight-shim.so".
char *far_host_path(const struct far_host *far, const char *name, char path[FAR_PATH_BYTES]);

// What of a folder comes back: all of it, or a recording of perf's with its code, or all but that.
enum far_part { FAR_PART_ALL, FAR_PART_RECORDING, FAR_PART_LOGS };

// Copies the files of a folder there, or back, compressed on the way.
int far_host_send(const struct far_host *far, const char *from_here, const char *to_there,
                  const struct process_place *place, struct process *process, struct error *err);
int far_host_fetch(const struct far_host *far, const char *from_there, const char *to_here,
                   enum far_part part, const struct process_place *place, struct process *process,
                   struct error *err);

#endif
