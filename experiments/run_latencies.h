// SPDX-License-Identifier: MIT
//
// The latencies of a run's requests, from its folder.
#ifndef EXPERIMENTS_RUN_LATENCIES_H
#define EXPERIMENTS_RUN_LATENCIES_H

#include "base/array.h"
#include "base/error.h"
#include "experiments/common/run_folder.h"

struct latency_array ARRAY_OF(double);

// Appends those of all scheduled requests, in us from the intended instant; +infinity where none
// answered. tsc_hz: of client/load.json.
int run_latencies_add(const struct run_folder *folder, double tsc_hz, struct latency_array *out,
                      struct error *err);

#endif
