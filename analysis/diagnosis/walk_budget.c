// SPDX-License-Identifier: MIT
#include "analysis/diagnosis/walk_budget.h"

#include <math.h>

// What a core does in a nanosecond, at the busiest of a host.
static double pieces_of_host(const struct host_timeline *host)
{
    double most = 0;
    for (size_t i = 0; host && i < host->cores.count; i++) {
        const struct span_array *spans = &host->cores.items[i].spans;
        if (spans->count < 2)
            continue;
        double ns = (double)(spans->items[spans->count - 1].begin_ns - spans->items[0].begin_ns);
        most = fmax(most, (double)spans->count / fmax(ns, 1));
    }
    return most;
}

size_t walk_budget(const struct diagnosis_input *in, double pieces, double lives_ns, size_t count,
                   size_t least)
{
    const double all = lives_ns * fmax(pieces_of_host(in->server), pieces_of_host(in->client));
    if (in->reference_most)
        pieces *= (double)in->reference_most / REFERENCE_MOST;
    const double taken = all > pieces ? pieces / all * (double)count : (double)count;
    return count <= least ? count : (size_t)fmax(taken, (double)least);
}
