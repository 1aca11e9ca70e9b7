// SPDX-License-Identifier: MIT
//
// `taillight agent --keeper`: a machine behind ssh answers a keeper's requests
// (experiments/keeper/keeper_request.h, as they lie in memory: the same program is at both ends) on
// stdin and stdout. It has a keeper of its own for what is to be undone, first of all the directory
// that this program was copied into; that one outlives every end of this process.
//
// What the machine says of itself (keeper_facts):
//   {"uid": 0, "cores": "0-7",     that a process there may use
//    "address": "10.0.0.2",        IPv4, of the asked card, or the one that ssh came to
//    "directory": "/tmp/taillight-...", "boot_id": "...", "kernel": "6.1.0"}
#ifndef EXPERIMENTS_REMOTE_KEEPER_SERVICE_H
#define EXPERIMENTS_REMOTE_KEEPER_SERVICE_H

#include "base/error.h"

// Serves until it is told to end, or the end of stdin.
int keeper_service_run(struct error *err);

#endif
