// SPDX-License-Identifier: MIT
//
// The part of a run that is compared: each slice's messages, and how their nanoseconds divide among
// components (components.h) that add up to the latency. It is taken from an analyzed run, which can
// be freed afterwards, so that many runs fit into memory.
#ifndef ANALYSIS_COMPARE_RUN_PROFILE_H
#define ANALYSIS_COMPARE_RUN_PROFILE_H

#include "analysis/compare/percentile_shift.h"
#include "analysis/compare/resample.h"
#include "analysis/run/run_analysis.h"
#include "analysis/run/input/run_loads.h"
#include "analysis/samples/sample_stacks.h"
#include "base/progress.h"

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
    char name[CAUSE_NAME_BYTES];
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
    struct slice_profile_array slices; // in the order of those of its set
};

// Finds the component of that name and role; -1: the slice has none.
int64_t slice_profile_find(const struct slice_profile *slice, const char *name,
                           enum core_role role);

// The runs of one build: a run folder, or the folder of an experiment's repetitions
// (docs/formats.md: repetition-1, repetition-2, ...), read for a comparison.
struct run_profile_array ARRAY_OF(struct run_profile);

struct run_set {
    char path[4096];
    struct diagnosis_slice_array slices; // that the profiles have, without duplicates; chosen
                                         // before the first run is added
    char name[128];                      // of the experiment
    char load[RUN_LOAD_NAME_BYTES];      // the one of the runs' that is looked at; empty: the only
                                         // one
    struct latency_run_array latencies;  // one per run
    struct run_profile_array profiles;   // one per run
    struct sample_stacks stacks;         // of all runs that were sampled, on the first side
    double offered_rate, achieved_rate;  // means over the runs
    size_t asked;                        // how many repetitions its experiment asks for; 0: none
    size_t inconclusive;                 // number of runs that had such a load
    char reason[400];                    // of the first of them, in plain words where there are any
};

// The same runs, looked at from each of their loads: a set each, the first load's first.
struct run_set_array ARRAY_OF(struct run_set);

// Which of the sets is compared with the others' set number `index`: that of the load of the same
// name. The first ones also where a side has only one load, without a name. NULL: none.
struct run_set *run_sets_match(const struct run_set_array *sets, const struct run_set_array *others,
                               size_t index);

// Appends an empty set for each load that the runs in a folder have, by its name.
int run_sets_list(const char *path, struct run_set_array *out, struct error *err);
void run_sets_free(struct run_set_array *sets);

// Whether the folder is a run's own and not one of repetitions.
bool run_set_is_run(const char *path);

// ERROR_INPUT: there is no run in it, or not each of its repetitions.
int run_set_check(const char *path, struct error *err);

// The folder of a repetition, counted from 0.
char *run_set_folder(const char *path, size_t index, char *out, size_t out_bytes);

// The slices of the runs' own diagnosis.
int run_set_own_slice(const char *path, struct diagnosis_slice *out, struct error *err);

// Adds slices to those that the profiles will have. -ERROR_FAILED: no memory.
int run_set_want(struct run_set *set, const struct diagnosis_slice_array *slices,
                 struct error *err);

// Adds an analyzed run, whose request had the set's slices as `profiled` or as `slices`.
int run_set_add(struct run_set *set, const struct run_analysis *run, struct error *err);

// What a run of the set spent its time on in one of the set's slices.
const struct slice_profile *run_set_profile(const struct run_set *set, size_t run,
                                            const struct diagnosis_slice *slice);

// Analyzes each run once, one after the other, so that one at a time is in memory, and adds it,
// looked at from the set's load.
// categories: as of run_analyze(). Not a run or damaged: ERROR_INPUT that names the folder.
int run_set_read(struct run_set *set, const char *path, const char *categories,
                 struct progress *progress, struct error *err);
void run_set_free(struct run_set *set);

#endif
