// SPDX-License-Identifier: MIT
//
// The `intel_pt` backend of `taillight capture`: perf records the processor's trace into
// <out>/perf.data while the other backends record what they can, and what of the trace was lost is
// counted at the end.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "analysis/perf/perf_data.h"
#include "base/clock.h"
#include "base/text.h"
#include "experiments/capture/capture_backend.h"
#include "experiments/capture/recording_end.h"
#include "experiments/capture/trace_bounds.h"
#include "experiments/capture/trace_code.h"
#include "experiments/common/run_folder.h"
#include "profiler/trace/bpf_code_log.h"
#include "profiler/trace/bpf_code_recorder.h"
#include "profiler/trace/perf_recorder.h"
#include "profiler/trace/processor_trace.h"

struct trace {
    struct perf_recorder recorder;
    struct capture *capture;
    char event[256], path[RUN_PATH_BYTES + 32]; // path: of the recording
    enum processor_trace_detail detail;
    cpu_set_t cores; // traced; empty: all
    bool kcore;
    bool absent; // this host has no processor trace at all
    struct trace_bounds bounds;
    struct bpf_code_recorder bpf_code;
    bool takes_bpf_code;
    bool on; // perf records
    struct recording_end end;
    int64_t on_since_ns; // CLOCK_MONOTONIC
    uint64_t on_ns;      // before that
    unsigned refused;    // snapshots beyond those that are kept
};

static const uint64_t default_buffer = 32 << 20, least_buffer = 8 << 10;
static const char perf_data_name[] = "perf.data";

static int intel_pt_check(const struct capture_options *whole, bool chosen, struct error *err)
{
    const struct capture_trace_options *options = &whole->trace;
    (void)chosen;
    enum processor_trace_detail detail;
    uint64_t bytes = options->buffer_bytes;
    if (options->detail && !processor_trace_parse_detail(options->detail, &detail))
        return error_set(err, ERROR_INPUT, "--pt-detail: \"%s\" is not light, normal or fine",
                         options->detail);
    if (options->detail && options->event)
        return error_set(err, ERROR_INPUT, "--pt-detail and --pt-event exclude each other");
    if (bytes && (bytes < least_buffer || bytes & (bytes - 1)))
        return error_set(err, ERROR_INPUT,
                         "--pt-buffer: not a power of two from 8KiB on, such as 64MiB");
    if (options->pids && options->pids[strspn(options->pids, "0123456789,")])
        return error_set(err, ERROR_INPUT, "--pid: \"%s\" is not a list of process numbers",
                         options->pids);
    if (options->per_thread && !options->pids)
        return error_set(err, ERROR_INPUT, "--per-thread needs --pid");
    if (options->keep && !options->snapshot)
        return error_set(err, ERROR_INPUT, "--pt-keep needs --snapshot");
    cpu_set_t both;
    CPU_AND(&both, &options->cores, &whole->cores);
    if (CPU_COUNT(&whole->cores) && CPU_COUNT(&both) != CPU_COUNT(&options->cores))
        return error_set(err, ERROR_INPUT, "--pt-cores: not all of them are recorded (--cores)");
    return 0;
}

// Chooses the event to record and the perf to record it with; an error where Intel PT is asked for
// and cannot be had.
static int choose_event(struct trace *trace, const struct capture_options *whole,
                        struct processor_trace *found, struct error *err)
{
    const struct capture_trace_options *options = &whole->trace;
    bool other = options->event && strncmp(options->event, "intel_pt", 8) != 0;
    processor_trace_find("", whole->perf, found);
    trace->absent = found->obstacle == PROCESSOR_TRACE_NO_CPU;
    if (found->obstacle != PROCESSOR_TRACE_READY && !other)
        return error_set(err, ERROR_FAILED, "cannot record Intel PT: %s; needed: %s", found->reason,
                         found->how);
    if (options->detail)
        processor_trace_parse_detail(options->detail, &trace->detail);
    if (options->event)
        snprintf(trace->event, sizeof trace->event, "%s", options->event);
    else
        processor_trace_event(found, trace->detail, trace->event, sizeof trace->event);
    return 0;
}

