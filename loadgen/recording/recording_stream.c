// SPDX-License-Identifier: MIT
#include "loadgen/recording/recording_stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

enum { STREAMS_MOST = 1 << 17, WAITING_MOST = 64 };
static const uint64_t waiting_bytes_most = 64 << 20;

struct waiting {
    uint32_t sequence, kept, count;
    char *bytes;
};

struct stream {
    struct endpoint ends[2]; // in order
    unsigned client;         // which of them
    bool begun;              // `next` is known
    bool lost;               // until a segment begins a command
    uint32_t begin, next;    // sequence numbers
    struct ARRAY_OF(struct waiting) waiting;
    struct command_reader reader;
};

static int32_t after(uint32_t sequence, uint32_t other)
{
    return (int32_t)(sequence - other);
}

// What its transactions are known by: its number, which the caller keeps.
static struct piece name_client(const struct streams *streams, const struct stream *stream,
                                size_t *number)
{
    *number = (size_t)(stream - streams->items.items);
    return (struct piece){(const char *)number, sizeof *number};
}

static void break_transaction(struct streams *streams, const struct stream *stream)
{
    size_t number;
    reading_break_transaction(streams->reading, name_client(streams, stream, &number));
}

static void lose(struct streams *streams, struct stream *stream)
{
    break_transaction(streams, stream);
    streams->reading->recording->gaps++;
    stream->lost = true;
}

// --- commands ------------------------------------------------------------------------------------

static int take_command(struct streams *streams, const struct stream *stream)
{
    char time[32];
    size_t number;
    struct monitor_line said;
    command_take(&stream->reader, &said);
    said.client = name_client(streams, stream, &number);
    said.time.bytes = (size_t)snprintf(time, sizeof time, "%.9f", streams->now_s);
    said.time.at = time;
    return reading_take_command(streams->reading, &said);
}

static int read_bytes(struct streams *streams, struct stream *stream, const char *bytes,
                      uint32_t kept, uint32_t count)
{
    if (stream->lost) {
        if (!command_begins(bytes, kept))
            return 0;
        command_reader_reset(&stream->reader);
        stream->lost = false;
    }
    for (size_t at = 0, used; at < kept; at += used) {
        enum command_result result = command_read(&stream->reader, bytes + at, kept - at, &used);
        int status = result == COMMAND_WHOLE ? take_command(streams, stream) : 0;
        if (status < 0)
            return status;
        if (result == COMMAND_LOST) {
            lose(streams, stream);
            return 0;
        }
    }
    if (kept < count && !command_skip(&stream->reader, count - kept))
        lose(streams, stream);
    return 0;
}

// --- order ---------------------------------------------------------------------------------------

// Of a segment that begins no later than what comes next.
static int read_in_order(struct streams *streams, struct stream *stream, uint32_t sequence,
                         const char *bytes, uint32_t kept, uint32_t count)
{
    const uint32_t known = stream->next - sequence;
    if (known >= count)
        return 0; // sent again
    stream->next = sequence + count;
    return read_bytes(streams, stream, known < kept ? bytes + known : bytes,
                      known < kept ? kept - known : 0, count - known);
}

static size_t first_waiting(const struct stream *stream)
{
    size_t first = 0;
    for (size_t i = 1; i < stream->waiting.count; i++)
        if (after(stream->waiting.items[i].sequence, stream->waiting.items[first].sequence) < 0)
            first = i;
    return first;
}

static void drop_waiting(struct streams *streams, struct stream *stream, size_t which)
{
    struct waiting *items = stream->waiting.items;
    streams->waiting_bytes -= items[which].kept;
    free(items[which].bytes);
    items[which] = items[--stream->waiting.count];
}

// Takes those that the hole no longer holds up.
static int read_waiting(struct streams *streams, struct stream *stream)
{
    while (stream->waiting.count) {
        const size_t first = first_waiting(stream);
        const struct waiting *one = &stream->waiting.items[first];
        if (after(one->sequence, stream->next) > 0)
            return 0;
        int status =
            read_in_order(streams, stream, one->sequence, one->bytes, one->kept, one->count);
        drop_waiting(streams, stream, first);
        if (status < 0)
            return status;
    }
    return 0;
}

// The hole in front of what waits is not filled any more.
static int leave_hole(struct streams *streams, struct stream *stream)
{
    const uint32_t sequence = stream->waiting.items[first_waiting(stream)].sequence;
    const uint32_t missing = sequence - stream->next;
    if (stream->lost || command_skip(&stream->reader, missing))
        streams->reading->recording->gaps++;
    else
        lose(streams, stream);
    stream->next = sequence;
    return read_waiting(streams, stream);
}

