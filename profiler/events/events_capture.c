// SPDX-License-Identifier: MIT
#include "profiler/events/events_capture.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/log_file.h"
#include "base/patience.h"
#include "base/units.h"
#include "profiler/events/event_drain.h"
#include "profiler/events/event_kinds.h"
#include "profiler/events/events_programs.h"
#include "profiler/events/events_segments.h"
#include "profiler/events/events_skeleton.h"
#include "profiler/events/nic_arrivals.h"
#include "profiler/events/payload_frames.h"
#include "profiler/events/receive_stamps.h"
#include "profiler/host/running_servers.h"
#include "profiler/events/runtime_probes.h"
#include "profiler/events/segment_drops.h"
#include "profiler/events/watched_namespaces.h"
#include "profiler/events/watched_sockets.h"

struct events_capture {
    struct events_capture_settings settings; // with every default filled in; no ports
    struct events_bpf *programs;             // NULL when stopped
    struct event_program_state states[EVENT_PROGRAMS];
    struct segment_drop_reasons drop_reasons;
    unsigned core_count; // possible cores
    size_t ring_bytes;   // of all rings
    struct event_drain drain;
    uint64_t told_dropped;    // of the dropped records, those in the headers of the cut
    uint64_t sockets_written; // until the last cut
    uint64_t sockets_cut;     // of them, those that have ended since
    int stamps_fd;
    enum receive_stamps_state stamps;
    struct nic_arrivals nic;
    struct error nic_lack; // why there is none, where one is asked for
    struct watched_sockets sockets;
    struct payload_frames *frames; // NULL: the payload is not looked at
    struct events_segments segments;
    struct runtime_probes probes;
};

// --- opening -------------------------------------------------------------------------------------

// The largest power of two of records that fits, but at least a useful number beyond the slack.
static uint32_t ring_records(uint64_t bytes)
{
    uint64_t records = 4 * EVENTS_SLACK;
    while (records * 2 * sizeof(struct event) <= bytes && records < UINT64_C(1) << 30)
        records *= 2;
    return (uint32_t)records;
}

// A core that was not asked for may begin to deliver, and then has as much to record. All of them
// together take no more than OTHERS_BYTES, unless that is less than a sixteenth of a ring for each.
static uint64_t ring_bytes_of(const struct events_capture *capture, unsigned core)
{
    enum { OTHERS_BYTES = 128 << 20 };
    uint64_t bytes = capture->settings.ring_bytes, least = bytes / 16;
    if (CPU_ISSET(core, &capture->settings.cores))
        return bytes;
    uint64_t others = capture->core_count - (unsigned)CPU_COUNT(&capture->settings.cores);
    uint64_t fair = OTHERS_BYTES / others;
    return fair < least ? least : fair < bytes ? fair : bytes;
}

