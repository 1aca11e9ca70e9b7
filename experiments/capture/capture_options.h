// SPDX-License-Identifier: MIT
//
// The command line of `taillight capture`.
#ifndef EXPERIMENTS_CAPTURE_CAPTURE_OPTIONS_H
#define EXPERIMENTS_CAPTURE_CAPTURE_OPTIONS_H

#include <stdbool.h>

#include "base/error.h"

struct capture;

// Reads it into capture->options and what follows from it: which backends are wanted, which ports
// were given. *help: it asks for help only, which was printed. ERROR_INPUT names the option.
int capture_options_read(struct capture *capture, int argc, char **argv, bool *help,
                         struct error *err);

#endif
