// SPDX-License-Identifier: MIT
//
// Writes a trace that ui.perfetto.dev and trace_processor open: slices on tracks, flows between
// slices. Fields and their numbers are Perfetto's (protos/perfetto/trace/trace_packet.proto,
// track_event/track_event.proto, track_descriptor.proto, clock_snapshot.proto).
//
// A file has one or more sequences; each interns its own names, so several threads can each fill
// one. Slices of one track nest: Perfetto sorts by time, and leaves events of one sequence and the
// same time in their order. A track may have slices of several sequences, if they do not overlap.
#ifndef ANALYSIS_EXPORT_PERFETTO_H
#define ANALYSIS_EXPORT_PERFETTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "base/protobuf.h"

// A file being written, beside `path`; perfetto_close moves it there.
struct perfetto;

// axis: what the times are, for people ("host time (CLOCK_MONOTONIC_RAW)"); begin_ns: roughly the
// first of them.
struct perfetto *perfetto_create(const char *path, const char *axis, uint64_t begin_ns,
                                 struct error *err);
// Gives the file its name. Frees, also on failure.
int perfetto_close(struct perfetto *perfetto, struct error *err);
// Removes what was written, and frees. NULL is allowed.
void perfetto_abandon(struct perfetto *perfetto);

struct perfetto_sequence {
    uint32_t id; // not 0
    struct protobuf packets;
    struct protobuf interned; // new names, which the next packet carries
    uint64_t events, names, categories;
};

// Number 0 is the one perfetto_create used. Sequences are independent until flushed.
void perfetto_sequence_init(struct perfetto_sequence *sequence, uint32_t number);
void perfetto_sequence_free(struct perfetto_sequence *sequence);

// Appends the sequence's packets to the file; threads may do so at the same time. Fails when an
// earlier call ran out of memory, or when the disk is full.
int perfetto_flush(struct perfetto *perfetto, struct perfetto_sequence *sequence,
                   struct error *err);

// --- tracks: before their slices. A parent of 0 is none; rank orders the children of a parent.

void perfetto_track(struct perfetto_sequence *sequence, uint64_t track, uint64_t parent,
                    const char *name, uint32_t rank);
// The track of a thread. Perfetto groups threads by process, and keeps pid 0 for idling.
void perfetto_thread(struct perfetto_sequence *sequence, uint64_t track, uint32_t process,
                     uint32_t thread, const char *name);

// A track of numbers over time, each of which holds until the next.
void perfetto_counter_track(struct perfetto_sequence *sequence, uint64_t track, const char *name);
void perfetto_counter(struct perfetto_sequence *sequence, uint64_t track, uint64_t time_ns,
                      int64_t value);

// --- slices

// A new number for a name; the caller remembers which name has which.
uint64_t perfetto_name(struct perfetto_sequence *sequence, const char *name);
uint64_t perfetto_category(struct perfetto_sequence *sequence, const char *name);

struct perfetto_note {
    const char *name;
    int64_t value;
};

struct perfetto_slice {
    uint64_t track, time_ns, name, category;
    const uint64_t *flows; // slices with the same number are joined by arrows, in order of time
    size_t flow_count;
    const struct perfetto_note *notes;
    size_t note_count;
};

void perfetto_begin(struct perfetto_sequence *sequence, const struct perfetto_slice *slice);
// Ends the innermost open slice of the track.
void perfetto_end(struct perfetto_sequence *sequence, uint64_t track, uint64_t time_ns);

#endif
