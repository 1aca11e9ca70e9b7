// SPDX-License-Identifier: MIT
//
// Whose calls a run's logs hold, in the order in which these are called: the servers' requests come
// over what they accepted, and where no shim was, the kernel's events have the calls. Each returns
// 0 or sets err: a damaged log, or no memory.
#ifndef ANALYSIS_RUN_INPUT_CALLS_H
#define ANALYSIS_RUN_INPUT_CALLS_H

#include "analysis/run/input/run_input.h"

// The shim's logs hold both what the servers accepted and what they connected to. A server's
// requests come over the former alone; the latter are kept apart.
int run_input_split_calls(struct run_input *input, const char *run_dir, struct error *err);

// Where the load came over UDP: makes a connection of each client in the server's logs.
int run_input_take_datagrams(struct run_input *input, struct error *err);

// Takes the calls that the kernel's events have of connections that the shim does not know, and
// compares those of the others.
int run_input_take_kernel_calls(struct run_input *input, struct error *err);

#endif
