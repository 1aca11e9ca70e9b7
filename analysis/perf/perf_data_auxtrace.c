// SPDX-License-Identifier: MIT
//
// What AUXTRACE_INFO says about the hardware, the streams that are made of AUXTRACE records, and
// the conversion between the TSC and perf's clock from TIME_CONV.
#include "analysis/perf/perf_data_reader.h"
#include "base/array.h"
#include "base/text.h"

#include <inttypes.h>
#include <string.h>

// --- time ----------------------------------------------------------------------------------------

static struct perf_time_conversion conversion_of(uint64_t shift, uint64_t mult, uint64_t zero)
{
    // A mult of 0 or a shift of 64 and more is not a valid conversion.
    bool valid = shift < 64 && mult != 0;
    return (struct perf_time_conversion){
        .valid = valid, .shift = valid ? (uint16_t)shift : 0, .mult = mult, .zero = zero};
}

void perf_read_time_conversion(struct perf_reader *reader, const uint8_t *record, size_t size)
{
    enum { SHORT = 32, LONG = 56 }; // LONG since Linux 5.10
    if (size < SHORT) {
        perf_complain(reader, "TIME_CONV of %zu bytes", size);
        return;
    }
    struct perf_time_conversion conversion =
        conversion_of(perf_u64(record + 8), perf_u64(record + 16), perf_u64(record + 24));
    if (size >= LONG) {
        bool has_zero = record[48] != 0, is_short = record[49] != 0;
        conversion.valid = conversion.valid && has_zero;
        if (is_short) {
            conversion.cycles = perf_u64(record + 32);
            conversion.mask = perf_u64(record + 40);
        }
    }
    reader->data->time = conversion;
}

// --- AUXTRACE_INFO ------------------------------------------------------------------------------

// Places in the record's array of u64 (enum of tools/perf/util/intel-pt.h).
enum {
    INFO_PMU_TYPE,
    INFO_TIME_SHIFT,
    INFO_TIME_MULT,
    INFO_TIME_ZERO,
    INFO_HAS_TIME_ZERO,
    INFO_TSC_BIT,
    INFO_NO_RETURN_COMPRESSION_BIT,
    INFO_SWITCH_TRACKING,
    INFO_SNAPSHOT,
    INFO_PER_CPU,
    INFO_MTC_BIT,
    INFO_MTC_FREQUENCY_BITS,
    INFO_TSC_CTC_NUMERATOR,
    INFO_TSC_CTC_DENOMINATOR,
    INFO_CYC_BIT,
    INFO_MAX_NON_TURBO_RATIO,
    INFO_FILTER_LENGTH,
    INFO_FILTER,
};

static uint64_t info_value(const uint8_t *record, size_t size, size_t place)
{
    size_t at = 16 + place * 8;
    return at + 8 <= size ? perf_u64(record + at) : 0;
}

static void read_filter(struct perf_intel_pt *pt, const uint8_t *record, size_t size)
{
    uint64_t length = info_value(record, size, INFO_FILTER_LENGTH);
    size_t at = 16 + (size_t)INFO_FILTER * 8;
    if (at > size || length > size - at)
        return;
    uint64_t padded = length ? (length / 8 + 1) * 8 : 0; // room for a NUL
    if (padded > size - at)
        return;
    size_t used = length < sizeof pt->filter ? (size_t)length : sizeof pt->filter - 1;
    memcpy(pt->filter, record + at, used);
    pt->filter[used] = '\0';
    at += (size_t)padded;
    pt->event_trace = size - at >= 8 && perf_u64(record + at) != 0;
}

