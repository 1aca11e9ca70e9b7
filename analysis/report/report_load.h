// SPDX-License-Identifier: MIT
//
// The page of a sweep or a search: latency against load, from the sweep.json that `taillight load
// --out DIR` leaves (loadgen/load_curve.h).
#ifndef ANALYSIS_REPORT_REPORT_LOAD_H
#define ANALYSIS_REPORT_REPORT_LOAD_H

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"

// True when the folder is that of a sweep or a search and not of a run.
bool report_is_load(const char *directory);

// Reads it. ERROR_INPUT: it is not what `taillight load` writes. The caller owns the document.
json_t *report_load_read(const char *directory, struct error *err);

// The result in a sentence.
void report_load_verdict(const json_t *document, char *out, size_t out_bytes);

int report_load_write(const json_t *document, const char *path, struct error *err);

#endif
