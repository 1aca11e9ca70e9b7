// SPDX-License-Identifier: MIT
//
// A gate: a limit that a build must not exceed, either absolute ("p99 at most 200 us") or against
// another build ("p99 at most +5 %"). It applies to a percentile of latency, or to a cause's
// nanoseconds per message of the slice. gate_judge.h judges gates.
#ifndef ANALYSIS_COMPARE_GATE_H
#define ANALYSIS_COMPARE_GATE_H

#include <stddef.h>

#include "base/array.h"

enum gate_subject { GATE_PERCENTILE, GATE_CAUSE };
enum gate_limit { GATE_MAX, GATE_MAX_INCREASE };
enum { GATE_NAME_BYTES = 80, GATE_TEXT_BYTES = 32 };

struct gate {
    enum gate_subject subject;
    enum gate_limit limit;
    char name[GATE_NAME_BYTES]; // "p99.9", "head-of-line blocking (A)"
    char text[GATE_TEXT_BYTES]; // the limit as it was written: "200us", "5%"
    double quantile;            // of a percentile: 0.999
    double value;               // ns; of a percentile's increase: a fraction, 0.05
};
struct gate_array ARRAY_OF(struct gate);

// "p99 at most +5%".
char *gate_words(const struct gate *gate, char *out, size_t out_bytes);

#endif
