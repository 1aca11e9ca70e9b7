// SPDX-License-Identifier: MIT
//
// Those whose requests held up others, in words.
#ifndef ANALYSIS_RUN_RUN_CULPRITS_H
#define ANALYSIS_RUN_RUN_CULPRITS_H

#include <stddef.h>

#include "analysis/run/run_analysis.h"

// Whose the request is that held another one up: "set of load `batch`", or "connection 7 from
// 127.0.0.1:40112 (not of this load)" where it is none of a load. NULL: of the load that is looked
// at. Returns out.
char *run_blocker_owner(const struct run_analysis *run, uint64_t lifetime, uint32_t service,
                        char *out, size_t out_bytes);

// "lrange of connection 7, key 12". Returns out.
char *run_culprit_name(const struct run_analysis *run, const struct culprit *culprit, char *out,
                       size_t out_bytes);

// "lrange of connection 7, key 12 (180 ms each, 40 of them, replies of 1.2 MB)". Returns out.
char *run_culprit_words(const struct run_analysis *run, const struct culprit *culprit, char *out,
                        size_t out_bytes);

// What the slice's messages waited for others that their threads served: causes of that name.
double run_blocking_ns(const struct diagnosis *diagnosis);

#endif