// Sizes the maps and fills in what the programs read, before they are loaded.
static int maps_prepare(struct events_bpf *programs, void *context, struct error *err)
{
    struct events_capture *capture = context;
    bool scheduler = capture->settings.groups & EVENT_GROUP_SCHEDULER;
    uint64_t base = 0;
    for (unsigned core = 0; core < capture->core_count; core++) {
        struct core_ring *ring = &programs->bss->rings[core];
        uint32_t records = ring_records(ring_bytes_of(capture, core));
        ring->base = (uint32_t)base;
        ring->mask = records - 1;
        ring->current = EVENTS_NO_THREAD;
        if (CPU_ISSET(core, &capture->settings.cores))
            ring->watched = scheduler ? CORE_TO_BEGIN : CORE_WATCHED;
        base += records;
    }
    if (base * sizeof(struct event) > UINT64_C(1) << 36 || base > UINT32_MAX)
        return error_set(err, ERROR_INPUT, "the event rings of %u cores would take %llu MiB",
                         capture->core_count,
                         (unsigned long long)(base * sizeof(struct event) >> 20));
    capture->ring_bytes = base * sizeof(struct event);
    programs->rodata->can_follow = scheduler;
    programs->rodata->looks_at_payload = capture->settings.grammar != NULL;
    programs->rodata->nic_stamps = capture->nic.clock >= 0;
    programs->rodata->records_calls = capture->settings.groups & EVENT_GROUP_CALLS;
    memcpy(programs->bss->watched_ports, capture->sockets.ports, sizeof capture->sockets.ports);
    // To attach programs patches the kernel's code, which interrupts the cores: of what is recorded
    // before all of them are there the other half is missing. See events_capture_open().
    programs->bss->resting = 1;
    // Before anything of others is recorded.
    programs->bss->watched_namespaces[0] = watched_namespaces_guess(capture->sockets.ports);
    if (bpf_map__set_max_entries(programs->maps.events, (uint32_t)base) < 0 ||
        bpf_map__set_max_entries(programs->maps.sockets, capture->settings.connections) < 0 ||
        bpf_map__set_max_entries(programs->maps.streams, 3 * capture->settings.connections) < 0 ||
        bpf_map__set_max_entries(programs->maps.payload, capture->settings.grammar
                                                             ? (uint32_t)PAYLOAD_RING_BYTES
                                                             : (uint32_t)getpagesize()) < 0)
        return error_set_errno(err, ERROR_FAILED, "cannot size the BPF maps");
    return 0;
}

static int fill_defaults(struct events_capture *capture, struct error *err)
{
    struct events_capture_settings *settings = &capture->settings;
    int cores = libbpf_num_possible_cpus();
    if (cores <= 0 || cores > EVENTS_MAX_CORES)
        return error_set(err, ERROR_FAILED, "this host has %d possible cores; %d can be captured",
                         cores, EVENTS_MAX_CORES);
    capture->core_count = (unsigned)cores;
    if (CPU_COUNT(&settings->cores) == 0)
        for (unsigned core = 0; core < capture->core_count; core++)
            CPU_SET(core, &settings->cores);
    for (unsigned core = capture->core_count; core < CPU_SETSIZE; core++)
        if (CPU_ISSET(core, &settings->cores))
            return error_set(err, ERROR_INPUT,
                             "core %u cannot be captured: this host has cores 0-%d", core,
                             cores - 1);
    for (size_t i = 0; i < settings->port_count; i++)
        watched_sockets_add_port(&capture->sockets, settings->ports[i]);
    settings->ports = NULL;
    if (!settings->groups)
        settings->groups = EVENT_GROUPS_DEFAULT;
    if (!settings->ring_bytes)
        settings->ring_bytes = UINT64_C(32) << 20;
    if (!settings->memory_bytes)
        settings->memory_bytes = UINT64_C(2) << 30;
    if (!settings->connections)
        settings->connections = 65536;
    capture->sockets.room = settings->connections;
    return 0;
}

// Has the collections recorded of all processes that listen on the ports of a network namespace:
// before the load begins, not when the shim or a look at /proc tells of them. Without memory for
// the list they are recorded from then on.
static void probe_listeners(struct events_capture *capture, uint64_t namespace,
                            const uint16_t *ports, size_t count)
{
    struct listening_array found = {0};
    if (capture->probes.begin[RUNTIME_COLLECTS])
        running_servers_on(namespace, ports, count, &found);
    for (size_t i = 0; i < found.count; i++)
        runtime_probes_add(&capture->probes, (uint32_t)found.items[i].process);
    array_free(&found);
}

void events_capture_watch_process(struct events_capture *capture, uint32_t process, uint16_t port)
{
    if (!capture->programs || !process)
        return;
    runtime_probes_add(&capture->probes, process);
    uint32_t namespace = watched_sockets_add_process(&capture->sockets, process, port);
    if (namespace && port)
        probe_listeners(capture, namespace, &port, 1);
}

void events_capture_leave_calls(struct events_capture *capture, uint32_t process)
{
    uint32_t *left = capture->programs->bss->left_processes;
    __atomic_store_n(&left[process & (EVENTS_SERVERS - 1)], process, __ATOMIC_RELAXED);
}

