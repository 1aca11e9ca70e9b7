// SPDX-License-Identifier: MIT
//
// The part of a run that is compared: each slice's messages, and how their nanoseconds divide among
// components (components.h) that add up to the latency. It is taken from an analyzed run, which can
// be freed afterwards, so that many runs fit into memory.
#ifndef ANALYSIS_COMPARE_RUN_PROFILE_H
#define ANALYSIS_COMPARE_RUN_PROFILE_H

#include "analysis/compare/resample.h"
#include "analysis/run/run_analysis.h"

// The time of one component in one message.
struct profile_value {
    uint32_t component;
    uint32_t block; // of the run's time, of RESAMPLE_BLOCKS
    float ns;
};

struct profile_message {
    uint64_t request;
    double at_ns, latency_ns; // intended, since the run began
    size_t first; // index of its first value; its values end where the next message's begin
};

struct profile_component {
    char name[64];
    char category[48];
    enum core_role role;
    bool explains;
};

struct profile_message_array ARRAY_OF(struct profile_message);

// The compared part of a slice of a run. Independent of the run's memory.
struct slice_profile {
    char words[96]; // "p99-p100"
    bool available;
    char reason[200]; // why it is not available
    uint64_t messages;
    double mean_ns, low_ns, high_ns; // latency
    double granularity_ns;
    struct ARRAY_OF(struct profile_component) components;
    struct ARRAY_OF(struct profile_value) values;
    struct profile_message_array each; // in the order of the diagnosis, slowest first
    uint64_t block_messages[RESAMPLE_BLOCKS];
    double block_latency_ns[RESAMPLE_BLOCKS];
    bool has_views;
    struct queue_summary queue[QUEUE_KINDS]; // of which only the slice's side is used
    struct blocking_summary blocking[BLOCKING_SCOPES];
    struct core_context_array contexts;
    double context_ns;
    // Functions as components, over the messages whose functions are all known: messages, values,
    // components and blocks (of their time in functions) alone are set. NULL: there are none.
    struct slice_profile *functions;
};
struct slice_profile_array ARRAY_OF(struct slice_profile);

struct run_profile {
    uint64_t scheduled, answered, joined;
    struct slice_profile_array slices;
};

// Takes the profiles from an analyzed run, one per diagnosis. -ERROR_FAILED: no memory. The caller
// frees either way.
int run_profile_take(const struct run_analysis *run, struct run_profile *out, struct error *err);
void run_profile_free(struct run_profile *profile);

// Finds the component of that name and role; -1: the slice has none.
int64_t slice_profile_find(const struct slice_profile *slice, const char *name,
                           enum core_role role);

#endif
