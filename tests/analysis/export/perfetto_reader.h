// SPDX-License-Identifier: MIT
//
// Reads a Perfetto trace afresh, knowing nothing of the code that wrote it: packets, interned
// names, and slices as trace_processor rebuilds them (events sorted by time, an end ends the
// innermost slice of its track). Header-only.
#ifndef TESTS_ANALYSIS_EXPORT_PERFETTO_READER_H
#define TESTS_ANALYSIS_EXPORT_PERFETTO_READER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

struct read_event {
    uint64_t track, time, flow;
    size_t order; // in the file
    char name[120], category[120];
    unsigned type, flows;
};

struct read_slice {
    uint64_t track, begin, end, flow;
    unsigned depth;
    char name[120], category[120];
};

struct read_value {
    uint64_t track, time;
    int64_t value;
};

struct read_track {
    uint64_t track, parent;
    uint32_t thread;
    char name[160];
};

struct read_name {
    uint64_t number;
    uint32_t sequence;
    bool category;
    char text[120];
};

struct read_trace {
    struct ARRAY_OF(struct read_event) events;
    struct ARRAY_OF(struct read_slice) slices;
    struct ARRAY_OF(struct read_track) tracks;
    struct ARRAY_OF(struct read_name) names;
    struct ARRAY_OF(struct read_value) values; // of counters, in the file's order
    uint64_t packets, clock_snapshots, sequences_begun;
    const char *wrong; // the first thing that was
};

// One field of a message: a number, or bytes.
struct read_field {
    uint32_t number;
    unsigned wire;
    uint64_t value;
    const uint8_t *bytes;
    size_t length;
};

static inline bool read_number(const uint8_t **at, const uint8_t *end, uint64_t *out)
{
    *out = 0;
    for (unsigned shift = 0; *at < end && shift < 64; shift += 7) {
        uint8_t byte = *(*at)++;
        *out |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return true;
    }
    return false;
}

static inline bool read_field(const uint8_t **at, const uint8_t *end, struct read_field *out)
{
    uint64_t tag;
    if (*at == end || !read_number(at, end, &tag))
        return false;
    *out = (struct read_field){.number = (uint32_t)(tag >> 3), .wire = (unsigned)(tag & 7)};
    if (out->wire == 0)
        return read_number(at, end, &out->value);
    if (out->wire == 1) {
        if (end - *at < 8)
            return false;
        memcpy(&out->value, *at, 8);
        *at += 8;
        return true;
    }
    if (out->wire != 2 || !read_number(at, end, &out->value) || out->value > (uint64_t)(end - *at))
        return false;
    out->bytes = *at;
    out->length = (size_t)out->value;
    *at += out->length;
    return true;
}

