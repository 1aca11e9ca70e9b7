// SPDX-License-Identifier: MIT
//
// What a watch has seen so far as OpenMetrics (openmetrics.io, 1.0), for Prometheus and what reads
// its format: served over HTTP from a thread of its own. The names and labels: docs/metrics.md.
#ifndef EXPERIMENTS_WATCH_METRICS_H
#define EXPERIMENTS_WATCH_METRICS_H

#include <stdint.h>

#include "analysis/run/run_analysis.h"
#include "base/error.h"
#include "experiments/watch/watch_servers.h"

struct metrics;

// Listens on "ADDRESS:PORT", or ":PORT" for 127.0.0.1, and serves /metrics. An address that cannot
// be listened on is ERROR_INPUT.
int metrics_open(const char *address, struct metrics **out, struct error *err);
void metrics_free(struct metrics *metrics); // harmless on NULL

// Adds an interval's requests, NULL: there were none; what the capture's process took meanwhile;
// and how many folders are saved, or could not be. No memory is ERROR_FAILED.
struct metrics_interval {
    const struct run_analysis *run;
    const struct watch_servers *servers; // among which these requests are divided
    const struct answer_array *answers;  // all that it had, where `run` has an excerpt; else none
    double recorded_seconds;             // of its time
    double own_seconds;
    uint64_t passed_over;      // intervals, since the watch began
    uint64_t saved, not_saved; // the same
};
int metrics_add(struct metrics *metrics, const struct metrics_interval *interval,
                struct error *err);

#endif
