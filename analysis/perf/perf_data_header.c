// SPDX-License-Identifier: MIT
//
// The header of a file: where its attributes (which events were recorded, and which fields their
// records end with), its records and its features lie. In a pipe, attributes and features are
// records.
#include "analysis/perf/perf_data_header.h"

#include "analysis/perf/perf_data_features.h"

#include <inttypes.h>
#include <string.h>

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
        perf_complain(reader, "truncated: %" PRIu64 " bytes of records, %" PRIu64 " are there",
                      records.bytes, input->bytes - records.offset);
        *end = input->bytes;
    } else if (header_bytes == FILE_HEADER_BYTES) {
        read_features(reader, header + FEATURE_BITMAP_AT, *end);
    }
    return 0;
}

int perf_read_header(struct perf_reader *reader, uint64_t *begin, uint64_t *end, struct error *err)
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
