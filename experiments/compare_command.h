// SPDX-License-Identifier: MIT
//
// `taillight compare BASE CANDIDATE`: what changed between two builds, by how much, because of what.
#ifndef EXPERIMENTS_COMPARE_COMMAND_H
#define EXPERIMENTS_COMPARE_COMMAND_H

// argv[0] is the command's name. Returns an exit code; 4 (inconclusive) when nothing could be
// compared.
int compare_command(int argc, char **argv);

#endif
