// SPDX-License-Identifier: MIT
#include "analysis/pt/pt_recording.h"
#include "analysis/pt/pt_result.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/units.h"

// --- functions over all streams ----------------------------------------------------------------

struct top_functions ARRAY_OF(struct pt_function_total);

static int by_identity(const void *a, const void *b)
{
    const struct pt_function_total *x = a, *y = b;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    if (x->known != y->known)
        return x->known < y->known ? -1 : 1;
    return (x->function > y->function) - (x->function < y->function);
}

static int by_self(const void *a, const void *b)
{
    const struct pt_function_total *x = a, *y = b;
    if (x->self != y->self)
        return x->self < y->self ? 1 : -1;
    return by_identity(a, b);
}

// The functions of all streams, most time of their own first. Streams with and without time do not
// mix in one recording.
static struct top_functions top_functions(const struct pt_result *result)
{
    struct top_functions all = {0};
    for (size_t s = 0; s < result->trace->streams.count; s++) {
        const struct pt_function_totals *totals = &result->streams[s].functions;
        for (size_t i = 0; i < totals->capacity; i++)
            if (totals->items[i].used && array_push(&all, totals->items[i]) < 0)
                return all;
    }
    if (all.count == 0)
        return all;
    qsort(all.items, all.count, sizeof *all.items, by_identity);
    size_t kept = 0;
    for (size_t i = 1; i < all.count; i++) {
        struct pt_function_total *to = &all.items[kept], *from = &all.items[i];
        if (by_identity(to, from) == 0) {
            to->calls += from->calls;
            to->total += from->total;
            to->self += from->self;
        } else {
            all.items[++kept] = *from;
        }
    }
    all.count = kept + 1;
    qsort(all.items, all.count, sizeof *all.items, by_self);
    return all;
}

static const char *function_name(const struct pt_result *result,
                                 const struct pt_function_total *total, char *out, size_t bytes)
{
    static const char *const untraced[] = {"[not traced]", "[kernel: syscall]",
                                           "[kernel: interrupt or fault]", "[not traced]"};
    const struct pt_symbols *symbols = result->trace->symbols;
    if (total->kind == PT_SPAN_UNTRACED)
        return untraced[total->function <= PT_UNTRACED_OTHER ? total->function : 0];
    if (!total->known && total->function)
        snprintf(out, bytes, "0x%" PRIx64, total->function);
    else if (total->known && symbols)
        symbols->name(symbols->context, total->function, out, bytes);
    else
        snprintf(out, bytes, "[unknown]");
    return out;
}

static const char *task_name(const struct pt_trace *trace, uint32_t task)
{
    for (size_t i = 0; i < trace->tasks.count; i++)
        if (trace->tasks.items[i].task == task)
            return trace->tasks.items[i].name;
    return task == 0 ? "idle" : "";
}

// --- JSON ----------------------------------------------------------------------------------------

static json_t *whole(uint64_t value)
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

static void set_counts(json_t *out, uint64_t bytes, uint64_t packets, uint64_t psbs,
                       const struct pt_walk_counts *counts)
{
    json_object_set_new(out, "bytes", whole(bytes));
    json_object_set_new(out, "packets", whole(packets));
    json_object_set_new(out, "psbs", whole(psbs));
    json_object_set_new(out, "instructions", whole(counts->instructions));
    json_object_set_new(out, "blocks", whole(counts->blocks));
    json_object_set_new(out, "calls", whole(counts->calls));
    json_object_set_new(out, "returns", whole(counts->returns));
    json_object_set_new(out, "interrupts", whole(counts->interrupts));
    json_object_set_new(out, "syscalls", whole(counts->syscalls));
    json_object_set_new(out, "overflows", whole(counts->overflows));
    json_object_set_new(out, "followed_bytes", whole(counts->followed_bytes));
}

static json_t *packets_json(const struct pt_packets *packets)
{
    json_t *out = json_object();
    for (int kind = 0; kind < PT_KINDS; kind++)
        if (packets->count[kind])
            json_object_set_new(out, pt_kind_name((enum pt_kind)kind), whole(packets->count[kind]));
    return out;
}

static json_t *flaws_json(const struct pt_packets *packets)
{
    json_t *out = json_array();
    for (size_t i = 0; i < packets->flaws.count && i < PT_ERRORS_KEPT; i++)
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
        json_array_append_new(
            out, json_pack("{s:I, s:s, s:I, s:f}", "thread", (json_int_t)task->task, "name",
                           task_name(result->trace, task->task), "runs", (json_int_t)task->runs,
                           "ns", pt_trace_duration_ns(result->trace, task->time)));
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
    json_object_set_new(out, "begin", whole(pt_trace_ns(trace, stream->first)));
    json_object_set_new(out, "end", whole(pt_trace_ns(trace, stream->last)));
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
        json_object_set_new(out, "cpu", whole(source->cpu));
    set_counts(out, source->packets.bytes, source->packets.packets,
               source->packets.count[PT_KIND_PSB], &stream->counts);
    json_object_set_new(out, "errors", errors_json(stream));
    json_object_set_new(out, "error_count", whole(stream->error_count));
    json_object_set_new(out, "spans", whole(stream->calls.spans));
    json_object_set_new(out, "flaws", flaws_json(&source->packets));
    json_object_set_new(out, "skipped_bytes", whole(source->packets.skipped));
    json_object_set_new(out, "packet_kinds", packets_json(&source->packets));
    json_object_set_new(out, "tail_calls", whole(stream->calls.tail_calls));
    json_object_set_new(out, "unwound", whole(stream->calls.unwound));
    json_object_set_new(out, "unmatched_returns", whole(stream->calls.unmatched));
    json_object_set_new(out, "stack_resets", whole(stream->calls.resets));
    json_object_set_new(out, "gaps", whole(stream->calls.gaps));
    json_object_set_new(out, "switches", whole(source->switches.count));
    json_object_set_new(out, "tasks", tasks_json(result, stream));
    set_time(out, result, index);
    return out;
}