// --- bounds --------------------------------------------------------------------------------------

static unsigned core_count(const struct trace *trace)
{
    return CPU_COUNT(&trace->cores) ? (unsigned)CPU_COUNT(&trace->cores)
                                    : (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
}

// Of perf's buffer for the trace of a core; 0: the event has none.
static uint64_t aux_bytes(const struct trace *trace, const struct capture_trace_options *options)
{
    if (options->buffer_bytes)
        return options->buffer_bytes;
    return strncmp(trace->event, "intel_pt", 8) == 0 ? default_buffer : 0;
}

// The kernel wakes perf when half of a buffer is full (Linux, kernel/events/ring_buffer.c,
// rb_alloc_aux); a snapshot is all of it.
static uint64_t held_bytes(const struct trace *trace, const struct capture_trace_options *options)
{
    return aux_bytes(trace, options) / (options->snapshot ? 1 : 2) * core_count(trace);
}

// Chooses how much may be recorded, and checks that what is expected of one that was asked for
// fits.
static int choose_bounds(struct trace *trace, const struct capture *capture, bool needed,
                         struct error *err)
{
    const struct capture_trace_options *options = &capture->options.trace;
    trace->bounds = (struct trace_bounds){
        .most_bytes = options->most_bytes ? options->most_bytes
                      : needed            ? 0
                                          : (uint64_t)TRACE_AUTO_BYTES,
        // What the other logs keep free, and as much for these.
        .reserve_bytes = 2 * capture->segments.reserve_bytes,
        .held_bytes = held_bytes(trace, options),
        .is_auto = !needed && !options->most_bytes,
    };
    if (!needed || !options->expected_ns || options->snapshot || options->event)
        return 0;
    return trace_bounds_check(
        &trace->bounds,
        trace_expected_bytes(trace->detail, core_count(trace), options->expected_ns),
        free_disk_bytes(capture->options.out), capture->options.out, err);
}

static void take_away(cpu_set_t *from, const cpu_set_t *others)
{
    cpu_set_t both;
    CPU_AND(&both, from, others);
    CPU_XOR(from, from, &both);
}

// Where perf itself runs, which copies all of the trace: never on the cores of the load's client,
// whose stamps would be late; on those of the server only where no others are. Returns NULL: where
// the capture is.
static const cpu_set_t *choose_place(const struct trace *trace, const struct capture *capture,
                                     cpu_set_t *out)
{
    const struct capture_options *o = &capture->options;
    if (CPU_COUNT(&o->client_cores) == 0)
        return NULL;
    *out = o->helper_cores;
    take_away(out, &o->client_cores);
    if (CPU_COUNT(out))
        return out;
    *out = capture->machine;
    take_away(out, &o->client_cores);
    cpu_set_t others = *out;
    take_away(&others, &trace->cores);
    if (CPU_COUNT(&others))
        *out = others;
    return CPU_COUNT(out) ? out : NULL;
}

// --- recording -----------------------------------------------------------------------------------

static void note_off(struct trace *trace)
{
    if (trace->on)
        trace->on_ns += (uint64_t)(monotonic_ns() - trace->on_since_ns);
    trace->on = false;
}

static void turn_off(struct trace *trace)
{
    struct error problem;
    if (trace->on && !trace->end.broken && perf_recorder_disable(&trace->recorder, &problem) < 0)
        recording_end_broken(&trace->end, &problem);
    note_off(trace);
}

static int turn_on(struct trace *trace, struct error *err)
{
    int result = perf_recorder_enable(&trace->recorder, err);
    if (result < 0)
        return result;
    trace->on = true;
    trace->on_since_ns = monotonic_ns();
    return 0;
}

static void warn_of_kcore(const struct trace *trace, struct capture *capture)
{
    if (!trace->kcore && strncmp(trace->event, "intel_pt", 8) == 0)
        capture_warn(capture, "the kernel's code cannot be copied (/proc/kcore cannot be read): "
                              "the trace is decoded with vmlinux, where that is found, and else "
                              "without the kernel's functions");
}

static void leave_bpf_code(struct trace *trace, const struct error *problem)
{
    char text[700];
    trace->takes_bpf_code = false;
    snprintf(text, sizeof text,
             "the code of BPF programs that come while the processor is traced is not collected: "
             "%.500s",
             problem->text);
    capture_warn(trace->capture, text);
}

// perf itself fetches it only where the programs were loaded on a core that it records.
static void begin_bpf_code(struct trace *trace)
{
    char path[sizeof trace->path + sizeof BPF_CODE_LOG_NAME];
    struct error problem;
    snprintf(path, sizeof path, "%s/%s", trace->capture->options.out, BPF_CODE_LOG_NAME);
    trace->takes_bpf_code = true;
    if (bpf_code_recorder_start(&trace->bpf_code, path, &problem) < 0)
        leave_bpf_code(trace, &problem);
}

static int trace_begin(struct trace *trace, struct capture *capture, bool needed, struct error *err)
{
    const struct capture_options *whole = &capture->options;
    const struct capture_trace_options *options = &whole->trace;
    const char *out_dir = whole->out;
    struct processor_trace found;
    char log[sizeof trace->path];
    cpu_set_t place;
    *trace = (struct trace){.recorder.process = {.input = -1, .output = -1},
                            .capture = capture,
                            .detail = PROCESSOR_TRACE_NORMAL,
                            .cores = CPU_COUNT(&options->cores) ? options->cores : capture->cores};
    if (strlen(out_dir) + sizeof perf_data_name + 1 > sizeof trace->path)
        return error_set(err, ERROR_INPUT, "--out: the path is too long");
    int result = choose_event(trace, whole, &found, err);
    if (result == 0)
        result = choose_bounds(trace, capture, needed, err);
    if (result < 0)
        return result;
    snprintf(trace->path, sizeof trace->path, "%s/%s", out_dir, perf_data_name);
    snprintf(log, sizeof log, "%s/perf.log", out_dir);
    trace->kcore = access("/proc/kcore", R_OK) == 0;
    warn_of_kcore(trace, capture);
    struct perf_recorder_settings settings = {
        .perf = found.perf[0] ? found.perf : NULL,
        .event = trace->event,
        .output = trace->path,
        .log = log,
        .cores = trace->cores,
        .pids = options->pids,
        .per_thread = options->per_thread,
        .kcore = trace->kcore,
        .switches = true,
        .snapshot = options->snapshot,
        .aux_bytes = aux_bytes(trace, options),
        .place = choose_place(trace, capture, &place),
        .interrupted = &capture->interrupted,
    };
    begin_bpf_code(trace);
    result = perf_recorder_start(&trace->recorder, &settings, err);
    return result == 0 && !options->waits ? turn_on(trace, err) : result;
}

// --- its end -------------------------------------------------------------------------------------

// Counts what is in the recording; of one that perf did not complete, what is whole.
static void count_recorded(struct trace *trace, json_t *document)
{
    struct perf_data data;
    struct perf_limits counts_only = perf_default_limits;
    struct error problem;
    counts_only.events = 0;
    if (perf_data_open(trace->path, &counts_only, &data, &problem) < 0) {
        recording_end_broken(&trace->end, &problem);
        return;
    }
    json_object_update_new(
        document,
        json_pack("{s:I, s:I, s:I, s:I, s:I}", "streams", (json_int_t)data.streams.count, "bytes",
                  (json_int_t)data.aux_bytes, "truncated", (json_int_t)data.aux_truncated,
                  "lost_records", (json_int_t)data.lost_records, "complaints",
                  (json_int_t)(data.complaint_count - (data.events_over_limit > 0))));
    perf_data_free(&data);
}

// Puts the code beside the recording that will not be where it is read: what processes made
// themselves and, where that is another machine, all of it.
static void collect_code(struct trace *trace, json_t *document)
{
    char text[600];
    struct error problem;
    struct trace_code code;
    const char *folder = trace->capture->options.out;
    if (trace_code_collect(trace->path, folder, trace->capture->options.trace.code,
                           trace->bounds.reserve_bytes, &code, &problem) < 0) {
        snprintf(text, sizeof text, "the code that was traced is not collected: %.500s",
                 problem.text);
        capture_warn(trace->capture, text);
        return;
    }
    json_object_set_new(document, "code",
                        json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "files",
                                  (json_int_t)code.files, "bytes", (json_int_t)code.bytes, "maps",
                                  (json_int_t)code.maps, "made", (json_int_t)code.made, "missing",
                                  (json_int_t)code.missing, "changed", (json_int_t)code.changed,
                                  "unfit", (json_int_t)code.unfit));
    if (!code.example[0])
        return;
    snprintf(text, sizeof text,
             "of the code that was traced %s files are not there any more, %s were replaced since, "
             "and %s had no room on the disk, such as %s: their functions are unknown",
             TEXT_COUNT(code.missing), TEXT_COUNT(code.changed), TEXT_COUNT(code.unfit),
             code.example);
    capture_warn(trace->capture, text);
}