static int wait_for_hole(struct streams *streams, struct stream *stream,
                         const struct segment *segment)
{
    struct waiting one = {segment->sequence, segment->kept, segment->count,
                          malloc(segment->kept + 1)};
    if (!one.bytes || array_push(&stream->waiting, one) < 0) {
        free(one.bytes);
        return reading_no_memory(streams->reading);
    }
    memcpy(one.bytes, segment->bytes, segment->kept);
    streams->waiting_bytes += segment->kept;
    if (stream->waiting.count < WAITING_MOST && streams->waiting_bytes < waiting_bytes_most)
        return 0;
    return leave_hole(streams, stream);
}

// --- connections ---------------------------------------------------------------------------------

static int compare_ends(const struct endpoint *a, const struct endpoint *b)
{
    int addresses = memcmp(a->address, b->address, sizeof a->address);
    return addresses ? addresses : order_of(a->port, b->port);
}

static struct stream *find_stream(struct streams *streams, const struct segment *segment,
                                  unsigned *from)
{
    *from = compare_ends(&segment->from, &segment->to) > 0;
    struct stream fresh = {.lost = true};
    fresh.ends[*from] = segment->from;
    fresh.ends[!*from] = segment->to;
    fresh.client =
        fresh.ends[1].port == fresh.ends[0].port ? *from : fresh.ends[1].port > fresh.ends[0].port;
    uint64_t hash = hash_pair(fresh.ends[0].port, fresh.ends[1].port);
    for (unsigned i = 0; i < 2; i++)
        hash = hash_pair(
            hash, hash_bytes((const char *)fresh.ends[i].address, sizeof fresh.ends[i].address));
    const struct stream *items = streams->items.items;
    uint32_t found = map_find(&streams->map, hash, at,
                              compare_ends(&items[at].ends[0], &fresh.ends[0]) == 0 &&
                                  compare_ends(&items[at].ends[1], &fresh.ends[1]) == 0);
    if (found != MAP_NONE)
        return &streams->items.items[found];
    if (streams->items.count >= STREAMS_MOST || array_push(&streams->items, fresh) < 0)
        return NULL;
    if (map_add(&streams->map, hash, streams->items.count - 1) < 0) {
        streams->items.count--;
        return NULL;
    }
    return &streams->items.items[streams->items.count - 1];
}

static int begin_stream(struct streams *streams, struct stream *stream, uint32_t sequence)
{
    if (stream->begun && stream->begin == sequence)
        return 0;                   // the SYN was sent again
    while (stream->waiting.count) { // of who had these ports before
        int status = leave_hole(streams, stream);
        if (status < 0)
            return status;
    }
    break_transaction(streams, stream);
    command_reader_reset(&stream->reader);
    stream->begin = stream->next = sequence;
    stream->begun = true;
    stream->lost = false;
    return 0;
}

static int take_servers(struct streams *streams, struct stream *stream,
                        const struct segment *segment)
{
    if (segment->syn && segment->ack)
        return begin_stream(streams, stream, segment->acknowledged);
    // What the server has was not lost on its way, but by the capture.
    while (segment->ack && stream->waiting.count &&
           after(segment->acknowledged, stream->waiting.items[first_waiting(stream)].sequence) >
               0) {
        int status = leave_hole(streams, stream);
        if (status < 0)
            return status;
    }
    return 0;
}

int streams_take(struct streams *streams, const struct segment *segment)
{
    unsigned from;
    struct stream *stream = find_stream(streams, segment, &from);
    if (!stream) {
        streams->reading->recording->damaged++;
        return 0;
    }
    if (segment->syn)
        stream->client = segment->ack ? !from : from;
    if (from != stream->client)
        return take_servers(streams, stream, segment);
    struct segment data = *segment;
    data.sequence += segment->syn;
    int status = segment->syn ? begin_stream(streams, stream, data.sequence) : 0;
    if (status < 0 || data.count == 0)
        return status;
    if (!stream->begun) {
        stream->begun = true;
        stream->begin = stream->next = data.sequence;
    }
    if (after(data.sequence, stream->next) > 0)
        return wait_for_hole(streams, stream, &data);
    status = read_in_order(streams, stream, data.sequence, data.bytes, data.kept, data.count);
    return status < 0 ? status : read_waiting(streams, stream);
}

int streams_end(struct streams *streams)
{
    for (size_t i = 0; i < streams->items.count; i++)
        while (streams->items.items[i].waiting.count) {
            int status = leave_hole(streams, &streams->items.items[i]);
            if (status < 0)
                return status;
        }
    return 0;
}

void streams_free(struct streams *streams)
{
    for (size_t i = 0; i < streams->items.count; i++) {
        struct stream *stream = &streams->items.items[i];
        while (stream->waiting.count)
            drop_waiting(streams, stream, 0);
        array_free(&stream->waiting);
        command_reader_free(&stream->reader);
    }
    array_free(&streams->items);
    map_free(&streams->map);
}
