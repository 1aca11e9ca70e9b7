// SPDX-License-Identifier: MIT
//
// A study: a file whose `steps` are other experiment files, run one after the other, as often as
// `rounds` says, each with the part of an experiment under `with` laid over it, and then compared.
// A step may be a study itself. The iterations of NSight §7 are one.
#ifndef EXPERIMENTS_DEFINITION_STUDY_H
#define EXPERIMENTS_DEFINITION_STUDY_H

#include <jansson.h>
#include <stdio.h>

#include "base/document.h"
#include "base/fields.h"
#include "experiments/definition/experiment_set.h"
#include "experiments/plan/experiment.h"

extern const struct fields study_fields; // struct study

// One experiment, or one study.
struct study_step {
    char name[EXPERIMENT_PART_NAME_BYTES];
    struct experiment experiment;
    struct study *study; // NULL: the experiment
};

// The comparison of two steps that are no studies.
struct study_comparison {
    char name[EXPERIMENT_PART_NAME_BYTES];
    size_t base, candidate;
    struct word_array slices;            // none: the usual ones
    struct diagnosis_slice_array parsed; // the same
    // Its own, else the study's, else those on an increase that the candidate's experiment has.
    struct gate_array gates;
};

struct study_step_array ARRAY_OF(struct study_step);
struct study_comparison_array ARRAY_OF(struct study_comparison);

struct study {
    char name[EXPERIMENT_NAME_BYTES];
    char path[EXPERIMENT_PATH_BYTES];
    uint64_t rounds;
    struct study_step_array steps;
    struct study_comparison_array comparisons;
    struct gate_array gates;   // of comparisons that have none of their own
    struct document *document; // owns the text above
};

// Reads a file through `open`. Returns 1 with a study, which the caller frees; 0 when the file has
// no steps and is an experiment; negative, with nothing to free, when it is neither: ERROR_INPUT
// with file, line and column.
int study_load(const char *path, document_opener open, struct study *study, struct error *err);
void study_free(struct study *study);

// The resolved study: name, rounds, steps (name, and the resolved experiment or the study),
// comparisons. The caller owns it; NULL: no memory.
json_t *study_to_json(const struct study *study);

// Prints what a run would do, in words.
void study_print_plan(const struct study *study, FILE *out);

// --- the keys of an experiment's file and of a study's, for editors and for people ---------------

// A JSON Schema (draft 2020-12) of both. The caller owns it; NULL: no memory.
json_t *experiment_json_schema(void);

// The keys with their help, below each other as in a file. The manual has this text
// (docs/man/taillight-run.1), and a test holds it against the tables.
void experiment_print_keys(FILE *out);

#endif
