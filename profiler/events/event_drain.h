// SPDX-License-Identifier: MIT
//
// What the BPF programs recorded on its way from their rings, one for each core, to events.tlog: it
// is drained into memory, put in order of time, written, counted and forgotten. A segment begins
// with each write.
#ifndef PROFILER_EVENTS_EVENT_DRAIN_H
#define PROFILER_EVENTS_EVENT_DRAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/array.h"
#include "base/error.h"
#include "profiler/bpf/event_rings.h"
#include "profiler/events/event_kinds.h"
#include "profiler/events/nic_arrivals.h"
#include "profiler/events/payload_frames.h"

struct event_array ARRAY_OF(struct event);

struct event_drain {
    struct core_ring *rings; // the programs'
    struct event *records;   // of all rings, mapped; MAP_FAILED: not yet
    size_t records_bytes;
    unsigned core_count;
    uint64_t memory_bytes;       // for what is drained
    struct event_array *cores;   // what is drained, of each
    uint64_t held;               // records in these
    uint64_t received;           // of these, receive calls that took bytes
    uint64_t all;                // that ever were
    uint64_t kinds[EVENT_KINDS]; // of those that were forgotten
    uint64_t unseen;             // switches of these from threads that were not seen to come
    uint64_t unfinished;         // records that their program never completed
    bool memory_full;            // at some time
};

// For so many possible cores. event_drain_free() is to be called later, also when this failed.
int event_drain_begin(struct event_drain *drain, unsigned cores, uint64_t memory_bytes,
                      struct error *err);

// Begins to read what the programs write: their rings, and the BPF map that has the records of all.
int event_drain_map(struct event_drain *drain, struct core_ring *rings, int map, size_t bytes,
                    struct error *err);

void event_drain_free(struct event_drain *drain);

// Moves up to `most` complete records from a core's ring to memory. Stops at the first incomplete
// one, unless `last`: then nobody writes any more, and incomplete records stay so. Returns false
// when memory ran out.
bool event_drain_core(struct event_drain *drain, unsigned core, uint64_t most, bool last);

// Drains the rings that are half full.
void event_drain_poll(struct event_drain *drain);

// How many records found no room in their ring.
uint64_t event_drain_dropped(const struct event_drain *drain);

// Bytes that are drained, or wait in the rings.
uint64_t event_drain_kept(const struct event_drain *drain);

// Adds one that no program wrote.
void event_drain_add(struct event_drain *drain, const struct event *event);

// Writes what is drained to the log of that name: with where messages end among it (`frames`,
// unless NULL), and the card's stamps as times of the host's clock. `dropped` is for the log's
// header.
int event_drain_write(struct event_drain *drain, struct nic_arrivals *nic,
                      struct payload_frames *frames, const char *out_dir, const char *name,
                      uint64_t dropped, struct error *err);

// Counts what is drained and forgets it; the memory is for the next ones.
void event_drain_forget(struct event_drain *drain, struct payload_frames *frames);

// Forgets what waits in the rings, uncounted: it was recorded while nothing was to be.
void event_drain_skip(struct event_drain *drain);

#endif
