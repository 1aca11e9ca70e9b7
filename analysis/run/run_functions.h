// SPDX-License-Identifier: MIT
//
// The function log of a run (server/functions.tlog, which capture.json's functions.log names): the
// kernel functions of the `functions` backend, put into the server's timeline.
#ifndef ANALYSIS_RUN_FUNCTIONS_H
#define ANALYSIS_RUN_FUNCTIONS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "analysis/timeline/span.h"
#include "analysis/timeline/time_source.h"
#include "base/error.h"

struct run_functions {
    bool present;       // a log was there and could be read
    char problem[400];  // why a log that should be there could not be read; else ""
    uint64_t records;   // of the log
    uint64_t functions; // spans in the timeline
    uint64_t unpaired;  // ends without begins, or begins without ends
    uint64_t lost;      // places where records are missing
    uint64_t damaged;   // records with impossible contents
    double traced_ns;   // time with known functions, over all cores
};

// Adds the functions to the server's timeline. A log that cannot be read is not an error: the
// diagnosis goes on without, and out->problem says why. Only lack of memory fails.
int run_functions_add(const char *run_dir, const json_t *capture, const struct time_source *clock,
                      struct host_timeline *server, struct run_functions *out, struct error *err);

json_t *run_functions_json(const struct run_functions *functions);

#endif
