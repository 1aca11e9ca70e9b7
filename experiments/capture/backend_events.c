// SPDX-License-Identifier: MIT
//
// The `events` backend of `taillight capture`: BPF programs that note what the kernel did
// (profiler/events_capture.h).
#include <stdio.h>

#include "experiments/capture/capture_backend.h"
#include "profiler/events_capture.h"

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
        if (states[i].attached)
            continue;
        snprintf(text, sizeof text, "no %s: %s", event_programs[i].gives, states[i].reason);
        capture_warn(capture, text);
    }
}

static int events_start(struct capture *capture, bool needed, void **state, struct error *err)
{
    struct events_capture_settings settings = {.cores = capture->options.cores,
                                               .ports = capture->options.ports,
                                               .port_count = capture->options.port_count,
                                               .ring_bytes = capture->options.buffer_bytes};
    struct events_capture *events = NULL;
    (void)needed;
    if (CPU_COUNT(&settings.cores)) // else all
        CPU_OR(&settings.cores, &settings.cores, &capture->options.client_cores);
    if (capture->options.no_events)
        return 0;
    int result = events_capture_open(&settings, &events, err);
    if (result == 0) {
        *state = events;
        warn_of_missing_programs(capture, events);
    }
    return result;
}

static int events_poll(void *state, struct error *err)
{
    (void)err;
    events_capture_poll(state);
    return 0;
}

static int events_stop(struct capture *capture, void *state, json_t *dropped, json_t **document,
                       struct error *err)
{
    int result = events_capture_stop(state, capture->options.out, document, err);
    if (result < 0)
        return result;
    json_object_set(dropped, "events", json_object_get(*document, "dropped"));
    json_object_set(dropped, "sockets", json_object_get(*document, "sockets_dropped"));
    return 0;
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

static void events_free(void *state)
{
    events_capture_free(state);
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
    .disable = backend_needs_no_disabling,
    .stop = events_stop,
    .free = events_free,
    .add_followed = events_add_followed,
    .follow = events_follow,
    .take_snapshot = backend_takes_no_snapshot,
};
