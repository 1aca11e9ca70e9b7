// SPDX-License-Identifier: MIT
//
// The page of a folder of runs: an experiment's repetitions, the configurations of a matrix, or the
// steps of a study (docs/formats.md). It is made of the folder's repetitions.json, matrix.json or
// study.json, with gates.json and cdf.svg where they are.
#ifndef ANALYSIS_REPORT_REPORT_SET_H
#define ANALYSIS_REPORT_REPORT_SET_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

// Whether the folder is one of those.
bool report_is_set(const char *directory);

// Reads its document. ERROR_INPUT: it is not what `taillight run` writes. The caller owns it.
json_t *report_set_read(const char *directory, struct error *err);

// The result in a sentence.
void report_set_verdict(const json_t *document, char *out, size_t out_bytes);

// Writes the page; path NULL: report.html in the folder.
int report_set_write(const char *directory, const char *path, struct error *err);

#endif