static void end_bpf_code(struct trace *trace, json_t *document)
{
    struct error problem;
    json_t *about = NULL;
    if (trace->takes_bpf_code && bpf_code_recorder_stop(&trace->bpf_code, &about, &problem) < 0)
        leave_bpf_code(trace, &problem);
    if (about)
        json_object_set_new(document, "bpf_code", about);
}

// What there is of the recording, at its end or before. NULL: no memory.
static json_t *trace_document(const struct trace *trace)
{
    uint64_t on_ns = trace->on_ns;
    if (trace->on)
        on_ns += (uint64_t)(monotonic_ns() - trace->on_since_ns);
    return json_pack("{s:s, s:s, s:s, s:b, s:i, s:i, s:I}", "perf_data", perf_data_name, "event",
                     trace->event, "command", trace->recorder.command, "kcore", trace->kcore,
                     "snapshots", (int)trace->recorder.snapshots, "snapshots_refused",
                     (int)trace->refused, "on_ns", (json_int_t)on_ns);
}

static json_t *intel_pt_so_far(void *state, json_t *dropped)
{
    (void)dropped;
    return trace_document(state);
}

static int trace_finish(struct trace *trace, json_t **document, struct error *err)
{
    struct error problem;
    note_off(trace);
    if (!trace->end.broken && perf_recorder_stop(&trace->recorder, &problem) < 0)
        recording_end_broken(&trace->end, &problem);
    *document = trace_document(trace);
    if (!*document)
        return error_set(err, ERROR_FAILED, "out of memory");
    end_bpf_code(trace, *document);
    count_recorded(trace, *document);
    collect_code(trace, *document);
    recording_end_say(&trace->end, *document);
    return 0;
}

