// SPDX-License-Identifier: MIT
#include "experiments/capture/capture_servers.h"

#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "experiments/capture/capture_backend.h"
#include "profiler/host/listening_ports.h"

// Adds the ports on which the servers that are named otherwise listen by now.
static int take_found_ports(struct capture *capture, const struct listening *found, size_t count,
                            struct error *err)
{
    struct capture_options *o = &capture->options;
    for (size_t i = 0; i < count; i++) {
        bool known = false;
        for (size_t k = 0; k < o->port_count; k++)
            known |= o->ports[k] == found[i].port;
        if (!known && o->port_count == RING_PORTS)
            return error_set(err, ERROR_INPUT, "the servers listen on more than %d ports",
                             RING_PORTS);
        if (!known)
            o->ports[o->port_count++] = found[i].port;
    }
    return 0;
}

int capture_servers_find(struct capture *capture, struct error *err)
{
    struct capture_options *o = &capture->options;
    if (o->pids || o->cgroups || o->units) {
        int result = running_servers_open(o->pids, o->cgroups, o->units, &capture->running, err);
        if (result == 0)
            result = running_servers_look(capture->running, &capture->found, err);
        if (result == 0)
            result = take_found_ports(capture, capture->found.items, capture->found.count, err);
        if (result < 0)
            return result;
    }
    // An experiment is quiet, and may start its servers later.
    char lack[200];
    if (!o->quiet && !o->client_alone && listening_ports_lack(o->port_list, lack, sizeof lack))
        capture_warn(capture, lack);
    if (o->port_count || ((o->no_events || o->client_alone) && !o->shim))
        return 0;
    if (!capture->running)
        return error_set(err, ERROR_INPUT,
                         "--port is needed, from 1 to 65535, or --pid, --cgroup or --systemd");
    if (!o->cgroups && !o->units)
        return error_set(err, ERROR_INPUT, "--pid %s: no process of these listens on a TCP port",
                         o->pids);
    capture_warn(capture, "no process of these control groups listens on a TCP port yet");
    return 0;
}

static void tell_backends(struct capture *capture, uint32_t process, uint16_t port)
{
    for (size_t i = 0; i < CAPTURE_BACKENDS_COUNT; i++)
        if (capture->states[i])
            capture_backends[i]->watch(capture->states[i], process, port);
}

// The kernel's record of socket calls is for servers in which the shim does not work: static ones,
// or such as make no calls of libc's.
static void leave_calls_to_shim(struct capture *capture)
{
    uint32_t process = 1;
    while (capture->collector && capture->options.leaves_to_shim && process) {
        process = message_collector_next_serving(capture->collector);
        for (size_t i = 0; process && i < CAPTURE_BACKENDS_COUNT; i++)
            if (capture->states[i])
                capture_backends[i]->leave_calls(capture->states[i], process);
    }
}

// Ports that were given beside those are of this network namespace.
void capture_servers_watch(struct capture *capture)
{
    const struct listening_array *found = &capture->found;
    const struct capture_options *o = &capture->options;
    for (size_t i = 0; capture->running && !capture->found_watched && i < o->given_port_count; i++)
        tell_backends(capture, (uint32_t)getpid(), o->ports[i]);
    for (; capture->found_watched < found->count; capture->found_watched++)
        tell_backends(capture, (uint32_t)found->items[capture->found_watched].process,
                      found->items[capture->found_watched].port);
    size_t count = capture->collector ? message_collector_attached(capture->collector) : 0;
    for (; capture->watched < count; capture->watched++)
        tell_backends(capture, message_collector_process(capture->collector, capture->watched), 0);
    leave_calls_to_shim(capture);
}

int capture_servers_look(struct capture *capture, struct error *err)
{
    enum { LOOK_NS = 500000000 };
    int64_t now = monotonic_ns();
    if (!capture->running || now - capture->looked_ns < LOOK_NS)
        return 0;
    capture->looked_ns = now;
    size_t before = capture->found.count;
    int result = running_servers_look(capture->running, &capture->found, err);
    capture_servers_watch(capture);
    for (size_t i = before; i < capture->found.count && result == 0; i++)
        result = capture_lines_say(&capture->lines,
                                   json_pack("{s:{s:i, s:i}}", "found", "port",
                                             (int)capture->found.items[i].port, "process",
                                             (int)capture->found.items[i].process),
                                   err);
    return result;
}

void capture_servers_name_ports(struct capture *capture)
{
    struct error too_many;
    take_found_ports(capture, capture->found.items, capture->found.count, &too_many);
}
