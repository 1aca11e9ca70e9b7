// SPDX-License-Identifier: MIT
//
// `taillight capture`: the server's side of a measurement on this host. It starts and stops the
// kernel events (profiler), the application's socket calls (shim) and the clock log together, and
// writes their logs and capture.json into one folder.
#ifndef EXPERIMENTS_CAPTURE_CAPTURE_COMMAND_H
#define EXPERIMENTS_CAPTURE_CAPTURE_COMMAND_H

// argv[0] is "capture". Returns the program's exit code.
int capture_command(int argc, char **argv);

#endif
