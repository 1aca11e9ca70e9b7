// SPDX-License-Identifier: MIT
//
// Why the figures of a load may not be those of the server: it was not offered as asked for, the
// client was at its end, connections broke, replies were not what was asked for. Each reason says
// whose doing it was, as far as that is known, and what helps.
#ifndef LOADGEN_METHOD_LOAD_REASONS_H
#define LOADGEN_METHOD_LOAD_REASONS_H

#include "loadgen/engine/engine_result.h"
#include "loadgen/method/load_summary.h"

// The figures, the silences and these reasons. ERROR_FAILED: out of memory; nothing is to be freed.
int load_summarise_keeping(const struct engine_result *result, uint64_t duration_ns,
                           struct load_summary *summary, struct load_latencies *kept,
                           struct error *err);
// For who needs no latencies besides.
int load_summarise(const struct engine_result *result, uint64_t duration_ns,
                   struct load_summary *summary, struct error *err);

#endif
