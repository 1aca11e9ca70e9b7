// SPDX-License-Identifier: MIT
//
// The keys of an experiment file as a JSON Schema, for editors: they complete keys and words and
// mark what is wrong while a file is written. Made from the table that the files are read with, so
// it knows the same keys; what values mean is only told by `taillight run --check`.
#ifndef EXPERIMENTS_SPEC_EXPERIMENT_JSON_SCHEMA_H
#define EXPERIMENTS_SPEC_EXPERIMENT_JSON_SCHEMA_H

#include <jansson.h>

// JSON Schema, draft 2020-12. The caller owns it; NULL: no memory.
json_t *experiment_json_schema(void);

#endif
