// SPDX-License-Identifier: MIT
//
// A server that passes requests on to another one, by hand, while a bystander has the core: what
// its threads and the other's do when, and what that comes to. Header-only: each test binary stands
// alone.
#ifndef TESTS_ANALYSIS_DECOMPOSITION_TWO_TIERS_H
#define TESTS_ANALYSIS_DECOMPOSITION_TWO_TIERS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "analysis/decomposition/decompose.h"
#include "analysis/lifetime/service_order.h"
#include "analysis/timeline/timeline.h"

enum { FRONT = 100, WORKER = 101, OTHER = 102, BACKEND = 200, BYSTANDER = 666 };
enum { FRONT_PROCESS = 100, BACKEND_PROCESS = 200, FRONT_PORT = 80, BACKEND_PORT = 6379 };
enum {
    CLIENT_SIDE = 1,
    OTHERS_SIDE,
    BACKEND_SIDE,
    MADE,
    MADE_TOO,
    ACCEPTED = 3
}; // ids of connections
#define US(us) (1000000000 + 1000 * (int64_t)(us))

struct scene {
    struct ARRAY_OF(struct event) events;
    struct ARRAY_OF(struct call) calls, peer_calls;
    struct connection accepted[ACCEPTED], made[2];
    struct host_timeline host;
    struct application_calls all;
    struct applications applications;
    struct peers peers;
    struct lifetime life;
    struct component_table table;
    struct categories categories;
    struct decomposer decomposer;
    struct diagnosis_input in;
    struct component_share_array shares;
    json_t *programs;                        // who listens where; NULL: nobody knows
    uint32_t batch;                          // of the request
    int in_part_us;                          // its reply; 0: by the call that ended it
    bool unaccepted;                         // its connection
    uint32_t asker;                          // the thread of a server that asked; 0: a client
    int due_us, part_ready_us, part_read_us; // of the request; 0: it came as a whole
    int rest_us; // what is asked of the backend came in part, at once, and the rest then; 0: whole
};

static inline int64_t same(const void *context, enum host_clock clock, uint64_t value)
{
    (void)context;
    (void)clock;
    return (int64_t)value;
}

static inline struct event *event(struct scene *s, int us, uint8_t kind, uint16_t core, uint32_t id)
{
    struct event one = {.time = (uint64_t)US(us), .kind = kind, .core = core, .id = id};
    assert_int_equal(array_push(&s->events, one), 0);
    return &s->events.items[s->events.count - 1];
}

static inline void runs(struct scene *s, int us, uint16_t core, uint32_t thread, const char *name)
{
    strcpy(event(s, us, EVENT_SWITCH, core, thread)->payload.text, name);
}

static inline struct call one_call(uint32_t thread, uint8_t kind, int entry, int exit,
                                   uint32_t connection)
{
    return (struct call){.entry_tsc = (uint64_t)US(entry),
                         .exit_tsc = (uint64_t)US(exit),
                         .connection = connection,
                         .length = kind == CALL_RECEIVE || kind == CALL_SEND ? 10 : 0,
                         .process = thread == BACKEND ? BACKEND_PROCESS : FRONT_PROCESS,
                         .thread = thread,
                         .kind = kind};
}

static inline void call(struct scene *s, uint32_t thread, uint8_t kind, int entry, int exit,
                        uint32_t connection)
{
    struct call one = one_call(thread, kind, entry, exit, connection);
    if (connection == MADE || connection == MADE_TOO)
        assert_int_equal(array_push(&s->peer_calls, one), 0);
    else
        assert_int_equal(array_push(&s->calls, one), 0);
}

static inline struct connection ends(uint32_t id, uint32_t process, uint16_t local, uint16_t peer)
{
    struct connection one = {.id = id,
                             .protocol = CONNECTION_TCP,
                             .outgoing = id >= MADE,
                             .process = process,
                             .local_port = local,
                             .peer_port = peer};
    memcpy(one.local, (uint8_t[16]){[10] = 0xff, [11] = 0xff, 127, 0, 0, 1}, 16);
    memcpy(one.peer, one.local, 16);
    return one;
}

