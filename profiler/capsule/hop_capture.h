// SPDX-License-Identifier: MIT
//
// Attaches the hops of Time Capsule (hop_attachment.h) and takes in what they record. Even where
// the process that made them is killed they leave nothing attached, and other programs at the same
// interface run as before.
//
// All hops of one machine have one clock, whichever network namespace they are in.
//
// Hops that carry (enum hop_role) write their stamps into the packets, and the last one records
// them all; here that becomes the same records as those of hops that look, but that `datagram` is
// the number of the packet, so that packets need no identity to be joined. Where they are on
// several machines, each stamp is the clock's of the machine that its hop is on.
#ifndef PROFILER_CAPSULE_HOP_CAPTURE_H
#define PROFILER_CAPSULE_HOP_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/array.h"
#include "base/error.h"
#include "profiler/bpf/hop_log.h"
#include "profiler/bpf/packet_head.h"
#include "profiler/capsule/hop_link.h"
#include "profiler/capsule/hop_spec.h"

struct hop_record_array ARRAY_OF(struct hop_record);

struct hop_capture_settings {
    const struct hop_spec *hops; // at least one, at most HOPS_MAX; read while opening only
    size_t hop_count;
    // All hops of the way, on whatever machines, and which of them each of `hops` is: its number in
    // records and stamps.
    const struct hop_spec *way;
    size_t way_count;
    const uint8_t *numbers;
    struct packet_filter filter;
    uint32_t one_in; // one packet in so many is sampled, by the same rule at every hop
    // Of packet_flow(), where captures on several machines are to know packets by the same hashes;
    // 0: a random one.
    uint64_t flow_key;
    uint64_t run; // the trailers' number, the same wherever one packet is carried; 0: a random one
    bool waits;   // packets begin to carry only with hop_capture_begin()
    // Of the rings of all cores together, rounded up (hop_rings_open()); 0: 16 MiB, or 1 MiB for
    // each core if that is more.
    uint64_t ring_bytes;
    uint64_t memory_bytes; // for records; more are counted as lost
};

struct hop_capture;

// Loads and attaches all hops, or none. Errors: ERROR_INPUT for an interface or a namespace that is
// not there, ERROR_FAILED for what the kernel refuses, with what it would take.
int hop_capture_open(const struct hop_capture_settings *settings, struct hop_capture **out,
                     struct error *err);

// Takes in what lies in the rings, up to a bound, and what has changed at the interfaces. True:
// there may be more. To be called every few milliseconds.
bool hop_capture_drain(struct hop_capture *capture);

// How long an IP packet may be on the way over these hops: the smallest MTU that their interfaces
// have had.
uint32_t hop_capture_room(const struct hop_capture *capture);

// From now on packets begin to carry, if they are no longer than this with their trailer.
void hop_capture_begin(struct hop_capture *capture, uint32_t room_bytes);

// Detaches the hops at which packets begin to carry, so that those under way come to the end.
void hop_capture_begin_no_more(struct hop_capture *capture);

// Detaches all hops and takes in the rest. What was recorded and counted stays.
void hop_capture_stop(struct hop_capture *capture);

// Whether bridges in the hop's namespace hand packets to iptables, and so cut off what lies behind
// the IP packet (bridge-nf-call-iptables).
bool hop_capture_is_cut(const struct hop_capture *capture, size_t hop);

// What its interface sends through, once the capture is stopped.
const struct hop_link *hop_capture_link(const struct hop_capture *capture, size_t hop);

// What a hop counted so far. The sampling and the filter are the same at all of them.
struct hop_counts hop_capture_counts(const struct hop_capture *capture, size_t hop);

// Whether the hop's interface went away while it was attached; of a stopped capture: until then.
bool hop_capture_is_gone(const struct hop_capture *capture, size_t hop);

// What was recorded, of each core in order. The caller may sort it once the capture is stopped;
// it belongs to the capture.
struct hop_record_array *hop_capture_records(struct hop_capture *capture);

// What the flows of its records are hashed with (packet_flow()).
uint64_t hop_capture_flow_key(const struct hop_capture *capture);

// Of how many records the flow is the one from before a translation (translations.h), once the
// capture is stopped.
uint64_t hop_capture_translated(const struct hop_capture *capture);

// How many records found no room in memory, and packets that were seen to leave a queueing
// discipline, but no room in the rings or in memory for that.
uint64_t hop_capture_forgotten(const struct hop_capture *capture);

// Stops it if need be.
void hop_capture_free(struct hop_capture *capture);

#endif
