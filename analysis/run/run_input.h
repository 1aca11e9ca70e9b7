// SPDX-License-Identifier: MIT
//
// A run folder, opened: its logs mapped and its JSON documents read (docs/formats.md).
#ifndef ANALYSIS_RUN_INPUT_H
#define ANALYSIS_RUN_INPUT_H

#include <jansson.h>
#include <stdbool.h>

#include "analysis/timeline/time_source.h"
#include "profiler/clock_map.h"
#include "base/error.h"
#include "base/log_file.h"
#include "profiler/clock_log.h"

struct run_input {
    struct log_reader samples, client_connections;
    bool has_events; // server/events.tlog and server/sockets.tlog
    struct log_reader events, sockets;
    bool has_calls; // server/calls.tlog and server/connections.tlog
    struct log_reader calls, shim_connections;
    struct clock_map *clock_map;
    struct time_source clock; // of the server's host
    bool apart; // the client's logs are of another boot, and it has a clock of its own
    struct clock_map *client_clock_map;
    struct time_source client_clock;
    json_t *experiment, *load, *capture, *facts; // NULL where the file is not there
};

// Opens what is there. The client's logs and the clock log must be; the events and the calls may be
// missing, but not half of either. Where the client's logs are of another boot than the server's
// client/clock.tlog must be there, too. Anything damaged is ERROR_INPUT that names the file. The
// caller closes either way.
int run_input_open(struct run_input *input, const char *run_dir, struct error *err);
void run_input_close(struct run_input *input);

#endif