static void intel_pt_free(void *state)
{
    struct trace *trace = state;
    perf_recorder_fini(&trace->recorder);
    bpf_code_recorder_fini(&trace->bpf_code);
    free(trace);
}

static int intel_pt_start(struct capture *capture, bool needed, void **state, struct error *err)
{
    struct trace *trace = calloc(1, sizeof *trace);
    if (!trace)
        return error_set(err, ERROR_FAILED, "out of memory");
    int result = trace_begin(trace, capture, needed, err);
    *state = trace;
    if (result < 0 && trace->absent && !needed) {
        intel_pt_free(trace);
        *state = NULL;
        return 0;
    }
    return result;
}

// Ends the recording where it has reached its bounds, or where perf has ended by itself.
static int intel_pt_poll(void *state, struct error *err)
{
    struct trace *trace = state;
    struct error problem;
    char why[TRACE_WHY_BYTES], text[TRACE_WHY_BYTES + 400];
    (void)err;
    if (trace->end.why[0])
        return 0;
    if (trace->takes_bpf_code && bpf_code_recorder_poll(&trace->bpf_code, &problem) < 0)
        leave_bpf_code(trace, &problem);
    if (perf_recorder_check(&trace->recorder, &problem) < 0) {
        recording_end_broken(&trace->end, &problem);
        note_off(trace);
    } else if (trace_bounds_reached(&trace->bounds, trace_recorded_bytes(trace->path),
                                    free_disk_bytes(trace->capture->options.out), why)) {
        turn_off(trace);
        recording_end_early(&trace->end, why);
    }
    if (trace->end.why[0]) {
        snprintf(text, sizeof text, "the trace ends before the capture: %.600s", trace->end.why);
        capture_warn(trace->capture, text);
    }
    return 0;
}

