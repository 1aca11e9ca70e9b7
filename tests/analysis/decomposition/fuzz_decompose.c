// SPDX-License-Identifier: MIT
//
// A message's time among threads of which anything was recorded: a server that asks another one,
// its worker, a stranger and kernel threads, on three cores. Whatever they did, the walk along the
// critical path ends, every nanosecond of the message goes to a component that has a name, and none
// of them gets less than nothing. The input: when the message was where; then for each record what
// it is, who, where and when, and what it says.
#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "analysis/decomposition/decompose.h"
#include "analysis/lifetime/service_order.h"
#include "analysis/timeline/timeline.h"
#include "base/connection_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    RECORDS = 128,
    MEMBERS = 4,
    ACCEPTED = 2,
    MADE = 2,
    CORES = 3,
    BEGIN = 1000000,
    STEP_NS = 1000
};
enum { FRONT = 100, WORKER, OTHER, BACKEND = 200, STRANGER = 666, KERNEL = 7 };

struct input {
    const uint8_t *at, *end;
};

struct logs {
    struct event events[RECORDS + MEMBERS];
    struct call calls[RECORDS], peer_calls[RECORDS];
    struct connection accepted[ACCEPTED], made[MADE];
    size_t event_count, call_count, peer_call_count;
    uint64_t streams[ACCEPTED + MADE][2]; // how far each has come, in and out
    uint64_t now;
    uint8_t how, stays[STAMP_KINDS]; // the message
};

static uint8_t take(struct input *in)
{
    return in->at < in->end ? *in->at++ : 0;
}

static int64_t convert(const void *context, enum host_clock clock, uint64_t value)
{
    (void)context, (void)clock;
    return (int64_t)value;
}

static const struct time_source clock_of_host = {.convert = convert};

static uint32_t thread_of(uint8_t byte)
{
    static const uint32_t threads[] = {FRONT, FRONT, FRONT, WORKER, BACKEND, STRANGER, KERNEL, 0};
    return threads[byte % 8];
}

// Of any kind, but for two that most of the walk goes by: who gets a core, who is woken by whom.
static void add_event(struct logs *logs, struct input *in, unsigned what)
{
    static const char *const names[] = {"front",       "worker",      "jbd2/sda1-8",
                                        "GC Thread#0", "kworker/0:1", "redis-server"};
    const uint8_t says = take(in), kind = take(in);
    struct event *event = &logs->events[logs->event_count++];
    *event = (struct event){.time = logs->now,
                            .kind = kind % EVENT_KINDS,
                            .flags = take(in),
                            .core = (says >> 4 & 3) % CORES,
                            .id = thread_of(says)};
    if (what == 1) {
        event->kind = EVENT_SWITCH;
        memccpy(event->payload.text, names[kind % (sizeof names / sizeof *names)], '\0',
                sizeof event->payload.text);
    } else if (what == 2) {
        event->kind = EVENT_WAKING;
        event->payload.a = event->core;
        event->payload.b = thread_of(kind);
    } else {
        event->payload.a = says & 128 ? logs->now - take(in) * (uint64_t)STEP_NS : take(in);
        event->payload.b = take(in);
        if (says & 64) // a word that is waited for
            event->payload.b |= 1ull << 32;
    }
}

// Threads of known processes: then a peer that listens here is followed, and a sender.
static void add_members(struct logs *logs)
{
    static const uint32_t threads[MEMBERS] = {FRONT, WORKER, BACKEND, STRANGER};
    for (size_t i = 0; i < MEMBERS; i++)
        logs->events[logs->event_count++] =
            (struct event){.time = BEGIN,
                           .kind = EVENT_MEMBER,
                           .id = threads[i],
                           .payload.a = threads[i] == WORKER ? FRONT : threads[i]};
}

static void add_call(struct logs *logs, struct input *in)
{
    const uint8_t who = take(in), kind = take(in), connection = take(in) % (ACCEPTED + MADE);
    const bool made = connection >= ACCEPTED;
    struct call *call =
        made ? &logs->peer_calls[logs->peer_call_count++] : &logs->calls[logs->call_count++];
    *call = (struct call){.entry_tsc = logs->now,
                          .exit_tsc = logs->now + take(in) * (uint64_t)STEP_NS / 16,
                          .length = kind >> 4,
                          .connection = 1 + connection,
                          .process = thread_of(who) == BACKEND ? BACKEND : FRONT,
                          .thread = thread_of(who),
                          .batch = who >> 4,
                          .kind = kind % 8};
    if (call->kind == CALL_RECEIVE || call->kind == CALL_SEND) {
        uint64_t *stream = &logs->streams[connection][call->kind == CALL_SEND];
        call->offset = *stream;
        *stream += call->length;
    }
}

static struct connection ends_of(uint32_t id, uint32_t process, uint16_t local, uint16_t peer)
{
    struct connection one = {.id = id,
                             .protocol = CONNECTION_TCP,
                             .outgoing = id > ACCEPTED,
                             .process = process,
                             .local_port = local,
                             .peer_port = peer};
    memcpy(one.local, (uint8_t[16]){[10] = 0xff, [11] = 0xff, 127, 0, 0, 1}, 16);
    memcpy(one.peer, one.local, 16);
    return one;
}

