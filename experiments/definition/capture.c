// SPDX-License-Identifier: MIT
//
// The keys of `capture`. Which of them are for some backends only is in the backends' rows.
#include "experiments/capture/capture_backend.h"
#include "experiments/definition/tables.h"

#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "profiler/trace/processor_trace.h"

static const char *const *choice_keys(unsigned index)
{
    static const char *const none[] = {NULL};
    const struct capture_backend *backend = capture_choice_backend(index);
    return !capture_choice_name(index) ? NULL : backend && backend->keys ? backend->keys : none;
}

int read_stretch(const struct binding *binding, const struct node *node, const char *key,
                 uint64_t most_ns, struct experiment_window *window)
{
    char from[64];
    struct error inner;
    const char *text = node_text(node), *dash = strchr(text, '-');
    if (!dash || (size_t)(dash - text) >= sizeof from)
        return document_error(binding->document, node, binding->err,
                              "%s: `%s` is not a window such as `0s-5s`", key, text);
    snprintf(from, sizeof from, "%.*s", (int)(dash - text), text);
    if (units_parse_duration_ns(from, &window->from_ns, &inner) < 0 ||
        units_parse_duration_ns(dash + 1, &window->to_ns, &inner) < 0)
        return document_error(binding->document, node, binding->err,
                              "%s: `%s` is not a window such as `0s-5s`: %s", key, text,
                              inner.text);
    if (window->from_ns >= window->to_ns || window->to_ns > most_ns)
        return document_error(binding->document, node, binding->err,
                              "%s: `%s` is not a stretch of the load's duration", key, text);
    return 0;
}

// "trace when a reply takes longer": ">2ms", of the latency from the intended time.
static int check_snapshot(const struct binding *binding, const struct node *node, void *object)
{
    struct experiment_trace *trace = object;
    const struct experiment *experiment = ((const struct reading *)binding->context)->experiment;
    const struct node *on = node_child(node, "on");
    struct error inner;
    const char *text = node_text(on);
    if (text[0] != '>' ||
        units_parse_duration_ns(text + 1 + strspn(text + 1, " "), &trace->slow_ns, &inner) < 0 ||
        trace->slow_ns == 0)
        return document_error(binding->document, on, binding->err,
                              "on: `%s` is not a latency to exceed, such as `'>2ms'`", text);
    if (experiment->load.agents.count)
        return document_error(binding->document, on, binding->err,
                              "on: a load with agents does not tell which replies are slow while "
                              "it goes on; load from one host");
    return 0;
}

static const struct field snapshot_rows[] = {
    {"on", FIELD_TEXT, .needed = "`on` is missing, e.g. `snapshot: {on: '>2ms'}`",
     .help = "when a reply takes longer than that since its intended time: '>2ms'"},
    {"keep", FIELD_COUNT, "10", .low = "1", .high = "1000", INTO(struct experiment_trace, keep),
     .help = "so many at most; more are counted, not taken"},
};
static const struct fields snapshot_fields =
    FIELDS(snapshot_rows, struct experiment_trace, .check = check_snapshot);

static int read_trace_window(const struct binding *binding, const struct node *node,
                             struct experiment *experiment)
{
    struct experiment_trace *trace = &experiment->trace;
    const struct node *window = node_child(node, "window"),
                      *duration = node_child(node, "duration");
    if (window && duration)
        return document_error(binding->document, duration, binding->err,
                              "duration: `window` says it already; leave one of them out");
    if (duration && trace->window.to_ns > experiment->load.duration_ns)
        return document_error(binding->document, duration, binding->err,
                              "duration: it is longer than the load's");
    return window ? read_stretch(binding, window, "window", experiment->load.duration_ns,
                                 &trace->window)
                  : 0;
}

static int check_capture(const struct binding *binding, const struct node *node, void *object)
{
    struct experiment *experiment = object;
    unsigned other;
    const struct node *buffer = node_child(node, "buffer");
    const struct node *key = find_key_of_another(node, choice_keys, experiment->backend, &other);
    if (key)
        return document_error(binding->document, key, binding->err, "`%s` is for `backend: %s`",
                              node_text(key), capture_choice_name(other));
    uint64_t bytes = experiment->buffer_bytes;
    if (capture_traces(experiment->backend) && bytes & (bytes - 1))
        return document_error(binding->document, buffer, binding->err,
                              "buffer: of a trace it is a power of two, such as 64MiB");
    return read_trace_window(binding, node, experiment);
}

