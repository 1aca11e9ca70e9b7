// SPDX-License-Identifier: MIT
//
// The times and cores for which functions must be decoded to explain some slices: the lives, at the
// server, of the slices' messages and of enough ordinary messages to compare them with.
#ifndef ANALYSIS_DIAGNOSIS_TRACE_WINDOWS_H
#define ANALYSIS_DIAGNOSIS_TRACE_WINDOWS_H

#include "analysis/diagnosis/diagnosis.h"
#include "analysis/timeline/span.h"
#include "base/error.h"

struct trace_windows {
    struct core_windows {
        uint16_t core;
        struct time_range_array ranges; // ascending and disjoint when trace_windows_choose returns
        struct time_range_array slow;   // likewise: the lives of the slices' own messages alone
    } * cores;
    size_t core_count;
    uint64_t messages;
};

// The slices are in host time. The caller frees with trace_windows_free, also after a failure (no
// memory).
int trace_windows_choose(const struct diagnosis_input *in, const struct diagnosis_slice *slices,
                         size_t slice_count, struct trace_windows *out, struct error *err);
// The windows of a core; NULL: none.
const struct time_range_array *trace_windows_of(const struct trace_windows *windows, uint16_t core);
void trace_windows_free(struct trace_windows *windows);

#endif
