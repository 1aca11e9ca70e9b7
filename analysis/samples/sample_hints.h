// SPDX-License-Identifier: MIT
//
// What may have filled the slow messages' time: for the causes that ran on a core, in which
// functions the samples were that fell into the intervals these causes are made of, in the slice
// and in ordinary messages. A sample belongs to a cause when a lifetime gave it that instant of
// that core; one that lies in several messages' lifetimes counts once. Where nothing ran (idle
// gaps, stages without spans) there is nothing to sample, and no hint.
#ifndef ANALYSIS_SAMPLES_SAMPLE_HINTS_H
#define ANALYSIS_SAMPLES_SAMPLE_HINTS_H

#include "analysis/diagnosis/diagnosis.h"
#include "analysis/lifetime/lifetime.h"
#include "analysis/samples/sample_profile.h"
#include "analysis/timeline/span.h"

enum {
    SAMPLE_HINTS_MOST = 8,        // causes, those that weigh most
    SAMPLE_HINT_FUNCTIONS = 3,    // named of each
    SAMPLE_HINT_LEAST = 20,       // samples; below there is no hint
    SAMPLE_HINT_MESSAGES = 20000, // looked at on either side, evenly chosen
};

struct hint_function {
    uint32_t name;      // in sample_profile.names
    uint64_t slice;     // samples in it, in the slice's messages
    uint64_t reference; // and in ordinary ones
};

struct sample_hint {
    char cause[CAUSE_NAME_BYTES];
    enum core_role role;
    uint64_t slice, reference;                             // samples in all functions
    struct hint_function functions[SAMPLE_HINT_FUNCTIONS]; // most of the slice's samples first
    size_t function_count;
};

// Samples in a function and in all that it called which lie in the lifetimes of messages, whatever
// held them up then. Each counts once.
struct node_samples {
    uint64_t slice, reference;
};

struct sample_hints {
    struct sample_hint items[SAMPLE_HINTS_MOST];
    size_t count;
    struct node_samples *nodes; // owned; by node of the profile. NULL: nothing was looked at
    uint64_t slice_messages, reference_messages; // that were looked at
};

// in: what the diagnosis was made from. Causes of the diagnosis in their order, and at the end
// "application time (A)" where it is none of them. -1: no memory. The caller frees, after a failure
// too.
int sample_hints_find(const struct sample_profile *profile, const struct diagnosis_input *in,
                      const struct diagnosis *diagnosis, struct sample_hints *out);
void sample_hints_free(struct sample_hints *hints);

// At which instant the core was where a sample says. A counter's interrupt is an NMI: at the
// sample's own time. The clock's (cpu-clock) is an ordinary timer interrupt: perf notes the time
// within it, but the place where the core was before it; so the instant is the one before the
// interrupt, whose beginning is among the events.
//
// Moves the clock's samples to just before the interrupt that they were taken in; others stay.
// Their order stays, too. Does nothing for other events.
void sample_instants_settle(struct sample_profile *profile, const struct host_timeline *host);

#endif
