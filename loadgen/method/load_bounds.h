// SPDX-License-Identifier: MIT
//
// What a load in bounded memory says of it: how much was kept of its requests, what its percentiles
// may be off, what its memory made late, and its slowest requests.
#ifndef LOADGEN_METHOD_LOAD_BOUNDS_H
#define LOADGEN_METHOD_LOAD_BOUNDS_H

#include <jansson.h>
#include <stdio.h>

#include "loadgen/engine/engine_result.h"

// The member "bounded" of docs/load-json.md; null: all samples were kept. The caller owns it.
json_t *load_bounds_json(const struct engine_result *result, const struct protocol *protocol);

// A line or more for people; nothing when all samples were kept.
void load_bounds_print(const struct engine_result *result, FILE *out);

#endif
