// SPDX-License-Identifier: MIT
//
// A load that stood still: something stopped its process, or all others wanted its core. Requests
// that were due meanwhile are late, which is in their latency; here are the words for why.
#ifndef LOADGEN_METHOD_STANDSTILL_H
#define LOADGEN_METHOD_STANDSTILL_H

#include "loadgen/engine/engine_result.h"

// Of the run the longest, where it matters: "stood still for 703 ms, 1.31 s after the begin
// (stopped, or without a core)". Else false, and an empty text.
bool standstill_words(const struct engine_result *run, char *out, size_t out_bytes);

#endif
