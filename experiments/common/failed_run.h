// SPDX-License-Identifier: MIT
//
// The folder of a run that failed before its load began: a server that did not start, a protocol
// that it does not speak. Nothing was measured, and whoever has mended the reason runs the same
// command again; such a folder makes room for the next attempt. No other one does.
#ifndef EXPERIMENTS_COMMON_FAILED_RUN_H
#define EXPERIMENTS_COMMON_FAILED_RUN_H

#include <stdbool.h>

// How such a run ends its commands.log.
#define FAILED_BEFORE_LOAD "failed before its load began"

// Empties such a folder, or one of several runs (repetitions, a matrix) that all failed so. Returns
// false, with nothing removed, when it is another one, or has something in it that no run puts
// there.
bool failed_run_clear(const char *path);

#endif
