// SPDX-License-Identifier: MIT
//
// Loads perf.data: one stream for each AUX ring, the context switches of its CPU, and the code of
// the processes that ran.
#include "analysis/pt/pt_trace.h"

#include "analysis/perf/perf_data_events.h"
#include "analysis/perf/perf_data.h"
#include "analysis/pt/image/pt_patches.h"
#include "analysis/pt/calls/pt_span.h"
#include "base/log_file.h"
#include "base/pages.h"
#include "base/text.h"
#include "profiler/trace/bpf_code_log.h"

#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Where the bytes of one AUX ring lie, without the overlap of snapshots.
struct ring_part {
    uint64_t offset; // in the stream as we see it
    uint64_t bytes;
    const uint8_t *data;
    const uint8_t *mapping; // of the file it lies in
};

struct ring {
    struct ring_parts ARRAY_OF(struct ring_part) parts;
    struct ring_breaks ARRAY_OF(uint64_t) breaks;
    uint64_t bytes;
};

struct recording {
    struct perf_data data;
    struct perf_maps maps;
    struct ring *rings; // in the order of data.streams
    struct pt_patches patches;
    bool open;
};

static void recording_free(void *keeper)
{
    struct recording *recording = keeper;
    for (size_t i = 0; recording->rings && i < recording->data.streams.count; i++) {
        array_free(&recording->rings[i].parts);
        array_free(&recording->rings[i].breaks);
    }
    free(recording->rings);
    perf_maps_free(&recording->maps);
    pt_patches_free(&recording->patches);
    if (recording->open)
        perf_data_free(&recording->data);
    free(recording);
}

// --- bytes -------------------------------------------------------------------------------------

static size_t ring_part_at(const struct ring *ring, uint64_t offset)
{
    size_t low = array_bound(0, ring->parts.count, at, ring->parts.items[at].offset <= offset);
    return low - 1;
}

static const uint8_t *ring_view(void *context, uint64_t offset, size_t bytes, uint8_t *scratch)
{
    const struct ring *ring = context;
    size_t i = ring_part_at(ring, offset), done = 0;
    const struct ring_part *part = &ring->parts.items[i];
    if (offset - part->offset + bytes <= part->bytes)
        return part->data + (offset - part->offset);
    while (done < bytes) {
        part = &ring->parts.items[i++];
        uint64_t from = offset + done - part->offset, left = part->bytes - from;
        size_t take = left < bytes - done ? (size_t)left : bytes - done;
        memcpy(scratch + done, part->data + from, take);
        done += take;
    }
    return scratch;
}

static void ring_release(void *context, uint64_t offset, uint64_t bytes)
{
    const struct ring *ring = context;
    for (size_t i = ring_part_at(ring, offset);
         i < ring->parts.count && ring->parts.items[i].offset < offset + bytes; i++) {
        const struct ring_part *part = &ring->parts.items[i];
        uint64_t from = offset > part->offset ? offset - part->offset : 0;
        uint64_t to = offset + bytes - part->offset;
        to = to < part->bytes ? to : part->bytes;
        pages_release(part->mapping, part->data + from, to - from);
    }
}

// The first byte of the mapped file that these bytes belong to.
static const uint8_t *mapping_of(const struct perf_data *data, const uint8_t *bytes)
{
    for (size_t i = 0; i < data->input_count; i++)
        if (bytes >= data->inputs[i].data && bytes < data->inputs[i].data + data->inputs[i].bytes)
            return data->inputs[i].data;
    return bytes;
}

static int ring_build(const struct perf_data *data, const struct perf_aux_stream *aux,
                      struct ring *ring, struct error *err)
{
    for (size_t i = 0; i < aux->extents.count; i++) {
        const struct perf_aux_extent *extent = &aux->extents.items[i];
        struct ring_part part = {ring->bytes, extent->bytes - extent->overlap,
                                 extent->data + extent->overlap, mapping_of(data, extent->data)};
        if (part.bytes == 0)
            continue;
        bool breaks = ring->bytes > 0 && !extent->continues;
        if (array_push(&ring->parts, part) < 0 ||
            (breaks && array_push(&ring->breaks, ring->bytes) < 0))
            return error_set(err, ERROR_FAILED, "out of memory for pieces of trace");
        ring->bytes += part.bytes;
    }
    return 0;
}

