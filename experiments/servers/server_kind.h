// SPDX-License-Identifier: MIT
//
// The kinds of servers: a file each (memcached.c, redis.c, ...) and a row each in SERVER_KINDS.
// Nobody else asks which kind a server is of; what differs between kinds is a member here.
// Neighbours have kinds, too, some of which run one of these servers.
#ifndef EXPERIMENTS_SERVERS_SERVER_KIND_H
#define EXPERIMENTS_SERVERS_SERVER_KIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "experiments/common/command_line.h"
#include "experiments/common/run_folder.h"
#include "experiments/plan/experiment.h"

struct host;

// The row: server_<name> is defined in servers/<name>.c. The first is the default.
// clang-format off
#define SERVER_KINDS(ROW) ROW(memcached) ROW(redis) ROW(labserver) ROW(nginx) ROW(command) ROW(running)
// clang-format on

struct server_kind {
    const char *name; // as an experiment gives it
    const char *help; // what it is, in a line
    // The keys of an experiment's server that only some kinds take, and this one is among them;
    // NULL at the end.
    const char *const *keys;
    const char *instead;  // what to do instead of giving another kind's key; NULL: nothing to say
    const char *protocol; // of the workload, unless that names another; "": not known
    uint16_t port;        // unless the experiment gives another; 0: find_port finds it
    bool thread_a_core;   // `threads` unless the experiment gives them: one a core; else 1
    bool is_cache;        // `memory` limits what it keeps
    bool has_children;    // its workers are processes of their own
    bool runs_already;    // and goes on: nothing is started, changed or ended
    bool one_protocol;    // it is started for one, and speaks no other then

    // The operations. None may be missing (tests/experiments/definition/test_kinds.c).

    // Whether it understands a workload of that protocol.
    bool (*speaks)(const char *protocol);
    // What is wrong with its own keys, as ERROR_INPUT; *option: which of `options` it is about, if
    // it is one of them.
    int (*check)(const struct experiment_server *plan, size_t *option, struct error *err);
    // Finds the port where neither the experiment nor the kind gives one. Only of servers on this
    // machine.
    int (*find_port)(struct experiment_server *plan, struct error *err);
    // Whether this machine has its program; ERROR_FAILED says how to get it.
    int (*check_program)(const struct experiment_server *plan, struct error *err);
    // Makes the files it is started with, in the folder `name` of the run's. Returns 1, or 0 when
    // it needs none and there is no such folder. to_write false: only returns which.
    int (*configure)(const struct experiment_server *plan, const struct host *host,
                     const struct run_folder *folder, const char *name, bool to_write,
                     struct error *err);
    // Appends the words it is started with on that host. folder: of its files there.
    int (*make_command)(struct command_line *line, const struct experiment_server *plan,
                        const struct host *host, const char *folder, struct error *err);
};

#define SERVER_KIND_DECLARE(name) extern const struct server_kind server_##name;
SERVER_KINDS(SERVER_KIND_DECLARE)

extern const struct server_kind *const server_kinds[]; // NULL at the end

// For operations that a kind has no need of.
int server_needs_no_check(const struct experiment_server *plan, size_t *option, struct error *err);
int server_has_its_port(struct experiment_server *plan, struct error *err);
int server_needs_no_program(const struct experiment_server *plan, struct error *err);
int server_needs_no_files(const struct experiment_server *plan, const struct host *host,
                          const struct run_folder *folder, const char *name, bool to_write,
                          struct error *err);

// What runs beside the server under test: a program that comes and goes, or a server that is there
// all along and whose load comes and goes.
struct neighbour_kind {
    const char *name, *help;
    const char *const *keys; // as a server kind's
    const char *instead;
    const struct server_kind *server; // NULL: the experiment's own program
};

extern const struct neighbour_kind *const neighbour_kinds[]; // the first is the default; NULL ends

#endif
