// SPDX-License-Identifier: MIT
//
// The servers that a capture watches: those that run when it begins, by process, control group or
// unit, those that come later, and those that the shim is in; and what its backends are told of
// them.
#ifndef EXPERIMENTS_CAPTURE_CAPTURE_SERVERS_H
#define EXPERIMENTS_CAPTURE_CAPTURE_SERVERS_H

#include "base/error.h"

struct capture;

// Finds the servers that run already, and their ports. Those of a control group may come later.
// ERROR_INPUT: nothing says whom to watch.
int capture_servers_find(struct capture *capture, struct error *err);

// Tells the backends of the processes that the shim is in by now, and of servers that ran already.
void capture_servers_watch(struct capture *capture);

// Looks, twice a second, for servers that came since the last look; each is a line on stdout.
int capture_servers_look(struct capture *capture, struct error *err);

// Adds the ports of all that were found to capture->options, for capture.json; as many as there is
// room for.
void capture_servers_name_ports(struct capture *capture);

#endif