static const struct field capture_rows[] = {
    {"backend", FIELD_WORD, "auto", .word = capture_choice_name, INTO(struct experiment, backend),
     .help = "auto: kernel events and Intel PT (1 GiB of it at most) where this machine can, else "
             "what is left, said; none: nothing; the others: that or fail (samples are taken "
             "beside kernel events)"},
    {"optional", FIELD_SWITCH, "false", INTO(struct experiment, capture_optional),
     .help = "of a matrix: where this machine cannot, leave the configuration out, with the "
             "reason"},
    {"buffer", FIELD_BYTES, .low = "64KiB", .otherwise = "32MiB",
     INTO(struct experiment, buffer_bytes),
     .help = "for kernel events, per core; of backend intel_pt for the trace, per core, a power of "
             "two"},
    {"calls", FIELD_WORD, "auto", .word = capture_calls_name,
     INTO(struct experiment, capture_calls),
     .help = "socket calls from the kernel's events: auto: of servers without the shim; kernel: of "
             "all, beside the shim's; none"},
    {"commands", FIELD_SWITCH, "false", INTO(struct experiment, capture_commands),
     .help = "with the shim: note with which command, of a fixed list, begins what the servers "
             "receive, and nothing else of it, so that other clients' requests have a name"},
    {"nic", FIELD_TEXT, .otherwise = "with `load: {stamps: hw}` the server's host's `nic`",
     INTO(struct experiment, capture_nic),
     .help = "the server's card by whose clock messages arrive, M(n), where it stamps what it "
             "receives; else the kernel's: what the card holds back is then seen"},
    {"shim_memory", FIELD_BYTES, .low = "64KiB", .high = "1GiB", .otherwise = "64MiB",
     INTO(struct experiment, shim_memory_bytes),
     .help = "for the shim's records, in all servers together; calls beyond it are lost"},
    {"detail", FIELD_WORD, "normal", .word = processor_trace_detail_name,
     INTO(struct experiment, trace.detail),
     .help = "of intel_pt: how fine time is known, against how much trace it makes"},
    {"snapshot", FIELD_GROUP, .fields = &snapshot_fields, INTO(struct experiment, trace),
     .otherwise = "all of it is kept",
     .help = "of intel_pt: keep what the buffers hold, and only when a reply is slow"},
    {"cores", FIELD_TEXTS, .otherwise = "the server's",
     .help = "of intel_pt: of the server's, those to trace: [2-3]"},
    {"window", FIELD_TEXT, .otherwise = "all of the load",
     .help = "of intel_pt: trace during this part of the load: 2s-5s"},
    {"duration", FIELD_DURATION, .otherwise = "all of the load",
     INTO(struct experiment, trace.window.to_ns),
     .help = "of intel_pt: trace so long from the load's begin"},
    {"bytes", FIELD_BYTES, .low = "1MiB", .otherwise = "as the disk has room",
     INTO(struct experiment, trace.most_bytes),
     .help = "of intel_pt: end the trace when it has so many"},
};
const struct fields capture_fields =
    FIELDS(capture_rows, struct experiment, .check = check_capture);

int read_trace_cores(const struct binding *binding, const struct node *capture)
{
    struct experiment *experiment = ((const struct reading *)binding->context)->experiment;
    const size_t server = experiment->servers.items[experiment->load.to].host;
    const struct experiment_host *host = &experiment->hosts.items[server];
    cpu_set_t outside;
    int result = read_cores(binding, capture, host, &experiment->trace.cores);
    if (result < 0)
        return result;
    CPU_AND(&outside, &experiment->trace.cores, &host->cores);
    CPU_XOR(&outside, &outside, &experiment->trace.cores);
    return CPU_COUNT(&outside) == 0
               ? 0
               : document_error(binding->document, node_child(capture, "cores"), binding->err,
                                "cores: not all of them are the host `%s`'s, whose cores are "
                                "recorded",
                                host->name);
}
