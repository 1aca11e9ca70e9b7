// SPDX-License-Identifier: MIT
#include "analysis/pt/pt_result_print.h"

#include "analysis/perf/perf_data.h"
#include "analysis/pt/pt_result.h"
#include "analysis/pt/pt_trace.h"
#include "base/text.h"
#include "base/units.h"

#include <intel-pt.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// --- the recording -------------------------------------------------------------------------------
// What a perf.data says about itself, to read and to compare with `perf script -D`: the host it was
// made on, its records, and its clocks.

static void set_text(json_t *out, const char *key, const char *text)
{
    json_t *value = text[0] ? json_string(text) : NULL; // NULL also when it is not UTF-8
    if (value)
        json_object_set_new(out, key, value);
}

static void set_number(json_t *out, const char *key, uint64_t number)
{
    if (number)
        json_object_set_new(out, key, json_integer((json_int_t)number));
}

static json_t *records_json(const struct perf_data *data)
{
    json_t *out = json_object();
    for (uint32_t type = 0; type < PERF_RECORD_TYPES; type++)
        if (data->counts[type])
            json_object_set_new(out, perf_record_name(type),
                                json_integer((json_int_t)data->counts[type]));
    return out;
}

static json_t *switches_json(const struct perf_data *data)
{
    json_t *out = json_object();
    for (size_t i = 0; i < data->switches.count; i++) {
        const struct perf_switches *switches = &data->switches.items[i];
        char cpu[16];
        snprintf(cpu, sizeof cpu, "%" PRIu32, switches->cpu);
        if (switches->cpu != PERF_NO_CPU)
            json_object_set_new(out, cpu, json_integer((json_int_t)switches->records));
    }
    return out;
}

static void set_host(json_t *out, const struct perf_data *data)
{
    static const char *const layouts[] = {[PERF_LAYOUT_FILE] = "file",
                                          [PERF_LAYOUT_PIPE] = "pipe",
                                          [PERF_LAYOUT_DIRECTORY] = "folder"};
    set_text(out, "layout", layouts[data->layout]);
    set_text(out, "hostname", data->hostname);
    set_text(out, "os_release", data->os_release);
    set_text(out, "arch", data->arch);
    set_text(out, "cpu", data->cpu_description);
    set_text(out, "cpuid", data->cpuid);
    set_text(out, "perf_version", data->perf_version);
    set_text(out, "command", data->command_line);
    set_number(out, "cpus_online", data->cpus_online);
}

static void set_clocks(json_t *out, const struct perf_data *data)
{
    set_number(out, "first_sample", data->first_sample_time);
    set_number(out, "last_sample", data->last_sample_time);
    if (data->time.valid)
        json_object_set_new(out, "tsc",
                            json_pack("{s:I, s:i, s:I}", "mult", (json_int_t)data->time.mult,
                                      "shift", (int)data->time.shift, "zero",
                                      (json_int_t)data->time.zero));
    if (data->has_clock_data)
        json_object_set_new(out, "clock",
                            json_pack("{s:i, s:I, s:I}", "id", (int)data->clock_id, "wall",
                                      (json_int_t)data->clock_wall_ns, "perf",
                                      (json_int_t)data->clock_perf_ns));
}

// {"layout", "hostname", "os_release", "arch", "cpu", "cpuid", "perf_version", "command",
//  "cpus_online", "records": {TYPE: count}, "switches": {CPU: records}, "lost_records",
//  "lost_samples", "aux_truncated", "aux_gaps", "trace_errors", "guest_records", "unknown_records",
//  "complaints", "first_sample", "last_sample" (perf clock, ns), "tsc": {"mult", "shift", "zero"},
//  "clock": {"id", "wall", "perf"}}
// Members that the recording lacks are left out. clock: the perf clock and the wall clock (of
// clockid `id`) at one instant, ns: a time t of the perf clock is t - perf + wall. The caller owns
// it; NULL: out of memory.
static json_t *pt_recording_json(const struct perf_data *data)
{
    json_t *out = json_object();
    if (!out)
        return NULL;
    set_host(out, data);
    json_object_set_new(out, "records", records_json(data));
    json_object_set_new(out, "switches", switches_json(data));
    json_object_set_new(out, "lost_records", json_integer((json_int_t)data->lost_records));
    json_object_set_new(out, "aux_truncated", json_integer((json_int_t)data->aux_truncated));
    json_object_set_new(out, "complaints", json_integer((json_int_t)data->complaint_count));
    set_number(out, "aux_gaps", data->aux_gaps);
    set_number(out, "trace_errors", data->trace_errors);
    set_number(out, "lost_samples", data->lost_samples);
    set_number(out, "guest_records", data->guest_records);
    set_number(out, "unknown_records", data->unknown_records);
    set_clocks(out, data);
    return out;
}

