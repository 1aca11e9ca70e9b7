// SPDX-License-Identifier: MIT
//
// The header of a perf.data: its attributes (which events were recorded, and how their records end)
// and its features (what the host was). A pipe has the same things as records in the stream.
#include "analysis/perf/perf_data_private.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    PIPE_HEADER_BYTES = 16,
    FILE_HEADER_BYTES = 104,
    FILE_HEADER_WITHOUT_FEATURES = 72, // before 2.6.35
    FEATURE_BITMAP_AT = 72,
    ATTR_BYTES_NEEDED = 48, // up to and with the flags
    ATTR_BYTES_MOST = 4096,
    ATTRS_MOST = 1 << 14, // each look-up passes them all
    IDS_MOST = 1 << 22,
    TIMES_INDEXED_MOST = 256, // attributes come first, or in a few batches
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

void perf_add_attr(struct perf_reader *reader, const uint8_t *attr, size_t attr_bytes,
                   const uint8_t *ids, size_t id_count)
{
    struct perf_data *data = reader->data;
    if (attr_bytes < ATTR_BYTES_NEEDED) {
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

// --- features ------------------------------------------------------------------------------------

// Bytes taken from the front, never past the end.
struct cursor {
    const uint8_t *at;
    uint64_t left;
    bool short_of; // something was asked for that is not there
};

static const uint8_t *take(struct cursor *cursor, uint64_t bytes)
{
    if (bytes > cursor->left) {
        cursor->short_of = true;
        cursor->left = 0;
        return NULL;
    }
    const uint8_t *at = cursor->at;
    cursor->at += bytes;
    cursor->left -= bytes;
    return at;
}

static uint32_t take_u32(struct cursor *cursor)
{
    const uint8_t *at = take(cursor, 4);
    return at ? perf_u32(at) : 0;
}

static uint64_t take_u64(struct cursor *cursor)
{
    const uint8_t *at = take(cursor, 8);
    return at ? perf_u64(at) : 0;
}

// A string: its length with padding, then its bytes. Cut to what fits.
static void take_string(struct cursor *cursor, char *out, size_t out_bytes)
{
    uint32_t length = take_u32(cursor);
    const uint8_t *at = take(cursor, length);
    size_t used = at ? strnlen((const char *)at, length) : 0;
    if (used >= out_bytes)
        used = out_bytes - 1;
    if (at)
        memcpy(out, at, used);
    out[used] = '\0';
}

static void read_command_line(struct perf_data *data, struct cursor *cursor)
{
    uint32_t count = take_u32(cursor);
    size_t used = 0;
    for (uint32_t i = 0; i < count && !cursor->short_of; i++) {
        char word[512];
        take_string(cursor, word, sizeof word);
        int added = snprintf(data->command_line + used, sizeof data->command_line - used, "%s%s",
                             i ? " " : "", word);
        if (added < 0 || (size_t)added >= sizeof data->command_line - used)
            return; // as much as fits
        used += (size_t)added;
    }
}

static void read_cpuid(struct perf_data *data, struct cursor *cursor)
{
    take_string(cursor, data->cpuid, sizeof data->cpuid);
    const char *comma = strchr(data->cpuid, ',');
    if (comma)
        sscanf(comma, ",%9u,%9u,%9u", &data->cpu_family, &data->cpu_model, &data->cpu_stepping);
}

static void read_topology(struct perf_reader *reader, struct cursor *cursor)
{
    char siblings[256];
    for (int lists = 0; lists < 2; lists++) { // which cores share a socket, which threads a core
        uint32_t count = take_u32(cursor);
        for (uint32_t i = 0; i < count && !cursor->short_of; i++)
            take_string(cursor, siblings, sizeof siblings);
    }
    array_free(&reader->data->cpus);
    for (uint32_t cpu = 0; cpu < reader->data->cpus_available && cursor->left >= 8; cpu++) {
        struct perf_cpu_place place = {.core = take_u32(cursor), .socket = take_u32(cursor)};
        if (array_push(&reader->data->cpus, place) < 0)
            reader->out_of_memory = true;
    }
}

// The attributes once more, with names.
static void read_event_descriptions(struct perf_reader *reader, struct cursor *cursor)
{
    struct perf_data *data = reader->data;
    uint32_t count = take_u32(cursor), attr_bytes = take_u32(cursor);
    if (attr_bytes > ATTR_BYTES_MOST)
        cursor->short_of = true;
    for (uint32_t i = 0; i < count && !cursor->short_of; i++) {
        take(cursor, attr_bytes);
        uint32_t ids = take_u32(cursor);
        char name[64];
        take_string(cursor, name, sizeof name);
        const uint8_t *first = take(cursor, (uint64_t)ids * 8);
        struct perf_attr *attr = first && ids ? perf_attr_of_id(reader, perf_u64(first)) : NULL;
        if (!attr && i < data->attrs.count && first)
            attr = &data->attrs.items[i];
        if (attr && !attr->name[0])
            memcpy(attr->name, name, sizeof name);
    }
}

void perf_finish_attrs(struct perf_reader *reader)
{
    struct cursor cursor = {.at = reader->descriptions, .left = reader->descriptions_bytes};
    if (cursor.at)
        read_event_descriptions(reader, &cursor);
    if (cursor.short_of)
        perf_complain(reader, "the description of the events ends within a value");
}

void perf_read_event_update(struct perf_reader *reader, const uint8_t *record, size_t size)
{
    enum { UPDATE_NAME = 2 };
    if (size < 24) {
        perf_complain(reader, "EVENT_UPDATE of %zu bytes", size);
        return;
    }
    if (perf_u64(record + 8) != UPDATE_NAME)
        return;
    struct perf_attr *attr = perf_attr_of_id(reader, perf_u64(record + 16));
    if (attr)
        snprintf(attr->name, sizeof attr->name, "%.*s", (int)(size - 24),
                 (const char *)record + 24);
}

void perf_read_build_id(struct perf_reader *reader, const uint8_t *record, size_t size)
{
    enum { PATH_AT = 36, SIZE_AT = 32 };
    const char *path = (const char *)record + PATH_AT;
    if (size <= PATH_AT || strnlen(path, size - PATH_AT) == size - PATH_AT) {
        perf_complain(reader, "a build-id record of %zu bytes without a path's end", size);
        return;
    }
    uint16_t misc = perf_u16(record + 4);
    unsigned mode = misc & PERF_MISC_CPUMODE_MASK;
    struct perf_build_id id = {
        .size = 20, .kernel = mode == PERF_MISC_KERNEL, .pid = perf_u32(record + 8), .path = path};
    memcpy(id.bytes, record + 12, sizeof id.bytes);
    if ((misc & PERF_MISC_BUILD_ID_SIZE) && record[SIZE_AT] <= sizeof id.bytes)
        id.size = record[SIZE_AT];
    if (mode == PERF_MISC_GUEST_KERNEL || mode == PERF_MISC_GUEST_USER) {
        reader->data->guest_records++;
        return;
    }
    if (reader->compressed) // its bytes go away
        perf_complain(reader, "a build-id within compressed records is left out");
    else if (array_push(&reader->data->build_ids, id) < 0)
        reader->out_of_memory = true;
}

static void read_build_ids(struct perf_reader *reader, const uint8_t *bytes, uint64_t count,
                           uint64_t base)
{
    uint64_t at = 0;
    while (count - at >= sizeof(struct perf_record_header)) {
        size_t size = perf_u16(bytes + at + 6);
        reader->offset = base + at;
        if (size < sizeof(struct perf_record_header) || size > count - at) {
            perf_complain(reader, "a build-id of %zu bytes where %" PRIu64 " are left", size,
                          count - at);
            return;
        }
        perf_read_build_id(reader, bytes + at, size);
        at += size;
    }
}

static void read_text_feature(struct perf_data *data, uint64_t feature, struct cursor *cursor)
{
    const struct {
        uint64_t feature;
        char *text;
        size_t bytes;
    } texts[] = {
        {PERF_FEATURE_HOSTNAME, data->hostname, sizeof data->hostname},
        {PERF_FEATURE_OS_RELEASE, data->os_release, sizeof data->os_release},
        {PERF_FEATURE_VERSION, data->perf_version, sizeof data->perf_version},
        {PERF_FEATURE_ARCH, data->arch, sizeof data->arch},
        {PERF_FEATURE_CPU_DESCRIPTION, data->cpu_description, sizeof data->cpu_description},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i].feature == feature)
            take_string(cursor, texts[i].text, texts[i].bytes);
}

void perf_read_feature(struct perf_reader *reader, uint64_t feature, const uint8_t *bytes,
                       uint64_t count)
{
    struct perf_data *data = reader->data;
    struct cursor cursor = {.at = bytes, .left = count};
    switch (feature) {
    case PERF_FEATURE_BUILD_ID:
        read_build_ids(reader, bytes, count, reader->offset);
        break;
    case PERF_FEATURE_CPU_COUNTS:
        data->cpus_available = take_u32(&cursor);
        data->cpus_online = take_u32(&cursor);
        break;
    case PERF_FEATURE_CPUID:
        read_cpuid(data, &cursor);
        break;
    case PERF_FEATURE_TOTAL_MEMORY:
        data->total_memory_kib = take_u64(&cursor);
        break;
    case PERF_FEATURE_COMMAND_LINE:
        read_command_line(data, &cursor);
        break;
    case PERF_FEATURE_EVENT_DESCRIPTION:
        if (!reader->compressed) { // else its bytes go away
            reader->descriptions = bytes;
            reader->descriptions_bytes = count;
        }
        break;
    case PERF_FEATURE_CPU_TOPOLOGY:
        read_topology(reader, &cursor);
        break;
    case PERF_FEATURE_SAMPLE_TIME:
        data->first_sample_time = take_u64(&cursor);
        data->last_sample_time = take_u64(&cursor);
        break;
    case PERF_FEATURE_CLOCK_DATA:
        take_u32(&cursor); // version
        data->clock_id = take_u32(&cursor);
        data->clock_wall_ns = take_u64(&cursor);
        data->clock_perf_ns = take_u64(&cursor);
        data->has_clock_data = !cursor.short_of;
        break;
    case PERF_FEATURE_BPF_PROGRAMS:
        perf_read_bpf_programs(reader, bytes, count);
        break;
    default: // a text, or nothing in it that analysis needs
        read_text_feature(data, feature, &cursor);
        break;
    }
    if (cursor.short_of)
        perf_complain(reader, "feature %" PRIu64 " of %" PRIu64 " bytes ends within a value",
                      feature, count);
}

// The features' sections stand behind the records, in the order of the bits.
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
    if (entry_bytes < ATTR_BYTES_NEEDED + 16 || entry_bytes > ATTR_BYTES_MOST)
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
