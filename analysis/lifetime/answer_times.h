// SPDX-License-Identifier: MIT
//
// When each request was answered and how long that took, from the records of sockets alone: a
// hundredth of what it takes to say why (lifetime.h). For a server that answers more than can be
// taken apart, so that its numbers are of all requests and not of those that were looked at.
//
// Requests are told apart by the turns that the directions take, and live from the arrival to the
// departure of the last byte, as in turns.h; where departures are not recorded (EVENT_SPARING), to
// the end of the send call.
#ifndef ANALYSIS_LIFETIME_ANSWER_TIMES_H
#define ANALYSIS_LIFETIME_ANSWER_TIMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/timeline/time_source.h"
#include "base/array.h"
#include "base/map.h"
#include "profiler/bpf/event_log.h"

struct answer {
    int64_t arrived_ns, answered_ns; // host time
    uint64_t time;                   // when it was answered, in the events' clock
};
struct answer_array ARRAY_OF(struct answer);

// What is known of a connection so far. Its own.
struct conversation;

// Goes on from segment to segment of a capture. A zeroed one is at its beginning.
struct answer_times {
    struct ARRAY_OF(struct conversation) conversations;
    struct map by_id;
    struct ARRAY_OF(const struct event *) records; // of a call, in order of time
    bool framed; // there were records of messages by their framing: turns are not how to tell them
};

// Adds what was answered in these records, those of several cores one behind the other, in the
// order of the answers. Whose arrival is not known is taken to have arrived when it was received.
// -1: no memory.
int answer_times_add(struct answer_times *times, const struct event *events, size_t count,
                     const struct time_source *clock, struct answer_array *out);
void answer_times_free(struct answer_times *times);

#endif