uint32_t events_capture_thread(const struct events_capture *capture, uint64_t namespace,
                               uint32_t inside)
{
    uint64_t key = namespace << 32 | inside;
    uint32_t here = 0;
    if (!capture->programs ||
        bpf_map_lookup_elem(bpf_map__fd(capture->programs->maps.namesakes), &key, &here) < 0)
        return 0;
    return here;
}

struct attachment {
    struct events_capture *capture;
    struct error err;
};

static int programs_attach(void *context)
{
    struct attachment *attachment = context;
    struct events_capture *capture = attachment->capture;
    return events_programs_attach(capture->settings.groups, maps_prepare, capture, capture->states,
                                  &capture->drop_reasons, &capture->programs, &attachment->err);
}

// The kernel takes its time to check the programs, a second and more on a busy machine. *abandoned:
// nobody waits for that any more, but it goes on.
static int programs_attach_patiently(struct events_capture *capture, bool *abandoned,
                                     struct error *err)
{
    int result = -ERROR_FAILED;
    struct attachment *attachment = calloc(1, sizeof *attachment);
    if (!attachment)
        return error_set(err, ERROR_FAILED, "no memory for a capture");
    attachment->capture = capture;
    *abandoned = !patience_call(programs_attach, attachment, &result);
    if (*abandoned)
        return error_set(err, ERROR_FAILED, "interrupted before the capture was armed");
    *err = attachment->err;
    free(attachment);
    return result;
}

static bool is_loaded(const struct bpf_program *program)
{
    return bpf_program__fd(program) >= 0;
}

// Of the settings and what the host is, before anything of it is touched. NULL: no memory.
static struct events_capture *capture_new(const struct events_capture_settings *settings)
{
    struct events_capture *capture = calloc(1, sizeof *capture);
    if (!capture)
        return NULL;
    capture->settings = *settings;
    capture->stamps_fd = capture->nic.clock = -1;
    capture->stamps = RECEIVE_STAMPS_OFF;
    return capture;
}

// Receive stamps cost something for every packet of the host, so they are only turned on if M(n) is
// wanted.
static int turn_stamps_on(struct events_capture *capture, struct error *err)
{
    if (capture->settings.groups & EVENT_GROUP_RECEIVE) {
        capture->stamps_fd = receive_stamps_hold(&capture->stamps, err);
        if (capture->stamps_fd < 0)
            return capture->stamps_fd;
    }
    if (capture->settings.nic &&
        nic_arrivals_begin(&capture->nic, capture->settings.nic, &capture->nic_lack) < 0)
        capture->nic.clock = -1;
    return 0;
}

// What the attached programs write is read from here on.
static int open_records(struct events_capture *capture, struct error *err)
{
    int result =
        event_drain_map(&capture->drain, capture->programs->bss->rings,
                        bpf_map__fd(capture->programs->maps.events), capture->ring_bytes, err);
    if (result < 0 || !capture->settings.grammar)
        return result;
    return payload_frames_open(capture->settings.grammar,
                               bpf_map__fd(capture->programs->maps.payload), &capture->frames, err);
}

