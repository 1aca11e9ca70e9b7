// SPDX-License-Identifier: MIT
//
// Samples: where the processor was, and its call chain. The order of a sample's fields is fixed
// (perf_event_open(2), PERF_RECORD_SAMPLE); the attribute says which of them are present.
#include "analysis/perf/perf_data_reader.h"
#include "base/array.h"

#include <inttypes.h>
#include <stdlib.h>

struct cursor {
    const uint8_t *at, *end;
    bool short_of; // a field reaches beyond the record's end
};

static uint64_t cursor_take(struct cursor *cursor)
{
    if (cursor->short_of || cursor->end - cursor->at < 8) {
        cursor->short_of = true;
        return 0;
    }
    cursor->at += 8;
    return perf_u64(cursor->at - 8);
}

static void skip_values(struct cursor *cursor, uint64_t count)
{
    uint64_t left = (uint64_t)(cursor->end - cursor->at) / 8;
    cursor->short_of |= count > left;
    if (!cursor->short_of)
        cursor->at += count * 8;
}

static void skip_read(struct cursor *cursor, uint64_t format)
{
    uint64_t times = (format & PERF_READ_TOTAL_TIME_ENABLED ? 1u : 0u) +
                     (format & PERF_READ_TOTAL_TIME_RUNNING ? 1u : 0u);
    uint64_t each = 1u + (format & PERF_READ_ID ? 1u : 0u) + (format & PERF_READ_LOST ? 1u : 0u);
    uint64_t values = format & PERF_READ_GROUP ? cursor_take(cursor) : 1;
    skip_values(cursor, times);
    if (values > UINT16_MAX) // a record is shorter
        cursor->short_of = true;
    skip_values(cursor, values * each);
}

static bool read_fields(const struct perf_attr *attr, struct cursor *cursor,
                        struct perf_sample *out)
{
    uint64_t type = attr->sample_type;
    if (type & PERF_SAMPLE_HAS_IDENTIFIER)
        cursor_take(cursor);
    if (type & PERF_SAMPLE_HAS_IP)
        out->address = cursor_take(cursor);
    if (type & PERF_SAMPLE_HAS_TID) {
        uint64_t both = cursor_take(cursor);
        out->pid = (uint32_t)both;
        out->tid = (uint32_t)(both >> 32);
    }
    if (type & PERF_SAMPLE_HAS_TIME)
        out->time = cursor_take(cursor);
    static const uint64_t unread[] = {PERF_SAMPLE_HAS_ADDR, PERF_SAMPLE_HAS_ID,
                                      PERF_SAMPLE_HAS_STREAM_ID};
    for (size_t i = 0; i < sizeof unread / sizeof *unread; i++)
        if (type & unread[i])
            cursor_take(cursor);
    if (type & PERF_SAMPLE_HAS_CPU)
        out->cpu = (uint32_t)cursor_take(cursor);
    if (type & PERF_SAMPLE_HAS_PERIOD)
        cursor_take(cursor);
    if (type & PERF_SAMPLE_HAS_READ)
        skip_read(cursor, attr->read_format);
    if (type & PERF_SAMPLE_HAS_CALLCHAIN) {
        uint64_t frames = cursor_take(cursor);
        out->chain = cursor->at;
        skip_values(cursor, frames);
        out->frames = cursor->short_of ? 0 : (uint32_t)frames;
    }
    return !cursor->short_of;
}

// Which event took the sample: the id is at the same place in all samples.
static const struct perf_attr *attr_of_sample(struct perf_reader *reader, const uint8_t *record,
                                              size_t size)
{
    enum {
        BEFORE_ID =
            PERF_SAMPLE_HAS_IP | PERF_SAMPLE_HAS_TID | PERF_SAMPLE_HAS_TIME | PERF_SAMPLE_HAS_ADDR
    };
    const struct perf_attr_array *attrs = &reader->data->attrs;
    if (attrs->count <= 1)
        return attrs->count ? &attrs->items[0] : NULL;
    uint64_t type = attrs->items[0].sample_type;
    size_t at = sizeof(struct perf_record_header);
    if (!(type & PERF_SAMPLE_HAS_IDENTIFIER)) {
        if (!(type & PERF_SAMPLE_HAS_ID))
            return NULL;
        at += 8 * (size_t)__builtin_popcountll(type & BEFORE_ID);
    }
    return size >= at + 8 ? perf_attr_of_id(reader, perf_u64(record + at)) : NULL;
}

static void keep_sample(struct perf_reader *reader, const struct perf_attr *attr,
                        const uint8_t *record, size_t size)
{
    struct perf_data *data = reader->data;
    struct perf_sample sample = {.pid = PERF_NO_PID,
                                 .tid = PERF_NO_PID,
                                 .cpu = PERF_NO_CPU,
                                 .attr = (uint32_t)(attr - data->attrs.items)};
    bool copied = reader->compressed;
    unsigned mode = perf_u16(record + 4) & PERF_MISC_CPUMODE_MASK;
    if (mode == PERF_MISC_GUEST_KERNEL || mode == PERF_MISC_GUEST_USER) {
        data->guest_records++;
        return;
    }
    if (data->samples.count >= reader->limits.samples ||
        (copied && data->arena_bytes >= reader->limits.copy_bytes)) {
        if (data->samples_over_limit++ == 0)
            perf_complain(reader, "more samples than may be kept: the later ones are left out");
        return;
    }
    const uint8_t *kept = copied ? perf_copy_record(reader, record, size) : record;
    if (!kept)
        return;
    struct cursor cursor = {.at = kept + sizeof(struct perf_record_header), .end = kept + size};
    if (!read_fields(attr, &cursor, &sample))
        perf_complain(reader, "SAMPLE of %zu bytes: too short for what its attribute names", size);
    else if (array_push(&data->samples, sample) < 0)
        reader->out_of_memory = true;
}

void perf_read_sample(struct perf_reader *reader, const uint8_t *record, size_t size)
{
    perf_index_attrs(reader);
    if (!reader->attr_takes_aux && reader->limits.samples == 0)
        return;
    const struct perf_attr *attr = attr_of_sample(reader, record, size);
    if (!attr) {
        if (reader->limits.samples)
            perf_complain(reader, "SAMPLE of %zu bytes, of an event that no attribute has", size);
        return;
    }
    if (attr->sample_type & PERF_SAMPLE_HAS_AUX && reader->data->samples_with_aux++ == 0)
        perf_complain(reader, "samples carry pieces of trace (--aux-sample), which are not read");
    if (reader->limits.samples)
        keep_sample(reader, attr, record, size);
}

static int by_time(const void *left, const void *right)
{
    const struct perf_sample *a = left, *b = right;
    return order_of(a->time, b->time);
}

void perf_sort_samples(struct perf_sample_array *samples)
{
    array_sort(samples, by_time);
}
