// SPDX-License-Identifier: MIT
//
// The client is a machine, too: what a message waited for on the load's host. Like
// critical_path.h, of the thread of the load that has the message: it runs (for this request, for
// others, or while every connection is full), is ready while something else has its core, or
// sleeps. Needs the kernel's events of the load's cores; without them a stage stays whole.
#ifndef ANALYSIS_DECOMPOSITION_CLIENT_PATH_H
#define ANALYSIS_DECOMPOSITION_CLIENT_PATH_H

#include <stdint.h>

#include "analysis/decomposition/components.h"
#include "analysis/decomposition/decomposer.h"

// Assigns [begin_ns, end_ns) of a message, in which it was in that stage of the client's (client
// queue, client stack, client receive, network to client): to what held it up, the rest to the
// stage itself.
void client_path_sweep(struct decomposer *decomposer, const struct lifetime *life,
                       enum fixed_component stage, int64_t begin_ns, int64_t end_ns);

#endif
