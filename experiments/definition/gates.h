// SPDX-License-Identifier: MIT
//
// Gates as they are written (docs/gates.md): a list of
//
//     {percentile: p99, max_increase: 5%}    {percentile: p99, max: 200us}
//     {cause: "head-of-line blocking (A)", max: 10us}    {cause: ..., max_increase: 10us}
//
// under the key `gates` of an experiment, of a file of their own, or of a run's experiment.json,
// which is YAML as well.
#ifndef EXPERIMENTS_DEFINITION_GATES_H
#define EXPERIMENTS_DEFINITION_GATES_H

#include <jansson.h>

#include "analysis/compare/gate.h"
#include "base/document.h"
#include "base/error.h"
#include "base/fields.h"

extern const struct fields gate_fields; // struct gate

// Appends the gates of a list's node; NULL has none. What is wrong is ERROR_INPUT with file, line,
// column and how to correct it. The caller frees the array either way.
int gates_read(const struct document *document, const struct node *node, struct gate_array *out,
               struct error *err);

// The same for a file's `gates`. A file without any is ERROR_INPUT when they are needed.
int gates_load(const char *path, bool needed, struct gate_array *out, struct error *err);

// The list as it is written. The caller owns it.
json_t *gates_json(const struct gate_array *gates);

#endif
