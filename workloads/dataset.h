// SPDX-License-Identifier: MIT
//
// The dataset: stores every key of a workload in a server and reads it back, through an independent
// client: libmemcached or hiredis. Protocols whose requests need no stored data have none.
#ifndef WORKLOADS_DATASET_H
#define WORKLOADS_DATASET_H

#include <stdint.h>

#include "base/error.h"
#include "workloads/dataset_client.h"
#include "workloads/workload.h"

// Stores, for memcached, every key; for Redis, what the mix reads of every key (strings, and lists,
// hashes and sorted sets where their operations are used). Then verifies that each is there with
// its exact value. host is a name, an address or, beginning with "/", the path of a UNIX socket,
// for which port is ignored. place: the name in messages of a server behind a tunnel of TLS, where
// keys are stored one after the other; NULL: it is there itself. login: who it is to be done as.
// nodes: the keys are at these, not at host, which then is a name for all of them; NULL: they are.
// progress may be NULL. A server that is absent, refuses, or lost keys (too little memory) is
// ERROR_FAILED.
int dataset_prepare(const struct workload *workload, const char *host, uint16_t port,
                    const struct dataset_nodes *nodes, const char *place, const struct login *login,
                    dataset_progress *progress, void *context, struct dataset_report *report,
                    struct error *err);

#endif