// A client's to the server, and two of the server's to the other one, which accepted the first.
static void connections_make(struct logs *logs)
{
    logs->accepted[0] = ends_of(1, FRONT, 80, 40000);
    logs->accepted[1] = ends_of(2, BACKEND, 6379, 50000);
    logs->made[0] = ends_of(3, FRONT, 50000, 6379);
    logs->made[1] = ends_of(4, FRONT, 50001, 6379);
    logs->made[0].cookie = FRONT; // events have threads' numbers for ids
}

// When the message was where, in order, within the time that was recorded or a little outside; by
// which calls the server got and answered it.
static struct lifetime life_of(const struct logs *logs, const struct application_calls *calls)
{
    struct lifetime life = {.thread = FRONT, .send_call = NO_CALL, .receive_call = NO_CALL};
    struct disorder disorder = {0};
    int64_t now = BEGIN - 10 * STEP_NS;
    for (int kind = 0; kind < STAMP_KINDS; kind++) {
        now += logs->stays[kind] * (int64_t)(logs->now - BEGIN) / 512;
        life.stamp_ns[kind] = now;
        life.stamp_core[kind] = logs->stays[kind] % (CORES + 1);
    }
    life.present = (1u << STAMP_KINDS) - 1;
    life.batch = logs->how >> 4;
    life.unaccepted = logs->how & 1;
    life.in_part_ns = logs->how & 2 ? life.stamp_ns[STAMP_APPLICATION] + STEP_NS : 0;
    for (uint32_t i = 0; i < calls->count; i++) {
        if (calls->items[i].kind == CALL_RECEIVE && logs->how & 4)
            life.receive_call = i;
        if (calls->items[i].kind == CALL_SEND && logs->how & 8)
            life.send_call = i;
    }
    lifetime_compute_stages(&life, 0, &disorder);
    return life;
}

static void check(const struct component_share_array *shares, const struct component_table *table,
                  const struct lifetime *life)
{
    double sum = 0;
    for (size_t i = 0; i < shares->count; i++) {
        const struct component_share *share = &shares->items[i];
        assert(share->component < table->components.count && share->ns > 0);
        const char *name = table->components.items[share->component].name;
        assert(name[0] && memchr(name, '\0', CAUSE_NAME_BYTES));
        for (const char *at = name; *at; at++)
            assert(isprint((unsigned char)*at));
        sum += share->ns;
    }
    assert(fabs(sum - life->latency_ns) < 1);
}

static void decompose_and_check(const struct logs *logs)
{
    struct host_timeline host;
    struct application_calls calls = {0};
    struct applications applications = {0};
    struct peers peers = {0};
    struct categories categories;
    struct component_table table;
    struct decomposer decomposer;
    struct component_share_array shares = {0};
    struct error err;
    uint64_t damaged;
    assert(host_timeline_build(logs->events, logs->event_count, &clock_of_host, &host, &err) == 0);
    assert(application_calls_build(logs->calls, logs->call_count, &clock_of_host, &calls, &damaged,
                                   &err) == 0);
    assert(applications_build(&applications, logs->calls, logs->call_count, logs->accepted,
                              ACCEPTED, NULL, 0, &host) == 0);
    char address[CONNECTION_TEXT_BYTES];
    connection_peer_text(&logs->made[0], address);
    json_t *programs = json_pack("[{s:s, s:s, s:i}]", "address", address, "program", "backend",
                                 "process", BACKEND);
    const struct peers_input asked = {.calls = &calls,
                                      .peer_calls = logs->peer_calls,
                                      .peer_call_count = logs->peer_call_count,
                                      .connections = logs->made,
                                      .connection_count = MADE,
                                      .programs = logs->how & 32 ? programs : NULL,
                                      .join = {.events = logs->how & 16 ? logs->events : NULL,
                                               .event_count = logs->event_count,
                                               .calls = &calls,
                                               .shim_connections = logs->accepted,
                                               .shim_connection_count = ACCEPTED,
                                               .clock = clock_of_host},
                                      .applications = &applications,
                                      .host = &host};
    assert(peers_build(&asked, &peers, &err) == 0);
    struct lifetime life = life_of(logs, &calls);
    life.application = application_of_thread(&applications, FRONT);
    assert(categories_init(&categories, &err) == 0);
    assert(component_table_init(&table, &host, NULL, &categories) == 0);
    const struct diagnosis_input input = {.lifetimes = &life,
                                          .lifetime_count = 1,
                                          .server = &host,
                                          .applications = &applications,
                                          .calls = &calls,
                                          .peers = &peers,
                                          .categories = &categories};
    decomposer_init(&decomposer, &input, &table);
    assert(decompose(&decomposer, 0, &shares, NULL) == 0);
    check(&shares, &table, &life);
    decomposer_fini(&decomposer);
    component_table_fini(&table);
    categories_free(&categories);
    peers_free(&peers);
    json_decref(programs);
    applications_free(&applications);
    array_free(&calls);
    array_free(&shares);
    host_timeline_free(&host);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct logs logs;
    struct input in = {data, data + size};
    memset(&logs, 0, sizeof logs);
    logs.now = BEGIN;
    connections_make(&logs);
    logs.how = take(&in);
    for (int kind = 0; kind < STAMP_KINDS; kind++)
        logs.stays[kind] = take(&in);
    if (logs.how & 64)
        add_members(&logs);
    for (unsigned records = 0; records < RECORDS && in.at < in.end; records++) {
        const uint8_t first = take(&in);
        logs.now += (first >> 2) * (uint64_t)STEP_NS;
        if (first & 3)
            add_event(&logs, &in, first & 3);
        else
            add_call(&logs, &in);
    }
    decompose_and_check(&logs);
    return 0;
}
