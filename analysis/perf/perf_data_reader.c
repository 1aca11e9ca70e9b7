// SPDX-License-Identifier: MIT
#include "analysis/perf/perf_data_reader.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    if (array_push(&data->complaints, complaint) < 0)
        reader->out_of_memory = true;
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
            if (array_push(&reader->ids, (struct perf_id_entry){attr->ids[k], (uint32_t)i}) < 0)
                reader->out_of_memory = true;
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
