// SPDX-License-Identifier: MIT
//
// The two keys of an experiment file that make documents of documents. `extends: FILE` lays a file
// over another. `matrix:` makes one file many configurations, the cartesian product of its axes. An
// axis is a key with values, `load.rate: [10k, 20k]`, or a name with variants, each a piece of an
// experiment laid over the rest: `watched: {no: {capture: {backend: none}}, yes: {}}`.
#ifndef EXPERIMENTS_SPEC_EXPERIMENT_EXPAND_H
#define EXPERIMENTS_SPEC_EXPERIMENT_EXPAND_H

#include "base/array.h"
#include "experiments/plan/experiment.h"
#include "experiments/spec/yaml_position.h"

enum { CONFIGURATIONS_MAX = 64, EXPERIMENT_PATH_BYTES = 4096 };

struct configuration {
    char label[CONFIGURATION_LABEL_BYTES]; // "rate=10k, watched=no"; empty: no matrix
    struct yaml_source *source;
};
struct configuration_array ARRAY_OF(struct configuration);

// Reads the document of a path for `extends` (yaml_source_open does).
typedef int (*yaml_opener)(const char *path, struct yaml_source **out, struct error *err);

// The path of `wanted`, which the file `from` names: relative to that one. False: too long.
bool experiment_path_join(const char *from, const char *wanted, char path[EXPERIMENT_PATH_BYTES]);

// Replaces a document by what it comes to with all it extends. `path` is its own; others are
// relative to the file that names them. Circles, and more than 8 files, are ERROR_INPUT. On failure
// *source is as it was or merged in part, and the caller's to close.
int experiment_extend(struct yaml_source **source, const char *path, yaml_opener open,
                      struct error *err);

// The configurations of a document, one when it has no matrix. The caller closes their sources,
// frees the array, and still owns `source`. On failure there is nothing to free.
int experiment_expand(const struct yaml_source *source, struct configuration_array *out,
                      struct error *err);
void configurations_free(struct configuration_array *all);

#endif