// perf writes its rest while the other backends write theirs.
static int intel_pt_disable(void *state, struct error *err)
{
    struct trace *trace = state;
    struct error problem;
    (void)err;
    turn_off(trace);
    if (!trace->end.broken && perf_recorder_end(&trace->recorder, &problem) < 0)
        recording_end_broken(&trace->end, &problem);
    return 0;
}

static int intel_pt_turn(void *state, bool on, struct error *err)
{
    struct trace *trace = state;
    struct error problem;
    (void)err;
    if (!on)
        turn_off(trace);
    else if (!trace->on && !trace->end.why[0] && turn_on(trace, &problem) < 0)
        recording_end_broken(&trace->end, &problem);
    return 1;
}

// truncated: how often the AUX buffer was full, so that trace was lost.
static int intel_pt_stop(struct capture *capture, void *state, json_t *dropped, json_t **document,
                         struct error *err)
{
    char text[800];
    struct trace *trace = state;
    bool was_ended = trace->end.why[0];
    int result = trace_finish(trace, document, err);
    if (result < 0)
        return result;
    if (trace->end.why[0] && !was_ended) {
        snprintf(text, sizeof text, "the trace may not be whole: %.600s", trace->end.why);
        capture_warn(capture, text);
    }
    json_t *truncated = json_object_get(*document, "truncated");
    if (json_integer_value(truncated)) {
        snprintf(text, sizeof text,
                 "the trace was cut %s times because its buffer was full: --pt-buffer, or "
                 "--pt-detail light",
                 TEXT_COUNT(json_integer_value(truncated)));
        capture_warn(capture, text);
    }
    if (trace->refused) {
        snprintf(text, sizeof text, "%u snapshot%s %s not taken, for %u %s to be kept",
                 trace->refused, text_plural(trace->refused), text_were(trace->refused),
                 trace->recorder.snapshots, text_were(trace->recorder.snapshots));
        capture_warn(capture, text);
    }
    json_object_set(dropped, "trace", truncated);
    return 0;
}

static int intel_pt_take_snapshot(struct capture *capture, void *state, int *number,
                                  struct error *err)
{
    struct trace *trace = state;
    struct error problem;
    const struct capture_trace_options *options = &capture->options.trace;
    (void)err;
    if (!options->snapshot)
        return 0;
    if (options->keep && trace->recorder.snapshots >= options->keep)
        trace->refused++;
    else if (!trace->end.broken && perf_recorder_snapshot(&trace->recorder, &problem) < 0)
        recording_end_broken(&trace->end, &problem);
    *number = (int)trace->recorder.snapshots;
    return 1;
}

const struct capture_backend backend_intel_pt = {
    .name = "intel_pt",
    .help = "every function call, by the processor's trace",
    .lack = "no function calls",
    .files = "perf.data, bpf-code.tlog",
    .keys =
        (const char *const[]){"detail", "snapshot", "cores", "window", "duration", "bytes", NULL},
    .is_auto = true,
    .examine = doctor_check_processor_trace,
    .check = intel_pt_check,
    .start = intel_pt_start,
    .poll = intel_pt_poll,
    .kept = backend_keeps_nothing,
    .ring_bytes = backend_keeps_nothing,
    .cut = backend_needs_no_cut,
    .so_far = intel_pt_so_far,
    .disable = intel_pt_disable,
    .stop = intel_pt_stop,
    .free = intel_pt_free,
    .add_followed = backend_adds_no_core,
    .follow = backend_has_fixed_cores,
    .watch = backend_watches_cores,
    .leave_calls = backend_records_no_calls,
    .thread_here = backend_knows_no_thread,
    .turn = intel_pt_turn,
    .charge = backend_has_no_budget,
    .take_snapshot = intel_pt_take_snapshot,
};
