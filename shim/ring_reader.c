// SPDX-License-Identifier: MIT
#include "shim/ring_reader.h"

#include "base/command_words.h"

bool ring_chunk_plausible(const struct ring_chunk *chunk)
{
    return chunk->used <= RING_CHUNK_ENTRIES && chunk->instance != 0 && chunk->process != 0 &&
           chunk->first < UINT64_MAX / 2;
}

static bool call_plausible(const struct ring_reader *reader, const struct call *call)
{
    return call->kind >= CALL_RECEIVE && call->kind <= CALL_CONNECT &&
           (call->command == 0 ||
            (call->kind == CALL_RECEIVE && command_word_name(call->command))) &&
           call->entry_tsc <= call->exit_tsc && call->process == reader->process &&
           (call->kind == CALL_WAIT) == (call->connection == 0) && call->offset < 1ULL << 48;
}

static bool entry_keep(struct ring_reader *reader, const union ring_entry *entry, uint64_t *room)
{
    if (entry->call.kind == RING_ANNOUNCEMENT)
        return entry->announcement.connection != 0 && entry->announcement.outgoing <= 1 &&
               array_push(&reader->announcements, entry->announcement) == 0;
    if (entry->call.kind == RING_CHECK)
        return entry->check.connection != 0 && array_push(&reader->checks, entry->check) == 0;
    if (!call_plausible(reader, &entry->call))
        return false;
    struct call call = entry->call;
    call.padding = 0;
    reader->taken++;
    if (*room == 0 || array_push(&reader->calls, call) < 0)
        reader->unkept++;
    else
        --*room;
    return true;
}

void ring_reader_take(struct ring_reader *reader, const struct ring_chunk *chunk, uint64_t *room)
{
    uint64_t known = 0; // of its entries, those that were taken while it was written to
    if (reader->live && chunk->first + 1 == reader->live && reader->next >= chunk->first) {
        known = reader->next - chunk->first;
    } else if (chunk->first < reader->next) {
        reader->rejected += chunk->used;
        return;
    }
    // A chunk that is missing in between holds at most so many.
    uint64_t missing = known ? 0 : chunk->first - reader->next;
    reader->rejected += missing < RING_CHUNK_ENTRIES ? missing : missing ? RING_CHUNK_ENTRIES : 0;
    if (known >= chunk->used)
        return;
    for (uint32_t i = (uint32_t)known; i < chunk->used; i++)
        if (chunk->entries[i].call.padding != ring_sequence(chunk->first + i) ||
            !entry_keep(reader, &chunk->entries[i], room))
            reader->rejected++;
    reader->next = chunk->first + chunk->used;
}

void ring_reader_take_live(struct ring_reader *reader, const struct ring_chunk *chunk,
                           uint64_t *room)
{
    if (chunk->used == 0)
        return;
    ring_reader_take(reader, chunk, room);
    if (reader->next == chunk->first + chunk->used)
        reader->live = chunk->first + 1;
}

void ring_reader_trim(struct ring_reader *reader)
{
    if (reader->calls.count == 0)
        array_free(&reader->calls);
    if (reader->announcements.count == 0)
        array_free(&reader->announcements);
}

void ring_reader_free(struct ring_reader *reader)
{
    array_free(&reader->calls);
    array_free(&reader->announcements);
    array_free(&reader->checks);
}
