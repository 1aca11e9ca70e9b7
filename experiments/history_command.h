// SPDX-License-Identifier: MIT
//
// `taillight history`: runs over time, and where their latency changed its level.
#ifndef EXPERIMENTS_HISTORY_COMMAND_H
#define EXPERIMENTS_HISTORY_COMMAND_H

int history_command(int argc, char **argv);

#endif
