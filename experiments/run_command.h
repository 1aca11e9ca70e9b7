// SPDX-License-Identifier: MIT
//
// `taillight run EXPERIMENT.yaml`: one experiment, end to end.
#ifndef EXPERIMENTS_RUN_COMMAND_H
#define EXPERIMENTS_RUN_COMMAND_H

// argv[0] is "run". Returns the program's exit code.
int run_command(int argc, char **argv);

#endif
