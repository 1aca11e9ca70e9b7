// SPDX-License-Identifier: MIT
//
// The features of a perf.data: what the host was, which files were mapped, the names of the events,
// the code of BPF programs. In a file they come after the records; in a pipe they are records.
#include "analysis/perf/perf_data_reader.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

// Bytes taken from the front, never past the end.
struct cursor {
    const uint8_t *at;
    uint64_t left;
    bool short_of; // an earlier read reached beyond the end
};

static const uint8_t *cursor_take(struct cursor *cursor, uint64_t bytes)
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
    const uint8_t *at = cursor_take(cursor, 4);
    return at ? perf_u32(at) : 0;
}

static uint64_t take_u64(struct cursor *cursor)
{
    const uint8_t *at = cursor_take(cursor, 8);
    return at ? perf_u64(at) : 0;
}

// A string: its length with padding, then its bytes. Cut to what fits.
static void take_string(struct cursor *cursor, char *out, size_t out_bytes)
{
    uint32_t length = take_u32(cursor);
    const uint8_t *at = cursor_take(cursor, length);
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
            return; // cut to what fits
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
        reader->out_of_memory |= array_push(&reader->data->cpus, place) < 0;
    }
}

// The attributes again, with names.
static void read_event_descriptions(struct perf_reader *reader, struct cursor *cursor)
{
    struct perf_data *data = reader->data;
    uint32_t count = take_u32(cursor), attr_bytes = take_u32(cursor);
    if (attr_bytes > PERF_ATTR_BYTES_MOST)
        cursor->short_of = true;
    for (uint32_t i = 0; i < count && !cursor->short_of; i++) {
        cursor_take(cursor, attr_bytes);
        uint32_t ids = take_u32(cursor);
        char name[64];
        take_string(cursor, name, sizeof name);
        const uint8_t *first = cursor_take(cursor, (uint64_t)ids * 8);
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
            perf_complain(reader, "a build-id of %zu bytes where %s are left", size,
                          TEXT_COUNT(count - at));
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

// --- the code of BPF programs --------------------------------------------------------------------
// What the kernel told perf of each program (struct bpf_prog_info, include/uapi/linux/bpf.h) and
// behind it the arrays that this points to, by their offsets (tools/perf/util/bpf-utils.h, struct
// perf_bpil).

enum {
    // bits of `arrays`: which of the arrays are there
    HAS_CODE = 1 << 0,
    HAS_ADDRESSES = 1 << 3,
    HAS_LENGTHS = 1 << 4,
    // struct bpf_prog_info
    ID_AT = 4,
    CODE_BYTES_AT = 16,
    CODE_AT = 24,
    ADDRESS_COUNT_AT = 104,
    LENGTH_COUNT_AT = 108,
    ADDRESSES_AT = 112,
    LENGTHS_AT = 120,
    INFO_BYTES_NEEDED = 128, // up to and including these
};

struct program {
    const uint8_t *info, *data;
    uint32_t data_bytes;
};

// An array of the program; NULL where it does not lie in the data.
static const uint8_t *array_at(const struct program *program, size_t pointer, uint64_t bytes)
{
    uint64_t offset = perf_u64(program->info + pointer);
    if (offset > program->data_bytes || bytes > program->data_bytes - offset)
        return NULL;
    return program->data + offset;
}

static void read_program(struct perf_reader *reader, const struct program *program)
{
    uint32_t count = perf_u32(program->info + ADDRESS_COUNT_AT);
    uint32_t left = perf_u32(program->info + CODE_BYTES_AT);
    const uint8_t *code = array_at(program, CODE_AT, left);
    const uint8_t *addresses = array_at(program, ADDRESSES_AT, (uint64_t)count * 8);
    const uint8_t *lengths = array_at(program, LENGTHS_AT, (uint64_t)count * 4);
    if (!code || !addresses || !lengths || perf_u32(program->info + LENGTH_COUNT_AT) != count) {
        perf_complain(reader, "the code of BPF program %" PRIu32 " lies outside of it",
                      perf_u32(program->info + ID_AT));
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        struct perf_bpf_function function = {.address = perf_u64(addresses + i * 8),
                                             .code = code,
                                             .bytes = perf_u32(lengths + i * 4),
                                             .program = perf_u32(program->info + ID_AT)};
        if (function.bytes > left || function.address > UINT64_MAX - function.bytes) {
            perf_complain(reader, "BPF program %" PRIu32 " has less code than functions",
                          function.program);
            return;
        }
        code += function.bytes;
        left -= function.bytes;
        if (function.bytes && array_push(&reader->data->bpf_functions, function) < 0)
            reader->out_of_memory = true;
    }
}

static void read_bpf_programs(struct perf_reader *reader, const uint8_t *bytes, uint64_t count)
{
    enum { COUNT_BYTES = 4, HEADER_BYTES = 16 };
    if (reader->compressed) { // its bytes go away
        perf_complain(reader, "code of BPF programs within compressed records is left out");
        return;
    }
    uint64_t at = COUNT_BYTES;
    uint32_t programs = count >= COUNT_BYTES ? perf_u32(bytes) : 0;
    for (uint32_t i = 0; i < programs; i++) {
        uint64_t left = count - at;
        uint64_t info_bytes = left >= HEADER_BYTES ? perf_u32(bytes + at) : 0;
        uint64_t data_bytes = left >= HEADER_BYTES ? perf_u32(bytes + at + 4) : 0;
        if (left < HEADER_BYTES || info_bytes + data_bytes > left - HEADER_BYTES) {
            perf_complain(reader, "the list of BPF programs ends within program %" PRIu32, i);
            return;
        }
        const uint64_t needed = HAS_CODE | HAS_ADDRESSES | HAS_LENGTHS;
        bool whole = (perf_u64(bytes + at + 8) & needed) == needed;
        struct program program = {.info = bytes + at + HEADER_BYTES,
                                  .data = bytes + at + HEADER_BYTES + info_bytes,
                                  .data_bytes = (uint32_t)data_bytes};
        if (whole &&
            info_bytes >=
                INFO_BYTES_NEEDED) // otherwise the program was not compiled to machine code
            read_program(reader, &program);
        at += HEADER_BYTES + info_bytes + data_bytes;
    }
}

// --- all of them ---------------------------------------------------------------------------------

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
        read_bpf_programs(reader, bytes, count);
        break;
    default: // a text, or something that analysis does not need
        read_text_feature(data, feature, &cursor);
        break;
    }
    if (cursor.short_of)
        perf_complain(reader, "feature %" PRIu64 " of %" PRIu64 " bytes ends within a value",
                      feature, count);
}