// The servers that listen already: their sockets and their runtimes' collectors.
static void look_at_servers(struct events_capture *capture,
                            const struct events_capture_settings *settings)
{
    struct stat here;
    capture->sockets.programs = capture->programs;
    capture->sockets.states = capture->states;
    watched_sockets_look_up(&capture->sockets);
    const struct bpf_program *begin[RUNTIME_WORKS] = {
        [RUNTIME_COLLECTS] = capture->programs->progs.collection_begin,
        [RUNTIME_STOPS] = capture->programs->progs.world_stop_begin,
        [SERVER_WORKS] = capture->programs->progs.own_work_begin};
    const struct bpf_program *end[RUNTIME_WORKS] = {
        [RUNTIME_COLLECTS] = capture->programs->progs.collection_end,
        [RUNTIME_STOPS] = capture->programs->progs.world_stop_end,
        [SERVER_WORKS] = capture->programs->progs.own_work_end};
    bool loaded = true;
    for (int work = 0; work < RUNTIME_WORKS; work++)
        loaded = loaded && is_loaded(begin[work]) && is_loaded(end[work]);
    if (loaded) {
        memcpy(capture->probes.begin, begin, sizeof begin);
        memcpy(capture->probes.end, end, sizeof end);
        capture->probes.waits = bpf_map__fd(capture->programs->maps.runtimes);
    }
    if (stat("/proc/thread-self/ns/net", &here) == 0)
        probe_listeners(capture, here.st_ino, settings->ports, settings->port_count);
}

int events_capture_open(const struct events_capture_settings *settings, struct events_capture **out,
                        struct error *err)
{
    *out = NULL;
    struct events_capture *capture = capture_new(settings);
    if (!capture)
        return error_set(err, ERROR_FAILED, "no memory for a capture");
    bool abandoned = false;
    int result = fill_defaults(capture, err);
    if (result == 0)
        result = event_drain_begin(&capture->drain, capture->core_count,
                                   capture->settings.memory_bytes, err);
    if (result == 0)
        result = events_segments_init(&capture->segments, settings->budget, settings->segment_ns,
                                      &capture->drain, err);
    if (result == 0)
        result = turn_stamps_on(capture, err);
    if (result == 0)
        result = programs_attach_patiently(capture, &abandoned, err);
    if (abandoned)
        return result; // all of it may still be in use
    if (result == 0)
        result = open_records(capture, err);
    if (result < 0) {
        events_capture_free(capture);
        return result;
    }
    look_at_servers(capture, settings);
    __atomic_store_n(&capture->programs->bss->resting, 0, __ATOMIC_RELEASE);
    events_segments_begin(&capture->segments, capture->programs, capture->states, capture->frames,
                          &capture->settings.cores,
                          capture->settings.groups & EVENT_GROUP_SCHEDULER);
    *out = capture;
    return 0;
}

const struct event_program_state *events_capture_programs(const struct events_capture *capture)
{
    return capture->states;
}

// --- while it goes on ----------------------------------------------------------------------------

void events_capture_poll(struct events_capture *capture)
{
    if (!capture->programs)
        return;
    event_drain_poll(&capture->drain);
    payload_frames_poll(capture->frames);
    watched_sockets_evict(&capture->sockets);
    nic_arrivals_poll(&capture->nic);
    events_segments_poll(&capture->segments);
}

void events_capture_charge(struct events_capture *capture, uint64_t ns)
{
    capture->segments.charged_ns += ns;
}

uint64_t events_capture_kept(const struct events_capture *capture)
{
    return capture->programs ? event_drain_kept(&capture->drain) : 0;
}

// --- the end -------------------------------------------------------------------------------------

static int write_sockets(const char *out_dir, const char *name,
                         const struct connection_array *sockets, uint64_t dropped,
                         struct error *err)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", out_dir, name);
    return log_write(path, LOG_CONNECTIONS, EVENT_LOG_VERSION, sizeof(struct connection),
                     sockets->items, sockets->count, dropped, err);
}

// Those that left the table in this segment, which no later one has, and those that are in it.
static int cut_sockets(struct events_capture *capture, const char *out_dir, unsigned number,
                       struct error *err)
{
    struct connection_array ended = {0}, sockets = {0};
    char name[40];
    int result = 0;
    watched_sockets_take_ended(&capture->sockets, &ended);
    snprintf(name, sizeof name, "sockets-%06u.tlog", number);
    if (out_dir && ended.count)
        result = write_sockets(out_dir, name, &ended, 0, err);
    if (out_dir && result == 0)
        result = watched_sockets_list(&capture->sockets, &sockets, err);
    if (out_dir && result == 0)
        result = write_sockets(out_dir, "sockets.tlog", &sockets,
                               capture->programs->bss->sockets_dropped, err);
    capture->sockets_cut += ended.count;
    capture->sockets_written = capture->sockets_cut + sockets.count;
    array_free(&ended);
    array_free(&sockets);
    return result;
}

