// SPDX-License-Identifier: MIT
#include "analysis/export/perfetto.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/new_file.h"

// Field numbers, by message.
enum { TRACE_PACKET = 1 };
enum {
    PACKET_CLOCK_SNAPSHOT = 6,
    PACKET_TIMESTAMP = 8,
    PACKET_SEQUENCE_ID = 10,
    PACKET_TRACK_EVENT = 11,
    PACKET_INTERNED_DATA = 12,
    PACKET_SEQUENCE_FLAGS = 13,
    PACKET_DEFAULTS = 59,
    PACKET_TRACK_DESCRIPTOR = 60,
    PACKET_FIRST_ON_SEQUENCE = 87,
};
enum { SEQUENCE_STATE_CLEARED = 1, SEQUENCE_NEEDS_STATE = 2 };
enum { SNAPSHOT_CLOCKS = 1, SNAPSHOT_PRIMARY = 2, CLOCK_ID = 1, CLOCK_TIMESTAMP = 2 };
enum { DEFAULTS_CLOCK_ID = 58 };
enum { CLOCK_MONOTONIC_RAW_ID = 5, CLOCK_BOOTTIME_ID = 6 }; // BuiltinClock
enum {
    DESCRIPTOR_TRACK = 1,
    DESCRIPTOR_NAME = 2,
    DESCRIPTOR_THREAD = 4,
    DESCRIPTOR_PARENT = 5,
    DESCRIPTOR_COUNTER = 8,
    DESCRIPTOR_CHILD_ORDERING = 11,
    DESCRIPTOR_RANK = 12,
};
enum { CHILDREN_BY_RANK = 3 };
enum { THREAD_PID = 1, THREAD_TID = 2, THREAD_NAME = 5 };
enum {
    EVENT_CATEGORY = 3,
    EVENT_NOTE = 4,
    EVENT_TYPE = 9,
    EVENT_NAME = 10,
    EVENT_TRACK = 11,
    EVENT_VALUE = 30,
    EVENT_FLOW = 47,
};
enum { TYPE_BEGIN = 1, TYPE_END = 2, TYPE_COUNTER = 4 };
enum { NOTE_INT = 4, NOTE_NAME = 10 };
enum { INTERNED_CATEGORY = 1, INTERNED_NAME = 2, INTERNED_IID = 1, INTERNED_TEXT = 2 };

struct perfetto {
    struct new_file out;
    pthread_mutex_t lock; // of the file
};

// --- the file ----------------------------------------------------------------------------------

static int perfetto_finish(struct perfetto *perfetto, int result, struct error *err)
{
    result = new_file_finish(&perfetto->out, result, err);
    pthread_mutex_destroy(&perfetto->lock);
    free(perfetto);
    return result;
}

void perfetto_abandon(struct perfetto *perfetto)
{
    if (perfetto)
        perfetto_finish(perfetto, -ERROR_FAILED, NULL);
}

// Declares one clock for the times of all packets, the trace's own, so that nothing is converted.
// What the times are is written as the name of a track.
static int write_head(struct perfetto *perfetto, const char *axis, uint64_t begin_ns,
                      struct error *err)
{
    static const uint32_t clocks[] = {CLOCK_MONOTONIC_RAW_ID, CLOCK_BOOTTIME_ID};
    struct perfetto_sequence head;
    perfetto_sequence_init(&head, 0);
    size_t packet = protobuf_open(&head.packets, TRACE_PACKET);
    protobuf_number(&head.packets, PACKET_SEQUENCE_ID, head.id);
    size_t snapshot = protobuf_open(&head.packets, PACKET_CLOCK_SNAPSHOT);
    for (size_t i = 0; i < sizeof clocks / sizeof *clocks; i++) {
        size_t clock = protobuf_open(&head.packets, SNAPSHOT_CLOCKS);
        protobuf_number(&head.packets, CLOCK_ID, clocks[i]);
        protobuf_number(&head.packets, CLOCK_TIMESTAMP, begin_ns);
        protobuf_close(&head.packets, clock);
    }
    protobuf_number(&head.packets, SNAPSHOT_PRIMARY, CLOCK_BOOTTIME_ID);
    protobuf_close(&head.packets, snapshot);
    protobuf_close(&head.packets, packet);
    char name[160];
    snprintf(name, sizeof name, "time: %s", axis);
    perfetto_track(&head, UINT64_MAX, 0, name, 0);
    int result = perfetto_flush(perfetto, &head, err);
    perfetto_sequence_free(&head);
    return result;
}

