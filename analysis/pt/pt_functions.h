// SPDX-License-Identifier: MIT
//
// Where the time of a decoded trace went by function: over everything, and process by process.
#ifndef ANALYSIS_PT_PT_FUNCTIONS_H
#define ANALYSIS_PT_PT_FUNCTIONS_H

#include "analysis/pt/pt_result.h"

// Functions over all streams, most time of their own first; `task` means nothing. Streams with and
// without time do not mix in one recording. Short of memory it has fewer; array_free it.
struct pt_function_list pt_functions_all(const struct pt_result *result);

// The same by process: `task` is its number, a process stands together, the one with most time
// first.
struct pt_function_list pt_functions_by_process(const struct pt_result *result);

// How many of the list, from `first` on, are of the same process.
size_t pt_functions_of_process(const struct pt_function_list *list, size_t first);
// The time of their own of these.
uint64_t pt_functions_time(const struct pt_function_list *list, size_t first, size_t count);

// Writes all functions by process, one a line after a line of headings.
int pt_functions_write_csv(const struct pt_result *result, const char *path, struct error *err);

#endif
