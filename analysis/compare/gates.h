// SPDX-License-Identifier: MIT
//
// Gates as they are written (docs/gates.md), a list of
//
//     {percentile: p99, max_increase: 5%}    {percentile: p99, max: 200us}
//     {cause: "head-of-line blocking (A)", max: 10us}    {cause: ..., max_increase: 10us}
//     {percentile: p99, load: batch, max: 200us}    of one of several loads; else of each of them
//
// under the key `gates` of an experiment, of a file of their own, or of a run's experiment.json
// (which is YAML as well), and whether they hold.
//
// Absolute ones fail when the whole interval lies above the limit, pass when it lies below, and are
// inconclusive in between; their intervals have 95 %.
//
// A gate of an increase fails when the increase is sure (the interval lies above 0) and the
// estimate exceeds the limit. It passes when the interval lies below the limit, or when the
// interval is no wider to either side than the limit (then the estimate decides). It is
// inconclusive when the runs are too few to see an increase of that size.
//
// The intervals of increases are wide enough that all gates together are falsely red in less than
// one comparison of equal builds in a hundred: their confidence is 1 - 0.01 / gates, of which half
// is red.
#ifndef ANALYSIS_COMPARE_GATES_H
#define ANALYSIS_COMPARE_GATES_H

#include <jansson.h>

#include "analysis/compare/comparison.h"
#include "analysis/compare/gate.h"
#include "base/document.h"
#include "base/error.h"
#include "base/fields.h"

#define GATE_ABSOLUTE_CONFIDENCE 0.95

enum { GATE_PART_BYTES = 200 };
enum gate_outcome { GATE_PASSED, GATE_FAILED, GATE_INCONCLUSIVE };
const char *gate_outcome_name(enum gate_outcome outcome); // "passed", ...

struct gate_result {
    struct gate gate; // with the load it was judged on
    enum gate_outcome outcome;
    double value, low, high;    // as the gate's limit: ns or a fraction; NaN: not known
    char words[500];            // what was found, and why it was judged so
    char part[GATE_PART_BYTES]; // the configuration, step or comparison it belongs to; empty: the
                                // whole
};
struct gate_result_array ARRAY_OF(struct gate_result);

// What a gate can be of. All there are stand in one table of gates.c, a row each.
enum gate_form { GATE_DURATION, GATE_SHARE }; // "10us", in ns; "5%", a fraction
struct gate_subject {
    const char *key;                   // in YAML; its value is the gate's name
    const char *is;                    // what the name must be: "a percentile, like p99.9"
    enum gate_form forms[GATE_LIMITS]; // of `max` and of `max_increase`
    // Takes what the name says into the gate. False: it is not what it must be.
    bool (*read)(const char *name, struct gate *gate);
    // Fills value, interval, outcome and words. Increases have that confidence, and a base.
    void (*judge)(const struct comparison *comparison, double confidence,
                  struct gate_result *result);
};

extern const struct fields gate_fields; // struct gate

// Appends the gates of a list's node; NULL has none. What is wrong is ERROR_INPUT with file,
// line, column and the mend. The caller frees the array either way.
int gates_read(const struct document *document, const struct node *node, struct gate_array *out,
               struct error *err);

// The same for a file's `gates`. A file without any is ERROR_INPUT when they are needed.
int gates_load(const char *path, bool needed, struct gate_array *out, struct error *err);

// The list as it is written. The caller owns it.
json_t *gates_json(const struct gate_array *gates);

// Appends one result for each gate that is of the candidate's load. Without a base, gates of an
// increase are left out. loads: on how many the gates are judged, one call each; the confidence is
// that of all calls together. -ERROR_FAILED: no memory.
int gates_judge(const struct gate_array *gates, const struct comparison *comparison, size_t loads,
                struct gate_result_array *out, struct error *err);

// Appends an inconclusive result for each gate that is of a load which the base does not have.
int gates_without_base(const struct gate_array *gates, const char *load,
                       struct gate_result_array *out, struct error *err);

// The rules alone, for the tests and the calibration.
enum gate_outcome gate_judge_increase(double value, double low, double high, double limit);
enum gate_outcome gate_judge_absolute(double low, double high, double limit);
double gate_confidence(size_t gates);

#endif
