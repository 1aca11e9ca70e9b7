// SPDX-License-Identifier: MIT
//
// One record after the other: how long each is, and who reads it.
#include "analysis/perf/perf_data_private.h"

#include <inttypes.h>

static const char *const record_names[PERF_RECORD_TYPES] = {
    [PERF_MMAP] = "MMAP",
    [PERF_LOST] = "LOST",
    [PERF_COMM] = "COMM",
    [PERF_EXIT] = "EXIT",
    [PERF_THROTTLE] = "THROTTLE",
    [PERF_UNTHROTTLE] = "UNTHROTTLE",
    [PERF_FORK] = "FORK",
    [PERF_READ] = "READ",
    [PERF_SAMPLE] = "SAMPLE",
    [PERF_MMAP2] = "MMAP2",
    [PERF_AUX] = "AUX",
    [PERF_ITRACE_START] = "ITRACE_START",
    [PERF_LOST_SAMPLES] = "LOST_SAMPLES",
    [PERF_SWITCH] = "SWITCH",
    [PERF_SWITCH_CPU_WIDE] = "SWITCH_CPU_WIDE",
    [PERF_NAMESPACES] = "NAMESPACES",
    [PERF_KSYMBOL] = "KSYMBOL",
    [PERF_BPF_EVENT] = "BPF_EVENT",
    [PERF_CGROUP] = "CGROUP",
    [PERF_TEXT_POKE] = "TEXT_POKE",
    [PERF_AUX_OUTPUT_HW_ID] = "AUX_OUTPUT_HW_ID",
    [PERF_CALLCHAIN_DEFERRED] = "CALLCHAIN_DEFERRED",
    [PERF_HEADER_ATTR] = "HEADER_ATTR",
    [PERF_HEADER_EVENT_TYPE] = "HEADER_EVENT_TYPE",
    [PERF_HEADER_TRACING_DATA] = "HEADER_TRACING_DATA",
    [PERF_HEADER_BUILD_ID] = "HEADER_BUILD_ID",
    [PERF_FINISHED_ROUND] = "FINISHED_ROUND",
    [PERF_ID_INDEX] = "ID_INDEX",
    [PERF_AUXTRACE_INFO] = "AUXTRACE_INFO",
    [PERF_AUXTRACE] = "AUXTRACE",
    [PERF_AUXTRACE_ERROR] = "AUXTRACE_ERROR",
    [PERF_THREAD_MAP] = "THREAD_MAP",
    [PERF_CPU_MAP] = "CPU_MAP",
    [PERF_STAT_CONFIG] = "STAT_CONFIG",
    [PERF_STAT] = "STAT",
    [PERF_STAT_ROUND] = "STAT_ROUND",
    [PERF_EVENT_UPDATE] = "EVENT_UPDATE",
    [PERF_TIME_CONV] = "TIME_CONV",
    [PERF_HEADER_FEATURE] = "HEADER_FEATURE",
    [PERF_COMPRESSED] = "COMPRESSED",
    [PERF_FINISHED_INIT] = "FINISHED_INIT",
    [PERF_COMPRESSED2] = "COMPRESSED2",
    [PERF_BPF_METADATA] = "BPF_METADATA",
    [PERF_SCHEDSTAT_CPU] = "SCHEDSTAT_CPU",
    [PERF_SCHEDSTAT_DOMAIN] = "SCHEDSTAT_DOMAIN",
};

const char *perf_record_name(uint32_t type)
{
    return type < PERF_RECORD_TYPES ? record_names[type] : NULL;
}

static void read_attr_record(struct perf_reader *reader, const uint8_t *record, size_t size)
{
    // The attribute tells its own length; what is left are the ids.
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

// perf 6.16 computes the length of a COMPRESSED2 record in 16 bits: one of 64 KiB and more says too
// little, has no padding, and may hold further records' headers between its pieces. Its own count
// of bytes tells.
enum { COMPRESSED2_PIECE_MOST = 65519 };

static uint64_t record_bytes(const uint8_t *record, struct perf_record_header header, uint64_t left)
{
    if (header.type != PERF_COMPRESSED2 || left < 16)
        return header.size;
    uint64_t data = perf_u64(record + 8);
    if (data > left - 16 || ((16 + data + 7) & ~(uint64_t)7) <= header.size)
        return header.size;
    return 16 + data;
}

static void read_compressed2(struct perf_reader *reader, const uint8_t *record, size_t size)
{
    uint64_t bytes = size < 16 ? 0 : perf_u64(record + 8);
    if (size < 16 || bytes > size - 16) {
        perf_complain(reader, "COMPRESSED2 of %zu bytes says it holds %" PRIu64, size, bytes);
        return;
    }
    size_t at = 16, end = 16 + (size_t)bytes;
    size_t piece = bytes < COMPRESSED2_PIECE_MOST ? (size_t)bytes : COMPRESSED2_PIECE_MOST;
    for (;;) {
        perf_inflate(reader, record + at, piece);
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

static void read_compressed(struct perf_reader *reader, const uint8_t *record, size_t size)
{
    if (perf_header_at(record).type == PERF_COMPRESSED)
        perf_inflate(reader, record + 8, size - 8);
    else
        read_compressed2(reader, record, size);
}

// What follows a record without being counted in its size.
static uint64_t payload_of(const uint8_t *record, size_t size, uint32_t type)
{
    if (type == PERF_AUXTRACE && size >= 16)
        return perf_u64(record + 8);
    if (type == PERF_HEADER_TRACING_DATA && size >= 12)
        return ((uint64_t)perf_u32(record + 8) + 7) & ~(uint64_t)7;
    return 0;
}

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
            read_compressed(reader, record, size);
        break;
    default: // counted; nothing in it that analysis needs
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

// Every record's header brings pages of the file, those around it too: together nearly all of it.
static void release_behind(struct perf_reader *reader)
{
    enum { STEP = 4 << 20 };
    if (reader->offset - reader->released < STEP)
        return;
    perf_release(reader, reader->input, reader->released, reader->offset);
    reader->released = reader->offset;
}

size_t perf_walk(struct perf_reader *reader, const uint8_t *bytes, uint64_t count, uint64_t base,
                 bool *stopped)
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
            if (header.type != PERF_AUXTRACE) // which has complained already
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
