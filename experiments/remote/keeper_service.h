// SPDX-License-Identifier: MIT
//
// `taillight agent --keeper`: serves the requests to a keeper (experiments/keeper/keeper_request.h,
// as they lie in memory: the same program is at both ends) on a machine behind ssh, on stdin and
// stdout. It has a keeper of its own for what is to be undone, first of all the directory that this
// program was copied into; that keeper survives this process however it ends.
//
// What the machine says of itself (keeper_facts):
//   {"uid": 0, "cores": "0-7",     that a process there may use
//    "address": "10.0.0.2",        IPv4, of the asked card, or the one that ssh came to
//    "directory": "/tmp/taillight-...", "boot_id": "...", "kernel": "6.1.0"}
#ifndef EXPERIMENTS_REMOTE_KEEPER_SERVICE_H
#define EXPERIMENTS_REMOTE_KEEPER_SERVICE_H

#include "base/error.h"

// Serves until VERB_END or the end of stdin.
int keeper_service_run(struct error *err);

#endif