struct perfetto *perfetto_create(const char *path, const char *axis, uint64_t begin_ns,
                                 struct error *err)
{
    struct perfetto *perfetto = calloc(1, sizeof *perfetto);
    if (!perfetto) {
        error_set(err, ERROR_FAILED, "out of memory for %s", path);
        return NULL;
    }
    pthread_mutex_init(&perfetto->lock, NULL);
    if (new_file_open(&perfetto->out, path, err) == 0 &&
        write_head(perfetto, axis, begin_ns, err) == 0)
        return perfetto;
    perfetto_abandon(perfetto);
    return NULL;
}

int perfetto_close(struct perfetto *perfetto, struct error *err)
{
    return perfetto_finish(perfetto, 0, err);
}

int perfetto_flush(struct perfetto *perfetto, struct perfetto_sequence *sequence, struct error *err)
{
    struct protobuf *packets = &sequence->packets;
    if (packets->failed || sequence->interned.failed)
        return error_set(err, ERROR_FAILED, "out of memory for packets of %s",
                         perfetto->out.partial);
    pthread_mutex_lock(&perfetto->lock);
    size_t written =
        packets->count ? fwrite(packets->items, 1, packets->count, perfetto->out.file) : 0;
    pthread_mutex_unlock(&perfetto->lock);
    if (written < packets->count)
        return error_set_errno(err, ERROR_FAILED, "cannot write %s", perfetto->out.partial);
    packets->count = 0;
    return 0;
}

// --- packets -----------------------------------------------------------------------------------

void perfetto_sequence_init(struct perfetto_sequence *sequence, uint32_t number)
{
    *sequence = (struct perfetto_sequence){.id = number + 1};
}

void perfetto_sequence_free(struct perfetto_sequence *sequence)
{
    protobuf_free(&sequence->packets);
    protobuf_free(&sequence->interned);
}

static size_t open_packet(struct perfetto_sequence *sequence)
{
    size_t packet = protobuf_open(&sequence->packets, TRACE_PACKET);
    protobuf_number(&sequence->packets, PACKET_SEQUENCE_ID, sequence->id);
    return packet;
}

void perfetto_track(struct perfetto_sequence *sequence, uint64_t track, uint64_t parent,
                    const char *name, uint32_t rank)
{
    struct protobuf *out = &sequence->packets;
    size_t packet = open_packet(sequence), descriptor = protobuf_open(out, PACKET_TRACK_DESCRIPTOR);
    protobuf_number(out, DESCRIPTOR_TRACK, track);
    protobuf_text(out, DESCRIPTOR_NAME, name);
    if (parent)
        protobuf_number(out, DESCRIPTOR_PARENT, parent);
    protobuf_number(out, DESCRIPTOR_CHILD_ORDERING, CHILDREN_BY_RANK);
    protobuf_number(out, DESCRIPTOR_RANK, rank);
    protobuf_close(out, descriptor);
    protobuf_close(out, packet);
}

void perfetto_thread(struct perfetto_sequence *sequence, uint64_t track, uint32_t process,
                     uint32_t thread, const char *name)
{
    struct protobuf *out = &sequence->packets;
    size_t packet = open_packet(sequence), descriptor = protobuf_open(out, PACKET_TRACK_DESCRIPTOR);
    protobuf_number(out, DESCRIPTOR_TRACK, track);
    size_t inner = protobuf_open(out, DESCRIPTOR_THREAD);
    protobuf_number(out, THREAD_PID, process);
    protobuf_number(out, THREAD_TID, thread);
    protobuf_text(out, THREAD_NAME, name);
    protobuf_close(out, inner);
    protobuf_close(out, descriptor);
    protobuf_close(out, packet);
}

void perfetto_counter_track(struct perfetto_sequence *sequence, uint64_t track, const char *name)
{
    struct protobuf *out = &sequence->packets;
    size_t packet = open_packet(sequence), descriptor = protobuf_open(out, PACKET_TRACK_DESCRIPTOR);
    protobuf_number(out, DESCRIPTOR_TRACK, track);
    protobuf_text(out, DESCRIPTOR_NAME, name);
    protobuf_close(out, protobuf_open(out, DESCRIPTOR_COUNTER));
    protobuf_close(out, descriptor);
    protobuf_close(out, packet);
}

