// SPDX-License-Identifier: MIT
//
// `taillight capsule`: how long packets take from hop to hop on their way through virtual networks.
#ifndef EXPERIMENTS_CAPSULE_CAPSULE_COMMAND_H
#define EXPERIMENTS_CAPSULE_CAPSULE_COMMAND_H

// argv[0] is the command's name. Returns the program's exit code; 4 (inconclusive): no packet that
// was asked for passed.
int capsule_command(int argc, char **argv);

#endif
