// SPDX-License-Identifier: MIT
//
// Takes one lifetime apart: how many of its nanoseconds belong to which component. On the server's
// cores it goes by the innermost context of every piece of time the message spent there (NSight
// §5.2, phases 1, 2 and 4); elsewhere whole stages are components.
#ifndef ANALYSIS_DECOMPOSE_H
#define ANALYSIS_DECOMPOSE_H

#include <stddef.h>
#include <stdint.h>

#include "analysis/components.h"
#include "analysis/diagnosis.h"

struct component_share {
    uint64_t lifetime;
    uint32_t component;
    double ns; // > 0
};
struct component_share_array ARRAY_OF(struct component_share);

struct decomposer {
    const struct diagnosis_input *in;
    struct component_table *table;
    double *ns; // by component, of the message at hand; zero between messages
    size_t capacity;
    bool out_of_memory;
};

void decomposer_init(struct decomposer *decomposer, const struct diagnosis_input *input,
                     struct component_table *table);
void decomposer_fini(struct decomposer *decomposer);

// Appends the shares of one whole lifetime, by ascending component; they add up to its latency to
// within rounding. -1 when memory runs out.
int decompose(struct decomposer *decomposer, uint64_t lifetime, struct component_share_array *out);

// Internal to decompose*.c: gives a component time.
void decomposer_add(struct decomposer *decomposer, int64_t component, double ns);

// How the running time [begin_ns, end_ns) of the message's own thread divides between its own work
// and that for requests ahead of it (blocking.c).
void decompose_thread_time(struct decomposer *decomposer, const struct lifetime *life,
                           int64_t begin_ns, int64_t end_ns);

#endif
