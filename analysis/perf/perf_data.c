// SPDX-License-Identifier: MIT
//
// Parsing as a whole: the header, then the records of every input, then what can only be done when
// everything is known. See perf_data.h; the parts are in perf_data_*.c.
#include "analysis/perf/perf_data_private.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>

const struct perf_limits perf_default_limits = {
    .events = 100 * 1000 * 1000,
    .copy_bytes = (uint64_t)8 << 30,
    .decompressed_bytes = (uint64_t)1 << 40,
};

void perf_complain(struct perf_reader *reader, const char *format, ...)
{
    struct perf_data *data = reader->data;
    data->complaint_count++;
    if (data->complaints.count >= PERF_COMPLAINTS_KEPT)
        return;
    struct perf_complaint complaint = {.input = reader->input, .offset = reader->offset};
    va_list args;
    va_start(args, format);
    vsnprintf(complaint.text, sizeof complaint.text, format, args);
    va_end(args);
    if (array_push(&data->complaints, complaint) < 0)
        reader->out_of_memory = true;
}

static void read_records(struct perf_reader *reader, uint32_t input, uint64_t begin, uint64_t end)
{
    bool stopped = false;
    reader->input = input;
    reader->compressed = false;
    reader->released = begin;
    perf_walk(reader, reader->data->inputs[input].data + begin, end - begin, begin, &stopped);
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
    out->private = calloc(1, sizeof *out->private);
    out->inputs = calloc(count, sizeof *out->inputs);
    if (!out->private || !out->inputs)
        goto no_memory;
    memcpy(out->inputs, inputs, count * sizeof *inputs);
    out->input_count = count;

    uint64_t begin = 0, end = 0;
    if (perf_read_header(&reader, &begin, &end, err) < 0)
        goto fail;
    if (count > 1)
        out->layout = PERF_LAYOUT_DIRECTORY;
    read_records(&reader, 0, begin, end);
    for (size_t i = 1; i < count && !reader.out_of_memory; i++)
        read_records(&reader, (uint32_t)i, 0, inputs[i].bytes);
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

static void free_private(struct perf_data_private *private)
{
    if (!private)
        return;
    while (private->arena) {
        struct perf_arena_block *next = private->arena->next;
        free(private->arena);
        private->arena = next;
    }
    for (size_t i = 0; i < private->mapped_count; i++) {
        struct perf_input *input = &private->mapped[i];
        if (input->bytes)
            munmap((void *)(uintptr_t)input->data, input->bytes);
        free((void *)(uintptr_t)input->name);
    }
    free(private->mapped);
    free(private);
}

void perf_data_free(struct perf_data *data)
{
    for (size_t i = 0; i < data->attrs.count; i++)
        free(data->attrs.items[i].ids);
    for (size_t i = 0; i < data->streams.count; i++)
        array_free(&data->streams.items[i].extents);
    for (size_t i = 0; i < data->switches.count; i++)
        array_free(&data->switches.items[i].runs);
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
    free(data->inputs);
    free_private(data->private);
    memset(data, 0, sizeof *data);
}
