// SPDX-License-Identifier: MIT
#include "profiler/events/event_kinds.h"

void event_kinds_count(const struct event *events, size_t count, uint64_t counts[EVENT_KINDS])
{
    for (size_t i = 0; i < count; i++)
        counts[events[i].kind < EVENT_KINDS ? events[i].kind : 0]++;
}

json_t *event_kinds_json(const uint64_t counts[EVENT_KINDS])
{
    json_t *kinds = json_object();
#define EVENT(NAME, number, name, becomes, carries, means)                                         \
    json_object_set_new(kinds, name, json_integer((json_int_t)counts[number]));
#include "profiler/bpf/events.tbl.h"
    return kinds;
}
