// SPDX-License-Identifier: MIT
//
// What gates came to, for people and for what runs builds: lines, JSON, JUnit XML (as the build
// servers read it: one test case a gate; a failed gate is a failure, an inconclusive one an error,
// so that neither looks green), and the workflow commands of GitHub Actions that mark a build with
// errors and warnings.
#ifndef ANALYSIS_COMPARE_GATE_OUTPUT_H
#define ANALYSIS_COMPARE_GATE_OUTPUT_H

#include <jansson.h>
#include <stdio.h>

#include "analysis/compare/gate_judge.h"

// 0, ERROR_GATE (a gate failed) or ERROR_INCONCLUSIVE.
int gate_results_exit_code(const struct gate_result_array *results);

void gate_results_text(const struct gate_result_array *results, FILE *out);
json_t *gate_results_json(const struct gate_result_array *results);
void gate_results_junit(const struct gate_result_array *results, const char *suite, FILE *out);
void gate_results_annotations(const struct gate_result_array *results, FILE *out);

#endif