static uint64_t intern(struct perfetto_sequence *sequence, uint32_t field, uint64_t number,
                       const char *text)
{
    size_t entry = protobuf_open(&sequence->interned, field);
    protobuf_number(&sequence->interned, INTERNED_IID, number);
    protobuf_text(&sequence->interned, INTERNED_TEXT, text);
    protobuf_close(&sequence->interned, entry);
    return number;
}

uint64_t perfetto_name(struct perfetto_sequence *sequence, const char *name)
{
    return intern(sequence, INTERNED_NAME, ++sequence->names, name);
}

uint64_t perfetto_category(struct perfetto_sequence *sequence, const char *name)
{
    return intern(sequence, INTERNED_CATEGORY, ++sequence->categories, name);
}

// The first packet of a sequence begins its incremental state: the names and the clock in use.
static size_t open_event(struct perfetto_sequence *sequence, uint64_t time_ns, size_t *event)
{
    struct protobuf *out = &sequence->packets;
    size_t packet = open_packet(sequence);
    bool first = sequence->events++ == 0;
    protobuf_number(out, PACKET_TIMESTAMP, time_ns);
    protobuf_number(out, PACKET_SEQUENCE_FLAGS,
                    first ? SEQUENCE_STATE_CLEARED | SEQUENCE_NEEDS_STATE : SEQUENCE_NEEDS_STATE);
    if (first) {
        protobuf_number(out, PACKET_FIRST_ON_SEQUENCE, 1);
        size_t defaults = protobuf_open(out, PACKET_DEFAULTS);
        protobuf_number(out, DEFAULTS_CLOCK_ID, CLOCK_MONOTONIC_RAW_ID);
        protobuf_close(out, defaults);
    }
    if (sequence->interned.count) {
        protobuf_bytes(out, PACKET_INTERNED_DATA, sequence->interned.items,
                       sequence->interned.count);
        sequence->interned.count = 0;
    }
    *event = protobuf_open(out, PACKET_TRACK_EVENT);
    return packet;
}

void perfetto_begin(struct perfetto_sequence *sequence, const struct perfetto_slice *slice)
{
    struct protobuf *out = &sequence->packets;
    size_t event, packet = open_event(sequence, slice->time_ns, &event);
    protobuf_number(out, EVENT_TYPE, TYPE_BEGIN);
    protobuf_number(out, EVENT_TRACK, slice->track);
    protobuf_number(out, EVENT_NAME, slice->name);
    if (slice->category)
        protobuf_number(out, EVENT_CATEGORY, slice->category);
    for (size_t i = 0; i < slice->flow_count; i++)
        protobuf_fixed64(out, EVENT_FLOW, slice->flows[i]);
    for (size_t i = 0; i < slice->note_count; i++) {
        size_t note = protobuf_open(out, EVENT_NOTE);
        protobuf_text(out, NOTE_NAME, slice->notes[i].name);
        protobuf_number(out, NOTE_INT, (uint64_t)slice->notes[i].value);
        protobuf_close(out, note);
    }
    protobuf_close(out, event);
    protobuf_close(out, packet);
}

void perfetto_end(struct perfetto_sequence *sequence, uint64_t track, uint64_t time_ns)
{
    struct protobuf *out = &sequence->packets;
    size_t event, packet = open_event(sequence, time_ns, &event);
    protobuf_number(out, EVENT_TYPE, TYPE_END);
    protobuf_number(out, EVENT_TRACK, track);
    protobuf_close(out, event);
    protobuf_close(out, packet);
}

void perfetto_counter(struct perfetto_sequence *sequence, uint64_t track, uint64_t time_ns,
                      int64_t value)
{
    struct protobuf *out = &sequence->packets;
    size_t event, packet = open_event(sequence, time_ns, &event);
    protobuf_number(out, EVENT_TYPE, TYPE_COUNTER);
    protobuf_number(out, EVENT_TRACK, track);
    protobuf_number(out, EVENT_VALUE, (uint64_t)value);
    protobuf_close(out, event);
    protobuf_close(out, packet);
}
