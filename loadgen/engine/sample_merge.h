// SPDX-License-Identifier: MIT
//
// The samples of several load threads become one array, in the order of their intended times. As
// many threads as there are parts do it, since it takes longer than anything else between the end
// of a large load and its figures.
#ifndef LOADGEN_ENGINE_SAMPLE_MERGE_H
#define LOADGEN_ENGINE_SAMPLE_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "loadgen/client/sample_log.h"

// Of one thread, in the order of their intended times.
struct sample_part {
    const struct sample *samples;
    size_t count;
};

// dealt: the requests of one schedule were dealt in turn, the first to the first part. Else (a
// closed loop) the sample with the least intended time comes first, of equal ones that of the
// earlier part. merged: room for all of them. ERROR_FAILED: out of memory.
int sample_merge(const struct sample_part *parts, uint32_t count, bool dealt, struct sample *merged,
                 struct error *err);

#endif
