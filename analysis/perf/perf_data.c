// SPDX-License-Identifier: MIT
#include "analysis/perf/perf_data.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/input_file.h"
#include "profiler/trace/bpf_code_log.h"

const struct perf_limits perf_default_limits = {
    .events = 100 * 1000 * 1000,
    .copy_bytes = (uint64_t)8 << 30,
    .decompressed_bytes = (uint64_t)1 << 40,
};

// --- memory --------------------------------------------------------------------------------------

struct perf_arena_block {
    struct perf_arena_block *next;
    size_t used, capacity;
    uint8_t bytes[];
};

const uint8_t *perf_data_keep(struct perf_data *data, const uint8_t *bytes, size_t count)
{
    enum { BLOCK_BYTES = 1 << 20 };
    size_t aligned = (count + 7) & ~(size_t)7;
    if (!data->arena || data->arena->capacity - data->arena->used < aligned) {
        struct perf_arena_block *block = malloc(sizeof *block + BLOCK_BYTES);
        if (!block)
            return NULL;
        *block = (struct perf_arena_block){.next = data->arena, .capacity = BLOCK_BYTES};
        data->arena = block;
    }
    uint8_t *copy = data->arena->bytes + data->arena->used;
    memcpy(copy, bytes, count);
    data->arena->used += aligned;
    data->arena_bytes += aligned;
    return copy;
}

int64_t perf_data_add_bpf_code(struct perf_data *data, const struct bpf_code *records, size_t count)
{
    int64_t malformed = 0;
    for (size_t i = 0; i < count; i++) {
        const struct bpf_code *record = &records[i];
        struct perf_bpf_function function = {
            .address = record->address, .bytes = record->bytes, .program = record->program};
        if (record->bytes > BPF_CODE_BYTES || record->address > UINT64_MAX - record->bytes) {
            malformed++;
            continue;
        }
        function.code = perf_data_keep(data, record->code, record->bytes);
        if (!function.code || array_push(&data->bpf_functions, function) < 0)
            return -1;
    }
    return malformed;
}

void perf_input_unmap(struct perf_input *input)
{
    input_unmap(input->data);
    free((void *)(uintptr_t)input->name);
}

void perf_data_free(struct perf_data *data)
{
    for (size_t i = 0; i < data->attrs.count; i++)
        free(data->attrs.items[i].ids);
    for (size_t i = 0; i < data->streams.count; i++)
        array_free(&data->streams.items[i].extents);
    for (size_t i = 0; i < data->switches.count; i++)
        array_free(&data->switches.items[i].stints);
    array_free(&data->switches);
    array_free(&data->attrs);
    array_free(&data->events);
    array_free(&data->samples);
    array_free(&data->streams);
    array_free(&data->build_ids);
    array_free(&data->bpf_functions);
    array_free(&data->id_places);
    array_free(&data->cpus);
    array_free(&data->complaints);
    for (size_t i = 0; data->inputs_mapped && i < data->input_count; i++)
        perf_input_unmap(&data->inputs[i]);
    free(data->inputs);
    while (data->arena) {
        struct perf_arena_block *next = data->arena->next;
        free(data->arena);
        data->arena = next;
    }
    memset(data, 0, sizeof *data);
}

// --- context switches ----------------------------------------------------------------------------

// The first list at or after (cpu, thread).
static size_t list_place(const struct perf_switches_array *lists, uint32_t cpu, uint32_t thread)
{
    return array_bound(0, lists->count, at,
                       lists->items[at].cpu < cpu ||
                           (lists->items[at].cpu == cpu && lists->items[at].thread < thread));
}

struct perf_switches *perf_switches_of(const struct perf_data *data, uint32_t cpu, uint32_t thread)
{
    if (cpu != PERF_NO_CPU)
        thread = PERF_NO_PID;
    size_t place = list_place(&data->switches, cpu, thread);
    if (place == data->switches.count)
        return NULL;
    struct perf_switches *list = &data->switches.items[place];
    return list->cpu == cpu && list->thread == thread ? list : NULL;
}

// --- time ----------------------------------------------------------------------------------------

uint64_t perf_time_of_tsc(const struct perf_time_conversion *conversion, uint64_t tsc)
{
    if (conversion->mask)
        tsc = conversion->cycles + ((tsc - conversion->cycles) & conversion->mask);
    unsigned __int128 scaled = (unsigned __int128)tsc * conversion->mult;
    return conversion->zero + (uint64_t)(scaled >> conversion->shift);
}

uint64_t perf_tsc_of_time(const struct perf_time_conversion *conversion, uint64_t ns)
{
    unsigned __int128 since = (uint64_t)(ns - conversion->zero);
    return (uint64_t)((since << conversion->shift) / conversion->mult);
}

// --- AUX data ------------------------------------------------------------------------------------

const struct perf_aux_extent *perf_aux_extent_at(const struct perf_aux_stream *stream,
                                                 uint64_t offset)
{
    assert(offset < stream->bytes);
    const struct perf_aux_extent *extents = stream->extents.items;
    size_t count = stream->extents.count;
    // the last that begins at or before the offset
    return &extents[array_bound(1, count, at, extents[at].stream_offset <= offset) - 1];
}

const uint8_t *perf_aux_view(const struct perf_aux_stream *stream, uint64_t offset, size_t bytes,
                             uint8_t *scratch)
{
    assert(offset <= stream->bytes && bytes <= stream->bytes - offset);
    if (bytes == 0)
        return scratch;
    const struct perf_aux_extent *extent = perf_aux_extent_at(stream, offset);
    uint64_t within = offset - extent->stream_offset;
    if (bytes <= extent->bytes - within)
        return extent->data + within;
    for (size_t copied = 0; copied < bytes; extent++, within = 0) {
        size_t part = bytes - copied;
        if (part > extent->bytes - within)
            part = (size_t)(extent->bytes - within);
        memcpy(scratch + copied, extent->data + within, part);
        copied += part;
    }
    return scratch;
}
