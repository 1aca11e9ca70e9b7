// SPDX-License-Identifier: MIT
//
// Writes the results of gates for people and for build servers: lines of text, JSON, JUnit XML (one
// test case per gate; a failed gate is a failure and an inconclusive one an error, so that neither
// looks green), and the workflow commands with which GitHub Actions marks errors and warnings.
#ifndef ANALYSIS_COMPARE_GATE_OUTPUT_H
#define ANALYSIS_COMPARE_GATE_OUTPUT_H

#include <jansson.h>
#include <stdio.h>

#include "analysis/compare/gates.h"

// 0, ERROR_GATE (a gate failed) or ERROR_INCONCLUSIVE.
int gate_results_exit_code(const struct gate_result_array *results);

void gate_results_text(const struct gate_result_array *results, FILE *out);
json_t *gate_results_json(const struct gate_result_array *results);
void gate_results_junit(const struct gate_result_array *results, const char *suite, FILE *out);
void gate_results_annotations(const struct gate_result_array *results, FILE *out);

#endif
