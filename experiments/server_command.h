// SPDX-License-Identifier: MIT
//
// The command line that starts a server, by its kind.
#ifndef EXPERIMENTS_SERVER_COMMAND_H
#define EXPERIMENTS_SERVER_COMMAND_H

#include "experiments/spec/experiment.h"
#include "experiments/hosts/host.h"

// The words of a command line, and the memory of those that had to be made.
struct command_line {
    struct word_array words;
    struct {
        char *items[16];
        size_t count;
    } made;
};

// The words of it, NULL-terminated, for that host. The caller frees, also on failure.
// `folder`: of its configuration there, if its kind has one (experiments/nginx.h).
int server_command_make(struct command_line *line, const struct experiment_server *plan,
                        const struct host *host, const char *folder, struct error *err);
void server_command_free(struct command_line *line);

// The program that a kind is started with, which is also its Debian package's name. NULL: it is the
// experiment's own command, or comes with this program.
const char *server_program(enum server_kind kind);

#endif
