// SPDX-License-Identifier: MIT
//
// What the configurations of a matrix came to, as a table for people. Where one of them is called
// `baseline`, as in `watched: {baseline: ..., shim: ...}`, it is about what the others cost beside
// it: percentiles with their intervals, the server's CPU, and ratios (as Table 2 of NSight). Else
// latency stands beside what it is when it counts from the send instead of the intended time.
#ifndef EXPERIMENTS_STUDY_MATRIX_TABLE_H
#define EXPERIMENTS_STUDY_MATRIX_TABLE_H

#include <jansson.h>
#include <stdio.h>

// list: of matrix.json.
void matrix_table_print(const json_t *list, FILE *out);

#endif