uint64_t events_capture_ring_bytes(const struct events_capture *capture)
{
    return (uint64_t)CPU_COUNT(&capture->settings.cores) *
           ring_records(capture->settings.ring_bytes) * sizeof(struct event);
}

int events_capture_cut(struct events_capture *capture, const char *out_dir, unsigned number,
                       struct events_segment *segment, struct error *err)
{
    int result = 0;
    char name[40];
    events_segments_end(&capture->segments);
    if (out_dir) {
        const uint64_t dropped = event_drain_dropped(&capture->drain);
        snprintf(name, sizeof name, "events-%06u.tlog", number);
        result = event_drain_write(&capture->drain, &capture->nic, capture->frames, out_dir, name,
                                   dropped - capture->told_dropped, err);
        capture->told_dropped = dropped;
    }
    if (result == 0)
        result = cut_sockets(capture, out_dir, number, err);
    event_drain_forget(&capture->drain, capture->frames);
    events_segments_next(&capture->segments, segment);
    return result;
}

struct losses {
    uint64_t dropped, skipped, sockets, sockets_dropped, ambiguous;
    json_t *per_core;
};

void events_capture_followed(const struct events_capture *capture, cpu_set_t *out)
{
    CPU_ZERO(out);
    for (unsigned core = 0; capture->programs && core < capture->core_count; core++)
        if (capture->programs->bss->rings[core].watched != CORE_UNWATCHED &&
            !CPU_ISSET(core, &capture->settings.cores))
            CPU_SET(core, out);
}

const char *events_capture_nic_lack(const struct events_capture *capture)
{
    return capture->nic_lack.text[0] ? capture->nic_lack.text : NULL;
}

static json_t *nic_json(const struct events_capture *capture)
{
    const struct nic_arrivals *nic = &capture->nic;
    const char *lack = events_capture_nic_lack(capture);
    return lack ? json_pack("{s:s, s:s}", "interface", capture->settings.nic, "reason", lack)
                : json_pack("{s:s, s:I, s:I}", "interface", nic->stamps.interface, "error_ns",
                            (json_int_t)nic->error_ns, "unread", (json_int_t)nic->unread);
}

static json_t *stats_json(const struct events_capture *capture, const struct losses *losses)
{
    char cores[4096], followed[4096] = "";
    cpu_set_t others;
    events_capture_followed(capture, &others);
    if (CPU_COUNT(&others))
        units_format_cores(&others, followed, sizeof followed);
    return json_pack(
        "{s:o, s:o, s:I, s:I, s:O, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:b, s:s, s:s, "
        "s:o, s:o, s:{s:i, s:i, s:s*}, s:o*, s:o*}",
        "programs", events_programs_json(capture->programs, capture->states), "events",
        event_kinds_json(capture->drain.kinds), "records", (json_int_t)capture->drain.all,
        "dropped", (json_int_t)losses->dropped, "dropped_per_core", losses->per_core, "unfinished",
        (json_int_t)capture->drain.unfinished, "skipped", (json_int_t)losses->skipped,
        "unseen_switches", (json_int_t)capture->drain.unseen, "sockets",
        (json_int_t)losses->sockets, "sockets_dropped", (json_int_t)losses->sockets_dropped,
        "sockets_ambiguous", (json_int_t)losses->ambiguous, "receive_stamps",
        receive_stamps_name(capture->stamps), "memory_full", capture->drain.memory_full, "cores",
        units_format_cores(&capture->settings.cores, cores, sizeof cores), "followed", followed,
        "ports", watched_sockets_ports(&capture->sockets), "segments_dropped",
        segment_drops_json(&capture->drop_reasons, capture->programs->bss->segments_dropped),
        "collections", "probed", (int)capture->probes.probed, "refused",
        (int)capture->probes.refused, "why",
        capture->probes.refused ? capture->probes.why.text : NULL, "nic",
        capture->settings.nic ? nic_json(capture) : NULL, "framing",
        capture->frames
            ? payload_frames_json(capture->frames, capture->programs->bss->payload_unseen,
                                  capture->programs->bss->payload_lost)
            : NULL);
}

