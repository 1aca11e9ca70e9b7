// SPDX-License-Identifier: MIT
#include "base/room.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    HUGE_BYTES = 2 << 20,
    PART_BYTES = 8 << 20, // addresses; a page of them is taken when it is first written to
    ALIGNED_BYTES = 64,   // as a line of the processor's caches
};

// Whether the kernel's setting has that word.
static bool kernel_says(const char *setting, const char *word)
{
    char text[64] = "";
    int descriptor = open(setting, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return false;
    ssize_t got = read(descriptor, text, sizeof text - 1);
    close(descriptor);
    return got > 0 && strstr(text, word);
}

// Whether a program that asks for huge pages of that size may have some. Those of other sizes, as
// some arm64 kernels have, would be far more than is needed.
static bool huge_pages_are_given(void)
{
#ifdef __SANITIZE_ADDRESS__
    return false; // it sees who writes beyond a block of malloc's, but not beyond one of ours
#else
    return kernel_says("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", "2097152") &&
           (kernel_says("/sys/kernel/mm/transparent_hugepage/enabled", "[madvise]") ||
            kernel_says("/sys/kernel/mm/transparent_hugepage/enabled", "[always]"));
#endif
}

static bool room_add_part(struct room *room, size_t wanted)
{
    size_t bytes = PART_BYTES;
    if (room->part_count == ROOM_PARTS || wanted > SIZE_MAX / 2)
        return false;
    if (room->part_count == 0 && !huge_pages_are_given()) {
        room->lacks = true;
        return false;
    }
    if (!room->lists && !(room->lists = malloc(sizeof *room->lists)))
        return false;
    while (bytes < wanted)
        bytes += HUGE_BYTES;
    char *mapped = mmap(NULL, bytes + HUGE_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED)
        return false;
    size_t before = -(uintptr_t)mapped % HUGE_BYTES;
    if (before)
        munmap(mapped, before);
    munmap(mapped + before + bytes, HUGE_BYTES - before);
    madvise(mapped + before, bytes, MADV_HUGEPAGE); // without, small pages do as well
    room->lists->parts[room->part_count++] =
        (struct room_part){.begin = mapped + before, .bytes = bytes};
    return true;
}

static bool room_has(const struct room *room, const void *block)
{
    for (unsigned i = 0; i < room->part_count; i++)
        if ((uintptr_t)block - (uintptr_t)room->lists->parts[i].begin < room->lists->parts[i].bytes)
            return true;
    return false;
}

// The smallest of what was given back that is large enough. NULL: none is.
static void *room_take_spare(struct room *room, size_t bytes)
{
    struct room_spare *best = NULL;
    for (unsigned i = 0; i < room->spare_count; i++)
        if (room->lists->spares[i].bytes >= bytes &&
            (!best || room->lists->spares[i].bytes < best->bytes))
            best = &room->lists->spares[i];
    if (!best)
        return NULL;
    char *taken = best->begin;
    best->begin += bytes;
    best->bytes -= bytes;
    if (best->bytes < ROOM_LEAST_BYTES)
        *best = room->lists->spares[--room->spare_count];
    return taken;
}

static size_t room_size(size_t bytes)
{
    return (bytes + ALIGNED_BYTES - 1) / ALIGNED_BYTES * ALIGNED_BYTES;
}

// NULL: it has to come from malloc.
static void *room_take(struct room *room, size_t bytes)
{
    size_t least = room->part_count || room->early ? ROOM_LEAST_BYTES : ROOM_OPENS_BYTES;
    if (room->lacks || bytes < least || bytes > SIZE_MAX / 2)
        return NULL;
    bytes = room_size(bytes);
    void *taken = room_take_spare(room, bytes);
    struct room_part *part = room->part_count ? &room->lists->parts[room->part_count - 1] : NULL;
    if (taken)
        return taken;
    if (!part || part->bytes - part->used < bytes) {
        if (!room_add_part(room, bytes))
            return NULL;
        part = &room->lists->parts[room->part_count - 1];
    }
    part->used += bytes;
    return part->begin + (part->used - bytes);
}

void room_free(struct room *room, void *block, size_t bytes)
{
    if (!room || !room_has(room, block))
        free(block);
    else if (room->spare_count < ROOM_SPARES) // else it is lost until the room ends
        room->lists->spares[room->spare_count++] =
            (struct room_spare){.begin = block, .bytes = room_size(bytes)};
}

void *room_resize(struct room *room, void *block, size_t bytes, size_t wanted)
{
    if (!room)
        return realloc(block, wanted);
    void *taken = room_take(room, wanted);
    bool ours = block && room_has(room, block);
    if (!taken && !ours)
        return realloc(block, wanted);
    if (!taken)
        taken = malloc(wanted);
    if (!taken)
        return NULL;
    if (block)
        memcpy(taken, block, bytes < wanted ? bytes : wanted);
    room_free(room, block, bytes);
    return taken;
}

int room_reserve_raw(struct room *room, void **items, size_t *capacity, size_t wanted, size_t size)
{
    size_t grown = *capacity < 16 ? 16 : *capacity, bytes;
    while (grown < wanted)
        if (__builtin_mul_overflow(grown, (size_t)2, &grown))
            return -1;
    if (__builtin_mul_overflow(grown, size, &bytes))
        return -1;
    void *moved = room_resize(room, *items, *capacity * size, bytes);
    if (!moved)
        return -1;
    *items = moved;
    *capacity = grown;
    return 0;
}

void room_fini(struct room *room)
{
    for (unsigned i = 0; i < room->part_count; i++)
        munmap(room->lists->parts[i].begin, room->lists->parts[i].bytes);
    free(room->lists);
    *room = (struct room){0};
}
