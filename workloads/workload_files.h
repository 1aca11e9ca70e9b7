// SPDX-License-Identifier: MIT
//
// The files that a workload reads: a recorded schedule and the tables of empirical distributions.
// Another host that is to draw its requests needs copies of them.
#ifndef WORKLOADS_WORKLOAD_FILES_H
#define WORKLOADS_WORKLOAD_FILES_H

#include "workloads/workload.h"

enum { WORKLOAD_FILES_MAX = 5 };

// Their paths as the workload has them, always in the same order, and how many there are. The text
// stays the workload's.
size_t workload_files(const struct workload *workload, const char *paths[WORKLOAD_FILES_MAX]);

// As workload_to_yaml, with these paths in place of the workload's, in that order.
char *workload_to_yaml_with(const struct workload *workload, const char *const *paths);

#endif
