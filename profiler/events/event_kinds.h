// SPDX-License-Identifier: MIT
//
// How many events there are of each kind (profiler/bpf/events.tbl.h).
#ifndef PROFILER_EVENTS_EVENT_KINDS_H
#define PROFILER_EVENTS_EVENT_KINDS_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "profiler/bpf/event_log.h"

// Counts events by their kind; what is none counts as 0.
void event_kinds_count(const struct event *events, size_t count, uint64_t counts[EVENT_KINDS]);

// How many of each, by name. The caller frees; NULL: no memory.
json_t *event_kinds_json(const uint64_t counts[EVENT_KINDS]);

#endif
