// SPDX-License-Identifier: MIT
//
// A document becomes an experiment (experiments/plan/experiment.h): everything is checked that can
// be checked before anything is started.
#ifndef EXPERIMENTS_SPEC_EXPERIMENT_H
#define EXPERIMENTS_SPEC_EXPERIMENT_H

#include <jansson.h>
#include <stdio.h>

#include "base/error.h"
#include "experiments/plan/experiment.h"
#include "experiments/spec/experiment_expand.h"
#include "experiments/spec/experiment_schema.h"

// Binds and checks a document, which must have neither `extends` nor `matrix` any more
// (experiments/experiment_set.h reads files). Everything wrong with it is ERROR_INPUT with file,
// line, column and the mend. Takes the source, also on failure. On success the caller frees; on
// failure nothing is left to free.
int experiment_resolve(struct yaml_source *source, const char *path, const char *configuration,
                       struct experiment *experiment, struct error *err);
void experiment_free(struct experiment *experiment);

// Another seed for the load, and the agents' that follow from it.
int experiment_set_seed(struct experiment *experiment, uint64_t seed, struct error *err);

// The resolved experiment (docs/formats.md). The caller owns it; NULL: no memory.
json_t *experiment_to_json(const struct experiment *experiment);

// What a run would do, in words, one line a step.
void experiment_print_plan(const struct experiment *experiment, FILE *out);

#endif
