// SPDX-License-Identifier: MIT
//
// What of a run is compared: of each slice its messages, and how their nanoseconds divide among
// components (components.h) that add up to the latency. Taken from an analyzed run, which is not
// needed afterwards, so that many runs fit into memory.
#ifndef ANALYSIS_COMPARE_RUN_PROFILE_H
#define ANALYSIS_COMPARE_RUN_PROFILE_H

#include "analysis/compare/resample.h"
#include "analysis/run/run_analysis.h"

// How much of one component one message has.
struct profile_value {
    uint32_t component;
    uint32_t block; // of the run's time, of RESAMPLE_BLOCKS
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
    uint64_t block_messages[RESAMPLE_BLOCKS];
    double block_latency_ns[RESAMPLE_BLOCKS];
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

struct run_profile {
    uint64_t scheduled, answered, joined;
    struct slice_profile_array slices;
};

// Takes what is compared from an analyzed run, one profile per diagnosis. -ERROR_FAILED: no memory.
// The caller frees either way.
int run_profile_take(const struct run_analysis *run, struct run_profile *out, struct error *err);
void run_profile_free(struct run_profile *profile);

// The component of that name and role; -1: the slice has none.
int64_t slice_profile_find(const struct slice_profile *slice, const char *name,
                           enum core_role role);

#endif