static inline void open_scene(struct scene *s)
{
    *s = (struct scene){0};
    s->accepted[0] = ends(CLIENT_SIDE, FRONT_PROCESS, FRONT_PORT, 40000);
    s->accepted[1] = ends(BACKEND_SIDE, BACKEND_PROCESS, BACKEND_PORT, 50000);
    s->accepted[2] = ends(OTHERS_SIDE, FRONT_PROCESS, FRONT_PORT, 40001);
    s->made[0] = ends(MADE, FRONT_PROCESS, 50000, BACKEND_PORT);
    s->made[1] = ends(MADE_TOO, FRONT_PROCESS, 50001, BACKEND_PORT);
    runs(s, -50, 0, FRONT, "front");
    runs(s, -50, 1, 0, "swapper/1");
    runs(s, -50, 2, 0, "swapper/2");
}

// The request's stamps: handed off, received, answered, in microseconds.
static inline void build(struct scene *s, int handoff, int received, int reply,
                         unsigned connections)
{
    struct error err = {0};
    uint64_t damaged;
    const struct time_source clock = {same, NULL, 0};
    runs(s, 5000, 0, 0, "swapper/0");
    assert_int_equal(host_timeline_build(s->events.items, s->events.count, &clock, &s->host, &err),
                     0);
    assert_int_equal(
        application_calls_build(s->calls.items, s->calls.count, &clock, &s->all, &damaged, &err),
        0);
    assert_int_equal(applications_build(&s->applications, s->calls.items, s->calls.count,
                                        s->accepted, ACCEPTED, NULL, 0, &s->host),
                     0);
    const struct peers_input peers = {
        .calls = &s->all,
        .peer_calls = s->peer_calls.items,
        .peer_call_count = s->peer_calls.count,
        .connections = s->made,
        .connection_count = connections,
        .programs = s->programs,
        .join = {.events = s->made[0].cookie ? s->events.items : NULL,
                 .event_count = s->events.count,
                 .calls = &s->all,
                 .shim_connections = s->accepted,
                 .shim_connection_count = ACCEPTED,
                 .clock = clock},
        .applications = &s->applications,
        .host = &s->host,
    };
    if (peers_build(&peers, &s->peers, &err) < 0)
        fail_msg("%s", err.text);
    struct disorder disorder = {0};
    if (s->rest_us) {
        struct lifetime *asked = &s->peers.lives.items[0];
        asked->part_ready_ns = asked->stamp_ns[STAMP_SEND];
        asked->part_read_ns = asked->stamp_ns[STAMP_NIC] = US(s->rest_us);
        asked->stamp_ns[STAMP_HANDOFF] = US(s->rest_us + 1);
        asked->present |= 1u << STAMP_NIC | 1u << STAMP_HANDOFF;
        asked->untaken = 0;
        asked->hosts_error_ns = 0;
        lifetime_compute_stages(asked, 0, &disorder);
    }
    s->life = (struct lifetime){.thread = FRONT, .send_call = NO_CALL, .receive_call = NO_CALL};
    const int at[STAMP_KINDS] = {[STAMP_INTENDED] = handoff - 3,  [STAMP_SEND] = handoff - 2,
                                 [STAMP_CLIENT_TX] = handoff - 2, [STAMP_NIC] = handoff - 1,
                                 [STAMP_HANDOFF] = handoff,       [STAMP_APPLICATION] = received,
                                 [STAMP_REPLY] = reply,           [STAMP_SERVER_TX] = reply + 1,
                                 [STAMP_CLIENT_RX] = reply + 2,   [STAMP_REPLY_READ] = reply + 3};
    for (int kind = 0; kind < STAMP_KINDS; kind++)
        s->life.stamp_ns[kind] = US(at[kind]);
    if (s->part_read_us) {
        s->life.stamp_ns[STAMP_INTENDED] = US(s->due_us);
        s->life.part_ready_ns = US(s->part_ready_us);
        s->life.part_read_ns = US(s->part_read_us);
    }
    s->life.present = (1u << STAMP_KINDS) - 1;
    s->life.batch = s->batch;
    s->life.unaccepted = s->unaccepted;
    s->life.in_part_ns = s->in_part_us ? US(s->in_part_us) : 0;
    for (uint32_t i = 0; i < s->all.count; i++) {
        const struct application_call *one = &s->all.items[i];
        if (one->connection == CLIENT_SIDE && one->exit_ns == US(received))
            s->life.receive_call = i;
        if (one->connection == CLIENT_SIDE && one->entry_ns == US(reply))
            s->life.send_call = i;
    }
    s->life.application = application_of_thread(&s->applications, FRONT);
    lifetime_compute_stages(&s->life, 0, &disorder);
    assert_int_equal(categories_init(&s->categories, &err), 0);
    assert_int_equal(component_table_init(&s->table, &s->host, NULL, &s->categories), 0);
    s->in = (struct diagnosis_input){.lifetimes = &s->life,
                                     .lifetime_count = 1,
                                     .server = &s->host,
                                     .applications = &s->applications,
                                     .calls = &s->all,
                                     .peers = &s->peers,
                                     .categories = &s->categories};
    decomposer_init(&s->decomposer, &s->in, &s->table);
    s->decomposer.asker = s->asker;
    assert_int_equal(decompose(&s->decomposer, 0, &s->shares, NULL), 0);
}

