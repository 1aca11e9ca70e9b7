// SPDX-License-Identifier: MIT
//
// The `events` backend of `taillight capture`: BPF programs that note what the kernel did
// (profiler/events/events_capture.h).
#include <stdio.h>

#include "experiments/capture/capture_backend.h"
#include "profiler/events/events_capture.h"
#include "base/text.h"

static int events_check(const struct capture_options *options, bool chosen, struct error *err)
{
    return chosen && options->no_events
               ? error_set(err, ERROR_INPUT, "events are both asked for and excluded")
               : 0;
}

static void warn_of_missing_programs(struct capture *capture, const struct events_capture *events)
{
    char text[600];
    const struct event_program_state *states = events_capture_programs(events);
    for (size_t i = 0; i < EVENT_PROGRAMS; i++) {
        if (states[i].attached || !states[i].asked)
            continue;
        snprintf(text, sizeof text, "no %s: %s", event_programs[i].gives, states[i].reason);
        capture_warn(capture, text);
    }
}

static void warn_of_missing_stamps(struct capture *capture, const struct events_capture *events)
{
    char text[600];
    const char *lack = events_capture_nic_lack(events);
    if (!lack)
        return;
    snprintf(text, sizeof text, "M(n) is the kernel's, not the NIC's: %s", lack);
    capture_warn(capture, text);
}

static unsigned groups_of(const struct capture_options *options)
{
    return options->client_alone
               ? EVENT_GROUP_SCHEDULER | EVENT_GROUP_INTERRUPTS // all that tells what a core did
               : EVENT_GROUPS_DEFAULT | (options->kernel_calls ? EVENT_GROUP_CALLS : 0) |
                     (options->datagrams ? EVENT_GROUP_DATAGRAMS : 0);
}

static int events_start(struct capture *capture, bool needed, void **state, struct error *err)
{
    struct events_capture_settings settings = {.cores = capture->options.cores,
                                               .ports = capture->options.ports,
                                               .port_count = capture->options.port_count,
                                               .ring_bytes = capture->options.buffer_bytes,
                                               .nic = capture->options.nic,
                                               .grammar = capture->options.grammar,
                                               .budget = capture->options.budget,
                                               .segment_ns = capture->options.segment_ns,
                                               .groups = groups_of(&capture->options)};
    struct events_capture *events = NULL;
    (void)needed;
    if (CPU_COUNT(&settings.cores) || capture->options.client_alone) // else all
        CPU_OR(&settings.cores, &settings.cores, &capture->options.client_cores);
    if (capture->options.no_events)
        return 0;
    int result = events_capture_open(&settings, &events, err);
    if (result == 0) {
        *state = events;
        warn_of_missing_programs(capture, events);
        warn_of_missing_stamps(capture, events);
    }
    return result;
}

static int events_poll(void *state, struct error *err)
{
    (void)err;
    events_capture_poll(state);
    return 0;
}

// What the capture's own limits cost.
static void warn_of_limits(struct capture *capture, const json_t *document)
{
    char text[200];
    json_int_t unknown = json_integer_value(json_object_get(document, "sockets_dropped"));
    if (unknown > 0) {
        snprintf(text, sizeof text,
                 "%s connections found no room among those that the capture of kernel events knows "
                 "at once: their requests have no stamps of the kernel's",
                 TEXT_COUNT(unknown));
        capture_warn(capture, text);
    }
    const json_t *collections = json_object_get(document, "collections");
    if (json_integer_value(json_object_get(collections, "refused")) > 0) {
        snprintf(text, sizeof text, "what %lld processes did for themselves was not seen: %.120s",
                 (long long)json_integer_value(json_object_get(collections, "refused")),
                 json_string_value(json_object_get(collections, "why")) ?: "nobody says why");
        capture_warn(capture, text);
    }
    if (json_is_true(json_object_get(document, "memory_full")))
        capture_warn(capture, "the memory for kernel events was full, what came later was lost: "
                              "capture for a shorter time");
}

static uint64_t events_kept(const void *state)
{
    return events_capture_kept(state);
}

static uint64_t events_ring_bytes(const void *state)
{
    return events_capture_ring_bytes(state);
}

static int events_cut(void *state, const char *out, unsigned number,
                      struct capture_segment *segment, struct error *err)
{
    struct events_segment recorded;
    int result = events_capture_cut(state, out, number, &recorded, err);
    segment->from_ns = recorded.from_ns ? recorded.from_ns : segment->from_ns;
    segment->until_ns = recorded.until_ns ? recorded.until_ns : segment->until_ns;
    segment->rests = recorded.until_ns != 0;
    segment->taken = recorded.taken;
    return result;
}

static json_t *events_so_far(void *state, json_t *dropped)
{
    json_t *document = events_capture_so_far(state);
    json_object_set(dropped, "events", json_object_get(document, "dropped"));
    json_object_set(dropped, "sockets", json_object_get(document, "sockets_dropped"));
    return document;
}

static int events_stop(struct capture *capture, void *state, json_t *dropped, json_t **document,
                       struct error *err)
{
    const char *out = capture->segments.stopped ? NULL : capture->options.out;
    int result = events_capture_stop(state, out, document, err);
    if (result < 0)
        return result;
    warn_of_limits(capture, *document);
    json_object_set(dropped, "events", json_object_get(*document, "dropped"));
    json_object_set(dropped, "sockets", json_object_get(*document, "sockets_dropped"));
    return 0;
}

static void events_charge(void *state, uint64_t ns)
{
    events_capture_charge(state, ns);
}

static void events_add_followed(void *state, cpu_set_t *cores)
{
    cpu_set_t followed;
    events_capture_followed(state, &followed);
    CPU_OR(cores, cores, &followed);
}

// Those are the cores that it found itself.
static int events_follow(void *state, const cpu_set_t *cores, struct error *err)
{
    (void)state;
    (void)cores;
    (void)err;
    return 1;
}

static void events_watch(void *state, uint32_t process, uint16_t port)
{
    events_capture_watch_process(state, process, port);
}

static uint32_t events_thread_here(void *state, uint64_t namespace, uint32_t inside)
{
    return events_capture_thread(state, namespace, inside);
}

static void events_free(void *state)
{
    events_capture_free(state);
}

static void events_leave_calls(void *state, uint32_t process)
{
    events_capture_leave_calls(state, process);
}

const struct capture_backend backend_events = {
    .name = "events",
    .help = "what the kernel did, by BPF programs",
    .lack = "no kernel events",
    .files = "events.tlog, sockets.tlog",
    .is_auto = true,
    .is_always = true,
    .examine = doctor_check_events,
    .check = events_check,
    .start = events_start,
    .poll = events_poll,
    .kept = events_kept,
    .ring_bytes = events_ring_bytes,
    .cut = events_cut,
    .so_far = events_so_far,
    .disable = backend_needs_no_disabling,
    .stop = events_stop,
    .free = events_free,
    .add_followed = events_add_followed,
    .follow = events_follow,
    .watch = events_watch,
    .leave_calls = events_leave_calls,
    .thread_here = events_thread_here,
    .turn = backend_records_always,
    .charge = events_charge,
    .take_snapshot = backend_takes_no_snapshot,
};
