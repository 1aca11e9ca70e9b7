// SPDX-License-Identifier: MIT
//
// COMPRESSED and COMPRESSED2 records: each holds a part of a zstd stream, one per input (perf
// record -z). The stream contains ordinary records, which may begin in one part and end in the
// next.
#include "analysis/perf/perf_data_compressed.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

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
        perf_complain(reader, "%zu compressed bytes that follow damaged ones are left out", count);
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
