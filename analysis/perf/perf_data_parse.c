// SPDX-License-Identifier: MIT
//
// Goes through the records of every input: how long each is, and which function reads it.
#include "analysis/perf/perf_data_parse.h"

#include "analysis/perf/perf_data_auxtrace.h"
#include "analysis/perf/perf_data_compressed.h"
#include "analysis/perf/perf_data_events.h"
#include "analysis/perf/perf_data_features.h"
#include "analysis/perf/perf_data_header.h"
#include "analysis/perf/perf_data_samples.h"
#include "analysis/perf/perf_data_switches.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void read_attr_record(struct perf_reader *reader, const uint8_t *record, size_t size)
{
    // The attribute contains its own length; the ids follow it.
    uint32_t attr_bytes = size >= 16 ? perf_u32(record + 12) : 0;
    if (attr_bytes < 48 || attr_bytes > size - 8) {
        perf_complain(reader, "HEADER_ATTR of %zu bytes says its attribute has %u", size,
                      attr_bytes);
        return;
    }
    const uint8_t *ids = record + 8 + attr_bytes;
    perf_add_attr(reader, record + 8, attr_bytes, ids, (size - 8 - attr_bytes) / 8);
}

static void read_id_index(struct perf_reader *reader, const uint8_t *record, size_t size)
{
    enum { ENTRY = 32 };
    uint64_t count = size < 16 ? 0 : perf_u64(record + 8);
    if (size < 16 || count > (size - 16) / ENTRY) {
        perf_complain(reader, "ID_INDEX of %zu bytes cannot hold the entries it says", size);
        return;
    }
    for (uint64_t i = 0; i < count; i++) {
        const uint8_t *entry = record + 16 + i * ENTRY;
        struct perf_id_place place = {.id = perf_u64(entry),
                                      .ring = (uint32_t)perf_u64(entry + 8),
                                      .cpu = (uint32_t)perf_u64(entry + 16),
                                      .thread = (uint32_t)perf_u64(entry + 24)};
        if (array_push(&reader->data->id_places, place) < 0)
            reader->out_of_memory = true;
    }
}

// perf 6.16 computes the length of a COMPRESSED2 record in 16 bits: for 64 KiB and more the length
// is too small, the padding is missing, and headers of further records may lie between the parts.
// The record's own count of bytes is right.
static uint64_t record_bytes(const uint8_t *record, struct perf_record_header header, uint64_t left)
{
    if (header.type != PERF_COMPRESSED2 || left < 16)
        return header.size;
    uint64_t data = perf_u64(record + 8);
    if (data > left - 16 || ((16 + data + 7) & ~(uint64_t)7) <= header.size)
        return header.size;
    return 16 + data;
}

// Bytes that follow a record and are not part of its size.
static uint64_t payload_of(const uint8_t *record, size_t size, uint32_t type)
{
    if (type == PERF_AUXTRACE && size >= 16)
        return perf_u64(record + 8);
    if (type == PERF_HEADER_TRACING_DATA && size >= 12)
        return ((uint64_t)perf_u32(record + 8) + 7) & ~(uint64_t)7;
    return 0;
}

static perf_records_read read_records; // compressed records contain further records

static void read_tool_record(struct perf_reader *reader, const uint8_t *record, size_t size,
                             uint32_t type, uint64_t available)
{
    switch (type) {
    case PERF_HEADER_ATTR:
        read_attr_record(reader, record, size);
        break;
    case PERF_HEADER_BUILD_ID:
        perf_read_build_id(reader, record, size);
        break;
    case PERF_HEADER_FEATURE:
        if (size >= 16)
            perf_read_feature(reader, perf_u64(record + 8), record + 16, size - 16);
        else
            perf_complain(reader, "HEADER_FEATURE of %zu bytes", size);
        break;
    case PERF_EVENT_UPDATE:
        perf_read_event_update(reader, record, size);
        break;
    case PERF_ID_INDEX:
        read_id_index(reader, record, size);
        break;
    case PERF_AUXTRACE_INFO:
        perf_read_auxtrace_info(reader, record, size);
        break;
    case PERF_AUXTRACE:
        perf_read_auxtrace(reader, record, size, record + size, available);
        break;
    case PERF_TIME_CONV:
        perf_read_time_conversion(reader, record, size);
        break;
    case PERF_AUXTRACE_ERROR:
        perf_read_sideband(reader, record, size);
        break;
    case PERF_COMPRESSED:
    case PERF_COMPRESSED2:
        if (reader->compressed)
            perf_complain(reader, "compressed records within compressed records");
        else
            perf_read_compressed(reader, record, size, read_records);
        break;
    default: // counted only: analysis does not need it
        break;
    }
}