static inline double us_of(const struct scene *s, const char *name)
{
    double ns = 0;
    for (size_t i = 0; i < s->shares.count; i++)
        if (strcmp(s->table.components.items[s->shares.items[i].component].name, name) == 0)
            ns += s->shares.items[i].ns;
    return ns / 1000;
}

// The front's thread sleeps in epoll_wait from one microsecond to another, a bystander has its
// core.
static inline void front_waits(struct scene *s, int from, int to)
{
    call(s, FRONT, CALL_WAIT, from - 1, to + 2, 0);
    event(s, from, EVENT_SWITCH, 0, BYSTANDER)->flags = SWITCH_WAITS;
    strcpy(s->events.items[s->events.count - 1].payload.text, "bystander");
    event(s, to, EVENT_WAKING, 2, FRONT);
    runs(s, to + 1, 0, FRONT, "front");
}

// A call that begins there in its stream.
static inline void call_at(struct scene *s, uint32_t thread, uint8_t kind, int entry, int exit,
                           uint32_t connection, uint64_t offset, uint32_t length)
{
    call(s, thread, kind, entry, exit, connection);
    struct call *one = connection == MADE ? &s->peer_calls.items[s->peer_calls.count - 1]
                                          : &s->calls.items[s->calls.count - 1];
    one->offset = offset;
    one->length = length;
}

// The backend answers two questions on one connection, the other request's first, each for a half
// of the time.
static inline void backend_answers_both(struct scene *s)
{
    runs(s, 8, 1, BACKEND, "backend");
    call_at(s, BACKEND, CALL_RECEIVE, 24, 25, BACKEND_SIDE, 0, 10);
    call_at(s, BACKEND, CALL_SEND, 600, 602, BACKEND_SIDE, 0, 10);
    call_at(s, BACKEND, CALL_RECEIVE, 603, 605, BACKEND_SIDE, 10, 10);
    call_at(s, BACKEND, CALL_SEND, 1020, 1022, BACKEND_SIDE, 10, 10);
    runs(s, 1050, 1, 0, "swapper/1");
}

static inline void expect(const struct scene *s, const char *name, double low_us, double high_us)
{
    double us = us_of(s, name);
    if (us >= low_us && us <= high_us)
        return;
    for (size_t i = 0; i < s->shares.count; i++)
        print_error("%8.1f us %s\n", s->shares.items[i].ns / 1000,
                    s->table.components.items[s->shares.items[i].component].name);
    fail_msg("%s: %.1f us", name, us);
}

static inline void close_scene(struct scene *s)
{
    decomposer_fini(&s->decomposer);
    component_table_fini(&s->table);
    categories_free(&s->categories);
    peers_free(&s->peers);
    json_decref(s->programs);
    applications_free(&s->applications);
    host_timeline_free(&s->host);
    array_free(&s->all);
    array_free(&s->events);
    array_free(&s->calls);
    array_free(&s->peer_calls);
    array_free(&s->shares);
}

#endif
