// SPDX-License-Identifier: MIT
//
// `taillight agent --start`: the far end of a link. It starts the program that the near end
// (experiments/remote/near_end.h) names in its first frame, and relays its stdin, stdout and
// stderr. What the program prints goes back zstd-compressed. When the link ends, or nothing has
// come over it for 5 s, the program and all of its process group are killed; also when this process
// ends in any other way.
//
//   near -> far  {"type": "start", "argv": [...], "environment": ["NAME=value", ...],
//                 "cores": "0-1" or "", "server_cores": "0-1", "nice": -20 to 19, "cgroup": a
//                 folder (or not there), "inside": whether it works in this program's directory,
//                 not the user's own, "discard": whether its stdout is thrown away}   once, first
//                bytes: the program's stdin;  {"type": "eof"}: its end
//                {"type": "signal", "number": 15}
//   far -> near  bytes: one of FAR_STDOUT, FAR_STDERR, with FAR_COMPRESSED when the rest is a zstd
//                frame, and then what the program printed
//                {"type": "ended", "status": as waitpid(2) returns it}, or
//                {"type": "failed", "text": why it could not be started}   once, last
//
// `taillight agent --keeper` serves the requests to a keeper (experiments/keeper/keeper_request.h,
// as they lie in memory: the same program is at both ends) on a machine behind ssh, on stdin and
// stdout. It has a keeper of its own for what is to be undone, first of all the directory that this
// program was copied into; that keeper survives this process however it ends.
//
// What the machine says of itself (keeper_facts):
//   {"uid": 0, "cores": "0-7",     that a process there may use
//    "address": "10.0.0.2",        IPv4, of the asked card, or the one that ssh came to
//    "directory": "/tmp/taillight-...", "boot_id": "...", "kernel": "6.1.0",
//    "stale_journals": 0}           of runs that did not live to undo their changes there
#ifndef EXPERIMENTS_REMOTE_FAR_END_H
#define EXPERIMENTS_REMOTE_FAR_END_H

enum { FAR_STDOUT = 1, FAR_STDERR = 2, FAR_COMPRESSED = 0x80, FAR_CHUNK_BYTES = 128 << 10 };

// `taillight agent`: what this program is at the far end of a link: with --start or
// --keeper as above, without an option a load agent (loadgen/agents/agent_command.h). Returns the
// program's exit code.
int agent_roles_command(int argc, char **argv);

#endif
