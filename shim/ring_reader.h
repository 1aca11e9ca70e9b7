// SPDX-License-Identifier: MIT
//
// The consumer's side of one thread's entries (shim/ring.h): takes them out of copies of its chunks
// and believes none of them before it has checked them. The memory is shared with another process,
// maybe of another user; it may lie, or stop in the middle of a word. Does no I/O.
#ifndef SHIM_RING_READER_H
#define SHIM_RING_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/array.h"
#include "shim/ring.h"

struct call_array ARRAY_OF(struct call);
struct announcement_array ARRAY_OF(struct ring_announcement);
struct check_array ARRAY_OF(struct ring_check);

struct ring_reader {
    uint32_t process;
    uint32_t thread;
    uint64_t instance;
    uint64_t began;  // of the thread
    uint32_t tenant; // the collector's word for its process
    // The numbers that everybody else knows, where they are others; 0: they are the same.
    uint32_t process_here, thread_here;
    uint64_t next;     // the position expected next
    uint64_t rejected; // entries that made no sense, or are missing
    uint64_t unkept;   // calls there was no room for on this side
    uint64_t taken;    // calls
    uint64_t live; // 1 plus the first position of a chunk that was taken while it was written to
    struct call_array calls;
    struct announcement_array announcements;
    struct check_array checks;
};

// Whether a copy of a chunk could be what the shim writes: who it says it is from can be believed
// only then.
bool ring_chunk_plausible(const struct ring_chunk *chunk);

// Takes the entries of a copy of a chunk; in the order of the thread's positions, else what comes
// late is rejected. *room is how many more calls may be kept, and is lowered.
void ring_reader_take(struct ring_reader *reader, const struct ring_chunk *chunk, uint64_t *room);

// The same of a chunk that its thread still writes to: the rest of it is taken another time.
void ring_reader_take_live(struct ring_reader *reader, const struct ring_chunk *chunk,
                           uint64_t *room);

// Gives back the memory of what is empty: of the many threads that a server may have had, few go
// on.
void ring_reader_trim(struct ring_reader *reader);

void ring_reader_free(struct ring_reader *reader);

#endif
