// SPDX-License-Identifier: MIT
//
// The clients behind dataset_prepare (dataset.h), whose contract they keep; *report is zeroed
// before.
#ifndef WORKLOADS_DATASET_CLIENT_H
#define WORKLOADS_DATASET_CLIENT_H

#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "workloads/workload.h"

struct dataset_report {
    uint64_t stored;   // keys sent
    uint64_t verified; // keys read back whole, every byte compared
    uint64_t bytes;    // of keys and values
};

// Told now and then how far it is; `phase` is "storing" or "verifying".
typedef void dataset_progress(void *context, const char *phase, uint64_t done, uint64_t all);

// Where the server is, in words.
enum { DATASET_PLACE_BYTES = 300 };
static inline void dataset_place(const char *host, uint16_t port, char place[DATASET_PLACE_BYTES])
{
    if (host[0] == '/')
        snprintf(place, DATASET_PLACE_BYTES, "%s", host);
    else
        snprintf(place, DATASET_PLACE_BYTES, "%s port %u", host, port);
}

int dataset_prepare_memcached(const struct workload *workload, const char *host, uint16_t port,
                              dataset_progress *progress, void *context,
                              struct dataset_report *report, struct error *err);

int dataset_prepare_redis(const struct workload *workload, const char *host, uint16_t port,
                          dataset_progress *progress, void *context, struct dataset_report *report,
                          struct error *err);

#endif