static void read_record(struct perf_reader *reader, const uint8_t *record, size_t size,
                        uint64_t available)
{
    uint32_t type = perf_u32(record);
    if (!perf_record_name(type)) {
        reader->data->unknown_records++;
        return;
    }
    reader->data->counts[type]++;
    if (type == PERF_SAMPLE)
        perf_read_sample(reader, record, size);
    else if (type < PERF_HEADER_ATTR)
        perf_read_sideband(reader, record, size);
    else
        read_tool_record(reader, record, size, type, available);
}

// Reading a record's header maps its pages and those around it, together nearly the whole file.
static void release_behind(struct perf_reader *reader)
{
    enum { STEP = 4 << 20 };
    if (reader->offset - reader->released < STEP)
        return;
    perf_release(reader, reader->input, reader->released, reader->offset);
    reader->released = reader->offset;
}

static size_t read_records(struct perf_reader *reader, const uint8_t *bytes, uint64_t count,
                           uint64_t base, bool *stopped)
{
    uint64_t at = 0;
    while (count - at >= sizeof(struct perf_record_header) && !reader->out_of_memory) {
        const uint8_t *record = bytes + at;
        struct perf_record_header header = perf_header_at(record);
        uint64_t left = count - at;
        if (!reader->compressed) {
            reader->offset = base + at;
            release_behind(reader);
        }
        uint64_t size = record_bytes(record, header, left);
        if (size < sizeof header) {
            perf_complain(
                reader,
                "a record of type %u and %u bytes: what follows it cannot be read (%" PRIu64
                " bytes)",
                header.type, header.size, left);
            *stopped = true;
            return at;
        }
        if (size > left)
            break;
        uint64_t payload = payload_of(record, (size_t)size, header.type);
        if (payload && reader->compressed) {
            perf_complain(reader, "%s within compressed records", perf_record_name(header.type));
            *stopped = true;
            return at;
        }
        read_record(reader, record, (size_t)size, left - size);
        if (payload > left - size) {
            if (header.type != PERF_AUXTRACE) // it has complained already
                perf_complain(reader,
                              "truncated: %s of %" PRIu64 " bytes, but %" PRIu64 " are left",
                              perf_record_name(header.type), payload, left - size);
            *stopped = true;
            return count;
        }
        at += size + payload;
    }
    if (at < count && !reader->compressed && !reader->out_of_memory) {
        reader->offset = base + at;
        perf_complain(reader, "truncated: the last %" PRIu64 " bytes are half a record",
                      count - at);
    }
    return at;
}

// --- all inputs ----------------------------------------------------------------------------------

static void read_input(struct perf_reader *reader, uint32_t input, uint64_t begin, uint64_t end)
{
    bool stopped = false;
    reader->input = input;
    reader->compressed = false;
    reader->released = begin;
    read_records(reader, reader->data->inputs[input].data + begin, end - begin, begin, &stopped);
    perf_inflater_end(reader);
    perf_release(reader, input, reader->released, end);
}

int perf_data_parse(const struct perf_input *inputs, size_t count, const struct perf_limits *limits,
                    struct perf_data *out, struct error *err)
{
    memset(out, 0, sizeof *out);
    if (count == 0 || count > UINT32_MAX)
        return error_set(err, ERROR_INPUT, "a perf.data needs at least one file");
    struct perf_reader reader = {.data = out, .limits = limits ? *limits : perf_default_limits};
    out->inputs = calloc(count, sizeof *out->inputs);
    if (!out->inputs)
        goto no_memory;
    memcpy(out->inputs, inputs, count * sizeof *inputs);
    out->input_count = count;

    uint64_t begin = 0, end = 0;
    if (perf_read_header(&reader, &begin, &end, err) < 0)
        goto fail;
    if (count > 1)
        out->layout = PERF_LAYOUT_DIRECTORY;
    read_input(&reader, 0, begin, end);
    for (size_t i = 1; i < count && !reader.out_of_memory; i++)
        read_input(&reader, (uint32_t)i, 0, inputs[i].bytes);
    if (reader.out_of_memory || perf_sort_events(&out->events) < 0)
        goto no_memory;
    perf_sort_samples(&out->samples);
    perf_finish_switches(out);
    perf_finish_attrs(&reader);
    perf_finish_streams(&reader);
    array_free(&reader.ids);
    return 0;

no_memory:
    error_set(err, ERROR_FAILED,
              "%s: out of memory after %" PRIu64 " events; free some, or use a "
              "shorter recording",
              inputs[0].name, (uint64_t)out->events.count);
fail:
    array_free(&reader.ids);
    perf_data_free(out);
    return -(int)err->kind;
}
