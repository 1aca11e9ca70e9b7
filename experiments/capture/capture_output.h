// SPDX-License-Identifier: MIT
//
// The end of a capture: its logs, and capture.json, which says what was recorded and what was lost.
#ifndef EXPERIMENTS_CAPTURE_CAPTURE_OUTPUT_H
#define EXPERIMENTS_CAPTURE_CAPTURE_OUTPUT_H

#include "experiments/capture/capture_backend.h"

// Ends what records and writes all logs, capture.json last: its being there says that they are
// whole.
int capture_write(struct capture *capture, struct error *err);

#endif
