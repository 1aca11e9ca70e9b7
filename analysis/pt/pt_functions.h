// SPDX-License-Identifier: MIT
//
// How the time of a decoded trace divides among functions: in total, and by process.
#ifndef ANALYSIS_PT_PT_FUNCTIONS_H
#define ANALYSIS_PT_PT_FUNCTIONS_H

#include "analysis/pt/pt_result.h"

// Functions over all streams, most time of their own first; `task` is unused. Either all streams of
// a recording have times or none. Without enough memory the list is incomplete. The caller frees it
// with array_free.
struct pt_function_list pt_functions_all(const struct pt_result *result);

// The same by process, whose number is in `task`: a process's functions are adjacent, the process
// with most time first.
struct pt_function_list pt_functions_by_process(const struct pt_result *result);

// How many of the list, from `first` on, are of the same process.
size_t pt_functions_of_process(const struct pt_function_list *list, size_t first);
// The sum of these functions' own time.
uint64_t pt_functions_time(const struct pt_function_list *list, size_t first, size_t count);

// Writes all functions by process as CSV, with a line of headings.
int pt_functions_write_csv(const struct pt_result *result, const char *path, struct error *err);

#endif
