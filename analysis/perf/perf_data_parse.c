// SPDX-License-Identifier: MIT
//
// Goes through the records of every input: how long each is, and which function reads it.
#include "analysis/perf/perf_data.h"

#include "analysis/perf/perf_data_events.h"
#include "analysis/perf/perf_data_reader.h"
#include "base/error.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

// --- the header ----------------------------------------------------------------------------------
// The header of a file: where its attributes (which events were recorded, and which fields their
// records end with), its records and its features lie. In a pipe, attributes and features are
// records.

enum {
    PIPE_HEADER_BYTES = 16,
    FILE_HEADER_BYTES = 104,
    FILE_HEADER_WITHOUT_FEATURES = 72, // before 2.6.35
    FEATURE_BITMAP_AT = 72,
};

static const char magic[8] = "PERFILE2";
static const char magic_swapped[8] = "2ELIFREP";
static const char magic_ancient[8] = "PERFFILE";

struct section {
    uint64_t offset, bytes;
};

static struct section section_at(const uint8_t *at)
{
    return (struct section){perf_u64(at), perf_u64(at + 8)};
}

static bool section_fits(struct section section, uint64_t file_bytes)
{
    return section.offset <= file_bytes && section.bytes <= file_bytes - section.offset;
}

// The features' sections come after the records, in the order of the bits.
static void read_features(struct perf_reader *reader, const uint8_t *bitmap, uint64_t table)
{
    const struct perf_input *input = &reader->data->inputs[0];
    for (uint64_t feature = 0; feature < PERF_FEATURES; feature++) {
        if (!(bitmap[feature / 8] >> (feature % 8) & 1))
            continue;
        reader->offset = table;
        if (!section_fits((struct section){table, 16}, input->bytes)) {
            perf_complain(reader, "truncated: the table of features ends before feature %" PRIu64,
                          feature);
            return;
        }
        struct section section = section_at(input->data + table);
        table += 16;
        if (!section_fits(section, input->bytes)) {
            perf_complain(reader, "feature %" PRIu64 " lies outside the file", feature);
            continue;
        }
        reader->offset = section.offset;
        perf_read_feature(reader, feature, input->data + section.offset, section.bytes);
    }
}

// --- the header itself ---------------------------------------------------------------------------

static void read_attrs(struct perf_reader *reader, struct section attrs, uint64_t entry_bytes)
{
    const struct perf_input *input = &reader->data->inputs[0];
    for (uint64_t at = 0; attrs.bytes - at >= entry_bytes; at += entry_bytes) {
        const uint8_t *entry = input->data + attrs.offset + at;
        struct section ids = section_at(entry + entry_bytes - 16);
        reader->offset = attrs.offset + at;
        if (!section_fits(ids, input->bytes)) {
            perf_complain(reader, "the ids of attribute %" PRIu64 " lie outside the file",
                          at / entry_bytes);
            ids = (struct section){0, 0};
        }
        perf_add_attr(reader, entry, (size_t)entry_bytes - 16, input->data + ids.offset,
                      (size_t)(ids.bytes / 8));
        if (reader->out_of_memory)
            return;
    }
}

static int read_file_header(struct perf_reader *reader, uint64_t header_bytes, uint64_t *begin,
                            uint64_t *end, struct error *err)
{
    const struct perf_input *input = &reader->data->inputs[0];
    const uint8_t *header = input->data;
    if (input->bytes < header_bytes)
        return error_set(err, ERROR_INPUT,
                         "%s: offset 8: the header says it has %" PRIu64 " bytes, the file has %zu",
                         input->name, header_bytes, input->bytes);
    uint64_t entry_bytes = perf_u64(header + 16);
    struct section attrs = section_at(header + 24), records = section_at(header + 40);
    if (entry_bytes < PERF_ATTR_BYTES_NEEDED + 16 || entry_bytes > PERF_ATTR_BYTES_MOST)
        return error_set(err, ERROR_INPUT, "%s: offset 16: attributes of %" PRIu64 " bytes",
                         input->name, entry_bytes);
    if (!section_fits(attrs, input->bytes))
        return error_set(err, ERROR_INPUT,
                         "%s: offset 24: the attributes (%" PRIu64 " bytes at %" PRIu64
                         ") lie outside the file",
                         input->name, attrs.bytes, attrs.offset);
    if (records.offset > input->bytes)
        return error_set(err, ERROR_INPUT,
                         "%s: offset 40: the records (at %" PRIu64 ") lie outside the file",
                         input->name, records.offset);
    read_attrs(reader, attrs, entry_bytes);
    reader->offset = 40;
    *begin = records.offset;
    *end = records.offset + records.bytes;
    if (records.bytes == 0 && records.offset < input->bytes) {
        perf_complain(reader, "the header was never completed: perf record did not end properly");
        *end = input->bytes;
    } else if (!section_fits(records, input->bytes)) {
        perf_complain(reader, "truncated: %" PRIu64 " bytes of records, %s are there",
                      records.bytes, TEXT_COUNT(input->bytes - records.offset));
        *end = input->bytes;
    } else if (header_bytes == FILE_HEADER_BYTES) {
        read_features(reader, header + FEATURE_BITMAP_AT, *end);
    }
    return 0;
}

// Reads the header of inputs[0]; *begin and *end: where its records lie. One that cannot be used is
// ERROR_INPUT.
static int perf_read_header(struct perf_reader *reader, uint64_t *begin, uint64_t *end,
                            struct error *err)
{
    const struct perf_input *input = &reader->data->inputs[0];
    if (input->bytes < PIPE_HEADER_BYTES)
        return error_set(err, ERROR_INPUT, "%s: %zu bytes are too few for a perf.data", input->name,
                         input->bytes);
    if (memcmp(input->data, magic_swapped, sizeof magic) == 0)
        return error_set(err, ERROR_INPUT,
                         "%s: offset 0: recorded on a big-endian machine, which has no Intel PT; "
                         "only little-endian recordings are read",
                         input->name);
    if (memcmp(input->data, magic_ancient, sizeof magic) == 0)
        return error_set(err, ERROR_INPUT,
                         "%s: offset 0: the format of perf before Linux 3.6; record it anew",
                         input->name);
    if (memcmp(input->data, magic, sizeof magic) != 0)
        return error_set(err, ERROR_INPUT,
                         "%s: offset 0: not a perf.data (it does not begin with PERFILE2)",
                         input->name);
    uint64_t header_bytes = perf_u64(input->data + 8);
    if (header_bytes == PIPE_HEADER_BYTES) {
        reader->data->layout = PERF_LAYOUT_PIPE;
        *begin = PIPE_HEADER_BYTES;
        *end = input->bytes;
        return 0;
    }
    if (header_bytes != FILE_HEADER_BYTES && header_bytes != FILE_HEADER_WITHOUT_FEATURES)
        return error_set(err, ERROR_INPUT,
                         "%s: offset 8: a header of %" PRIu64 " bytes, which no perf writes",
                         input->name, header_bytes);
    return read_file_header(reader, header_bytes, begin, end, err);
}

// --- the records ---------------------------------------------------------------------------------

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
        reader->out_of_memory |= array_push(&reader->data->id_places, place) < 0;
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
                perf_complain(reader, "truncated: %s of %" PRIu64 " bytes, but %s are left",
                              perf_record_name(header.type), payload, TEXT_COUNT(left - size));
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
              "%s: out of memory after %s events; free some, or use a shorter recording",
              inputs[0].name, TEXT_COUNT(out->events.count));
fail:
    array_free(&reader.ids);
    perf_data_free(out);
    return -(int)err->kind;
}
