// SPDX-License-Identifier: MIT
//
// Whether a gate holds. Absolute ones fail when the whole interval lies above the limit, pass when
// it lies below, and are inconclusive in between; their intervals have 95 %.
//
// A gate of an increase fails when the increase is sure (the interval lies above 0) and the
// estimate exceeds the limit. It passes when the interval lies below the limit, or when the
// interval is no wider to either side than the limit (then the estimate decides). It is
// inconclusive when the runs are too few to see an increase of that size.
//
// The intervals of increases are wide enough that all gates together are falsely red in less than
// one comparison of equal builds in a hundred: their confidence is 1 - 0.01 / gates, of which half
// is red.
#ifndef ANALYSIS_COMPARE_GATE_JUDGE_H
#define ANALYSIS_COMPARE_GATE_JUDGE_H

#include "analysis/compare/gate.h"
#include "analysis/compare/comparison.h"

#define GATE_ABSOLUTE_CONFIDENCE 0.95

enum { GATE_PART_BYTES = 200 };
enum gate_outcome { GATE_PASSED, GATE_FAILED, GATE_INCONCLUSIVE };
const char *gate_outcome_name(enum gate_outcome outcome); // "passed", ...

struct gate_result {
    struct gate gate;
    enum gate_outcome outcome;
    double value, low, high;    // as the gate's limit: ns or a fraction; NaN: not known
    char words[500];            // what was found, and why it was judged so
    char part[GATE_PART_BYTES]; // the configuration, step or comparison it belongs to; empty: the
                                // whole
};
struct gate_result_array ARRAY_OF(struct gate_result);

// Appends one result a gate. Without a base, gates of an increase are left out. -ERROR_FAILED: no
// memory.
int gates_judge(const struct gate_array *gates, const struct comparison *comparison,
                struct gate_result_array *out, struct error *err);

// The rules alone, for the tests and the calibration.
enum gate_outcome gate_judge_increase(double value, double low, double high, double limit);
enum gate_outcome gate_judge_absolute(double low, double high, double limit);
double gate_confidence(size_t gates);

#endif
