// SPDX-License-Identifier: MIT
//
// commands.log of a run: every command that was run and every setting that was changed, with its
// place and its outcome, so that a person can repeat a run by hand.
#ifndef EXPERIMENTS_COMMON_COMMAND_LOG_H
#define EXPERIMENTS_COMMON_COMMAND_LOG_H

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"

struct command_log {
    FILE *file; // NULL: nothing is written
    bool dry;   // a dry run: what is written is not done, and lines have no time
};

int command_log_open(struct command_log *log, const char *path, struct error *err);

// "<UTC time> <place>: <what>". The line is flushed at once. Errors are left out here: a full disk
// is reported where the run's data is written.
void command_log_write(struct command_log *log, const char *place, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

void command_log_close(struct command_log *log);

// The last non-empty line of a process's log file; an empty string when there is none. Control
// characters become spaces. Returns out.
char *command_log_last_line(const char *path, char *out, size_t out_bytes);

#endif
