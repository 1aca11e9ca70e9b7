// SPDX-License-Identifier: MIT
//
// One interval of a watch: what its requests came to, and why the slowest were slow, for people and
// for scripts. Latency is the server's own (analysis/lifetime/turns.h).
#ifndef EXPERIMENTS_WATCH_WATCH_INTERVAL_H
#define EXPERIMENTS_WATCH_WATCH_INTERVAL_H

#include <jansson.h>
#include <stdio.h>
#include <time.h>

#include "analysis/report/terminal/summary_pieces.h"
#include "analysis/run/run_analysis.h"
#include "experiments/common/run_folder.h"
#include "experiments/watch/watch_servers.h"

struct watch_interval {
    const struct run_analysis *run; // NULL: nothing was asked of the servers, or `problem`
    const struct watch_servers *servers;
    const struct answer_array *answers; // all that it had, where `run` has an excerpt; else none
    const char *problem;                // why there is nothing to show; "": there is
    struct timespec ended;              // CLOCK_REALTIME
    double seconds;                     // how long it was
    double recorded;                    // what part of its time that is: nothing else was
    double taken;                       // of a core, by recording it
    double own_share;                   // of a core, taken by the capture's process meanwhile
    uint64_t passed_over;               // others before it that were not looked at
    size_t windows;                     // of it that were saved, each in a folder of its own
    size_t unsaved;                     // others, that could not be
    char saved[RUN_PATH_BYTES];         // the one with the slowest request
};

// Why intervals are passed over, and what helps.
extern const char watch_passed_over_why[];

// One line of numbers: when, rate, percentiles; of all requests, or of this server's with its name.
void watch_interval_line(const struct watch_interval *interval, const struct watch_server *server,
                         FILE *out);

// For each server the causes of the slowest per cent with what they added and the slowest message's
// stages; what was lost and what the watch itself took.
void watch_interval_details(const struct watch_interval *interval,
                            const struct summary_style *style, FILE *out);

// The same as a document (docs/man/taillight-watch.1). The caller owns it; NULL: out of memory.
json_t *watch_interval_json(const struct watch_interval *interval);

#endif
