// SPDX-License-Identifier: MIT
//
// Latency against load: the result of a sweep or of a search for an SLO, one point per load. The
// document (docs/load-json.md) is printed by --json and written as DIR/sweep.json.
#ifndef LOADGEN_LOAD_CURVE_H
#define LOADGEN_LOAD_CURVE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/array.h"
#include "base/error.h"
#include "loadgen/load_plan.h"
#include "loadgen/load_run.h"
#include "loadgen/method/load_saturation.h"
#include "loadgen/method/load_summary.h"

enum curve_finding { CURVE_MET, CURVE_MISSED, CURVE_UNDECIDED };
extern const char *const curve_finding_names[]; // "met", "missed", "undecided"

struct curve_point {
    struct load_point asked;
    // with agents: rates and counts of all, including those that only load
    struct load_summary summary;
    struct load_saturation saturation;
    bool interrupted, broken;
    // Of a search, else unused: the SLO's percentile with the method's interval, and what it says
    // about the SLO.
    double target_us;
    struct quantile_interval target;
    enum curve_finding finding;
    char why[200]; // of a finding other than met
};

struct load_curve {
    struct curve_points ARRAY_OF(struct curve_point) points; // in the order they were run
};

// Loads once more and appends the point; its samples are not kept. The returned point is valid
// until the next call; the outcome's figures, but not its samples, stay for the caller.
int load_curve_take(struct load_curve *curve, struct load_plan *plan, double rate,
                    uint64_t duration_ns, struct load_outcome *outcome, struct error *err);
void load_curve_free(struct load_curve *curve);

// The document without the members of its kind: "kind", what was asked for, "points". The caller
// adds those, and owns it; NULL: out of memory.
json_t *load_curve_json(const struct load_curve *curve, const struct load_plan *plan,
                        const char *kind);

// One point as a row of a table on stdout; the head is printed above the first.
void load_curve_print_head(void);
void load_curve_print(const struct curve_point *point);

#endif