// --- which task ran when -------------------------------------------------------------------------

// Follows the events of one CPU (or thread) and notes address spaces and tasks.
struct follower {
    struct pt_trace *trace;
    const struct perf_time_conversion *clock;
    const struct pt_patches *patches;
    struct pt_trace_stream *stream;
    uint32_t pid;   // the task that runs now
    uint64_t since; // perf clock
};

static uint64_t tsc_at(const struct follower *follower, uint64_t ns)
{
    return ns ? perf_tsc_of_time(follower->clock, ns) : 0;
}

// The running process ran until `until`: notes all address spaces that it had in that time, and all
// states of the kernel's code.
static int note_spaces(struct follower *follower, uint64_t until, struct error *err)
{
    for (uint64_t time = follower->since; time < until;) {
        uint64_t space_end, state_end;
        uint32_t space = pt_code_space_at(&follower->trace->code, follower->pid, time, &space_end);
        uint32_t state = pt_patches_state(follower->patches, time, &state_end);
        struct pt_space_change change = {tsc_at(follower, time), pt_space_in_state(space, state)};
        struct pt_space_changes *changes = &follower->stream->changes;
        bool same = changes->count && changes->items[changes->count - 1].space == change.space;
        if (!same && array_push(changes, change) < 0)
            return error_set(err, ERROR_FAILED, "out of memory for address spaces");
        time = space_end < state_end ? space_end : state_end;
    }
    return 0;
}

static int note_stint(struct follower *follower, uint32_t pid, uint32_t tid, uint64_t time,
                      struct error *err)
{
    struct pt_switch to = {tsc_at(follower, time), tid};
    int result = note_spaces(follower, time, err);
    follower->pid = pid;
    follower->since = time;
    if (result == 0 && array_push(&follower->stream->switches, to) < 0)
        result = error_set(err, ERROR_FAILED, "out of memory for context switches");
    return result;
}

// The first event that shows tracing on that CPU, or of that thread.
static const struct perf_event *first_start(const struct perf_data *data,
                                            const struct perf_aux_stream *aux)
{
    for (size_t i = 0; i < data->events.count; i++) {
        const struct perf_event *event = &data->events.items[i];
        if (event->type == PERF_ITRACE_START &&
            (aux->cpu != PERF_NO_CPU ? event->cpu == aux->cpu : event->tid == aux->thread))
            return event;
    }
    return NULL;
}

// Notes which task ran first: the one in the record of the start of tracing, or the first that was
// switched out.
static int follow_first(struct follower *follower, const struct perf_event *start,
                        const struct perf_switches *switches, struct error *err)
{
    uint64_t first = UINT64_MAX;
    bool out = switches && switches->has_before;
    if (switches && switches->stints.count)
        first = switches->stints.items[0].time;
    out = out && switches->before.time < first;
    first = out ? switches->before.time : first;
    if (start && start->time <= first) {
        struct perf_itrace_start tracing;
        perf_event_itrace_start(start, &tracing);
        return note_stint(follower, tracing.pid, tracing.tid, start->time, err);
    }
    if (out) // it already ran when the recording began
        return note_stint(follower, switches->before.pid, switches->before.tid, 0, err);
    return 0;
}

// The switches are not needed any more and are freed.
static int follower_note_switches(struct follower *follower, const struct perf_data *data,
                                  const struct perf_aux_stream *aux, struct error *err)
{
    struct perf_switches *switches = perf_switches_of(data, aux->cpu, aux->thread);
    int result = follow_first(follower, first_start(data, aux), switches, err);
    for (size_t i = 0; result == 0 && switches && i < switches->stints.count; i++) {
        const struct perf_stint *stint = &switches->stints.items[i];
        result = note_stint(follower, stint->pid, stint->tid, stint->time, err);
    }
    if (switches)
        array_free(&switches->stints);
    return result < 0 ? result : note_spaces(follower, UINT64_MAX, err);
}

