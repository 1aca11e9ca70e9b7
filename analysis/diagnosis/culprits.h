// SPDX-License-Identifier: MIT
//
// Whose requests held up others: services of the same kind taken together, "LRANGE, 180 ms each, 40
// of them", or those of a client that is not the load. A kind whose services are far longer than is
// usual is heavy itself; the others only stood in the queue first.
#ifndef ANALYSIS_DIAGNOSIS_CULPRITS_H
#define ANALYSIS_DIAGNOSIS_CULPRITS_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/lifetime/service_order.h"
#include "base/array.h"

#define SEVERAL UINT32_MAX // of a culprit's connections, or keys

struct culprit {
    bool foreign;        // of a connection that is none of the load's; where there is no load only
                         // of heavy ones, and those in which the thread slept
    bool known;          // its requests are the load's; else not known, as after an error
    bool heavy;          // longer than usual by more than six standard deviations
    uint16_t load;       // where known: 0, or of a load beside (lifetime.load)
    uint16_t operation;  // where known
    uint8_t command;     // where foreign (base/command_words.h); 0: not known
    uint32_t connection; // the client's (where known) or the shim's, or SEVERAL
    uint32_t client;     // where foreign: one of its connections
    uint32_t key;        // where known, or SEVERAL
    uint64_t services;   // that held up one of the slice's messages
    uint64_t messages;   // that they held up
    double total_ns;     // for how long, in all, while its thread ran
    double slept_ns;     // and while it slept
    double each_ns;      // how long one took, on average
    double each_bytes;   // of its reply, on average
    uint64_t last;       // message counted last + 1
    uint32_t number;     // in the order in which they were found
};
struct culprit_array ARRAY_OF(struct culprit);

// Gathers culprits while messages are looked at one after another.
struct culprits {
    const struct service_order *order;
    const struct lifetime *lifetimes;
    struct culprit_array items;
    uint32_t *of_service; // which of them each service belongs to, or NOT_SERVED
    double usual_ns;      // how long a thread runs for one request of the load
    double heavy_ns;      // what is longer is heavy
    bool without_client;  // there is no load: heavy requests are told apart by their clients
};

// -1: no memory. The caller frees either way.
int culprits_init(struct culprits *culprits, const struct service_order *order,
                  const struct lifetime *lifetimes, bool without_client);
void culprits_free(struct culprits *culprits);

// A service held up a message for so long, while its thread ran and while it slept. -1: no memory.
int culprits_add(struct culprits *culprits, uint32_t service, uint64_t message, double ran_ns,
                 double slept_ns);

// The averages, and those first that held up others longest; `of_service` follows. `items` is the
// caller's to take. -1: no memory.
int culprits_finish(struct culprits *culprits);

#endif
