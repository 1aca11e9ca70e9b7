// SPDX-License-Identifier: MIT
//
// The results of a matrix as a table for the terminal. Where a configuration is called `baseline`,
// as in `watched: {baseline: ..., shim: ...}`, the table shows what the others cost compared with
// it: percentiles with their intervals, the server's CPU time, and ratios (as Table 2 of NSight).
// Otherwise it shows latency from the intended time and, beside it, from the send time.
#ifndef EXPERIMENTS_STUDY_MATRIX_TABLE_H
#define EXPERIMENTS_STUDY_MATRIX_TABLE_H

#include <jansson.h>
#include <stdio.h>

// list: of matrix.json.
void matrix_table_print(const json_t *list, FILE *out);

#endif
