// SPDX-License-Identifier: MIT
#include "experiments/capture/capture_document.h"

#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "experiments/capture/capture_backend.h"
#include "experiments/common/run_folder.h"

// NULL: none are left.
static const char *cores_besides(const cpu_set_t *all, const cpu_set_t *asked, char *out,
                                 size_t out_bytes)
{
    cpu_set_t both, rest;
    CPU_AND(&both, all, asked);
    CPU_XOR(&rest, all, &both);
    return CPU_COUNT(&rest) ? units_format_cores(&rest, out, out_bytes) : NULL;
}

static json_t *own_processes(const struct capture *capture)
{
    json_t *all = json_array();
    for (size_t i = 0; i < capture->own.count; i++)
        json_array_append_new(all, json_integer(capture->own.items[i]));
    return all;
}

int capture_document_begin(struct capture *capture, struct error *err)
{
    char cores[1024];
    const struct capture_options *o = &capture->options;
    const char *name = "none";
    json_t *ports = json_array();
    for (size_t i = 0; i < o->port_count; i++)
        json_array_append_new(ports, json_integer(o->ports[i]));
    for (size_t i = 0; i < CAPTURE_BACKENDS_COUNT; i++)
        name = capture->states[i] ? capture_backends[i]->name : name;
    json_decref(capture->document);
    capture->document = json_pack(
        "{s:s, s:s, s:o, s:s, s:{}, s:O}", "backend", name, "asked",
        o->backend_name ? o->backend_name : capture_choice_name(0), "ports", ports, "cores",
        CPU_COUNT(&o->cores) ? units_format_cores(&o->cores, cores, sizeof cores) : "all",
        "dropped", "warnings", capture->warnings);
    if (!capture->document)
        return error_set(err, ERROR_FAILED, "out of memory");
    json_object_set_new(capture->document, "kernel_calls",
                        json_string(!o->kernel_calls    ? "none"
                                    : o->leaves_to_shim ? "where the shim does not work"
                                                        : "all"));
    const char *beside = cores_besides(&capture->cores, &o->cores, cores, sizeof cores);
    if (beside)
        json_object_set_new(capture->document, "receive_cores", json_string(beside));
    if (CPU_COUNT(&o->client_cores))
        json_object_set_new(capture->document, "client_cores",
                            json_string(units_format_cores(&o->client_cores, cores, sizeof cores)));
    json_object_set_new(capture->document, "network", network_counters_moved(&capture->network));
    json_object_set_new(capture->document, "firewall", firewall_state_moved(&capture->firewall));
    if (capture->page_fault.whole_ns > 0)
        json_object_set_new(capture->document, "page_fault_ns",
                            json_integer((json_int_t)capture->page_fault.whole_ns));
    if (capture->page_fault.before_ns > 0)
        json_object_set_new(capture->document, "page_fault_before_ns",
                            json_integer((json_int_t)capture->page_fault.before_ns));
    json_t *groups = group_counters_moved(&capture->groups);
    json_object_update(capture->document, groups);
    json_decref(groups);
    if (capture->own.count)
        json_object_set_new(capture->document, "own_processes", own_processes(capture));
    return 0;
}

int capture_document_write_clock(struct capture *capture, struct error *err)
{
    char path[RUN_PATH_BYTES + 32];
    snprintf(path, sizeof path, "%s/clock.tlog", capture->options.out);
    int result = clock_recorder_write(&capture->clock, path, err);
    if (result == 0 && capture->document)
        json_object_set_new(capture->document, "clock",
                            json_pack("{s:I, s:I}", "knots", (json_int_t)capture->clock.knots,
                                      "interval_ns", (json_int_t)capture->clock.interval_ns));
    return result;
}