// The one process that has code, for recordings without switches; PERF_NO_PID when there are
// several.
static uint32_t only_process(const struct perf_maps *maps)
{
    uint32_t pid = PERF_NO_PID;
    for (size_t i = 0; i < maps->spaces.count; i++) {
        uint32_t other = maps->spaces.items[i].pid;
        if (other == PERF_NO_PID || maps->spaces.items[i].mappings.count == 0)
            continue;
        if (pid != PERF_NO_PID && other != pid)
            return PERF_NO_PID;
        pid = other;
    }
    return pid;
}

static uint32_t process_of(const struct perf_data *data, uint32_t thread)
{
    const struct perf_switches *switches = perf_switches_of(data, PERF_NO_CPU, thread);
    for (size_t i = 0; i < data->events.count; i++)
        if (data->events.items[i].tid == thread && data->events.items[i].pid != PERF_NO_PID)
            return data->events.items[i].pid;
    return switches && switches->stints.count ? switches->stints.items[0].pid : thread;
}

// The last name of each task.
static int name_tasks(struct pt_trace *trace, const struct perf_data *data, struct error *err)
{
    struct pt_map numbers = {0}; // by task: its index in trace->tasks + 1
    int result = 0;
    for (size_t i = 0; result == 0 && i < data->events.count; i++) {
        struct perf_comm comm;
        if (data->events.items[i].type != PERF_COMM)
            continue;
        perf_event_comm(&data->events.items[i], &comm);
        struct pt_task_name name = {.task = comm.tid, .process = comm.pid};
        snprintf(name.name, sizeof name.name, "%s", comm.name);
        uint32_t *number =
            pt_map_at(&numbers, (struct pt_map_key){.function = comm.tid, .kind = PT_SPAN_TASK});
        if (number && *number)
            trace->tasks.items[*number - 1] = name;
        else if (!number || array_push(&trace->tasks, name) < 0)
            result = error_set(err, ERROR_FAILED, "out of memory for names of tasks");
        else
            *number = (uint32_t)trace->tasks.count;
    }
    pt_map_free(&numbers);
    return result;
}

// --- putting it together -----------------------------------------------------------------------

static struct pt_recorder recorder_of(const struct perf_data *data)
{
    struct pt_recorder recorder = {
        .tsc_ctc_ebx = (uint32_t)data->intel_pt.tsc_ctc_numerator,
        .tsc_ctc_eax = (uint32_t)data->intel_pt.tsc_ctc_denominator,
        .mtc_frequency = (uint8_t)data->intel_pt.mtc_period,
        .nominal_ratio = (uint8_t)data->intel_pt.max_non_turbo_ratio,
    };
    if (strncmp(data->cpuid, "GenuineIntel", 12) == 0)
        recorder.cpu = (struct pt_cpu){.vendor = pcv_intel,
                                       .family = (uint16_t)data->cpu_family,
                                       .model = (uint8_t)data->cpu_model,
                                       .stepping = (uint8_t)data->cpu_stepping};
    return recorder;
}

static const struct perf_time_conversion *clock_of(const struct perf_data *data)
{
    return data->intel_pt.time.valid ? &data->intel_pt.time : &data->time;
}