// --- JSON ----------------------------------------------------------------------------------------

static json_t *json_whole_number(uint64_t value)
{
    return json_integer((json_int_t)value);
}

static json_t *errors_json(const struct pt_stream_result *stream)
{
    json_t *out = json_array();
    for (size_t i = 0; i < stream->errors.count; i++) {
        const struct pt_walk_error *error = &stream->errors.items[i];
        char ip[32];
        snprintf(ip, sizeof ip, "0x%" PRIx64, error->ip);
        json_array_append_new(out, json_pack("{s:I, s:s, s:s}", "offset", (json_int_t)error->offset,
                                             "what", error->what, "ip", ip));
    }
    return out;
}

static void set_counts(json_t *out, uint64_t bytes, uint64_t scanned, uint64_t packets,
                       uint64_t psbs, const struct pt_walk_counts *counts)
{
    json_object_set_new(out, "bytes", json_whole_number(bytes));
    json_object_set_new(out, "scanned_bytes", json_whole_number(scanned));
    json_object_set_new(out, "packets", json_whole_number(packets));
    json_object_set_new(out, "psbs", json_whole_number(psbs));
    json_object_set_new(out, "instructions", json_whole_number(counts->instructions));
    json_object_set_new(out, "blocks", json_whole_number(counts->blocks));
    json_object_set_new(out, "calls", json_whole_number(counts->calls));
    json_object_set_new(out, "returns", json_whole_number(counts->returns));
    json_object_set_new(out, "interrupts", json_whole_number(counts->interrupts));
    json_object_set_new(out, "syscalls", json_whole_number(counts->syscalls));
    json_object_set_new(out, "overflows", json_whole_number(counts->overflows));
    json_object_set_new(out, "followed_bytes", json_whole_number(counts->followed_bytes));
}

static json_t *packets_json(const struct pt_packets *packets)
{
    json_t *out = json_object();
    for (int kind = 0; kind < PT_KINDS; kind++)
        if (packets->count[kind])
            json_object_set_new(out, pt_kind_name((enum pt_kind)kind),
                                json_whole_number(packets->count[kind]));
    return out;
}

static json_t *flaws_json(const struct pt_packets *packets)
{
    json_t *out = json_array();
    for (size_t i = 0; i < packets->flaws.count; i++)
        json_array_append_new(out, json_pack("{s:I, s:s}", "offset",
                                             (json_int_t)packets->flaws.items[i].offset, "what",
                                             packets->flaws.items[i].what));
    return out;
}

static json_t *tasks_json(const struct pt_result *result, const struct pt_stream_result *stream)
{
    json_t *out = json_array();
    for (size_t i = 0; i < stream->tasks.count; i++) {
        const struct pt_task_total *task = &stream->tasks.items[i];
        json_array_append_new(out,
                              json_pack("{s:I, s:s, s:I, s:f}", "thread", (json_int_t)task->task,
                                        "name", pt_label_task(result->trace, task->task),
                                        "switched_in", (json_int_t)task->switched_in, "ns",
                                        pt_trace_duration_ns(result->trace, task->time)));
    }
    return out;
}

static void set_time(json_t *out, const struct pt_result *result, size_t index)
{
    const struct pt_trace *trace = result->trace;
    const struct pt_trace_stream *source = trace->streams.items[index];
    const struct pt_stream_result *stream = &result->streams[index];
    const char *axis = !source->timed ? "instructions" : trace->clock.valid ? "ns" : "TSC ticks";
    json_object_set_new(out, "time", json_string(axis));
    if (!source->timed)
        return;
    uint64_t length = stream->last - stream->first;
    json_object_set_new(out, "begin", json_whole_number(pt_trace_ns(trace, stream->first)));
    json_object_set_new(out, "end", json_whole_number(pt_trace_ns(trace, stream->last)));
    json_object_set_new(out, "length", json_real(pt_trace_duration_ns(trace, length)));
    json_object_set_new(out, "covered",
                        json_real(pt_trace_duration_ns(trace, stream->calls.covered_time)));
    json_object_set_new(out, "lost",
                        json_real(pt_trace_duration_ns(trace, stream->calls.gap_time)));
    json_object_set_new(
        out, "granularity",
        json_real(pt_trace_duration_ns(trace, pt_calls_granularity(&stream->calls))));
}

