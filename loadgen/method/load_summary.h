// SPDX-License-Identifier: MIT
//
// The figures of a load: counts, percentiles with their confidence intervals, and whether they can
// be trusted. Latency counts from the intended time to the reply (corrected), and separately from
// the send call (uncorrected: what a closed-loop tool would have reported). A request without a
// reply is +infinity in both; one never sent only in the first. With a fan-out both, and the rates,
// are those of logical requests (loadgen/method/logical_requests.h); all else is of requests.
#ifndef LOADGEN_METHOD_LOAD_SUMMARY_H
#define LOADGEN_METHOD_LOAD_SUMMARY_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "base/quantile.h"
#include "loadgen/engine/engine_result.h"
#include "loadgen/method/load_doubts.h"
#include "loadgen/method/method_interval.h"
#include "loadgen/method/silences.h"

enum { SUMMARY_QUANTILES = 6, SUMMARY_REASONS = 12 };
extern const double summary_quantiles[SUMMARY_QUANTILES];           // 0.5 ... 0.9999, 1
extern const char *const summary_quantile_names[SUMMARY_QUANTILES]; // "p50" ... "p99.99", "max"
extern const double summary_confidence;                             // of the intervals
// by how much the achieved rate may be less than offered
extern const double summary_rate_tolerance;

struct load_percentiles {
    size_t count;                 // of the values behind them
    double us[SUMMARY_QUANTILES]; // may be +infinity; NaN: too few values (quantile_is_seen)
    // In us, 95 %, of latency alone, for requests that may depend on one another
    // (loadgen/method/method_interval.h).
    struct quantile_interval interval[SUMMARY_QUANTILES];
};

struct load_summary {
    bool ok; // false: "n/a", and reasons say why
    unsigned reason_count;
    char reasons[SUMMARY_REASONS][400];
    enum load_doubt doubts[SUMMARY_REASONS]; // what each is about; the least, the first, explains
                                             // the others (load_doubts.tbl.h)
    bool hindered;        // something kept a closed loop from sending any request
    double duration_s;    // of the schedule
    double offered_rate;  // scheduled (logical) requests per second of it
    double achieved_rate; // answered ones per second until the last reply, at least over it
    uint64_t scheduled, sent, answered, misses, error_replies, unsent, timed_out, lost;
    uint64_t logical_scheduled, logical_answered; // the same as of requests without a fan-out
    struct load_percentiles latency, uncorrected;
    struct load_percentiles each;    // with a fan-out: the latency of each request by itself
    struct load_percentiles network; // RX stamp minus TX stamp, where a request has both
    double lateness_p50_us, lateness_p99_us; // send call minus intended time; NaN: nothing sent
    double cpu_us_per_request;               // of this thread, idle spinning excluded; NaN: none
    double spin_fraction;                    // of the run's time spent finding nothing to do
    double asleep_fraction;                  // part of that in which no core was used
    double core_share;                       // of the run's time that its threads had a core
    struct silences silences;                // not the client's own
    uint64_t stamps_hardware, stamps_software,
        stamps_user;         // answered requests by the source of their stamps
    uint64_t stamps_one_way; // of stamps_software: one of the two is the NIC's
};

// What computing it found besides, for whoever judges the method of the same requests.
struct load_latencies {
    double *us; // of each (logical) request, in their order; the caller frees
    struct percentile_estimate estimates[SUMMARY_QUANTILES]; // with summary_confidence
};

// Takes all but the silences and the reasons, which load_summarise() finds
// (loadgen/method/load_reasons.h). ERROR_FAILED: out of memory; nothing is to be freed.
int load_summary_take(const struct engine_result *result, uint64_t duration_ns,
                      struct load_summary *summary, struct load_latencies *kept, struct error *err);

// Adds a reason not to trust it, a sentence, in its place among the others: the verdict becomes
// "n/a".
void load_summary_add_reason(struct load_summary *summary, enum load_doubt doubt,
                             const char *format, ...) __attribute__((format(printf, 3, 4)));

// Adds those of a document that load_summary_json() made, each after whose it is: "agent a: ...".
void load_summary_take_reasons(struct load_summary *summary, const json_t *document,
                               const char *whose);

// The settings that are reported with the figures.
struct load_facts {
    const char *server;
    const struct protocol *protocol;
    const char *workload; // its file, or NULL
    double rate;          // as asked for
    const char *arrivals; // as arrivals_format writes them
    const char *pattern;  // as rate_pattern_format writes it; NULL: constant
    const char *think;    // of a closed loop, as asked for; NULL: nobody thinks
    double batch_us;      // how long requests were to wait for others; 0: not at all
    uint64_t session;     // requests of a connection; 0: as many as come
    bool sleeps;          // between requests, instead of spinning
    bool sentinel;        // its nodes are masters, one after the other
    const char *warning;  // beside the verdict; NULL or empty: none
    uint64_t seed;
};

// The document of `taillight load --json` (docs/load-json.md). What is infinite or unknown is
// null. The caller owns it; NULL: out of memory.
json_t *load_summary_json(const struct load_summary *summary, const struct engine_result *result,
                          const struct load_facts *facts);

void load_summary_print(const struct load_summary *summary, const struct engine_result *result,
                        const struct load_facts *facts, FILE *out);

#endif