json_t *events_capture_so_far(const struct events_capture *capture)
{
    struct losses losses = {.per_core = json_object(),
                            .skipped = events_programs_skipped(capture->programs),
                            .dropped = event_drain_dropped(&capture->drain),
                            .sockets = capture->sockets_written,
                            .sockets_dropped = capture->programs->bss->sockets_dropped};
    json_t *stats = stats_json(capture, &losses);
    json_decref(losses.per_core);
    return stats;
}

// Stops the programs and drains what is left in the rings. Counts what was lost on the way.
static void finish_records(struct events_capture *capture, struct losses *losses)
{
    runtime_probes_end(&capture->probes);
    if (capture->segments.rests)
        event_drain_skip(&capture->drain);
    capture->programs->bss->resting = 1; // as when they came: they go one by one
    events_bpf__detach(capture->programs);
    // Programs that were running on other cores end within microseconds.
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    losses->skipped = events_programs_skipped(capture->programs);
    losses->sockets_dropped = capture->programs->bss->sockets_dropped;
    for (unsigned core = 0; core < capture->core_count; core++) {
        const struct core_ring *ring = &capture->programs->bss->rings[core];
        uint64_t dropped = ring->dropped;
        if (!event_drain_core(&capture->drain, core, UINT64_MAX, true))
            dropped += ring->head - ring->tail;
        losses->dropped += dropped;
        char name[16];
        snprintf(name, sizeof name, "%u", core);
        if (dropped)
            json_object_set_new(losses->per_core, name, json_integer((json_int_t)dropped));
    }
}

int events_capture_stop(struct events_capture *capture, const char *out_dir, json_t **stats,
                        struct error *err)
{
    struct losses losses = {.per_core = json_object()};
    struct connection_array sockets = {0};
    watched_sockets_look_up(&capture->sockets); // connections whose beginning was not seen
    finish_records(capture, &losses);
    payload_frames_poll(capture->frames);
    int result = out_dir
                     ? event_drain_write(&capture->drain, &capture->nic, capture->frames, out_dir,
                                         "events.tlog", losses.dropped - capture->told_dropped, err)
                     : 0;
    watched_sockets_take_ended(&capture->sockets, &sockets);
    if (result == 0)
        result = watched_sockets_list(&capture->sockets, &sockets, err);
    if (result == 0 && out_dir)
        result = write_sockets(out_dir, "sockets.tlog", &sockets, losses.sockets_dropped, err);
    event_drain_forget(&capture->drain, capture->frames);
    if (result < 0)
        goto out;
    losses.sockets = capture->sockets_cut + sockets.count;
    for (size_t i = 1; i < sockets.count; i++)
        losses.ambiguous += sockets.items[i].id == sockets.items[i - 1].id;
    if (stats) {
        *stats = stats_json(capture, &losses);
        if (!*stats)
            result = error_set(err, ERROR_FAILED, "no memory for the capture's figures");
    }
out:
    array_free(&sockets);
    json_decref(losses.per_core);
    return result;
}

void events_capture_free(struct events_capture *capture)
{
    if (!capture)
        return;
    events_segments_free(&capture->segments);
    runtime_probes_end(&capture->probes);
    payload_frames_free(capture->frames);
    events_bpf__destroy(capture->programs);
    if (capture->stamps_fd >= 0)
        close(capture->stamps_fd);
    nic_arrivals_end(&capture->nic);
    event_drain_free(&capture->drain);
    watched_sockets_free(&capture->sockets);
    free(capture);
}