static json_t *stream_json(const struct pt_result *result, size_t index)
{
    const struct pt_trace_stream *source = result->trace->streams.items[index];
    const struct pt_stream_result *stream = &result->streams[index];
    json_t *out = json_object();
    json_object_set_new(out, "name", json_string(source->name));
    if (source->cpu != PT_NO_CPU)
        json_object_set_new(out, "cpu", json_whole_number(source->cpu));
    set_counts(out, source->packets.bytes, source->packets.scanned, source->packets.packets,
               source->packets.count[PT_KIND_PSB], &stream->counts);
    json_object_set_new(out, "errors", errors_json(stream));
    json_object_set_new(out, "error_count", json_whole_number(stream->error_count));
    json_object_set_new(out, "spans", json_whole_number(stream->calls.spans));
    json_object_set_new(out, "flaws", flaws_json(&source->packets));
    json_object_set_new(out, "flaw_count", json_whole_number(source->packets.flaw_count));
    json_object_set_new(out, "skipped_bytes", json_whole_number(source->packets.skipped));
    json_object_set_new(out, "packet_kinds", packets_json(&source->packets));
    json_object_set_new(out, "tail_calls", json_whole_number(stream->calls.tail_calls));
    json_object_set_new(out, "unwound", json_whole_number(stream->calls.unwound));
    json_object_set_new(out, "unmatched_returns", json_whole_number(stream->calls.unmatched));
    json_object_set_new(out, "stack_resets", json_whole_number(stream->calls.resets));
    json_object_set_new(out, "gaps", json_whole_number(stream->calls.gaps));
    json_object_set_new(out, "switches", json_whole_number(source->switches.count));
    json_object_set_new(out, "tasks", tasks_json(result, stream));
    set_time(out, result, index);
    return out;
}

static json_t *function_json(const struct pt_result *result, const struct pt_function_total *item)
{
    char name[PT_LABEL_BYTES];
    json_t *out = json_pack(
        "{s:s, s:I, s:f, s:f}", "name",
        pt_label(result->trace, (enum pt_span_kind)item->kind, item->function, item->known, name),
        "calls", (json_int_t)item->calls, "total", pt_trace_duration_ns(result->trace, item->total),
        "self", pt_trace_duration_ns(result->trace, item->self));
    if (out && item->kind != PT_SPAN_UNTRACED)
        json_object_set_new(out, "kernel", json_boolean(pt_label_is_kernel(item->function)));
    return out;
}

static json_t *functions_json(const struct pt_result *result, const struct pt_function_list *list,
                              size_t first, size_t count, size_t top)
{
    json_t *out = json_array();
    for (size_t i = 0; i < count && i < top; i++)
        json_array_append_new(out, function_json(result, &list->items[first + i]));
    return out;
}

static json_t *all_functions_json(const struct pt_result *result, size_t top)
{
    struct pt_function_list list = pt_functions_all(result);
    json_t *out = functions_json(result, &list, 0, list.count, top);
    array_free(&list);
    return out;
}

static json_t *processes_json(const struct pt_result *result, size_t top)
{
    struct pt_function_list list = pt_functions_by_process(result);
    json_t *out = json_array();
    for (size_t at = 0, count; at < list.count; at += count) {
        uint32_t process = list.items[at].task;
        count = pt_functions_of_process(&list, at);
        json_t *one =
            json_pack("{s:s, s:f, s:o}", "name", pt_label_task(result->trace, process), "self",
                      pt_trace_duration_ns(result->trace, pt_functions_time(&list, at, count)),
                      "functions", functions_json(result, &list, at, count, top));
        if (one && process != PT_NO_TASK)
            json_object_set_new(one, "process", json_whole_number(process));
        json_array_append_new(out, one);
    }
    array_free(&list);
    return out;
}