static json_t *functions_json(const struct pt_result *result, size_t top)
{
    struct top_functions functions = top_functions(result);
    json_t *out = json_array();
    for (size_t i = 0; i < functions.count && i < top; i++) {
        const struct pt_function_total *item = &functions.items[i];
        char name[512];
        json_array_append_new(out,
                              json_pack("{s:s, s:I, s:f, s:f}", "name",
                                        function_name(result, item, name, sizeof name), "calls",
                                        (json_int_t)item->calls, "total",
                                        pt_trace_duration_ns(result->trace, item->total), "self",
                                        pt_trace_duration_ns(result->trace, item->self)));
    }
    array_free(&functions);
    return out;
}

json_t *pt_result_json(const struct pt_result *result, size_t top)
{
    json_t *streams = json_array(), *total = json_object(), *notes = json_array();
    const struct pt_trace *trace = result->trace;
    struct pt_walk_counts sum = {0};
    uint64_t bytes = 0, packets = 0, psbs = 0, errors = 0, spans = 0;
    for (size_t i = 0; i < trace->streams.count; i++) {
        const struct pt_packets *scanned = &trace->streams.items[i]->packets;
        json_array_append_new(streams, stream_json(result, i));
        pt_walk_counts_add(&sum, &result->streams[i].counts);
        bytes += scanned->bytes;
        packets += scanned->packets;
        psbs += scanned->count[PT_KIND_PSB];
        errors += result->streams[i].error_count;
        spans += result->streams[i].calls.spans;
    }
    set_counts(total, bytes, packets, psbs, &sum);
    json_object_set_new(total, "errors", whole(errors));
    json_object_set_new(total, "spans", whole(spans));
    for (size_t i = 0; i < trace->notes.count; i++)
        json_array_append_new(notes, json_string(trace->notes.items[i]));
    json_t *out =
        json_pack("{s:o, s:o, s:o, s:o, s:f}", "streams", streams, "total", total, "functions",
                  functions_json(result, top), "notes", notes, "seconds", result->seconds);
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

static void print_stream(const struct pt_result *result, size_t index, FILE *out)
{
    const struct pt_trace_stream *source = result->trace->streams.items[index];
    const struct pt_stream_result *stream = &result->streams[index];
    char length[32], covered[32], lost[32], granularity[32];
    fprintf(out, "%s: %" PRIu64 " bytes, %" PRIu64 " packets, %zu PSBs\n", source->name,
            source->packets.bytes, source->packets.packets, source->packets.count[PT_KIND_PSB]);
    fprintf(out,
            "  %" PRIu64 " instructions, %" PRIu64 " calls, %" PRIu64 " returns, %" PRIu64
            " interrupts, %" PRIu64 " spans\n",
            stream->counts.instructions, stream->counts.calls, stream->counts.returns,
            stream->counts.interrupts, stream->calls.spans);
    if (source->timed)
        fprintf(out, "  %s long, %s decoded, %s lost; times known to %s\n",
                format_amount(result, true, stream->last - stream->first, length, sizeof length),
                format_amount(result, true, stream->calls.covered_time, covered, sizeof covered),
                format_amount(result, true, stream->calls.gap_time, lost, sizeof lost),
                format_amount(result, true, pt_calls_granularity(&stream->calls), granularity,
                              sizeof granularity));
    else
        fprintf(out, "  without time: lengths are counted in instructions\n");
    for (size_t i = 0; i < stream->errors.count && i < 10; i++)
        fprintf(out, "  decode error at offset %" PRIu64 ": %s (0x%" PRIx64 ")\n",
                stream->errors.items[i].offset, stream->errors.items[i].what,
                stream->errors.items[i].ip);
    if (stream->error_count > 10)
        fprintf(out, "  and %" PRIu64 " more decode errors\n", stream->error_count - 10);
    for (size_t i = 0; i < stream->tasks.count; i++) {
        const struct pt_task_total *task = &stream->tasks.items[i];
        fprintf(out, "  %s thread %" PRIu32 " %s: %" PRIu64 " runs\n",
                format_amount(result, true, task->time, length, sizeof length), task->task,
                task_name(result->trace, task->task), task->runs);
    }
}

void pt_result_print(const struct pt_result *result, size_t top, FILE *out)
{
    bool timed = false;
    for (size_t i = 0; i < result->trace->streams.count; i++) {
        print_stream(result, i, out);
        timed |= result->trace->streams.items[i]->timed;
    }
    struct top_functions functions = top_functions(result);
    if (functions.count)
        fprintf(out, "\n%14s %14s %10s  function\n", "of its own", "in all", "calls");
    for (size_t i = 0; i < functions.count && i < top; i++) {
        const struct pt_function_total *item = &functions.items[i];
        char self[32], total[32], name[512];
        fprintf(out, "%14s %14s %10" PRIu64 "  %s\n",
                format_amount(result, timed, item->self, self, sizeof self),
                format_amount(result, timed, item->total, total, sizeof total), item->calls,
                function_name(result, item, name, sizeof name));
    }
    array_free(&functions);
    for (size_t i = 0; i < result->trace->notes.count; i++)
        fprintf(out, "note: %s\n", result->trace->notes.items[i]);
}
