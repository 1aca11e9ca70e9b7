// SPDX-License-Identifier: MIT
//
// What the hops of two machines recorded (Time Capsule, Suo et al., APSys '16) in the time of one
// of them.
//
// Two things relate their clocks, and each bounds the offset by itself (clock_relation.h): round
// trips over the link by which the other machine is reached, which are always there, and the
// packets that both machines saw: one that went from here to there was there no earlier than it was
// here, and so back. The packets' bound is the smaller one wherever packets go both ways. The two
// must agree: how far they are from one another is reported, and whether that is more than both
// bounds allow.
#ifndef ANALYSIS_HOPS_HOP_CLOCKS_H
#define ANALYSIS_HOPS_HOP_CLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/lifetime/clock_relation.h"
#include "base/error.h"
#include "profiler/bpf/hop_log.h"

// What one machine recorded. It belongs to the caller.
struct hop_recording {
    struct hop_record
        *records; // times: host time of that machine; hops: numbers among all machines'
    size_t count;
    double error_ns; // of a record's time, at most
};

// How the two clocks are related. Bounds are +infinity where nothing is known.
struct hop_clock {
    uint64_t trips;             // over the link
    uint64_t crossings;         // packets that were seen to go from one machine to the other
    double link_bound_p99_ns;   // on the offset, by the link, of the crossings; none: of the trips
    double packet_bound_p99_ns; // by the packets
    double bound_p99_ns; // by the smaller of the two: how far the times of two machines may be off
    int64_t offset_ns;   // the other machine minus the first, midway between first and last trip
    double rate;         // by which the other machine's clock gains on the first's
    uint64_t compared;   // crossings at which both are known
    double difference_p50_ns, difference_max_ns; // of these: between the two offsets
    uint64_t disagreeing;                        // of these: by more than both bounds
    uint64_t backwards; // crossings seen there before they were here, by more than the bound
    uint64_t unrelated; // records of the other machine at a time when neither is known
};

// Moves the times of `other` into those of `first`, and sorts the records of both by packet. A
// packet that by its stamps was at the next machine before it left the last, as the bound allows,
// is moved behind it, with all that the other machine saw of it. is_ingress: of each hop of both.
// trips: over the link, with `first` as the client, in order of time; at least one. ERROR_FAILED:
// out of memory.
int hop_clocks_join(struct hop_recording *first, struct hop_recording *other,
                    const bool is_ingress[HOPS_MAX], const struct exchange *trips,
                    size_t trip_count, struct hop_clock *out, struct error *err);

#endif