void perf_read_auxtrace_info(struct perf_reader *reader, const uint8_t *record, size_t size)
{
    uint32_t kind = size >= 16 ? perf_u32(record + 8) : 0;
    if (kind != PERF_AUXTRACE_INTEL_PT) {
        perf_complain(reader, "AUXTRACE_INFO of kind %u: the trace is not Intel PT", kind);
        return;
    }
    if (size < 16 + (INFO_PER_CPU + 1) * 8) {
        perf_complain(reader, "AUXTRACE_INFO of %zu bytes", size);
        return;
    }
    struct perf_intel_pt pt = {
        .present = true,
        .pmu_type = (uint32_t)info_value(record, size, INFO_PMU_TYPE),
        .tsc_bit = info_value(record, size, INFO_TSC_BIT),
        .mtc_bit = info_value(record, size, INFO_MTC_BIT),
        .cyc_bit = info_value(record, size, INFO_CYC_BIT),
        .no_return_compression_bit = info_value(record, size, INFO_NO_RETURN_COMPRESSION_BIT),
        .mtc_frequency_bits = info_value(record, size, INFO_MTC_FREQUENCY_BITS),
        .tsc_ctc_numerator = info_value(record, size, INFO_TSC_CTC_NUMERATOR),
        .tsc_ctc_denominator = info_value(record, size, INFO_TSC_CTC_DENOMINATOR),
        .max_non_turbo_ratio = info_value(record, size, INFO_MAX_NON_TURBO_RATIO),
        .switch_tracking = info_value(record, size, INFO_SWITCH_TRACKING),
        .snapshot = info_value(record, size, INFO_SNAPSHOT) != 0,
        .per_cpu = info_value(record, size, INFO_PER_CPU) != 0,
        .time = conversion_of(info_value(record, size, INFO_TIME_SHIFT),
                              info_value(record, size, INFO_TIME_MULT),
                              info_value(record, size, INFO_TIME_ZERO)),
    };
    if (!info_value(record, size, INFO_HAS_TIME_ZERO))
        pt.time.valid = false;
    read_filter(&pt, record, size);
    if (pt.switch_tracking == 1)
        perf_complain(reader, "context switches were recorded as sched_switch samples (perf before "
                              "Linux 4.3), which are not read: streams have no tasks");
    reader->data->intel_pt = pt;
}

// Which of these bits the PT event sets; done last, when all attributes are known.
static void finish_intel_pt(struct perf_data *data)
{
    struct perf_intel_pt *pt = &data->intel_pt;
    if (!pt->present)
        return;
    if (!data->time.valid)
        data->time = pt->time;
    for (size_t i = 0; i < data->attrs.count; i++) {
        if (data->attrs.items[i].type != pt->pmu_type)
            continue;
        pt->config = data->attrs.items[i].config;
        break;
    }
    pt->has_tsc = (pt->config & pt->tsc_bit) != 0;
    pt->has_mtc = (pt->config & pt->mtc_bit) != 0;
    pt->has_cyc = (pt->config & pt->cyc_bit) != 0;
    pt->return_compression = !(pt->config & pt->no_return_compression_bit);
    if (pt->mtc_frequency_bits)
        pt->mtc_period = (unsigned)((pt->config & pt->mtc_frequency_bits) >>
                                    __builtin_ctzll(pt->mtc_frequency_bits)) &
                         15;
}

// --- streams -------------------------------------------------------------------------------------

enum { RINGS_MOST = 1 << 14 }; // Linux has 8,192 CPUs at most

static struct perf_aux_stream *stream_of(struct perf_reader *reader, uint32_t ring)
{
    struct perf_aux_stream_array *streams = &reader->data->streams;
    size_t low = array_bound(0, streams->count, at, streams->items[at].ring < ring);
    if (low < streams->count && streams->items[low].ring == ring)
        return &streams->items[low];
    if (streams->count >= RINGS_MOST) {
        perf_complain(reader, "AUXTRACE of more than %d rings", RINGS_MOST);
        return NULL;
    }
    if (array_push(streams, (struct perf_aux_stream){0}) < 0) {
        reader->out_of_memory = true;
        return NULL;
    }
    struct perf_aux_stream *at = &streams->items[low];
    memmove(at + 1, at, (streams->count - 1 - low) * sizeof *at);
    *at = (struct perf_aux_stream){.ring = ring, .cpu = PERF_NO_CPU, .thread = PERF_NO_PID};
    return at;
}

static bool all_zero(const uint8_t *bytes, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        if (bytes[i])
            return false;
    return true;
}

