// SPDX-License-Identifier: MIT
//
// Any bytes as a perf.data: as they are when they begin like one, as a directory's two files when
// they begin with 'D', as one feature when they begin with 'F', otherwise as the records behind a
// sound header (so that a run without seeds gets somewhere). Parsed, and everything that came out
// is used.
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/code/symbols.h"
#include "analysis/perf/perf_data.h"
#include "analysis/perf/perf_data_events.h"
#include "analysis/perf/perf_data_maps.h"
#include "tests/analysis/perf/perf_data_maker.h"

static uint64_t used; // so that nothing read is optimised away

static void use_text(const char *text)
{
    used += strlen(text);
}

static void use_bytes(const uint8_t *bytes, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        used += bytes[i];
}

static void use_event(const struct perf_event *event)
{
    union {
        struct perf_mmap mmap;
        struct perf_comm comm;
        struct perf_task task;
        struct perf_switch switched;
        struct perf_aux aux;
        struct perf_itrace_start start;
        struct perf_lost lost;
        struct perf_text_poke poke;
        struct perf_ksymbol symbol;
        struct perf_bpf bpf;
        struct perf_auxtrace_error error;
    } out;
    switch (event->type) {
    case PERF_MMAP:
    case PERF_MMAP2:
        perf_event_mmap(event, &out.mmap);
        use_text(out.mmap.path);
        break;
    case PERF_COMM:
        perf_event_comm(event, &out.comm);
        use_text(out.comm.name);
        break;
    case PERF_FORK:
    case PERF_EXIT:
        perf_event_task(event, &out.task);
        break;
    case PERF_SWITCH:
    case PERF_SWITCH_CPU_WIDE:
        perf_event_switch(event, &out.switched);
        break;
    case PERF_AUX:
        perf_event_aux(event, &out.aux);
        break;
    case PERF_ITRACE_START:
        perf_event_itrace_start(event, &out.start);
        break;
    case PERF_LOST:
    case PERF_LOST_SAMPLES:
        perf_event_lost(event, &out.lost);
        break;
    case PERF_TEXT_POKE:
        perf_event_text_poke(event, &out.poke);
        use_bytes(out.poke.old_code, out.poke.old_bytes);
        use_bytes(out.poke.new_code, out.poke.new_bytes);
        break;
    case PERF_KSYMBOL:
        perf_event_ksymbol(event, &out.symbol);
        use_text(out.symbol.name);
        break;
    case PERF_BPF_EVENT:
        perf_event_bpf(event, &out.bpf);
        break;
    case PERF_AUXTRACE_ERROR:
        perf_event_auxtrace_error(event, &out.error);
        use_text(out.error.message);
        break;
    default:
        abort(); // nothing else may become an event
    }
}

static void use_stream(const struct perf_aux_stream *stream)
{
    uint8_t scratch[300];
    uint64_t sum = 0;
    for (size_t i = 0; i < stream->extents.count; i++) {
        const struct perf_aux_extent *extent = &stream->extents.items[i];
        if (extent->stream_offset != sum || extent->overlap > extent->bytes)
            abort();
        sum += extent->bytes;
    }
    if (sum != stream->bytes)
        abort();
    for (uint64_t at = 0; at < stream->bytes; at += sizeof scratch) {
        uint64_t bytes = stream->bytes - at < sizeof scratch ? stream->bytes - at : sizeof scratch;
        use_bytes(perf_aux_view(stream, at, (size_t)bytes, scratch), bytes);
    }
}

static void use_maps(const struct perf_data *data)
{
    struct perf_maps maps;
    struct error err;
    if (perf_maps_build(data, 4096, &maps, &err) < 0)
        return;
    for (size_t i = 0; i < maps.spaces.count; i++) {
        const struct perf_address_space *space = &maps.spaces.items[i];
        for (size_t k = 0; k < space->mappings.count; k++) {
            const struct perf_mapping *mapping = &space->mappings.items[k];
            if (mapping->begin >= mapping->end ||
                perf_address_space_find(space, mapping->begin) != mapping)
                abort(); // not disjoint, or not in order
            use_text(mapping->path);
            use_bytes(mapping->build_id, mapping->build_id_size);
        }
        if (space->from < space->to && perf_maps_at(&maps, space->pid, space->from) != space)
            abort();
    }
    perf_maps_free(&maps);
}

