// SPDX-License-Identifier: MIT
//
// The clients behind dataset_prepare (dataset.h), whose contract they keep; *report is zeroed
// before.
#ifndef WORKLOADS_DATASET_CLIENT_H
#define WORKLOADS_DATASET_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "workloads/protocols/login.h"
#include "workloads/workload.h"

struct dataset_report {
    uint64_t stored;   // keys sent
    uint64_t verified; // keys read back whole, every byte compared
    uint64_t bytes;    // of keys and values
};

// Told now and then how far it is; `phase` is "storing" or "verifying". False: nobody waits for the
// rest, which is ERROR_FAILED then.
typedef bool dataset_progress(void *context, const char *phase, uint64_t done, uint64_t all);

// The nodes of a Redis Cluster, and which of them each slot's keys are stored at.
struct dataset_nodes {
    const uint16_t *owners; // of each of CLUSTER_SLOTS
    const struct dataset_node {
        const char *host; // as in dataset_prepare
        uint16_t port;
    } * nodes;
    size_t count;
};

struct dataset {
    const struct workload *workload;
    const char *host;
    uint16_t port;
    const struct dataset_nodes *nodes; // NULL: all keys are at host and port
    const struct login *login;
    char place[300]; // both, for messages
    bool tunnelled;  // what comes from host is not the server, but a tunnel to it
    dataset_progress *progress;
    void *context;
    struct dataset_report *report;
    char *value; // room for the longest
    union {      // opened and freed by the client
        struct memcached_st *memcached;
        struct redisContext **redis; // one for each node
    };
};

// Tells progress, if anybody asks.
int dataset_tell(const struct dataset *dataset, const char *phase, uint64_t done,
                 struct error *err);

int dataset_prepare_memcached(struct dataset *dataset, struct error *err);
int dataset_prepare_redis(struct dataset *dataset, struct error *err);

#endif