// A stream for each ring that holds any trace.
static int add_ring(struct pt_trace *trace, const struct recording *recording, size_t index,
                    struct error *err)
{
    const struct perf_data *data = &recording->data;
    const struct perf_aux_stream *aux = &data->streams.items[index];
    struct ring *ring = &recording->rings[index];
    int result = ring_build(data, aux, ring, err);
    if (result < 0 || ring->bytes == 0)
        return result;
    struct pt_trace_stream *stream = pt_trace_add(trace, err);
    if (!stream)
        return -ERROR_FAILED;
    stream->cpu = aux->cpu == PERF_NO_CPU ? PT_NO_CPU : aux->cpu;
    snprintf(stream->name, sizeof stream->name,
             aux->cpu == PERF_NO_CPU ? "thread %" PRIu32 : "cpu %" PRIu32,
             aux->cpu == PERF_NO_CPU ? aux->thread : aux->cpu);
    stream->stream.recorder = recorder_of(data);
    stream->stream.bytes = (struct pt_bytes){.bytes = ring->bytes,
                                             .view = ring_view,
                                             .release = ring_release,
                                             .context = ring,
                                             .breaks = ring->breaks.items,
                                             .break_count = ring->breaks.count};
    stream->stream.changes = &stream->changes;
    return 0;
}

// Finds out which tasks' trace is in a stream that was scanned.
static int follow_ring(struct pt_trace *trace, const struct recording *recording,
                       const struct perf_aux_stream *aux, struct pt_trace_stream *stream,
                       struct error *err)
{
    const struct perf_data *data = &recording->data;
    struct follower follower = {.trace = trace,
                                .clock = clock_of(data),
                                .patches = &recording->patches,
                                .stream = stream,
                                .pid = only_process(&recording->maps)};
    if (aux->cpu == PERF_NO_CPU)
        follower.pid = process_of(data, aux->thread);
    if (follower.clock->valid && stream->timed)
        return follower_note_switches(&follower, data, aux, err);
    uint64_t end;
    struct pt_space_change all = {0, pt_code_space_at(&trace->code, follower.pid, 0, &end)};
    if (array_push(&stream->changes, all) < 0)
        return error_set(err, ERROR_FAILED, "out of memory for address spaces");
    return 0;
}

static int add_rings(struct pt_trace *trace, const struct recording *recording, struct error *err)
{
    const struct perf_aux_stream *rings = recording->data.streams.items;
    size_t count = recording->data.streams.count, next = 0;
    int result = 0;
    for (size_t i = 0; result == 0 && i < count; i++)
        result = add_ring(trace, recording, i, err);
    if (result == 0)
        result = pt_trace_scan(trace, err);
    for (size_t i = 0; result == 0 && i < count; i++)
        if (recording->rings[i].bytes)
            result = follow_ring(trace, recording, &rings[i], trace->streams.items[next++], err);
    return result;
}

static void note_problems(struct pt_trace *trace, const struct recording *recording)
{
    const struct perf_data *data = &recording->data;
    for (size_t i = 0; i < data->complaints.count; i++)
        pt_trace_note(trace, "%s at offset %" PRIu64 ": %s",
                      data->inputs[data->complaints.items[i].input].name,
                      data->complaints.items[i].offset, data->complaints.items[i].text);
    if (data->lost_records)
        pt_trace_note(trace, "perf lost %s records", TEXT_COUNT(data->lost_records));
    if (data->aux_truncated)
        pt_trace_note(trace, "the trace was cut %s times: its buffer was full",
                      TEXT_COUNT(data->aux_truncated));
    if (data->aux_gaps)
        pt_trace_note(
            trace,
            "%s pieces of the trace have gaps, or the processor's trace had another user meanwhile",
            TEXT_COUNT(data->aux_gaps));
    if (data->trace_errors)
        pt_trace_note(trace, "perf noted %s errors of the trace", TEXT_COUNT(data->trace_errors));
    if (data->without_time)
        pt_trace_note(trace, "%s records lack the time that they should have",
                      TEXT_COUNT(data->without_time));
    if (recording->patches.left_out)
        pt_trace_note(trace, "%s changes of the kernel's code are not applied: there are too many",
                      TEXT_COUNT(recording->patches.left_out));
    if (recording->patches.unknown)
        pt_trace_note(trace,
                      "the kernel made %s functions while it was traced (such as of BPF programs) "
                      "of which nobody has the code: where they ran is a hole",
                      TEXT_COUNT(recording->patches.unknown));
    uint64_t unverified = 0;
    for (size_t i = 0; i < trace->code.sets.count; i++) {
        const struct pt_code_set *set = trace->code.sets.items[i];
        const struct code_complaint_array *all = &set->images.complaints;
        for (size_t k = 0; k < all->count; k++)
            pt_trace_note(trace, "%s", all->items[k].text);
        for (size_t k = 0; set->symbols && k < symbols_complaints(set->symbols)->count; k++)
            pt_trace_note(trace, "%s", symbols_complaints(set->symbols)->items[k]);
        unverified += set->images.unverified;
    }
    if (unverified)
        pt_trace_note(trace, CODE_UNVERIFIED_NOTE, unverified);
}

