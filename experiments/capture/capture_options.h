// SPDX-License-Identifier: MIT
//
// The options of `taillight capture`, and what is wrong with them.
#ifndef EXPERIMENTS_CAPTURE_CAPTURE_OPTIONS_H
#define EXPERIMENTS_CAPTURE_CAPTURE_OPTIONS_H

#include "experiments/capture/capture_backend.h"

// Reads the command line into capture->options and what follows from it. *help: it asks for help
// only, which was printed.
int capture_read_options(struct capture *capture, int argc, char **argv, bool *help,
                         struct error *err);

#endif
