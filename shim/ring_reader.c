// SPDX-License-Identifier: MIT
#include "shim/ring_reader.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHUNK_ENTRIES = 512 };

enum ring_open ring_reader_open(struct ring_reader *reader, int directory, const char *name)
{
    memset(reader, 0, sizeof *reader);
    reader->fd = openat(directory, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (reader->fd < 0)
        return RING_OPEN_DAMAGED;
    enum ring_open result = RING_OPEN_DAMAGED;
    struct stat status;
    struct ring_header header;
    if (fstat(reader->fd, &status) < 0 || !S_ISREG(status.st_mode))
        goto refused;
    if (pread(reader->fd, &header, sizeof header, 0) != sizeof header || header.magic == 0) {
        result = RING_OPEN_NOT_YET;
        goto refused;
    }
    if (header.magic != RING_MAGIC || header.version != RING_VERSION ||
        header.entries < RING_MIN_ENTRIES || header.entries > RING_MAX_ENTRIES ||
        (header.entries & (header.entries - 1)) != 0 ||
        (uint64_t)status.st_size != ring_file_bytes(header.entries))
        goto refused;
    reader->process = header.process;
    reader->thread = header.thread;
    reader->instance = header.instance;
    reader->entries = header.entries;
    return RING_OPEN_READY;

refused:
    close(reader->fd);
    reader->fd = -1;
    return result;
}

static bool call_plausible(const struct ring_reader *reader, const struct call *call)
{
    return call->kind >= CALL_RECEIVE && call->kind <= CALL_CONNECT && call->reserved == 0 &&
           call->entry_tsc <= call->exit_tsc && call->process == reader->process &&
           (call->kind == CALL_WAIT) == (call->connection == 0) && call->offset < 1ULL << 48;
}

static bool entry_keep(struct ring_reader *reader, union ring_entry *entry, uint64_t *room)
{
    if (entry->call.kind == RING_ANNOUNCEMENT)
        return entry->announcement.connection != 0 && entry->announcement.outgoing <= 1 &&
               array_push(&reader->announcements, entry->announcement) == 0;
    if (!call_plausible(reader, &entry->call))
        return false;
    entry->call.padding = 0;
    if (*room == 0 || array_push(&reader->calls, entry->call) < 0)
        reader->unkept++;
    else
        --*room;
    return true;
}

// Copies `count` entries that are contiguous in the file. Returns how many are valid; fewer than
// `count` if one does not (or no longer) have the expected sequence.
static uint64_t piece_take(struct ring_reader *reader, uint64_t count, uint64_t *room)
{
    union ring_entry entries[CHUNK_ENTRIES];
    uint64_t index = reader->tail & (reader->entries - 1);
    off_t at = (off_t)(RING_PAGE_BYTES + index * RING_ENTRY_BYTES);
    ssize_t got = pread(reader->fd, entries, count * RING_ENTRY_BYTES, at);
    uint64_t whole = got < 0 ? 0 : (uint64_t)got / RING_ENTRY_BYTES;
    for (uint64_t i = 0; i < whole; i++) {
        uint32_t ahead = entries[i].call.padding - ring_sequence(reader->tail);
        bool overwritten = ahead != 0 && ahead < 1U << 31;
        if (ahead != 0 && !overwritten)
            return i; // the head is ahead of what has been written
        if (overwritten || !entry_keep(reader, &entries[i], room))
            reader->rejected++;
        reader->tail++;
    }
    return whole;
}

// Reads the producer's position; false if it is impossible.
static bool positions_read(struct ring_reader *reader, uint64_t *head)
{
    uint64_t positions[2]; // head, dropped: neighbours in the header
    if (pread(reader->fd, positions, sizeof positions, offsetof(struct ring_header, head)) !=
            sizeof positions ||
        positions[0] - reader->tail > reader->entries) {
        reader->broken = true;
        return false;
    }
    *head = positions[0];
    reader->dropped = positions[1];
    return true;
}

uint64_t ring_reader_drain(struct ring_reader *reader, bool everything, uint64_t *room)
{
    uint64_t head;
    if (reader->broken || !positions_read(reader, &head))
        return 0;
    if (!everything && head - reader->tail < reader->entries / 2)
        return 0;
    uint64_t begun = reader->tail;
    while (reader->tail != head) {
        uint64_t count = head - reader->tail;
        uint64_t to_end = reader->entries - (reader->tail & (reader->entries - 1));
        count = count < to_end ? count : to_end;
        count = count < CHUNK_ENTRIES ? count : CHUNK_ENTRIES;
        uint64_t taken = piece_take(reader, count, room);
        // The entries' sequence guards against a tail that the producer reads half-written.
        if (pwrite(reader->fd, &reader->tail, sizeof reader->tail,
                   offsetof(struct ring_header, tail)) != sizeof reader->tail)
            reader->broken = true;
        if (taken < count)
            break;
    }
    return reader->tail - begun;
}

void ring_reader_settle(struct ring_reader *reader)
{
    uint64_t head;
    if (!reader->broken && positions_read(reader, &head)) {
        reader->rejected += head - reader->tail;
        reader->tail = head;
    }
}

void ring_reader_close(struct ring_reader *reader)
{
    if (reader->fd >= 0)
        close(reader->fd);
    reader->fd = -1;
    array_free(&reader->calls);
    array_free(&reader->announcements);
}
