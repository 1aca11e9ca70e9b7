// SPDX-License-Identifier: MIT
//
// `taillight load`: the load generator as a command of its own.
#ifndef LOADGEN_LOAD_COMMAND_H
#define LOADGEN_LOAD_COMMAND_H

// Runs the command; argv[0] is its name. Returns the exit code.
int load_command(int argc, char **argv);

#endif
