// SPDX-License-Identifier: MIT
//
// The kinds of hosts: a file each (host_local.c, ...) and a row each in HOST_KINDS. Nobody else
// asks which kind a host is of; what differs between kinds is a member here.
#ifndef EXPERIMENTS_HOSTS_HOST_KIND_H
#define EXPERIMENTS_HOSTS_HOST_KIND_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/process.h"
#include "experiments/common/command_log.h"
#include "experiments/common/run_folder.h"
#include "experiments/plan/experiment.h"
#include "experiments/remote/far_host.h"

struct host;
struct host_array;

// The row: host_<name> is defined in hosts/host_<name>.c. The first is the default.
#define HOST_KINDS(ROW) ROW(local) ROW(netns) ROW(bridge) ROW(ssh)

struct host_kind {
    const char *name; // as an experiment gives it
    const char *help; // what it is, in a line
    // The keys of an experiment's host that only some kinds take, and this one is among them; NULL
    // at the end.
    const char *const *keys;
    bool is_elsewhere;     // another machine: it has its own cores, programs, files and clock
    bool is_joined;        // such hosts have a network of their own, which no other kind is on
    bool is_alone;         // its address means something only on the machine itself
    bool is_bridge;        // it joins the others of such a network; one at most
    const char *own_cards; // pattern of the cards that the run makes for it; NULL: none
    const char *program;   // that making one takes on this machine; NULL: none
    // What all hosts become where this kind cannot be made; NULL: that is an error.
    const struct host_kind *fallback;

    // The operations. None may be missing (tests/experiments/definition/test_kinds.c).

    // What is wrong with its own keys, as ERROR_INPUT: *key is the one (left alone: the host as a
    // whole), *entry the place in its list, if it has one.
    int (*check)(const struct experiment_host *plan, const char **key, size_t *entry,
                 struct error *err);
    // Starts its keeper, fills in struct host and writes into the log what there is now. With a
    // keeper that is dry nothing is done. On failure nothing is left. number: of the host.
    int (*start)(struct host *host, size_t number, const struct run_folder *folder,
                 struct command_log *log, struct error *err);
    // Joins hosts that have all been started.
    int (*join)(struct host_array *hosts, struct command_log *log, struct error *err);
    // Starts a process there. On a host behind ssh, what fails over there shows when the process
    // ends.
    int (*start_process)(const struct host *host, const char *const *argv,
                         const struct process_place *place, struct process *process,
                         struct error *err);
    // The path there of what was built with this program: "taillight", "labserver",
    // "libtaillight-shim.so".
    int (*find_program)(const struct host *host, const char *name, char path[RUN_PATH_BYTES],
                        struct error *err);
    // Ends what is not the keeper's.
    void (*end)(struct host *host);

    // Of kinds that are elsewhere; all of them, or none.

    // Copies the files of a folder to a host on another machine, or back, as a process to wait for.
    // part: of those that come back.
    int (*start_copy)(const struct host *host, bool to_here, const char *there, const char *here,
                      enum far_part part, struct process *process, struct error *err);
    // Adds to what experiment.json says of the host.
    void (*add_facts)(const struct host *host, json_t *document);
};

#define HOST_KIND_DECLARE(name) extern const struct host_kind host_##name;
HOST_KINDS(HOST_KIND_DECLARE)

extern const struct host_kind *const host_kinds[]; // NULL at the end

// Operations of host_local.c that other kinds on this machine share.
int host_needs_no_check(const struct experiment_host *plan, const char **key, size_t *entry,
                        struct error *err);
int host_start_here(struct host *host, bool isolated, struct error *err);
int host_start_process_here(const struct host *host, const char *const *argv,
                            const struct process_place *place, struct process *process,
                            struct error *err);
int host_find_program_here(const struct host *host, const char *name, char path[RUN_PATH_BYTES],
                           struct error *err);
int host_needs_no_joining(struct host_array *hosts, struct command_log *log, struct error *err);
void host_needs_no_end(struct host *host);

// The same of host_netns.c.
int host_start_netns(struct host *host, size_t number, const struct run_folder *folder,
                     struct command_log *log, struct error *err);
int host_join_netns(struct host_array *hosts, struct command_log *log, struct error *err);

#endif