json_t *pt_result_json(const struct pt_result *result, size_t top)
{
    json_t *streams = json_array(), *total = json_object(), *notes = json_array();
    const struct pt_trace *trace = result->trace;
    struct pt_walk_counts sum = {0};
    uint64_t bytes = 0, scanned = 0, packets = 0, psbs = 0, errors = 0, spans = 0;
    for (size_t i = 0; i < trace->streams.count; i++) {
        const struct pt_packets *found = &trace->streams.items[i]->packets;
        json_array_append_new(streams, stream_json(result, i));
        pt_walk_counts_add(&sum, &result->streams[i].counts);
        bytes += found->bytes;
        scanned += found->scanned;
        packets += found->packets;
        psbs += found->count[PT_KIND_PSB];
        errors += result->streams[i].error_count;
        spans += result->streams[i].calls.spans;
    }
    set_counts(total, bytes, scanned, packets, psbs, &sum);
    json_object_set_new(total, "errors", json_whole_number(errors));
    json_object_set_new(total, "spans", json_whole_number(spans));
    for (size_t i = 0; i < trace->notes.count; i++)
        json_array_append_new(notes, json_string(trace->notes.items[i]));
    json_t *out =
        json_pack("{s:o, s:o, s:o, s:o, s:o, s:f}", "streams", streams, "total", total, "functions",
                  all_functions_json(result, top), "processes", processes_json(result, top),
                  "notes", notes, "seconds", result->seconds);
    if (out && trace->recording)
        json_object_set_new(out, "recording", pt_recording_json(trace->recording));
    return out;
}

// --- text ----------------------------------------------------------------------------------------

static const char *format_amount(const struct pt_result *result, bool timed, uint64_t amount,
                                 char *out, size_t bytes)
{
    if (timed && result->trace->clock.valid)
        return units_format_ns(pt_trace_duration_ns(result->trace, amount), out, bytes);
    snprintf(out, bytes, "%" PRIu64 "%s", amount, timed ? " ticks" : "");
    return out;
}

// What of the stream was never decoded, and what the processor itself lost.
static void print_losses(const struct pt_packets *packets, const struct pt_stream_result *stream,
                         FILE *out)
{
    if (packets->skipped)
        fprintf(out, "  %s bytes skipped: before the first PSB, or from damage to the next PSB\n",
                TEXT_COUNT(packets->skipped));
    if (packets->flaw_count)
        fprintf(out, "  damaged in %s place%s, first at offset %" PRIu64 ": %s\n",
                TEXT_COUNT(packets->flaw_count), packets->flaw_count == 1 ? "" : "s",
                packets->flaws.items[0].offset, packets->flaws.items[0].what);
    if (stream->counts.overflows)
        fprintf(out, "  the processor itself lost packets %s time%s\n",
                TEXT_COUNT(stream->counts.overflows), stream->counts.overflows == 1 ? "" : "s");
}

// Most errors of a first try are for want of code.
static bool lacks_code(const struct pt_stream_result *stream)
{
    const char *lacking = pt_errstr(pte_nomap);
    for (size_t i = 0; i < stream->errors.count; i++)
        if (strcmp(stream->errors.items[i].what, lacking) == 0)
            return true;
    return false;
}

