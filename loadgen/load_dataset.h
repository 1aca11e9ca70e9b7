// SPDX-License-Identifier: MIT
//
// The dataset of a plan's workload at its server, over TLS and logged in where the plan says so.
#ifndef LOADGEN_LOAD_DATASET_H
#define LOADGEN_LOAD_DATASET_H

#include "loadgen/load_plan.h"
#include "workloads/dataset.h"

// As dataset_prepare.
int load_dataset_prepare(const struct load_plan *plan, dataset_progress *progress, void *context,
                         struct dataset_report *report, struct error *err);

#endif
