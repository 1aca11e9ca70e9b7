// SPDX-License-Identifier: MIT
//
// The samples of a recording, named: in which function of which thread a core was at which instant,
// and who had called that. Call stacks are a tree, so that equal ones cost memory once. The
// recording itself is not needed any more.
#ifndef ANALYSIS_SAMPLES_SAMPLE_PROFILE_H
#define ANALYSIS_SAMPLES_SAMPLE_PROFILE_H

#include <jansson.h>
#include <stdint.h>

#include "analysis/timeline/span.h"
#include "base/array.h"
#include "base/error.h"

// A function called by the one above it. The first node is the root, which is no function; its
// children are the threads' names. A parent's number is smaller than its children's.
struct sample_node {
    uint32_t parent;
    uint32_t name;  // in sample_profile.names
    uint64_t self;  // samples in the function itself
    uint64_t total; // and in all that it called
};
struct sample_nodes ARRAY_OF(struct sample_node);

struct named_sample {
    int64_t time_ns; // the recording's clock; of a run: host time
    uint32_t core;
    uint32_t node; // innermost
};
struct named_samples ARRAY_OF(struct named_sample);

struct sample_profile {
    struct named_samples samples; // by core, then by time
    struct sample_nodes nodes;
    struct name_array names; // owned; functions and threads
    char event[64];          // what was sampled: "cycles", "cpu-clock"
    uint64_t lost;           // records that perf did not get, samples among them
    uint64_t throttled;      // how often the kernel took none for a while
    uint64_t unnamed;        // samples whose innermost function no symbol covers
    size_t damages;          // places where the recording is cut or malformed: the first notes
    uint64_t without_chain;  // samples of which only the innermost function is known
    uint64_t left_out;       // guests', and those beyond the limit
    struct name_array notes; // owned; what was wrong with the recording, and which code is missing
};

// Reads a recording of `perf record`, of samples. symfs: where the recorded machine's files lie,
// NULL: here. ERROR_INPUT where it has none, or cannot be read. The caller frees, after a failure
// too.
int sample_profile_load(struct sample_profile *profile, const char *path, const char *symfs,
                        struct error *err);
void sample_profile_free(struct sample_profile *profile);

// The samples of a core with from <= time < to.
const struct named_sample *sample_profile_between(const struct sample_profile *profile,
                                                  uint32_t core, int64_t from_ns, int64_t to_ns,
                                                  size_t *count);

// Folded stacks, as flame graph tools read them: "thread;outer;inner <samples>" a line.
int sample_profile_write_folded(const struct sample_profile *profile, const char *path,
                                struct error *err);

// Samples of one function, wherever it was called from.
struct sample_function {
    uint32_t name;
    uint64_t self;
    uint64_t total; // a function that calls itself counts once
};
struct sample_functions ARRAY_OF(struct sample_function);

// All functions, those with the most samples in themselves first. -1: no memory.
int sample_profile_functions(const struct sample_profile *profile, struct sample_functions *out);

#endif
