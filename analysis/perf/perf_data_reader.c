// SPDX-License-Identifier: MIT
#include "analysis/perf/perf_data_reader.h"

#include "base/array.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

enum {
    ATTRS_MOST = 1 << 14, // each search goes through all of them
    IDS_MOST = 1 << 22,
    TIMES_INDEXED_MOST = 256, // attributes come first, or in a few batches
};

void perf_complain(struct perf_reader *reader, const char *format, ...)
{
    struct perf_data *data = reader->data;
    data->complaint_count++;
    if (data->complaints.count >= PERF_COMPLAINTS_KEPT)
        return;
    struct perf_complaint complaint = {.input = reader->input, .offset = reader->offset};
    va_list args;
    va_start(args, format);
    vsnprintf(complaint.text, sizeof complaint.text, format, args);
    va_end(args);
    reader->out_of_memory |= array_push(&data->complaints, complaint) < 0;
}

const uint8_t *perf_copy_record(struct perf_reader *reader, const uint8_t *record, size_t size)
{
    const uint8_t *copy = perf_data_keep(reader->data, record, size);
    reader->out_of_memory |= !copy;
    return copy;
}

// --- attributes ----------------------------------------------------------------------------------

void perf_add_attr(struct perf_reader *reader, const uint8_t *attr, size_t attr_bytes,
                   const uint8_t *ids, size_t id_count)
{
    struct perf_data *data = reader->data;
    if (attr_bytes < PERF_ATTR_BYTES_NEEDED) {
        perf_complain(reader, "an attribute of %zu bytes", attr_bytes);
        return;
    }
    if (data->attrs.count >= ATTRS_MOST || id_count > IDS_MOST - reader->id_count ||
        reader->times_indexed > TIMES_INDEXED_MOST) {
        perf_complain(reader, "too many attributes, or ids of them, or too often anew");
        return;
    }
    reader->id_count += id_count;
    uint64_t flags = perf_u64(attr + 40);
    struct perf_attr one = {.type = perf_u32(attr),
                            .config = perf_u64(attr + 8),
                            .sample_type = perf_u64(attr + 24),
                            .read_format = perf_u64(attr + 32),
                            .flags = flags,
                            .exclude_user = (flags >> 4 & 1) != 0,
                            .exclude_kernel = (flags >> 5 & 1) != 0,
                            .sample_id_all = (flags >> PERF_ATTR_SAMPLE_ID_ALL_BIT & 1) != 0,
                            .id_count = id_count};
    if (id_count) {
        one.ids = malloc(id_count * sizeof *one.ids);
        if (!one.ids) {
            reader->out_of_memory = true;
            return;
        }
        memcpy(one.ids, ids, id_count * sizeof *one.ids);
    }
    reader->attrs_indexed = false;
    if (array_push(&data->attrs, one) < 0) {
        free(one.ids);
        reader->out_of_memory = true;
    }
}

static int by_id(const void *a, const void *b)
{
    uint64_t left = ((const struct perf_id_entry *)a)->id;
    uint64_t right = ((const struct perf_id_entry *)b)->id;
    return order_of(left, right);
}

// Position of the id, counted in u64 from the record's end; 0: there is none.
static size_t id_from_end(const struct perf_attr *attr)
{
    if (attr->sample_type & PERF_SAMPLE_HAS_IDENTIFIER)
        return 1;
    if (!(attr->sample_type & PERF_SAMPLE_HAS_ID))
        return 0;
    uint64_t after = attr->sample_type & (PERF_SAMPLE_HAS_STREAM_ID | PERF_SAMPLE_HAS_CPU);
    return 1 + (size_t)__builtin_popcountll(after);
}

void perf_index_attrs(struct perf_reader *reader)
{
    if (reader->attrs_indexed)
        return;
    const struct perf_attr_array *attrs = &reader->data->attrs;
    reader->attrs_indexed = true;
    reader->times_indexed++;
    reader->attrs_alike = true;
    reader->attr_takes_aux = false;
    reader->ids.count = 0;
    if (!attrs->count)
        return;
    const struct perf_attr *first = &attrs->items[0];
    reader->id_from_end = id_from_end(first);
    for (size_t i = 0; i < attrs->count; i++) {
        const struct perf_attr *attr = &attrs->items[i];
        if ((attr->sample_type ^ first->sample_type) & perf_id_fields ||
            attr->sample_id_all != first->sample_id_all)
            reader->attrs_alike = false;
        if (id_from_end(attr) != reader->id_from_end)
            perf_complain(reader, "attribute %zu puts the id elsewhere than the first one does", i);
        if (attr->sample_type & PERF_SAMPLE_HAS_AUX)
            reader->attr_takes_aux = true;
        for (size_t k = 0; k < attr->id_count; k++)
            reader->out_of_memory |=
                array_push(&reader->ids, (struct perf_id_entry){attr->ids[k], (uint32_t)i}) < 0;
    }
    array_sort(&reader->ids, by_id);
}

