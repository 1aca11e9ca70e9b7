// SPDX-License-Identifier: MIT
//
// A gate: a limit that a build must not exceed, either absolute ("p99 at most 200 us") or against
// another build ("p99 at most +5 %"). It applies to a percentile of latency, to a cause's
// nanoseconds per message of the slice, or what else gates.h has, which reads and judges gates.
#ifndef ANALYSIS_COMPARE_GATE_H
#define ANALYSIS_COMPARE_GATE_H

#include <stddef.h>

#include "base/array.h"

enum gate_limit { GATE_MAX, GATE_MAX_INCREASE, GATE_LIMITS };
enum { GATE_NAME_BYTES = 80, GATE_TEXT_BYTES = 32, GATE_LOAD_BYTES = 32 };

struct gate_subject; // gates.h

struct gate {
    const struct gate_subject *subject;
    enum gate_limit limit;
    char name[GATE_NAME_BYTES]; // "p99.9", "head-of-line blocking (A)"
    char load[GATE_LOAD_BYTES]; // of several: the one it is of; empty: each, or the only one
    char text[GATE_TEXT_BYTES]; // the limit as it was written: "200us", "5%"
    double quantile;            // of a percentile: 0.999; of others 0
    double value;               // the limit: ns, or a fraction (0.05), as the subject has it
};
struct gate_array ARRAY_OF(struct gate);

// "p99 at most +5%", "p99 of load `batch` at most 200us".
char *gate_words(const struct gate *gate, char *out, size_t out_bytes);

#endif