// Whether the extent begins where the stream's last one ended in the ring. perf pads extents with
// zeros to multiples of 8 bytes: that padding is removed.
static void join_extent(struct perf_reader *reader, struct perf_aux_stream *stream,
                        struct perf_aux_extent *extent)
{
    if (!stream->extents.count || reader->data->intel_pt.snapshot)
        return;
    struct perf_aux_extent *last = &stream->extents.items[stream->extents.count - 1];
    uint64_t padding = last->ring_offset + last->bytes - extent->ring_offset;
    if (padding < 8 && padding <= last->bytes &&
        all_zero(last->data + last->bytes - padding, padding)) {
        last->bytes -= padding;
        stream->bytes -= padding;
        reader->data->aux_bytes -= padding;
        extent->continues = true;
    }
}

void perf_read_auxtrace(struct perf_reader *reader, const uint8_t *record, size_t size,
                        const uint8_t *data, uint64_t available)
{
    enum { BYTES = 48 };
    if (size < BYTES) {
        perf_complain(reader, "AUXTRACE of %zu bytes", size);
        return;
    }
    uint64_t bytes = perf_u64(record + 8);
    if (bytes > available) {
        perf_complain(reader, "truncated: AUXTRACE of %" PRIu64 " bytes, but %s are left", bytes,
                      TEXT_COUNT(available));
        bytes = available;
    }
    struct perf_aux_stream *stream = stream_of(reader, perf_u32(record + 32));
    if (!stream)
        return;
    uint32_t thread = perf_u32(record + 36), cpu = perf_u32(record + 40);
    if (!stream->extents.count) {
        stream->cpu = cpu;
        stream->thread = cpu == PERF_NO_CPU ? thread : PERF_NO_PID;
    } else if (stream->cpu != cpu) {
        perf_complain(reader, "AUXTRACE of ring %u is of CPU %d, before it was of %d", stream->ring,
                      (int)cpu, (int)stream->cpu);
    }
    struct perf_aux_extent extent = {.data = data,
                                     .bytes = bytes,
                                     .ring_offset = perf_u64(record + 16),
                                     .reference = perf_u64(record + 24),
                                     .file_offset = reader->offset + size,
                                     .input = reader->input,
                                     .thread = thread};
    join_extent(reader, stream, &extent);
    extent.stream_offset = stream->bytes;
    if (array_push(&stream->extents, extent) < 0) {
        reader->out_of_memory = true;
        return;
    }
    stream->bytes += bytes;
    reader->data->aux_bytes += bytes;
}

// Snapshots of one ring may repeat what an earlier one held: the end of `before` is then the
// beginning of `extent`. Found by the first PSB of `extent`, with what follows it (a TSC, so it is
// not met twice by chance).
static uint64_t overlap_of(const struct perf_aux_extent *before,
                           const struct perf_aux_extent *extent)
{
    enum { PSB_BYTES = 16, NEEDLE_BYTES = 64 };
    static const uint8_t psb[PSB_BYTES] = {0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82,
                                           0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82};
    const uint8_t *needle = memmem(extent->data, extent->bytes, psb, sizeof psb);
    if (!needle)
        return 0;
    uint64_t lead = (uint64_t)(needle - extent->data);
    size_t needle_bytes = NEEDLE_BYTES;
    if (extent->bytes - lead < needle_bytes)
        needle_bytes = (size_t)(extent->bytes - lead);
    const uint8_t *from = before->data, *end = before->data + before->bytes;
    // The tail of `before` may hold less than the whole needle: such a short overlap is ignored.
    const uint8_t *found = memmem(from, (size_t)(end - from), needle, needle_bytes);
    if (!found)
        return 0;
    uint64_t repeated = lead + (uint64_t)(end - found);
    if (repeated > extent->bytes || (uint64_t)(found - from) < lead)
        return 0;
    return memcmp(found - lead, extent->data, (size_t)repeated) == 0 ? repeated : 0;
}

void perf_finish_streams(struct perf_reader *reader)
{
    struct perf_data *data = reader->data;
    finish_intel_pt(data);
    for (size_t i = 0; i < data->streams.count; i++) {
        struct perf_aux_extent_array *extents = &data->streams.items[i].extents;
        for (size_t k = 1; k < extents->count; k++)
            if (!extents->items[k].continues) {
                const struct perf_aux_extent *before = &extents->items[k - 1];
                extents->items[k].overlap = overlap_of(before, &extents->items[k]);
                perf_release(reader, before->input, before->file_offset,
                             before->file_offset + before->bytes);
            }
    }
}