struct perf_attr *perf_attr_of_id(struct perf_reader *reader, uint64_t id)
{
    perf_index_attrs(reader);
    size_t low = array_bound(0, reader->ids.count, at, reader->ids.items[at].id < id);
    if (low < reader->ids.count && reader->ids.items[low].id == id)
        return &reader->data->attrs.items[reader->ids.items[low].attr];
    return NULL;
}

// --- context switches of a lean reading, by CPU --------------------------------------------------
// Context switches come with every few kilobytes of trace, so they would be most of what a long
// recording holds in memory. A lean reading keeps only 16 bytes of each, by CPU: which task was
// switched in, and when.

enum { LISTS_MOST = 1 << 14 }; // Linux has 8,192 CPUs at most

static struct perf_switches *list_for(struct perf_reader *reader, uint32_t cpu, uint32_t thread)
{
    struct perf_switches_array *lists = &reader->data->switches;
    struct perf_switches *found = perf_switches_of(reader->data, cpu, thread);
    if (found)
        return found;
    if (lists->count >= LISTS_MOST) {
        perf_complain(reader, "context switches of more than %d CPUs or threads", LISTS_MOST);
        return NULL;
    }
    if (cpu != PERF_NO_CPU)
        thread = PERF_NO_PID;
    if (array_push(lists, (struct perf_switches){0}) < 0) {
        reader->out_of_memory = true;
        return NULL;
    }
    struct perf_switches *at = &lists->items[lists->count - 1];
    for (; at > lists->items && (at[-1].cpu > cpu || (at[-1].cpu == cpu && at[-1].thread > thread));
         at--)
        at[0] = at[-1];
    *at = (struct perf_switches){.cpu = cpu, .thread = thread};
    return at;
}

void perf_take_switch(struct perf_reader *reader, const struct perf_event *event)
{
    const struct perf_intel_pt *pt = &reader->data->intel_pt;
    uint32_t cpu = pt->present && !pt->per_cpu ? PERF_NO_CPU : event->cpu;
    struct perf_switches *list = list_for(reader, cpu, event->tid);
    struct perf_stint stint = {event->time, event->pid, event->tid};
    if (!list)
        return;
    list->records++;
    if (event->misc & PERF_MISC_SWITCH_OUT) {
        if (!list->has_before || stint.time < list->before.time)
            list->before = stint;
        list->has_before = true;
        return; // the matching "in" record has the time at which the next task really runs
    }
    if (reader->switches++ >= reader->limits.events) {
        if (reader->data->events_over_limit++ == 0)
            perf_complain(reader, "more context switches than may be kept");
        return;
    }
    struct perf_stint_array *stints = &list->stints;
    list->disordered |= stints->count && stints->items[stints->count - 1].time > stint.time;
    reader->out_of_memory |= array_push(stints, stint) < 0;
}

static int by_time(const void *a, const void *b)
{
    const struct perf_stint *left = a, *right = b;
    return order_of(left->time, right->time) ?: order_of(left->tid, right->tid);
}

void perf_finish_switches(struct perf_data *data)
{
    for (size_t i = 0; i < data->switches.count; i++) {
        struct perf_switches *list = &data->switches.items[i];
        if (list->disordered)
            array_sort(&list->stints, by_time);
        list->disordered = false;
    }
}

// --- COMPRESSED and COMPRESSED2 records ----------------------------------------------------------
// COMPRESSED and COMPRESSED2 records: each holds a part of a zstd stream, one per input (perf
// record -z). The stream contains ordinary records, which may begin in one part and end in the
// next.

struct perf_inflater {
    ZSTD_DStream *stream;
    size_t held;                // bytes of a record that is not whole yet
    bool broken;                // until the next frame begins
    uint8_t buffer[256 * 1024]; // more than the largest record (64 KiB)
};

static struct perf_inflater *inflater_of(struct perf_reader *reader)
{
    if (reader->inflater)
        return reader->inflater;
    struct perf_inflater *inflater = malloc(sizeof *inflater);
    if (inflater) {
        inflater->stream = ZSTD_createDStream();
        inflater->held = 0;
        inflater->broken = false;
    }
    if (!inflater || !inflater->stream) {
        free(inflater);
        reader->out_of_memory = true;
        return NULL;
    }
    reader->inflater = inflater;
    return inflater;
}

