// SPDX-License-Identifier: MIT
//
// How long packets are in the queueing disciplines behind the egress hops that look: who hands them
// to the devices is asked when they left (profiler/bpf/queue.bpf.c), and each record gets the time
// from its hop to there. A packet that is not seen to leave is no loss: the discipline may have
// dropped it, divided it, or have it still.
#ifndef PROFILER_CAPSULE_HOP_QUEUE_H
#define PROFILER_CAPSULE_HOP_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/array.h"
#include "profiler/bpf/hop_log.h"
#include "profiler/capsule/hop_rings.h"

enum { HOP_QUEUE_PROBLEM_BYTES = 128 };

struct queue_bpf;
struct queue_leaving_array ARRAY_OF(struct queue_leaving);

struct hop_queue {
    struct queue_bpf *programs;            // NULL: packets are not followed
    char problem[HOP_QUEUE_PROBLEM_BYTES]; // why not, where they should be; else ""
    bool attached;
    struct queue_leaving_array leavings;
    size_t most;
    uint64_t left[HOPS_MAX], lost; // of each hop; leavings that were lost
};

// Loads what sees packets leave, with a map that the hops are to share; it writes into the rings.
// most: leavings that it keeps. Where that cannot be, hop_queue.problem says why.
void hop_queue_open(struct hop_queue *queue, const struct hop_rings *rings, size_t most);

// Says which device is behind a hop, before its packets are followed.
void hop_queue_tell(struct hop_queue *queue, uint8_t hop, const struct hop_device *device);

// Attaches it, if it is not. False: it cannot be.
bool hop_queue_begin(struct hop_queue *queue);

// The descriptor of its map; -1: there is none.
int hop_queue_waiting(const struct hop_queue *queue);

void hop_queue_take(struct hop_queue *queue, const struct queue_leaving *leaving);

// Nothing comes any more: gives the records, in any order, the time that they were in the queue.
void hop_queue_settle(struct hop_queue *queue, struct hop_record *records, size_t count);

// Detaches it. Harmless on one that is not open.
void hop_queue_end(struct hop_queue *queue);

#endif
