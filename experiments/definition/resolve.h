// SPDX-License-Identifier: MIT
//
// A document becomes an experiment (experiments/plan/experiment.h): everything is checked that can
// be checked before anything is started. The keys are a table (base/fields.h), from which the
// schema and the manual come, too (experiments/definition/study.h).
#ifndef EXPERIMENTS_DEFINITION_RESOLVE_H
#define EXPERIMENTS_DEFINITION_RESOLVE_H

#include "base/document.h"
#include "base/error.h"
#include "base/fields.h"
#include "experiments/plan/experiment.h"

// The keys of an experiment's file.
extern const struct fields experiment_fields;

// Binds and checks a document, which must have neither `extends` nor `matrix` any more
// (experiments/definition/experiment_set.h reads files). Everything wrong with it is ERROR_INPUT
// with file, line, column and how to correct it. Takes the document, also on failure. On success
// the caller frees; on failure nothing is left to free.
int experiment_resolve(struct document *document, const char *path, const char *configuration,
                       struct experiment *experiment, struct error *err);
void experiment_free(struct experiment *experiment);

// Chooses the file of categories and checks that it can be read: `asked`, or, when that is NULL,
// the experiment's own, if it has one. ERROR_INPUT names the file and, where it can, the line.
int experiment_choose_categories(struct experiment *experiment, const char *asked,
                                 struct error *err);

#endif
