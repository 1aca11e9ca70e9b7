// SPDX-License-Identifier: MIT
//
// What a run folder holds, once it is open (run_input_open.h): its logs mapped, its JSON documents
// read (docs/formats.md).
#ifndef ANALYSIS_RUN_INPUT_H
#define ANALYSIS_RUN_INPUT_H

#include <jansson.h>
#include <stdbool.h>

#include "analysis/calls/call_comparison.h"
#include "analysis/lifetime/datagrams.h"
#include "analysis/calls/kernel_calls.h"
#include "analysis/run/input/run_loads.h"
#include "analysis/run/input/run_missing.h"
#include "analysis/run/input/run_path.h"
#include "analysis/run/input/run_segments.h"
#include "analysis/timeline/time_source.h"
#include "profiler/clock/clock_map.h"
#include "base/error.h"
#include "base/log_file.h"
#include "base/array.h"
#include "base/connection.h"
#include "profiler/clock/clock_log.h"
#include "shim/message_log.h"

enum { RUN_BOOT_ID_BYTES = 40 };

struct run_input {
    bool without_client; // a capture alone: there are none of these (lifetime/turns.h)
    struct log_reader samples, client_connections;
    char folder[LOAD_FOLDER_BYTES];    // of the load that is looked at
    struct run_load_array other_loads; // those beside it
    bool has_events;                   // server/events.tlog and server/sockets.tlog
    struct log_reader events, sockets;
    bool
        has_calls; // server/calls.tlog and server/connections.tlog, or the kernel's events of calls
    struct log_reader calls, shim_connections;               // what the servers accepted
    size_t calls_by_kernel;                                  // of these calls: the last ones
    struct ARRAY_OF(struct call) accepted_calls, peer_calls; // and what they connected to
    struct ARRAY_OF(struct connection) accepted_connections, peer_connections;
    struct datagrams datagrams; // of a load over UDP: what took these logs' place
    struct kernel_calls kernel_calls;
    struct call_comparison comparison; // of the shim's calls and the kernel's
    bool has_client_events;            // client/events.tlog, of a capture on the load's host
    struct log_reader client_events;
    struct run_segments client_segments; // of that capture
    struct clock_map *clock_map;
    struct time_source clock;        // of the server's host
    char boot_id[RUN_BOOT_ID_BYTES]; // of its clock log
    bool apart; // the client's logs are of another boot, with a clock of their own
    struct clock_map *client_clock_map;
    struct time_source client_clock;
    char client_boot_id[RUN_BOOT_ID_BYTES]; // of its clock log
    struct run_segments segments;           // of the capture
    bool is_excerpt;                        // which of these to look at was asked for
    // Where only a part of these is looked at: the slowest requests of all, those that are in it,
    // and of a capture alone when it began (host time).
    size_t slowest, slowest_there;
    int64_t begin_ns;
    char ends[1200]; // that and why not all is looked at, and what is missing; empty: all is there
    struct run_missing missing;
    // NULL where the file is not there
    json_t *experiment, *load, *capture, *client_capture, *facts;
};

// Also of one that could not be opened.
void run_input_close(struct run_input *input);

#endif
