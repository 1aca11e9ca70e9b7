// SPDX-License-Identifier: MIT
//
// What keys an experiment's file may have, and a study's: for editors and for people.
#ifndef EXPERIMENTS_DEFINITION_KEYS_H
#define EXPERIMENTS_DEFINITION_KEYS_H

#include <jansson.h>
#include <stdio.h>

// A JSON Schema (draft 2020-12) of both. The caller owns it; NULL: no memory.
json_t *experiment_json_schema(void);

// The keys with their help, below each other as in a file. The manual has this text
// (docs/man/taillight-run.1), and a test holds it against the tables.
void experiment_print_keys(FILE *out);

#endif
