// SPDX-License-Identifier: MIT
//
// The consumer's side of one ring (shim/ring.h): copies its entries out and believes none of them
// before it has checked them. The file belongs to another process, maybe another user; it may
// shrink, lie, or stop in the middle of a word.
#ifndef SHIM_RING_READER_H
#define SHIM_RING_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/array.h"
#include "shim/ring.h"

struct call_array ARRAY_OF(struct call);
struct announcement_array ARRAY_OF(struct ring_announcement);

struct ring_reader {
    int fd;
    uint32_t process;
    uint32_t thread;
    uint64_t instance;
    uint64_t entries;
    uint64_t tail;     // entries taken
    uint64_t dropped;  // by the producer's own count
    uint64_t rejected; // entries that made no sense
    uint64_t unkept;   // calls there was no room for on this side
    bool broken;       // its positions are impossible: not read any more
    struct call_array calls;
    struct announcement_array announcements;
};

enum ring_open { RING_OPEN_READY, RING_OPEN_NOT_YET, RING_OPEN_DAMAGED };

// Opens directory/<name>. RING_OPEN_NOT_YET: its maker has not finished it. On RING_OPEN_READY the
// reader must be closed.
enum ring_open ring_reader_open(struct ring_reader *reader, int directory, const char *name);

// Copies what is there: everything, or only if the ring is at least half full. *room is how many
// more calls may be kept, and is lowered. Returns how many entries were copied.
uint64_t ring_reader_drain(struct ring_reader *reader, bool everything, uint64_t *room);

// Counts positions that the head covers but that were never written as rejected. Call once, at the
// end.
void ring_reader_settle(struct ring_reader *reader);

void ring_reader_close(struct ring_reader *reader);

#endif
