// SPDX-License-Identifier: MIT
//
// The clocks by which a run's logs are placed in time, and whether each log is of the boot and of
// the hour of the clock log beside it: of another run's it would be placed at random.
#ifndef ANALYSIS_RUN_INPUT_CLOCKS_H
#define ANALYSIS_RUN_INPUT_CLOCKS_H

#include "analysis/run/input/run_input.h"

// Opens server/clock.tlog, which says of which boot it is. The caller frees *map.
int run_input_open_server_clock(const char *run_dir, char boot_id[RUN_BOOT_ID_BYTES],
                                struct clock_map **map, struct time_source *source,
                                struct error *err);

// Opens the clocks of both sides; the logs must be open. ERROR_INPUT: one is missing, or is not of
// the run that the logs are of.
int run_input_open_clocks(struct run_input *input, const char *run_dir, struct error *err);

#endif
