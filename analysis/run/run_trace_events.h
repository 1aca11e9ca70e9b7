// SPDX-License-Identifier: MIT
//
// Events of a run that was traced by the processor alone, without an events log: which task ran
// when is in the recording, M(n) and M(h) of a receive call's bytes are the traced calls of
// tcp_v4_rcv or tcp_v6_rcv and sock_def_readable that brought them, where that can be known
// (analysis/calls/deliveries.h; design §4).
#ifndef ANALYSIS_RUN_TRACE_EVENTS_H
#define ANALYSIS_RUN_TRACE_EVENTS_H

#include <jansson.h>

#include "analysis/calls/calls.h"
#include "analysis/run/run_trace.h"
#include "analysis/timeline/time_source.h"
#include "base/array.h"
#include "base/error.h"
#include "profiler/bpf/event_log.h"

struct event_array ARRAY_OF(struct event);

// Decodes the whole recording. Sockets have the numbers of the calls' connections. Nothing in *out
// where there is no recording, it cannot be read, or it is of another run than the clock map (then
// problem says why). out_trace gets how many hand-offs are known and how many are not. Only lack of
// memory fails; the caller frees *out with array_free either way.
int run_trace_events(const char *run_dir, const json_t *capture, const struct clock_map *clock_map,
                     const struct time_source *clock, const struct application_calls *calls,
                     struct event_array *out, struct run_trace *out_trace, struct error *err);

#endif
