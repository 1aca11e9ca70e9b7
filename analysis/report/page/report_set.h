// SPDX-License-Identifier: MIT
//
// The page of a folder of runs: an experiment's repetitions, the configurations of a matrix, or the
// steps of a study (docs/formats.md). It is made of the folder's repetitions.json, matrix.json or
// study.json, with gates.json and cdf.svg where they are.
#ifndef ANALYSIS_REPORT_PAGE_REPORT_SET_H
#define ANALYSIS_REPORT_PAGE_REPORT_SET_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

// Whether the folder is one of those.
bool report_is_set(const char *directory);

// Reads its document. ERROR_INPUT: it is not what `taillight run` writes. The caller owns it.
json_t *report_set_read(const char *directory, struct error *err);

enum { REPORT_DOUBT_BYTES = 600 };

// Of how many of its runs the load cannot be trusted, and why in the first of these: "Inconclusive:
// ..."; "" if it can be in all. Returns out.
char *report_set_doubt(const json_t *document, char out[REPORT_DOUBT_BYTES]);

// The result in a sentence, after the doubt.
void report_set_verdict(const json_t *document, char *out, size_t out_bytes);

// Writes the page; path NULL: report.html in the folder.
int report_set_write(const char *directory, const char *path, struct error *err);

// --- the same of a sweep or a search: latency against load, from the sweep.json that
// `taillight load --out DIR` leaves (loadgen/load_curve.h)

// True when the folder is that of a sweep or a search and not of a run.
bool report_is_load(const char *directory);

// Reads it. ERROR_INPUT: it is not what `taillight load` writes. The caller owns the document.
json_t *report_load_read(const char *directory, struct error *err);

// The result in a sentence.
void report_load_verdict(const json_t *document, char *out, size_t out_bytes);

int report_load_write(const json_t *document, const char *path, struct error *err);

#endif
