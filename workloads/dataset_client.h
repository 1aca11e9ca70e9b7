// SPDX-License-Identifier: MIT
//
// The clients behind dataset_prepare, whose contract they keep; *report is zeroed before.
#ifndef WORKLOADS_DATASET_INTERNAL_H
#define WORKLOADS_DATASET_INTERNAL_H

#include "workloads/dataset.h"

// Where the server is, in words.
enum { DATASET_PLACE_BYTES = 300 };
void dataset_place(const char *host, uint16_t port, char place[DATASET_PLACE_BYTES]);

int dataset_prepare_memcached(const struct workload *workload, const char *host, uint16_t port,
                              dataset_progress *progress, void *context,
                              struct dataset_report *report, struct error *err);

int dataset_prepare_redis(const struct workload *workload, const char *host, uint16_t port,
                          dataset_progress *progress, void *context, struct dataset_report *report,
                          struct error *err);

#endif
