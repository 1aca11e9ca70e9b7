// SPDX-License-Identifier: MIT
//
// An experiment file as experiments: one, or with a `matrix` one for each configuration.
#ifndef EXPERIMENTS_DEFINITION_EXPERIMENT_SET_H
#define EXPERIMENTS_DEFINITION_EXPERIMENT_SET_H

#include "experiments/definition/expand.h"
#include "experiments/definition/resolve.h"

struct experiment_set ARRAY_OF(struct experiment);

// Reads a file and what it extends, and checks every configuration. Everything wrong is ERROR_INPUT
// with file, line, column and how to correct it. On success the caller frees; on failure nothing is
// left to free.
int experiment_set_load(const char *path, struct experiment_set *set, struct error *err);

// The same for text in memory; `name` stands for the path, `open` reads what it extends (NULL:
// nothing can be extended).
int experiment_set_parse(const char *name, const char *text, size_t bytes, document_opener open,
                         struct experiment_set *set, struct error *err);
void experiment_set_free(struct experiment_set *set);

#endif