static void use_made_symbols(const struct perf_data *data)
{
    struct made_symbols made = {0};
    struct name_pool *pool = name_pool_alloc();
    if (pool && made_symbols_read(data, pool, &made) == 0)
        for (size_t i = 0; i < made.count; i++) {
            const struct symbol *one = &made.items[i].symbol;
            if (one->end < one->address || (i && made.items[i - 1].symbol.address > one->address))
                abort();
            const struct symbol *found = made_symbols_find(&made, one->address, made.items[i].from);
            if (found && (found->address > one->address || found->end <= one->address))
                abort();
        }
    array_free(&made);
    name_pool_free(pool);
}

static void use(const struct perf_data *data)
{
    for (size_t i = 0; i < data->events.count; i++) {
        use_event(&data->events.items[i]);
        if (i && data->events.items[i - 1].time > data->events.items[i].time)
            abort();
    }
    for (size_t i = 0; i < data->streams.count; i++)
        use_stream(&data->streams.items[i]);
    for (size_t i = 0; i < data->build_ids.count; i++)
        use_text(data->build_ids.items[i].path);
    for (size_t i = 0; i < data->bpf_functions.count; i++)
        use_bytes(data->bpf_functions.items[i].code, data->bpf_functions.items[i].bytes);
    for (size_t i = 0; i < data->attrs.count; i++)
        use_text(data->attrs.items[i].name);
    for (size_t i = 0; i < data->complaints.count; i++)
        use_text(data->complaints.items[i].text);
    for (size_t i = 0; i < data->switches.count; i++)
        for (size_t k = 0; k < data->switches.items[i].stints.count; k++)
            used += data->switches.items[i].stints.items[k].time;
    if (data->time.valid)
        used += perf_tsc_of_time(&data->time, perf_time_of_tsc(&data->time, used));
    use_maps(data);
    use_made_symbols(data);
}

static void parse_and_use(const struct perf_input *inputs, size_t count)
{
    struct perf_limits limits = {
        .events = 10000, .copy_bytes = 1 << 20, .decompressed_bytes = 1 << 22};
    struct perf_data data;
    struct error err;
    for (int lean = 0; lean < 2; lean++) {
        limits.lean = lean;
        limits.samples = lean ? 0 : 1000;
        if (perf_data_parse(inputs, count, &limits, &data, &err) < 0)
            return;
        use(&data);
        perf_data_free(&data);
    }
}

static void parse_directory(const uint8_t *bytes, size_t count)
{
    size_t first = (size_t)bytes[1] * 16;
    if (first > count - 2)
        first = count - 2;
    const struct perf_input inputs[2] = {{"data", bytes + 2, first},
                                         {"data.0", bytes + 2 + first, count - 2 - first}};
    parse_and_use(inputs, 2);
}

static void parse_records(const uint8_t *bytes, size_t count)
{
    struct maker maker = make_file();
    make_bytes(&maker, bytes, count);
    make_file_end(&maker);
    // A copy of its exact length, so that a sanitizer sees any step beyond it.
    uint8_t *exact = malloc(maker.count);
    memcpy(exact, maker.bytes, maker.count);
    const struct perf_input input = {"records", exact, maker.count};
    parse_and_use(&input, 1);
    free(exact);
    free(maker.bytes);
}

static void parse_feature(const uint8_t *bytes, size_t count)
{
    struct maker maker = make_file();
    const struct maker content = {.bytes = (uint8_t *)(uintptr_t)(bytes + 2), .count = count - 2};
    make_file_end(&maker);
    make_feature(&maker, bytes[1] % 32, &content);
    uint8_t *exact = malloc(maker.count);
    memcpy(exact, maker.bytes, maker.count);
    const struct perf_input input = {"feature", exact, maker.count};
    parse_and_use(&input, 1);
    free(exact);
    free(maker.bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    const struct perf_input whole = {"fuzz", bytes, count};
    if (count >= 4 && bytes[0] == 'D')
        parse_directory(bytes, count);
    else if (count >= 2 && bytes[0] == 'F')
        parse_feature(bytes, count);
    else if (count == 0 || bytes[0] == 'P')
        parse_and_use(&whole, 1);
    else
        parse_records(bytes, count);
    return 0;
}