// Takes in the code of BPF programs that the capture collected, where that lies beside the
// recording.
static int take_bpf_code(struct pt_trace *trace, struct perf_data *data, const char *path,
                         struct error *err)
{
    char folder[PATH_MAX], beside[PATH_MAX];
    struct log_reader log;
    struct error unusable;
    snprintf(folder, sizeof folder, "%s", path);
    int length = snprintf(beside, sizeof beside, "%s/%s", dirname(folder), BPF_CODE_LOG_NAME);
    if (length < 0 || length >= (int)sizeof beside || access(beside, F_OK) < 0)
        return 0;
    if (log_reader_open(&log, beside, LOG_BPF_CODE, BPF_CODE_LOG_VERSION, sizeof(struct bpf_code),
                        &unusable) < 0) {
        pt_trace_note(trace, "%s", unusable.text);
        return 0;
    }
    int64_t malformed = perf_data_add_bpf_code(data, log.records, log.count);
    log_reader_close(&log);
    if (malformed > 0)
        pt_trace_note(trace, "%s: %s malformed records are left out", beside,
                      TEXT_COUNT(malformed));
    return malformed < 0 ? error_set(err, ERROR_FAILED, "out of memory for code of BPF programs")
                         : 0;
}

static int recording_load(struct pt_trace *trace, struct recording *recording, const char *path,
                          const struct code_image_options *options, struct error *err)
{
    struct perf_data *data = &recording->data;
    struct perf_limits lean = perf_default_limits;
    lean.lean = true;
    int result = perf_data_open(path, &lean, &recording->data, err);
    if (result < 0)
        return result;
    recording->open = true;
    trace->recording = data;
    if (data->streams.count == 0)
        return error_set(err, ERROR_INPUT,
                         "%s: holds no processor trace; record with perf record -e intel_pt//",
                         path);
    if (!data->intel_pt.present)
        return error_set(err, ERROR_INPUT, "%s: its trace is not Intel PT", path);
    recording->rings = calloc(data->streams.count, sizeof *recording->rings);
    if (!recording->rings)
        return error_set(err, ERROR_FAILED, "out of memory for %s streams",
                         TEXT_COUNT(data->streams.count));
    result = perf_maps_build(data, 0, &recording->maps, err);
    if (result == 0)
        result = pt_code_add_recording(&trace->code, &trace->memory, data, &recording->maps,
                                       options, err);
    if (result == 0)
        result = take_bpf_code(trace, data, path, err);
    if (result == 0)
        result = pt_patches_add(data, &trace->memory, &recording->patches, err);
    trace->code.patches = &recording->patches;
    const struct perf_time_conversion *clock = clock_of(data);
    trace->symbols = &trace->code.symbols;
    trace->clock.valid = clock->valid;
    trace->clock.multiplier = clock->mult;
    trace->clock.shift = clock->shift;
    trace->clock.zero = clock->zero;
    if (result == 0)
        result = name_tasks(trace, data, err);
    if (result == 0)
        result = add_rings(trace, recording, err);
    note_problems(trace, recording);
    return result;
}

int pt_trace_load_perf(struct pt_trace *trace, const char *path,
                       const struct code_image_options *options, struct error *err)
{
    struct recording *recording = calloc(1, sizeof *recording);
    if (!recording)
        return error_set(err, ERROR_FAILED, "out of memory for a recording");
    trace->keeper = recording;
    trace->keeper_free = recording_free;
    return recording_load(trace, recording, path, options, err);
}
