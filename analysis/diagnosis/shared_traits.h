// SPDX-License-Identifier: MIT
//
// What the slow requests of a run have in common: an operation, a key, a connection, a thread of
// the load, large requests or replies, keys that many ask for. Only what stands out is named:
// hundreds of things are tried, so each has to be so unlikely by chance that one run in a hundred
// would name anything at all where nothing is shared; and not by one bad moment alone.
#ifndef ANALYSIS_DIAGNOSIS_SHARED_TRAITS_H
#define ANALYSIS_DIAGNOSIS_SHARED_TRAITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/array.h"

enum trait_kind {
    TRAIT_OPERATION,
    TRAIT_KEY,
    TRAIT_CONNECTION,
    TRAIT_SENDER,     // a thread of the load
    TRAIT_REQUEST,    // at least so many bytes
    TRAIT_REPLY,      // likewise
    TRAIT_POPULARITY, // the key was asked for at least so many times
    TRAIT_KINDS
};
const char *trait_kind_name(enum trait_kind kind); // "operation", "key", ..., "reply size"

// A request, and what could be shared; TRAIT_POPULARITY is counted here.
struct trait_request {
    uint64_t values[TRAIT_POPULARITY];
    double latency_ns; // +infinity: never answered
    bool slow;
};

struct shared_trait {
    enum trait_kind kind;
    uint64_t value;    // which one; of sizes and popularity the least
    uint64_t requests; // that have it
    uint64_t slow;     // of these
    double slow_share; // the share of all slow requests that have it
    double share;      // of all requests
    double odds_ratio; // how much likelier a request that has it is slow
    double odds_low;   // at least so much, with the confidence that the number of tries asks for
    double median_ns, other_median_ns; // latency of those with it, and without
    double rank_correlation; // Spearman's, of value and latency; NAN where values have no order
};
struct shared_trait_array ARRAY_OF(struct shared_trait);

// The requests in order of time. What stands out most comes first. -1: no memory.
int shared_traits_find(struct shared_trait_array *out, const struct trait_request *requests,
                       size_t count);

// "replies of 400 kB or more", "connection 7". operation: the name of that operation, where it is
// one and has a name. Returns out.
char *shared_trait_words(const struct shared_trait *trait, const char *operation, char *out,
                         size_t out_bytes);

#endif
