// SPDX-License-Identifier: MIT
//
// Can a load's result be trusted? (Lancet §4.3, design §7.) The steps, each of which assumes those
// before it: the load was as asked for, the client and the arrivals were right, the latency was
// stationary, the samples are independent, the percentile's interval is narrow enough. Every
// statistic is computed and reported whatever the verdict; the reasons are those of the first step
// that failed, because a step's failure makes later ones fail too.
#ifndef LOADGEN_METHOD_METHOD_H
#define LOADGEN_METHOD_METHOD_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "loadgen/engine/engine_result.h"
#include "loadgen/method/load_summary.h"
#include "loadgen/method/method_arrivals.h"
#include "loadgen/method/method_independence.h"
#include "loadgen/method/method_interval.h"
#include "loadgen/method/method_stationarity.h"
#include "workloads/distribution.h"

enum method_check {
    METHOD_LOAD, // rate reached, requests answered, not closed-loop (loadgen/method/load_summary.h)
    METHOD_CLIENT,
    METHOD_ARRIVALS,
    METHOD_STATIONARITY,
    METHOD_INDEPENDENCE,
    METHOD_INTERVAL,
    METHOD_CHECKS,
};

enum method_finding {
    METHOD_UNKNOWN, // too few samples to decide
    METHOD_PASSED,
    METHOD_FAILED,
};

struct method_settings {
    double quantile;              // 0.99
    double confidence;            // 0.95
    double width_us;              // of the percentile's interval, at most; 0: however wide
    struct distribution arrivals; // the shape of the gaps, whatever its mean
    double rate;                  // as asked for, before the pattern
    struct rate_pattern pattern;  // how it changes ...
    double duration_s;            // ... over so long; not looked at when it is constant
    bool recorded;                // gaps as recorded; the rate may change with the recording
    size_t turn;                  // how many connections take turns
    double batch_us;              // so long a request may have waited for others, by the plan
    double budget_s;              // how long the load may last; 0: it lasted exactly as asked
    // The samples are pooled from several clients: how well each of them sent is not judged for the
    // pool, and stays unknown.
    bool pooled;
    // Requests waited for replies: there is no time at which one should have been sent, nor rate.
    bool closed_loop;
    // share of the machine's time that its hypervisor took during the load; 0: unknown
    double stolen;
};

enum { METHOD_REASONS = 3 };

struct method {
    struct method_settings settings;
    enum method_finding findings[METHOD_CHECKS];
    unsigned reason_count; // 0: it can be trusted
    char reasons[METHOD_REASONS][300];
    enum load_doubt doubts[METHOD_REASONS]; // what each is about
    struct arrivals arrivals;
    struct client_bias client;
    struct stationarity stationarity;
    struct levels levels; // used instead of stationarity, for a pattern of steps
    double warm_up_s;
    struct independence independence;
    struct percentile_interval interval; // of the samples after the warm-up
    // seconds of load that an interval of width_us would take; +infinity: no number is enough; NaN:
    // none asked
    double needed_s;
};

// Runs all of it on a run's samples (in the order of their intended times). load_ok: what
// load_summarise() found; idle: the run's spin_fraction. ERROR_FAILED: out of memory.
int method_judge(const struct engine_result *run, const struct method_settings *settings,
                 bool load_ok, double idle, struct method *method, struct error *err);

// The same of latencies that load_summarise_keeping() kept of the run.
int method_judge_kept(const struct engine_result *run, const struct method_settings *settings,
                      bool load_ok, double idle, const struct load_latencies *kept,
                      struct method *method, struct error *err);

// Both: the load's summary, which gets the method's reasons, and the method's findings. Of a closed
// loop, which has failed as a load, the rate that came about is taken for the one asked for.
int load_judge(const struct engine_result *run, uint64_t duration_ns,
               const struct method_settings *settings, struct load_summary *summary,
               struct method *method, struct error *err);

// True when every check passed and none is unknown.
bool method_is_satisfied(const struct method *method);

// "p99", "p99.9". Returns out.
char *method_percentile_name(double quantile, char *out, size_t out_bytes);

// The members of "method" in docs/load-json.md. The caller owns it; NULL: out of memory.
json_t *method_json(const struct method *method);

void method_print(const struct method *method, FILE *out);

#endif
