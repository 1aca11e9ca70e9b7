// SPDX-License-Identifier: MIT
//
// An experiment file as experiments: one, or with a `matrix` one for each configuration.
//
// The two keys of an experiment file that make documents of documents. `extends: FILE` lays a file
// over another. `matrix:` makes one file many configurations, the cartesian product of its axes. An
// axis is a key with values, `load.rate: [10k, 20k]`, or a name with variants, each a part of an
// experiment laid over the rest: `watched: {no: {capture: {backend: none}}, yes: {}}`.
#ifndef EXPERIMENTS_DEFINITION_EXPERIMENT_SET_H
#define EXPERIMENTS_DEFINITION_EXPERIMENT_SET_H

#include "base/array.h"
#include "base/document.h"
#include "base/options.h"
#include "experiments/definition/resolve.h"

enum { CONFIGURATIONS_MAX = 64, EXPERIMENT_PATH_BYTES = 4096 };

struct configuration {
    char label[CONFIGURATION_LABEL_BYTES]; // "rate=10k, watched=no"; empty: no matrix
    struct document *document;
};
struct configuration_array ARRAY_OF(struct configuration);

// Reads the document of a path for `extends` (document_open does).
typedef int (*document_opener)(const char *path, struct document **out, struct error *err);

// The path of `wanted`, which the file `from` names: relative to that one. False: too long.
bool experiment_path_join(const char *from, const char *wanted, char path[EXPERIMENT_PATH_BYTES]);

// Replaces a document by the result of laying it over all that it extends. `path` is its own;
// others are relative to the file that names them. Circles, and more than 8 files, are ERROR_INPUT.
// On failure *document is as it was or merged in part, and the caller's to free.
int experiment_extend(struct document **document, const char *path, document_opener open,
                      struct error *err);

// Replaces a document by the result of laying "KEY=VALUE" over it: the key with dots
// (`load.rate`), the value as YAML. A key that the document's matrix varies is ERROR_INPUT. On
// failure *document is as it was.
int experiment_assign(struct document **document, const char *assignment, struct error *err);

// The configurations of a document, one when it has no matrix. The caller closes their sources,
// frees the array, and still owns `document`. On failure there is nothing to free.
int experiment_expand(const struct document *document, struct configuration_array *out,
                      struct error *err);
void configurations_free(struct configuration_array *all);

struct experiment_set ARRAY_OF(struct experiment);

// Reads a file and what it extends, lays the assignments over it (experiment_assign), and checks
// every configuration. Everything wrong is ERROR_INPUT with file, line, column and how to correct
// it. On success the caller frees; on failure nothing is left to free.
int experiment_set_load(const char *path, const struct option_list *assignments,
                        struct experiment_set *set, struct error *err);

// The same for text in memory; `name` stands for the path, `open` reads what it extends (NULL:
// nothing can be extended).
int experiment_set_parse(const char *name, const char *text, size_t bytes, document_opener open,
                         struct experiment_set *set, struct error *err);
void experiment_set_free(struct experiment_set *set);

#endif
