// SPDX-License-Identifier: MIT
//
// One run against another: what the messages of a slice of the candidate spent their time on,
// beside what those of the same slice of the base did (NSight §7: the comparison of iterations).
//
// A message's nanoseconds divide among components (components.h) that add up to its latency, so
// the differences of the components' means add up to that of the mean latencies: nothing is left
// over. How sure a difference is comes from the scatter within the two runs: each is cut into
// blocks of time, which are resampled. How much runs of the same thing differ among each other it
// does not tell; that takes repetitions.
#ifndef ANALYSIS_RUN_COMPARE_H
#define ANALYSIS_RUN_COMPARE_H

#include <jansson.h>

#include "analysis/run/run_analysis.h"

enum { COMPARE_BASE, COMPARE_CANDIDATE, COMPARE_SIDES };
enum { COMPARE_BLOCKS = 40 };
#define COMPARE_CONFIDENCE 0.99

// How much of one component one message has.
struct profile_value {
    uint32_t component;
    uint32_t block; // of the run's time
    float ns;
};

struct profile_message {
    uint64_t request;
    double at_ns, latency_ns; // intended, since the run began
    size_t first;             // of its values; they go to the next message's
};

struct profile_component {
    char name[64];
    char category[48];
    enum core_role role;
    bool explains;
};

struct profile_message_array ARRAY_OF(struct profile_message);

// A slice of a run, in so far as it is compared. Needs nothing of the run.
struct slice_profile {
    char words[96]; // "p99-p100"
    bool available;
    char reason[200]; // why not
    uint64_t messages;
    double mean_ns, low_ns, high_ns; // latency
    double granularity_ns;
    struct ARRAY_OF(struct profile_component) components;
    struct ARRAY_OF(struct profile_value) values;
    struct profile_message_array each; // in the order of the diagnosis, slowest first
    uint64_t block_messages[COMPARE_BLOCKS];
    double block_latency_ns[COMPARE_BLOCKS];
    bool has_views;
    struct queue_summary queue[QUEUE_KINDS]; // of which only the slice's side counts
    struct blocking_summary blocking[BLOCKING_SCOPES];
    struct core_context_array contexts;
    double context_ns;
    // Functions as components, over the messages whose functions are all known: messages, values,
    // components and blocks (of their time in functions) alone count. NULL: there are none.
    struct slice_profile *functions;
};
struct slice_profile_array ARRAY_OF(struct slice_profile);

// The share of requests that take longer than a latency, from all of them to one.
struct curve_point {
    double slower, ns; // ns: +infinity where it is never answered
};

struct run_profile {
    char run_dir[4096], name[128];
    uint64_t scheduled, answered, joined;
    double offered_rate, achieved_rate;
    struct latency_summary latency;
    struct ARRAY_OF(struct curve_point) curve; // a few hundred points, evenly spaced by logarithm
    struct slice_profile_array slices;
};

// Takes what is compared from an analyzed run, one profile per diagnosis. -ERROR_FAILED: no memory.
// The caller frees either way.
int run_profile_take(const struct run_analysis *run, struct run_profile *out, struct error *err);
void run_profile_free(struct run_profile *profile);

enum change_kind {
    CHANGE_NONE, // no more than the runs' own scatter, or than can be told apart
    CHANGE_APPEARED,
    CHANGE_GREW,
    CHANGE_SHRANK,
    CHANGE_GONE,
};
const char *change_kind_name(enum change_kind kind); // "appeared", ...

struct change {
    char name[64];
    char category[48]; // the base's where both runs have it
    enum core_role role;
    bool explains;
    enum change_kind kind;
    double mean_ns[COMPARE_SIDES];    // per message of the slice
    double share[COMPARE_SIDES];      // of messages that it takes longer than the base's median
    double normal_ns;                 // that median, over all messages of the slice
    uint64_t messages[COMPARE_SIDES]; // that have any of it
    struct spread spread_ns[COMPARE_SIDES]; // over these
    double difference_ns;                   // of the means, candidate minus base
    double low_ns, high_ns; // its interval; NAN where there is too little to resample
};
struct change_array ARRAY_OF(struct change);

// The differences of the changes that belong to one category, added up.
struct category_change {
    const char *category; // a change's
    double difference_ns;
};
struct category_change_array ARRAY_OF(struct category_change);

struct slice_comparison {
    const struct slice_profile *sides[COMPARE_SIDES];
    bool available;        // both are
    struct change latency; // of the mean latency, kind and interval as for a component
    struct category_change_array categories; // largest difference first, whatever its sign
    struct change_array changes;             // largest difference first, whatever its sign
    bool has_functions;                      // both sides have some
    struct change_array functions;           // the same for the time in each function itself
    char verdict[600];
};
struct slice_comparison_array ARRAY_OF(struct slice_comparison);

struct run_comparison {
    struct run_profile runs[COMPARE_SIDES];
    struct slice_comparison_array slices;
};

// Fills out->slices from out->runs, which have the same slices. -ERROR_FAILED: no memory.
int run_compare(struct run_comparison *out, struct error *err);
void run_comparison_free(struct run_comparison *comparison);

// docs/compare-json.md. The caller owns it.
json_t *run_comparison_json(const struct run_comparison *comparison);

#endif