// What the kernel has counted since the capture began, of what is in the document.
static json_t *counted_so_far(const struct capture *capture, int64_t until_ns)
{
    const json_t *document = capture->document, *firewall = json_object_get(document, "firewall"),
                 *events = json_object_get(document, "events");
    return json_pack("{s:I, s:O*, s:O*, s:O*, s:O*, s:O*}", "until_ns", (json_int_t)until_ns,
                     "network", json_object_get(document, "network"), "quotas",
                     json_object_get(document, "quotas"), "memory_limits",
                     json_object_get(document, "memory_limits"), "segments_dropped",
                     json_object_get(events, "segments_dropped"), "untracked",
                     json_object_get(firewall, "untracked"));
}

// NULL: there is no segment, and nothing is lacking.
static json_t *segments_json(const struct capture *capture, bool ended)
{
    const struct capture_segments *segments = &capture->segments;
    if (segments->kept.count == 0 && !segments->stopped)
        return NULL;
    json_t *ends = json_array(), *sockets = json_array(), *rests = json_array();
    json_t *counted = json_array();
    if (segments->counted)
        json_array_append(counted, segments->counted);
    else
        json_array_append_new(counted, json_pack("{s:i}", "until_ns", 0));
    for (size_t i = 0; i < segments->kept.count; i++) {
        json_array_append_new(ends, json_integer(segments->kept.items[i].until_ns));
        if (segments->kept.items[i].counted)
            json_array_append(counted, segments->kept.items[i].counted);
        if (segments->kept.items[i].sockets)
            json_array_append_new(sockets, json_integer(segments->first + (json_int_t)i));
        if (segments->kept.items[i].rests)
            json_array_append_new(rests, json_integer(segments->first + (json_int_t)i));
    }
    return json_pack("{s:i, s:i, s:I, s:I, s:o, s:o, s:o, s:o, s:b, s:s*}", "first",
                     (int)segments->first, "count", (int)segments->kept.count, "from_ns",
                     (json_int_t)segments->from_ns, "until_ns",
                     (json_int_t)(ended && !segments->stopped ? 0 : segments->until_ns), "ends_ns",
                     ends, "sockets", sockets, "rests", rests, "counted", counted, "ended",
                     ended && !segments->stopped, "why", segments->why[0] ? segments->why : NULL);
}

// Writes capture->document, with its segments, as capture.json.
static int write_document(struct capture *capture, bool ended, struct error *err)
{
    struct run_folder folder;
    json_t *segments = segments_json(capture, ended);
    if (segments)
        json_object_set_new(capture->document, "segments", segments);
    if (strlen(capture->options.out) >= sizeof folder.path - 64)
        return error_set(err, ERROR_INPUT, "--out: the path is too long");
    snprintf(folder.path, sizeof folder.path, "%s", capture->options.out);
    return run_folder_write_json(&folder, "capture.json", capture->document, err);
}

int capture_document_write(struct capture *capture, struct error *err)
{
    return write_document(capture, true, err);
}

// What was lost is on disk with each segment: whoever kills the capture does not hide it.
static int add_figures_so_far(struct capture *capture, struct error *err)
{
    struct message_stats stats;
    json_t *dropped = json_object_get(capture->document, "dropped");
    for (size_t i = 0; i < CAPTURE_BACKENDS_COUNT; i++) {
        json_t *figures =
            capture->states[i] ? capture_backends[i]->so_far(capture->states[i], dropped) : NULL;
        if (figures)
            json_object_set_new(capture->document, capture_backends[i]->name, figures);
    }
    if (!capture->collector)
        return 0;
    int result = message_collector_so_far(capture->collector, &stats, err);
    if (result == 0) {
        json_object_set_new(capture->document, "shim", message_stats_json(&stats));
        json_object_set_new(dropped, "calls", json_integer((json_int_t)stats.dropped));
    }
    message_stats_free(&stats);
    return result;
}

int capture_document_write_so_far(struct capture *capture, struct error *err)
{
    int result = capture_document_begin(capture, err);
    if (result == 0)
        result = add_figures_so_far(capture, err);
    struct capture_segments *segments = &capture->segments;
    if (result == 0 && segments->kept.count && !segments->stopped)
        segments->kept.items[segments->kept.count - 1].counted =
            counted_so_far(capture, segments->until_ns);
    return result == 0 ? write_document(capture, false, err) : result;
}
