// SPDX-License-Identifier: MIT
//
// Opens a run folder: which files there are, whether they belong together, what of them is looked
// at.
#ifndef ANALYSIS_RUN_INPUT_OPEN_H
#define ANALYSIS_RUN_INPUT_OPEN_H

#include "analysis/run/input/run_input.h"
#include "base/progress.h"

// Opens what is there. The client's logs, but for a capture that was made without a run, and the
// server's clock log are required; events and calls may be missing, but only with both their files.
// Of connections that the shim does not know, calls are taken from the events. If client and server
// logs are of different boots, client/clock.tlog is required, too. A damaged file is ERROR_INPUT
// that names it. Of a capture in segments all that memory suffices for, or those of the
// range. load: which of several loads is looked at, NULL: the first. The caller closes also after a
// failure.
int run_input_open(struct run_input *input, const char *run_dir, const char *load,
                   struct run_segment_range range, struct progress *progress, struct error *err);

#endif