static void give_up(struct perf_inflater *inflater)
{
    inflater->broken = true;
    inflater->held = 0;
    ZSTD_DCtx_reset(inflater->stream, ZSTD_reset_session_only);
}

// Reads the complete records in the buffer and keeps the rest.
static void read_inflated(struct perf_reader *reader, struct perf_inflater *inflater, size_t filled,
                          perf_records_read *read_records)
{
    bool stopped = false;
    reader->compressed = true;
    size_t used = read_records(reader, inflater->buffer, filled, 0, &stopped);
    reader->compressed = false;
    if (stopped || reader->out_of_memory) {
        give_up(inflater);
        return;
    }
    inflater->held = filled - used;
    memmove(inflater->buffer, inflater->buffer + used, inflater->held);
}

static bool begins_frame(const uint8_t *bytes, size_t count)
{
    return count >= 4 && perf_u32(bytes) == ZSTD_MAGICNUMBER;
}

static void inflate_records(struct perf_reader *reader, const uint8_t *bytes, size_t count,
                            perf_records_read *read_records)
{
    struct perf_data *data = reader->data;
    struct perf_inflater *inflater = inflater_of(reader);
    data->compressed_bytes += count;
    if (!inflater)
        return;
    if (inflater->broken && !begins_frame(bytes, count)) {
        perf_complain(reader, "%s compressed bytes that follow damaged ones are left out",
                      TEXT_COUNT(count));
        return;
    }
    inflater->broken = false;
    ZSTD_inBuffer in = {bytes, count, 0};
    // perf pads a record to 8 bytes with zeros, which belong to no frame.
    while (!inflater->broken) {
        ZSTD_outBuffer out = {inflater->buffer, sizeof inflater->buffer, inflater->held};
        size_t before = in.pos;
        size_t result = ZSTD_decompressStream(inflater->stream, &out, &in);
        if (ZSTD_isError(result)) {
            perf_complain(reader, "compressed records cannot be read: %s",
                          ZSTD_getErrorName(result));
            give_up(inflater);
            return;
        }
        size_t produced = out.pos - inflater->held;
        data->decompressed_bytes += produced;
        if (data->decompressed_bytes > reader->limits.decompressed_bytes) {
            perf_complain(reader, "compressed records hold more than %" PRIu64 " bytes",
                          reader->limits.decompressed_bytes);
            give_up(inflater);
            return;
        }
        if (produced)
            read_inflated(reader, inflater, out.pos, read_records);
        // Done when the input is used up and the output did not fill its buffer.
        if (in.pos == in.size && out.pos < sizeof inflater->buffer)
            return;
        if (in.pos == before && !produced) {
            perf_complain(reader, "compressed records make no progress");
            give_up(inflater);
        }
    }
}

// How much of a record perf 6.16 writes before it inserts another header (perf_data_parse.c,
// record_bytes).
enum { COMPRESSED2_PIECE_MOST = 65519 };

static void read_compressed2(struct perf_reader *reader, const uint8_t *record, size_t size,
                             perf_records_read *read_records)
{
    uint64_t bytes = size < 16 ? 0 : perf_u64(record + 8);
    if (size < 16 || bytes > size - 16) {
        perf_complain(reader, "COMPRESSED2 of %zu bytes says it holds %" PRIu64, size, bytes);
        return;
    }
    size_t at = 16, end = 16 + (size_t)bytes;
    size_t piece = bytes < COMPRESSED2_PIECE_MOST ? (size_t)bytes : COMPRESSED2_PIECE_MOST;
    for (;;) {
        inflate_records(reader, record + at, piece, read_records);
        at += piece;
        if (at == end)
            return;
        struct perf_record_header inner = {0};
        if (end - at >= 16)
            inner = perf_header_at(record + at);
        if (inner.type != PERF_COMPRESSED2 || inner.size < 16 || inner.size > end - at) {
            perf_complain(reader, "COMPRESSED2: its last %zu bytes are no record", end - at);
            return;
        }
        at += 16;
        piece = inner.size - 16u;
    }
}

void perf_read_compressed(struct perf_reader *reader, const uint8_t *record, size_t size,
                          perf_records_read *read_records)
{
    if (perf_header_at(record).type == PERF_COMPRESSED)
        inflate_records(reader, record + 8, size - 8, read_records);
    else
        read_compressed2(reader, record, size, read_records);
}

void perf_inflater_end(struct perf_reader *reader)
{
    struct perf_inflater *inflater = reader->inflater;
    if (!inflater)
        return;
    if (inflater->held)
        perf_complain(reader, "truncated: the compressed records end with %zu bytes of half a one",
                      inflater->held);
    ZSTD_freeDStream(inflater->stream);
    free(inflater);
    reader->inflater = NULL;
}