#define READ_FIELDS(field, message)                                                                \
    for (const uint8_t *field##_at = (message)->bytes,                                             \
                       *field##_end = field##_at + (message)->length;                              \
         read_field(&field##_at, field##_end, &(field));)

static inline void read_text(char *out, size_t bytes, const struct read_field *field)
{
    snprintf(out, bytes, "%.*s", (int)field->length, (const char *)field->bytes);
}

static inline void read_wrong(struct read_trace *trace, const char *what)
{
    if (!trace->wrong)
        trace->wrong = what;
}

static inline void read_interned(struct read_trace *trace, const struct read_field *message,
                                 uint32_t sequence)
{
    struct read_field entry, field;
    READ_FIELDS(entry, message)
    {
        struct read_name name = {.sequence = sequence, .category = entry.number == 1};
        if (entry.number > 2)
            read_wrong(trace, "an interned entry that is neither name nor category");
        READ_FIELDS(field, &entry)
        {
            if (field.number == 1)
                name.number = field.value;
            else
                read_text(name.text, sizeof name.text, &field);
        }
        array_push(&trace->names, name);
    }
}

static inline void read_lookup(struct read_trace *trace, uint32_t sequence, bool category,
                               uint64_t number, char *out, size_t bytes)
{
    for (size_t i = 0; i < trace->names.count; i++) {
        const struct read_name *name = &trace->names.items[i];
        if (name->sequence == sequence && name->number == number && name->category == category) {
            snprintf(out, bytes, "%s", name->text);
            return;
        }
    }
    read_wrong(trace, "a name that was not interned before");
}

static inline void read_track_event(struct read_trace *trace, const struct read_field *message,
                                    uint32_t sequence, uint64_t time)
{
    struct read_event event = {.time = time, .order = trace->events.count};
    struct read_value value = {.time = time};
    struct read_field field;
    READ_FIELDS(field, message)
    {
        if (field.number == 9)
            event.type = (unsigned)field.value;
        else if (field.number == 11)
            event.track = value.track = field.value;
        else if (field.number == 30)
            value.value = (int64_t)field.value;
        else if (field.number == 10)
            read_lookup(trace, sequence, false, field.value, event.name, sizeof event.name);
        else if (field.number == 3)
            read_lookup(trace, sequence, true, field.value, event.category, sizeof event.category);
        else if (field.number == 47) {
            event.flow = field.value;
            event.flows++;
        }
    }
    if (event.type == 4) {
        array_push(&trace->values, value);
        return;
    }
    if (event.type != 1 && event.type != 2)
        read_wrong(trace, "an event that neither begins, nor ends, nor counts");
    array_push(&trace->events, event);
}

static inline void read_descriptor(struct read_trace *trace, const struct read_field *message)
{
    struct read_track track = {0};
    struct read_field field, inner;
    READ_FIELDS(field, message)
    {
        if (field.number == 1)
            track.track = field.value;
        else if (field.number == 5)
            track.parent = field.value;
        else if (field.number == 2)
            read_text(track.name, sizeof track.name, &field);
        else if (field.number == 4)
            READ_FIELDS(inner, &field)
            {
                if (inner.number == 2)
                    track.thread = (uint32_t)inner.value;
                else if (inner.number == 5)
                    read_text(track.name, sizeof track.name, &inner);
            }
    }
    array_push(&trace->tracks, track);
}

static inline void read_packet(struct read_trace *trace, const struct read_field *packet)
{
    struct read_field field, event = {0};
    uint64_t time = 0, flags = 0;
    uint32_t sequence = 0;
    trace->packets++;
    READ_FIELDS(field, packet)
    {
        if (field.number == 10)
            sequence = (uint32_t)field.value;
        else if (field.number == 8)
            time = field.value;
        else if (field.number == 13)
            flags = field.value;
        else if (field.number == 12)
            read_interned(trace, &field, sequence);
        else if (field.number == 11)
            event = field;
        else if (field.number == 60)
            read_descriptor(trace, &field);
        else if (field.number == 6)
            trace->clock_snapshots++;
    }
    if (sequence == 0)
        read_wrong(trace, "a packet without a sequence");
    trace->sequences_begun += flags & 1;
    if (!event.bytes)
        return;
    if (!(flags & 2))
        read_wrong(trace, "an event that does not say it needs the sequence's state");
    read_track_event(trace, &event, sequence, time);
}

static inline int read_by_time(const void *left, const void *right)
{
    const struct read_event *a = left, *b = right;
    if (a->track != b->track)
        return a->track < b->track ? -1 : 1;
    if (a->time != b->time)
        return a->time < b->time ? -1 : 1;
    return (a->order > b->order) - (a->order < b->order);
}

static inline void read_slices(struct read_trace *trace)
{
    struct ARRAY_OF(size_t) open = {0};
    if (trace->events.count)
        qsort(trace->events.items, trace->events.count, sizeof *trace->events.items, read_by_time);
    for (size_t i = 0; i < trace->events.count; i++) {
        const struct read_event *event = &trace->events.items[i];
        if (i > 0 && event[-1].track != event->track && open.count)
            read_wrong(trace, "a slice that does not end");
        if (event->type == 1) {
            struct read_slice slice = {.track = event->track,
                                       .begin = event->time,
                                       .flow = event->flow,
                                       .depth = (unsigned)open.count};
            memcpy(slice.name, event->name, sizeof slice.name);
            memcpy(slice.category, event->category, sizeof slice.category);
            array_push(&open, trace->slices.count);
            array_push(&trace->slices, slice);
        } else if (open.count) {
            trace->slices.items[open.items[--open.count]].end = event->time;
        } else {
            read_wrong(trace, "an end without a slice");
        }
    }
    if (open.count)
        read_wrong(trace, "a slice that does not end");
    array_free(&open);
}

// The caller frees with read_trace_free; trace.wrong says whether it is sound.
static inline struct read_trace read_perfetto(const char *path)
{
    struct read_trace trace = {0};
    FILE *file = fopen(path, "rb");
    uint8_t *bytes = NULL;
    long size = 0;
    if (!file || fseek(file, 0, SEEK_END) != 0 || (size = ftell(file)) <= 0 ||
        !(bytes = malloc((size_t)size)) || fseek(file, 0, SEEK_SET) != 0 ||
        fread(bytes, 1, (size_t)size, file) != (size_t)size)
        read_wrong(&trace, "the file cannot be read");
    const uint8_t *at = bytes, *end = bytes ? bytes + size : NULL;
    struct read_field packet;
    while (!trace.wrong && at < end) {
        if (read_field(&at, end, &packet) && packet.number == 1 && packet.wire == 2)
            read_packet(&trace, &packet);
        else
            read_wrong(&trace, "something that is no packet");
    }
    read_slices(&trace);
    free(bytes);
    if (file)
        fclose(file);
    return trace;
}

static inline void read_trace_free(struct read_trace *trace)
{
    array_free(&trace->events);
    array_free(&trace->slices);
    array_free(&trace->tracks);
    array_free(&trace->names);
    array_free(&trace->values);
}

#endif