static void print_stream(const struct pt_result *result, size_t index, FILE *out)
{
    const struct pt_trace_stream *source = result->trace->streams.items[index];
    const struct pt_stream_result *stream = &result->streams[index];
    char length[32], covered[32], lost[32], granularity[32];
    fprintf(out, "%s: %s bytes, %s packets, %s PSBs\n", source->name,
            TEXT_COUNT(source->packets.bytes), TEXT_COUNT(source->packets.packets),
            TEXT_COUNT(source->packets.count[PT_KIND_PSB]));
    if (source->packets.scanned < source->packets.bytes)
        fprintf(out,
                "  packets and damage are those of the %s bytes around what was asked for; of the "
                "others only PSBs were read\n",
                TEXT_COUNT(source->packets.scanned));
    fprintf(out, "  %s instructions, %s calls, %s returns, %s interrupts, %s spans\n",
            TEXT_COUNT(stream->counts.instructions), TEXT_COUNT(stream->counts.calls),
            TEXT_COUNT(stream->counts.returns), TEXT_COUNT(stream->counts.interrupts),
            TEXT_COUNT(stream->calls.spans));
    if (source->timed)
        fprintf(out, "  %s long, %s decoded, %s lost; times known to %s\n",
                format_amount(result, true, stream->last - stream->first, length, sizeof length),
                format_amount(result, true, stream->calls.covered_time, covered, sizeof covered),
                format_amount(result, true, stream->calls.gap_time, lost, sizeof lost),
                format_amount(result, true, pt_calls_granularity(&stream->calls), granularity,
                              sizeof granularity));
    else
        fprintf(out, "  without time: lengths are counted in instructions\n");
    print_losses(&source->packets, stream, out);
    for (size_t i = 0; i < stream->errors.count && i < 10; i++)
        fprintf(out, "  decode error at offset %" PRIu64 ": %s (0x%" PRIx64 ")\n",
                stream->errors.items[i].offset, stream->errors.items[i].what,
                stream->errors.items[i].ip);
    if (stream->error_count > 10)
        fprintf(out, "  and %s more decode errors\n", TEXT_COUNT(stream->error_count - 10));
    if (lacks_code(stream))
        fprintf(out,
                "  some of the code that ran is missing: --elf FILE[@ADDRESS], --page ADDRESS=FILE "
                "or --symfs DIR gives it\n");
    for (size_t i = 0; i < stream->tasks.count; i++) {
        const struct pt_task_total *task = &stream->tasks.items[i];
        fprintf(out, "  %s thread %" PRIu32 " %s: switched in %s times\n",
                format_amount(result, true, task->time, length, sizeof length), task->task,
                pt_label_task(result->trace, task->task), TEXT_COUNT(task->switched_in));
    }
}

static void print_functions(const struct pt_result *result, bool timed,
                            const struct pt_function_list *list, size_t first, size_t count,
                            FILE *out)
{
    for (size_t i = first; i < first + count; i++) {
        const struct pt_function_total *item = &list->items[i];
        char self[32], total[32], name[PT_LABEL_BYTES];
        bool kernel = item->kind != PT_SPAN_UNTRACED && pt_label_is_kernel(item->function);
        fprintf(out, "%14s %14s %10" PRIu64 "  %s%s\n",
                format_amount(result, timed, item->self, self, sizeof self),
                format_amount(result, timed, item->total, total, sizeof total), item->calls,
                pt_label(result->trace, (enum pt_span_kind)item->kind, item->function, item->known,
                         name),
                kernel ? " [k]" : "");
    }
}

// The processes that took most of the time, a few functions of each; nothing where there is only
// one process.
static void print_processes(const struct pt_result *result, bool timed, size_t top, FILE *out)
{
    enum { PROCESSES = 4, FUNCTIONS = 5 };
    struct pt_function_list list = pt_functions_by_process(result);
    size_t at = 0, most = top < FUNCTIONS ? top : FUNCTIONS;
    bool several = list.count && pt_functions_of_process(&list, 0) < list.count;
    for (int i = 0; several && i < PROCESSES && at < list.count; i++) {
        uint32_t process = list.items[at].task;
        char time[32];
        size_t count = pt_functions_of_process(&list, at);
        format_amount(result, timed, pt_functions_time(&list, at, count), time, sizeof time);
        if (process == PT_NO_TASK)
            fprintf(out, "\n%14s in unknown processes\n", time);
        else
            fprintf(out, "\n%14s in process %" PRIu32 " %s\n", time, process,
                    pt_label_task(result->trace, process));
        print_functions(result, timed, &list, at, count < most ? count : most, out);
        at += count;
    }
    array_free(&list);
}

void pt_result_print(const struct pt_result *result, size_t top, FILE *out)
{
    bool timed = false;
    for (size_t i = 0; i < result->trace->streams.count; i++) {
        print_stream(result, i, out);
        timed |= result->trace->streams.items[i]->timed;
    }
    struct pt_function_list all = pt_functions_all(result);
    if (all.count)
        fprintf(out, "\n%14s %14s %10s  function\n", "of its own", "in all", "calls");
    print_functions(result, timed, &all, 0, all.count < top ? all.count : top, out);
    array_free(&all);
    print_processes(result, timed, top, out);
    for (size_t i = 0; i < result->trace->notes.count; i++)
        fprintf(out, "note: %s\n", result->trace->notes.items[i]);
}
