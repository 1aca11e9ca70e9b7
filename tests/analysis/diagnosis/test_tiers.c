// SPDX-License-Identifier: MIT
//
// One request that a server passes on to another one, by hand: who waited for whom, with the other
// server captured and not, while a bystander has the core; a blocking thread, an event loop, a
// request behind it, and a pool of connections that are all taken.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "analysis/diagnosis/decompose.h"
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
    uint32_t batch;                          // of the request
    int in_part_us;                          // its reply; 0: by the call that ended it
    int due_us, part_ready_us, part_read_us; // of the request; 0: it came as a whole
};

static int64_t same(const void *context, enum host_clock clock, uint64_t value)
{
    (void)context;
    (void)clock;
    return (int64_t)value;
}

static struct event *event(struct scene *s, int us, uint8_t kind, uint16_t core, uint32_t id)
{
    struct event one = {.time = (uint64_t)US(us), .kind = kind, .core = core, .id = id};
    assert_int_equal(array_push(&s->events, one), 0);
    return &s->events.items[s->events.count - 1];
}

static void runs(struct scene *s, int us, uint16_t core, uint32_t thread, const char *name)
{
    strcpy(event(s, us, EVENT_SWITCH, core, thread)->payload.text, name);
}

static struct call one_call(uint32_t thread, uint8_t kind, int entry, int exit, uint32_t connection)
{
    return (struct call){.entry_tsc = (uint64_t)US(entry),
                         .exit_tsc = (uint64_t)US(exit),
                         .connection = connection,
                         .length = kind == CALL_RECEIVE || kind == CALL_SEND ? 10 : 0,
                         .process = thread == BACKEND ? BACKEND_PROCESS : FRONT_PROCESS,
                         .thread = thread,
                         .kind = kind};
}

static void call(struct scene *s, uint32_t thread, uint8_t kind, int entry, int exit,
                 uint32_t connection)
{
    struct call one = one_call(thread, kind, entry, exit, connection);
    if (connection == MADE || connection == MADE_TOO)
        assert_int_equal(array_push(&s->peer_calls, one), 0);
    else
        assert_int_equal(array_push(&s->calls, one), 0);
}

static struct connection ends(uint32_t id, uint32_t process, uint16_t local, uint16_t peer)
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

static void open_scene(struct scene *s)
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
static void build(struct scene *s, int handoff, int received, int reply, unsigned connections)
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
        .join = {.calls = &s->all,
                 .shim_connections = s->accepted,
                 .shim_connection_count = ACCEPTED,
                 .clock = clock},
        .applications = &s->applications,
    };
    if (peers_build(&peers, &s->peers, &err) < 0)
        fail_msg("%s", err.text);
    struct disorder disorder = {0};
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
    assert_int_equal(decompose(&s->decomposer, 0, &s->shares, NULL), 0);
}

static double us_of(const struct scene *s, const char *name)
{
    double ns = 0;
    for (size_t i = 0; i < s->shares.count; i++)
        if (strcmp(s->table.components.items[s->shares.items[i].component].name, name) == 0)
            ns += s->shares.items[i].ns;
    return ns / 1000;
}

static void expect(const struct scene *s, const char *name, double low_us, double high_us)
{
    double us = us_of(s, name);
    if (us >= low_us && us <= high_us)
        return;
    for (size_t i = 0; i < s->shares.count; i++)
        print_error("%8.1f us %s\n", s->shares.items[i].ns / 1000,
                    s->table.components.items[s->shares.items[i].component].name);
    fail_msg("%s: %.1f us", name, us);
}

static void close_scene(struct scene *s)
{
    decomposer_fini(&s->decomposer);
    component_table_fini(&s->table);
    categories_free(&s->categories);
    peers_free(&s->peers);
    applications_free(&s->applications);
    host_timeline_free(&s->host);
    array_free(&s->all);
    array_free(&s->events);
    array_free(&s->calls);
    array_free(&s->peer_calls);
    array_free(&s->shares);
}

// The front asks and sleeps in recv from 23 to 1030 us, a bystander has its core; the backend works
// from 30 to 1020 us.
static void front_asks(struct scene *s)
{
    call(s, FRONT, CALL_RECEIVE, 9, 10, CLIENT_SIDE);
    call(s, FRONT, CALL_SEND, 20, 22, MADE);
    call(s, FRONT, CALL_RECEIVE, 23, 1036, MADE);
    call(s, FRONT, CALL_SEND, 1040, 1042, CLIENT_SIDE);
    runs(s, 24, 0, BYSTANDER, "bystander");
    runs(s, 26, 1, BACKEND, "backend");
    event(s, 1030, EVENT_WAKING, 1, FRONT);
    runs(s, 1032, 1, 0, "swapper/1");
    runs(s, 1035, 0, FRONT, "front");
}

static void test_not_captured(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s);
    front_asks(&s);
    build(&s, 1, 10, 1040, 1);
    expect(&s, "waiting for 127.0.0.1:6379", 1000, 1010);
    expect(&s, "bystander", 0, 6);
    close_scene(&s);
}

static void test_captured(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s);
    call(&s, BACKEND, CALL_RECEIVE, 27, 30, BACKEND_SIDE);
    call(&s, BACKEND, CALL_SEND, 1020, 1025, BACKEND_SIDE);
    front_asks(&s);
    build(&s, 1, 10, 1040, 1);
    expect(&s, "backend: application time", 985, 1000);
    expect(&s, "waiting for 127.0.0.1:6379", 0, 5); // until it was woken
    expect(&s, "bystander", 0, 6);
    close_scene(&s);
}

// Another request of the same thread came at 100 us, while it was the backend's turn.
static void test_behind_one_that_waits(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s);
    front_asks(&s);
    call(&s, FRONT, CALL_RECEIVE, 1043, 1044, CLIENT_SIDE);
    call(&s, FRONT, CALL_SEND, 1050, 1051, CLIENT_SIDE);
    build(&s, 100, 1044, 1050, 1);
    expect(&s, "head-of-line blocking: waiting for 127.0.0.1:6379", 925, 935);
    expect(&s, "bystander", 0, 6);
    close_scene(&s);
}

// An event loop asks, serves somebody else meanwhile, and gets the answer.
static void test_event_loop(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s);
    call(&s, FRONT, CALL_RECEIVE, 9, 10, CLIENT_SIDE);
    call(&s, FRONT, CALL_SEND, 20, 22, MADE);
    call(&s, FRONT, CALL_WAIT, 23, 500, 0);
    call(&s, FRONT, CALL_RECEIVE, 501, 502, OTHERS_SIDE); // somebody else's
    call(&s, FRONT, CALL_SEND, 540, 541, OTHERS_SIDE);
    call(&s, FRONT, CALL_WAIT, 542, 1033, 0);
    call(&s, FRONT, CALL_RECEIVE, 1034, 1035, MADE);
    call(&s, FRONT, CALL_SEND, 1040, 1042, CLIENT_SIDE);
    event(&s, 24, EVENT_SWITCH, 0, BYSTANDER)->flags = SWITCH_WAITS;
    strcpy(s.events.items[s.events.count - 1].payload.text, "bystander");
    event(&s, 498, EVENT_WAKING, 2, FRONT);
    runs(&s, 499, 0, FRONT, "front");
    event(&s, 543, EVENT_SWITCH, 0, BYSTANDER)->flags = SWITCH_WAITS;
    strcpy(s.events.items[s.events.count - 1].payload.text, "bystander");
    event(&s, 1030, EVENT_WAKING, 2, FRONT);
    runs(&s, 1031, 0, FRONT, "front");
    build(&s, 1, 10, 1040, 1);
    expect(&s, "waiting for 127.0.0.1:6379", 1000, 1010);
    expect(&s, "bystander", 0, 3);
    expect(&s, "head-of-line blocking", 0, 3);
    close_scene(&s);
}

// An event loop connects to the backend first, whose queue of connections is full for a while: the
// backend has no request until it has the connection.
static void test_connects_first(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s);
    call(&s, FRONT, CALL_RECEIVE, 9, 10, CLIENT_SIDE);
    call(&s, FRONT, CALL_CONNECT, 12, 13, MADE);
    call(&s, FRONT, CALL_WAIT, 14, 1033, 0);
    call(&s, FRONT, CALL_SEND, 1034, 1035, MADE);
    call(&s, FRONT, CALL_WAIT, 1036, 1233, 0);
    call(&s, FRONT, CALL_RECEIVE, 1234, 1235, MADE);
    call(&s, FRONT, CALL_SEND, 1240, 1242, CLIENT_SIDE);
    for (int turn = 0; turn < 2; turn++) {
        event(&s, turn ? 1037 : 15, EVENT_SWITCH, 0, BYSTANDER)->flags = SWITCH_WAITS;
        strcpy(s.events.items[s.events.count - 1].payload.text, "bystander");
        event(&s, turn ? 1230 : 1030, EVENT_WAKING, 2, FRONT);
        runs(&s, turn ? 1231 : 1031, 0, FRONT, "front");
    }
    build(&s, 1, 10, 1240, 1);
    expect(&s, "waiting for a connection to 127.0.0.1:6379", 1010, 1020);
    expect(&s, "waiting for 127.0.0.1:6379", 190, 200);
    expect(&s, "bystander", 0, 3);
    close_scene(&s);
}

// The front's thread sleeps for a connection; two workers have both of them.
static void test_pool(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s);
    call(&s, FRONT, CALL_RECEIVE, 9, 10, CLIENT_SIDE);
    call(&s, WORKER, CALL_SEND, 5, 6, MADE);
    call(&s, WORKER, CALL_RECEIVE, 7, 800, MADE);
    call(&s, OTHER, CALL_SEND, 5, 6, MADE_TOO);
    call(&s, OTHER, CALL_RECEIVE, 7, 1500, MADE_TOO);
    call(&s, FRONT, CALL_SEND, 830, 831, MADE);
    call(&s, FRONT, CALL_RECEIVE, 832, 900, MADE);
    call(&s, FRONT, CALL_SEND, 910, 911, CLIENT_SIDE);
    struct event *blocked = event(&s, 20, EVENT_BLOCKED, 0, FRONT);
    blocked->payload.a = 202; // futex
    runs(&s, 20, 0, BYSTANDER, "bystander");
    runs(&s, 798, 1, WORKER, "front");
    struct event *waking = event(&s, 810, EVENT_WAKING, 1, FRONT);
    waking->payload.b = WORKER;
    runs(&s, 812, 1, 0, "swapper/1");
    runs(&s, 815, 0, FRONT, "front");
    runs(&s, 834, 0, 0, "swapper/0");
    event(&s, 890, EVENT_WAKING, 2, FRONT);
    runs(&s, 895, 0, FRONT, "front");
    build(&s, 1, 10, 910, 2);
    expect(&s, "waiting for a free connection: all 2 wait for 127.0.0.1:6379", 785, 795);
    expect(&s, "waiting for 127.0.0.1:6379", 55, 60);
    expect(&s, "bystander", 0, 6);
    close_scene(&s);
}

// An event loop has one connection, and somebody else's request on it; the message waits in the
// loop until that is answered, and is asked for then. others: somebody else's came meanwhile.
// taken: on that connection; else there is another one, of which nobody made use.
static void loop_queues(struct scene *s, bool others, bool taken)
{
    open_scene(s);
    if (!taken) {
        call(s, FRONT, CALL_SEND, -40, -39, MADE_TOO);
        call(s, FRONT, CALL_RECEIVE, -30, -29, MADE_TOO);
        call(s, FRONT, CALL_SEND, 2000, 2001, MADE_TOO);
    }
    call(s, FRONT, CALL_RECEIVE, 1, 2, OTHERS_SIDE);
    call(s, FRONT, CALL_SEND, 5, 6, MADE);
    call(s, FRONT, CALL_WAIT, 7, 8, 0);
    call(s, FRONT, CALL_RECEIVE, 9, 10, CLIENT_SIDE);
    call(s, FRONT, CALL_WAIT, 12, others ? 400 : 800, 0);
    if (others) {
        call(s, FRONT, CALL_RECEIVE, 401, 402, 99);
        call(s, FRONT, CALL_WAIT, 405, 800, 0);
        event(s, 13, EVENT_SWITCH, 0, BYSTANDER)->flags = SWITCH_WAITS;
        strcpy(s->events.items[s->events.count - 1].payload.text, "bystander");
        event(s, 397, EVENT_WAKING, 2, FRONT);
        runs(s, 399, 0, FRONT, "front");
    }
    event(s, others ? 406 : 13, EVENT_SWITCH, 0, BYSTANDER)->flags = SWITCH_WAITS;
    strcpy(s->events.items[s->events.count - 1].payload.text, "bystander");
    event(s, 797, EVENT_WAKING, 2, FRONT);
    runs(s, 799, 0, FRONT, "front");
    call(s, FRONT, CALL_RECEIVE, 801, 802, MADE);
    call(s, FRONT, CALL_SEND, 805, 806, OTHERS_SIDE);
    call(s, FRONT, CALL_SEND, 810, 811, MADE);
    call(s, FRONT, CALL_WAIT, 812, 899, 0);
    event(s, 813, EVENT_SWITCH, 0, BYSTANDER)->flags = SWITCH_WAITS;
    strcpy(s->events.items[s->events.count - 1].payload.text, "bystander");
    event(s, 897, EVENT_WAKING, 2, FRONT);
    runs(s, 898, 0, FRONT, "front");
    call(s, FRONT, CALL_RECEIVE, 900, 901, MADE);
    call(s, FRONT, CALL_SEND, 910, 911, CLIENT_SIDE);
    build(s, 1, 10, 910, taken ? 1 : 2);
}

static void test_event_loop_queues(void **state)
{
    static const char queue[] =
        "waiting for a free connection: the only one waits for 127.0.0.1:6379";
    (void)state;
    for (int others = 0; others < 2; others++) {
        struct scene s;
        loop_queues(&s, others, true);
        expect(&s, queue, 770, 790);
        expect(&s, "waiting for 127.0.0.1:6379", 80, 88);
        expect(&s, "head-of-line blocking: waiting for 127.0.0.1:6379", 0, 3);
        expect(&s, "bystander", 0, 6);
        close_scene(&s);
        loop_queues(&s, others, false);
        expect(&s, queue, 0, 0);
        close_scene(&s);
    }
}

// An event loop gets two answers at once, replies to both, and asks on both connections for what
// had waited.
static void test_answers_at_once(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s);
    call(&s, FRONT, CALL_RECEIVE, 1, 2, OTHERS_SIDE);
    call(&s, FRONT, CALL_RECEIVE, 3, 4, 98);
    call(&s, FRONT, CALL_SEND, 5, 6, MADE);
    call(&s, FRONT, CALL_SEND, 7, 8, MADE_TOO);
    call(&s, FRONT, CALL_WAIT, 9, 10, 0);
    call(&s, FRONT, CALL_RECEIVE, 11, 12, CLIENT_SIDE);
    call(&s, FRONT, CALL_RECEIVE, 13, 14, 99);
    call(&s, FRONT, CALL_WAIT, 15, 800, 0);
    event(&s, 16, EVENT_SWITCH, 0, BYSTANDER)->flags = SWITCH_WAITS;
    strcpy(s.events.items[s.events.count - 1].payload.text, "bystander");
    event(&s, 797, EVENT_WAKING, 2, FRONT);
    runs(&s, 799, 0, FRONT, "front");
    call(&s, FRONT, CALL_RECEIVE, 801, 802, MADE);
    call(&s, FRONT, CALL_RECEIVE, 803, 804, MADE_TOO);
    call(&s, FRONT, CALL_SEND, 805, 806, 98);
    call(&s, FRONT, CALL_SEND, 807, 808, OTHERS_SIDE);
    call(&s, FRONT, CALL_SEND, 810, 811, MADE);
    call(&s, FRONT, CALL_SEND, 812, 813, MADE_TOO);
    call(&s, FRONT, CALL_WAIT, 814, 899, 0);
    event(&s, 815, EVENT_SWITCH, 0, BYSTANDER)->flags = SWITCH_WAITS;
    strcpy(s.events.items[s.events.count - 1].payload.text, "bystander");
    event(&s, 897, EVENT_WAKING, 2, FRONT);
    runs(&s, 898, 0, FRONT, "front");
    call(&s, FRONT, CALL_RECEIVE, 900, 901, MADE);
    call(&s, FRONT, CALL_RECEIVE, 902, 903, MADE_TOO);
    call(&s, FRONT, CALL_SEND, 910, 911, CLIENT_SIDE);
    call(&s, FRONT, CALL_SEND, 912, 913, 99);
    build(&s, 3, 12, 910, 2);
    expect(&s, "waiting for a free connection: all 2 wait for 127.0.0.1:6379", 770, 790);
    expect(&s, "waiting for 127.0.0.1:6379", 80, 88);
    expect(&s, "bystander", 0, 6);
    close_scene(&s);
}

// A worker of an event loop's own process did what the request needed; a packet for somebody else
// woke the loop before it had.
static void test_worker_of_an_event_loop(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s);
    call(&s, FRONT, CALL_RECEIVE, 9, 10, CLIENT_SIDE);
    call(&s, FRONT, CALL_WAIT, 23, 500, 0);
    call(&s, FRONT, CALL_RECEIVE, 501, 502, OTHERS_SIDE);
    call(&s, FRONT, CALL_SEND, 540, 541, OTHERS_SIDE);
    call(&s, FRONT, CALL_WAIT, 542, 1033, 0);
    call(&s, FRONT, CALL_SEND, 1040, 1042, CLIENT_SIDE);
    for (uint32_t thread = FRONT; thread <= WORKER; thread++)
        event(&s, 5, EVENT_MEMBER, 0, thread)->payload.a = FRONT_PROCESS;
    event(&s, 24, EVENT_SWITCH, 0, BYSTANDER)->flags = SWITCH_WAITS;
    strcpy(s.events.items[s.events.count - 1].payload.text, "bystander");
    runs(&s, 26, 1, WORKER, "front");
    event(&s, 497, EVENT_SOFTIRQ_ENTRY, 2, 3);
    event(&s, 498, EVENT_WAKING, 2, FRONT);
    event(&s, 499, EVENT_SOFTIRQ_EXIT, 2, 3);
    runs(&s, 499, 0, FRONT, "front");
    event(&s, 543, EVENT_SWITCH, 0, BYSTANDER)->flags = SWITCH_WAITS;
    strcpy(s.events.items[s.events.count - 1].payload.text, "bystander");
    event(&s, 1030, EVENT_WAKING, 1, FRONT)->payload.b = WORKER;
    runs(&s, 1031, 0, FRONT, "front");
    runs(&s, 1032, 1, 0, "swapper/1");
    build(&s, 1, 10, 1040, 0);
    expect(&s, "waiting for front (another thread)", 955, 965);
    expect(&s, "waiting for a packet", 0, 0);
    expect(&s, "head-of-line blocking", 40, 42);
    expect(&s, "bystander", 0, 3);
    close_scene(&s);
}

// The worker had done it while the loop was awake for somebody else, so its waking ended no wait of
// this request's; it did end a later one. A worker that slept meanwhile had not got it.
static void test_worker_that_wakes_nobody(void **state)
{
    (void)state;
    for (int sleeps = 0; sleeps <= 1; sleeps++) {
        struct scene s;
        open_scene(&s);
        call(&s, FRONT, CALL_RECEIVE, 9, 10, CLIENT_SIDE);
        call(&s, FRONT, CALL_WAIT, 23, 500, 0);
        call(&s, FRONT, CALL_RECEIVE, 501, 502, OTHERS_SIDE);
        call(&s, FRONT, CALL_SEND, 540, 542, CLIENT_SIDE);
        call(&s, FRONT, CALL_WAIT, 545, 700, 0);
        for (uint32_t thread = FRONT; thread <= WORKER; thread++)
            event(&s, 5, EVENT_MEMBER, 0, thread)->payload.a = FRONT_PROCESS;
        event(&s, 24, EVENT_SWITCH, 0, BYSTANDER)->flags = SWITCH_WAITS;
        strcpy(s.events.items[s.events.count - 1].payload.text, "bystander");
        runs(&s, 25, 1, WORKER, "front");
        if (sleeps) {
            event(&s, 30, EVENT_BLOCKED, 1, WORKER)->payload.a = 202; // futex
            runs(&s, 30, 1, 0, "swapper/1");
            event(&s, 530, EVENT_WAKING, 1, WORKER);
            runs(&s, 531, 1, WORKER, "front");
        }
        event(&s, 497, EVENT_SOFTIRQ_ENTRY, 2, 3);
        event(&s, 498, EVENT_WAKING, 2, FRONT);
        event(&s, 499, EVENT_SOFTIRQ_EXIT, 2, 3);
        runs(&s, 499, 0, FRONT, "front");
        event(&s, 546, EVENT_SWITCH, 0, BYSTANDER)->flags = SWITCH_WAITS;
        strcpy(s.events.items[s.events.count - 1].payload.text, "bystander");
        event(&s, 690, EVENT_WAKING, 1, FRONT)->payload.b = WORKER;
        runs(&s, 691, 0, FRONT, "front");
        runs(&s, 692, 1, 0, "swapper/1");
        build(&s, 1, 10, 540, 0);
        expect(&s, "waiting for front (another thread)", sleeps ? 0 : 465, sleeps ? 0 : 475);
        expect(&s, "put off by its event loop", sleeps ? 465 : 0, sleeps ? 475 : 0);
        close_scene(&s);
    }
}

// The loop puts the request off until a timer; a packet for somebody else woke it before that. With
// an answer of another server in between it is not known what the packet brought.
static void test_put_off_by_an_event_loop(void **state)
{
    (void)state;
    for (unsigned asks = 0; asks <= 1; asks++) {
        struct scene s;
        open_scene(&s);
        call(&s, FRONT, CALL_RECEIVE, 9, 10, CLIENT_SIDE);
        if (asks)
            call(&s, FRONT, CALL_SEND, 20, 21, MADE);
        call(&s, FRONT, CALL_WAIT, 23, 500, 0);
        if (asks)
            call(&s, FRONT, CALL_RECEIVE, 501, 502, MADE);
        call(&s, FRONT, CALL_WAIT, 542, 1033, 0);
        call(&s, FRONT, CALL_SEND, 1040, 1042, CLIENT_SIDE);
        event(&s, 24, EVENT_SWITCH, 0, BYSTANDER)->flags = SWITCH_WAITS;
        strcpy(s.events.items[s.events.count - 1].payload.text, "bystander");
        event(&s, 497, EVENT_SOFTIRQ_ENTRY, 2, 3);
        event(&s, 498, EVENT_WAKING, 2, FRONT);
        event(&s, 499, EVENT_SOFTIRQ_EXIT, 2, 3);
        runs(&s, 499, 0, FRONT, "front");
        event(&s, 543, EVENT_SWITCH, 0, BYSTANDER)->flags = SWITCH_WAITS;
        strcpy(s.events.items[s.events.count - 1].payload.text, "bystander");
        event(&s, 1029, EVENT_VECTOR_ENTRY, 2, VECTOR_LOCAL_TIMER);
        event(&s, 1030, EVENT_WAKING, 2, FRONT);
        event(&s, 1031, EVENT_VECTOR_EXIT, 2, VECTOR_LOCAL_TIMER);
        runs(&s, 1031, 0, FRONT, "front");
        build(&s, 1, 10, 1040, asks);
        expect(&s, "waiting for a timer", asks ? 480 : 955, asks ? 490 : 965);
        expect(&s, "waiting for 127.0.0.1:6379", asks ? 470 : 0, asks ? 482 : 0);
        expect(&s, "waiting for a packet", 0, 0);
        expect(&s, "bystander", 0, 3);
        close_scene(&s);
    }
}

// It reads somebody else's request each time it is woken, and answers the message at last: it had
// put it off. Not so if what comes is none of its clients'.
static void test_put_off_for_nobody_knows_what(void **state)
{
    (void)state;
    for (int others = 0; others <= 1; others++) {
        struct scene s;
        open_scene(&s);
        call(&s, FRONT, CALL_RECEIVE, 9, 10, CLIENT_SIDE);
        call(&s, FRONT, CALL_WAIT, 23, 500, 0);
        if (others)
            call(&s, FRONT, CALL_RECEIVE, 501, 502, OTHERS_SIDE);
        call(&s, FRONT, CALL_SEND, 540, 542, CLIENT_SIDE);
        event(&s, 24, EVENT_SWITCH, 0, BYSTANDER)->flags = SWITCH_WAITS;
        strcpy(s.events.items[s.events.count - 1].payload.text, "bystander");
        event(&s, 497, EVENT_SOFTIRQ_ENTRY, 2, 3);
        event(&s, 498, EVENT_WAKING, 2, FRONT);
        event(&s, 499, EVENT_SOFTIRQ_EXIT, 2, 3);
        runs(&s, 499, 0, FRONT, "front");
        build(&s, 1, 10, 540, 0);
        expect(&s, "put off by its event loop", others ? 465 : 0, others ? 475 : 0);
        expect(&s, "waiting for a packet", others ? 0 : 465, others ? 0 : 475);
        close_scene(&s);
    }
}

// The loop sends what its socket has room for, and the rest when the client has acknowledged that.
// A request of somebody else wakes it meanwhile. That is no room only where the reply was begun,
// and by a loop of which it is known that it asked nobody.
static void test_no_room_for_the_reply(void **state)
{
    (void)state;
    enum { BEGUN, NOT_BEGUN, UNSEEN };
    for (int way = BEGUN; way <= UNSEEN; way++) {
        struct scene s;
        open_scene(&s);
        call(&s, FRONT, CALL_RECEIVE, 9, 10, CLIENT_SIDE);
        call(&s, FRONT, CALL_SEND, 20, 21, CLIENT_SIDE);
        call(&s, FRONT, CALL_WAIT, 23, 500, 0);
        call(&s, FRONT, CALL_RECEIVE, 501, 502, OTHERS_SIDE);
        call(&s, FRONT, CALL_WAIT, 542, 1033, 0);
        call(&s, FRONT, CALL_SEND, 1040, 1042, CLIENT_SIDE);
        for (int woken = 0; woken < 2; woken++) {
            int from = woken ? 543 : 24, to = woken ? 1029 : 497;
            event(&s, from, EVENT_SWITCH, 0, BYSTANDER)->flags = SWITCH_WAITS;
            strcpy(s.events.items[s.events.count - 1].payload.text, "bystander");
            event(&s, to, EVENT_SOFTIRQ_ENTRY, 2, 3);
            event(&s, to + 1, EVENT_WAKING, 2, FRONT);
            event(&s, to + 2, EVENT_SOFTIRQ_EXIT, 2, 3);
            runs(&s, to + 2, 0, FRONT, "front");
        }
        s.batch = way == UNSEEN ? 0 : 7;
        s.in_part_us = way == NOT_BEGUN ? 0 : 21;
        build(&s, 1, 10, 1040, 0);
        expect(&s, "waiting for room to send", way == BEGUN ? 950 : 0, way == BEGUN ? 965 : 0);
        expect(&s, "put off by its event loop", way == NOT_BEGUN ? 465 : 0,
               way == NOT_BEGUN ? 475 : 0);
        expect(&s, "bystander", 0, 3);
        close_scene(&s);
    }
}

// The front's thread sleeps in a call that sends somebody else's reply, whose client does not read.
// That is a wait for room whatever woke it, seen or not; a write is one where it is known to be on
// a connection, and none where another thread ended it.
static void test_sends_without_room(void **state)
{
    (void)state;
    enum { SENDTO = 44, WRITE = 1, NET_TX = 2, NET_RX = 3 };
    static const struct {
        uint32_t call;
        uint8_t softirq; // what woke it; 0: nobody saw it
        bool timer, thread, elsewhere;
        const char *name;
    } ways[] = {
        {SENDTO, NET_RX, false, false, false, "waiting for room to send"},
        {SENDTO, NET_TX, false, false, false, "waiting for room to send"},
        {SENDTO, 0, false, false, false, "waiting for room to send"},
        {SENDTO, 0, true, false, false, "waiting for room to send, timed out"},
        {SENDTO, 0, false, true, false, "blocked in sendto: worker"},
        {WRITE, 0, false, false, false, "waiting for room to send"},
        {WRITE, 0, false, false, true, "blocked in write"},
    };
    for (size_t way = 0; way < sizeof ways / sizeof *ways; way++) {
        struct scene s;
        bool elsewhere = ways[way].elsewhere;
        open_scene(&s);
        call(&s, FRONT, CALL_RECEIVE, 5, 6, OTHERS_SIDE);
        call(&s, FRONT, CALL_SEND, elsewhere ? 10 : 20, elsewhere ? 12 : 1000, OTHERS_SIDE);
        call(&s, FRONT, CALL_RECEIVE, 1003, 1004, CLIENT_SIDE);
        call(&s, FRONT, CALL_SEND, 1010, 1011, CLIENT_SIDE);
        runs(&s, 5, 2, WORKER, "worker");
        event(&s, 24, EVENT_BLOCKED, 0, FRONT)->payload.a = ways[way].call;
        runs(&s, 24, 0, BYSTANDER, "bystander");
        if (ways[way].softirq)
            event(&s, 988, EVENT_SOFTIRQ_ENTRY, 1, ways[way].softirq);
        if (ways[way].timer)
            event(&s, 988, EVENT_VECTOR_ENTRY, 1, VECTOR_LOCAL_TIMER);
        struct event *waking = event(&s, 989, EVENT_WAKING, ways[way].thread ? 2 : 1, FRONT);
        waking->payload.b = ways[way].thread ? WORKER : 0;
        if (ways[way].softirq)
            event(&s, 990, EVENT_SOFTIRQ_EXIT, 1, ways[way].softirq);
        if (ways[way].timer)
            event(&s, 990, EVENT_VECTOR_EXIT, 1, VECTOR_LOCAL_TIMER);
        runs(&s, 991, 0, FRONT, "front");
        runs(&s, 1100, 2, 0, "swapper/2");
        build(&s, 30, 1004, 1010, 0);
        expect(&s, ways[way].name, 950, 965);
        expect(&s, "bystander", 0, 3);
        close_scene(&s);
    }
}

// The front has read two requests, of which the message's is the second, and says of itself that it
// works for neither of them before it replies to both: that is nobody's turn.
static void test_works_for_itself_before_it_replies(void **state)
{
    (void)state;
    for (int says = 0; says <= 1; says++) {
        struct scene s;
        struct service_order order;
        size_t end;
        open_scene(&s);
        call(&s, FRONT, CALL_RECEIVE, 5, 6, OTHERS_SIDE);
        call(&s, FRONT, CALL_RECEIVE, 9, 10, CLIENT_SIDE);
        call(&s, FRONT, CALL_SEND, 910, 911, OTHERS_SIDE);
        call(&s, FRONT, CALL_SEND, 920, 921, CLIENT_SIDE);
        if (says) {
            struct event *work = event(&s, 900, EVENT_DETOUR, 0, FRONT);
            work->flags = DETOUR_OWN_WORK;
            work->payload.a = (uint64_t)US(20);
        }
        build(&s, 1, 10, 920, 0);
        expect(&s, "the server's own work", says ? 879 : 0, says ? 881 : 0);
        assert_int_equal(service_order_build(&order, &s.life, 1, &s.all, &s.host), 0);
        const struct turn *turn =
            &order.turns.items[service_order_after(&order, FRONT, US(500), &end)];
        assert_int_equal(turn->service == TURN_SERVER, says);
        assert_int_equal(turn->end_ns, US(says ? 900 : 910));
        service_order_free(&order);
        close_scene(&s);
    }
}

// The front hands the message over to a worker, which does something else until 850 us. While
// somebody else has its core that is what it lacks: it would have none if there were more workers.
static void test_worker_without_a_core(void **state)
{
    (void)state;
    for (int preempted = 0; preempted <= 1; preempted++) {
        struct scene s;
        open_scene(&s);
        call(&s, FRONT, CALL_RECEIVE, 9, 10, CLIENT_SIDE);
        call(&s, FRONT, CALL_RECEIVE, 14, 15, OTHERS_SIDE);
        call(&s, WORKER, CALL_SEND, 845, 850, OTHERS_SIDE);
        call(&s, WORKER, CALL_SEND, 860, 861, CLIENT_SIDE);
        runs(&s, 5, 1, WORKER, "worker");
        if (preempted) {
            event(&s, 100, EVENT_SWITCH, 1, BYSTANDER)->flags = SWITCH_PREEMPTED;
            strcpy(s.events.items[s.events.count - 1].payload.text, "bystander");
            runs(&s, 840, 1, WORKER, "worker");
        }
        build(&s, 1, 10, 860, 0);
        expect(&s, "bystander", preempted ? 739 : 0, preempted ? 741 : 0);
        expect(&s, "waiting for a free worker", preempted ? 95 : 835, preempted ? 97 : 837);
        close_scene(&s);
    }
}

// The front's thread asks the backend before it reads the request, as it does to open a connection
// of its own for each client: nobody is ahead of the request then. Somebody is, if it had one
// before.
static void test_asks_before_it_reads(void **state)
{
    (void)state;
    for (int others = 0; others <= 1; others++) {
        struct scene s;
        open_scene(&s);
        if (others)
            call(&s, FRONT, CALL_RECEIVE, 5, 6, OTHERS_SIDE);
        call(&s, FRONT, CALL_SEND, 20, 22, MADE);
        call(&s, FRONT, CALL_RECEIVE, 23, 1036, MADE);
        if (others)
            call(&s, FRONT, CALL_SEND, 1037, 1038, OTHERS_SIDE);
        call(&s, FRONT, CALL_RECEIVE, 1040, 1041, CLIENT_SIDE);
        call(&s, FRONT, CALL_SEND, 1050, 1052, CLIENT_SIDE);
        runs(&s, 24, 0, BYSTANDER, "bystander");
        event(&s, 1029, EVENT_SOFTIRQ_ENTRY, 2, 3);
        event(&s, 1030, EVENT_WAKING, 2, FRONT);
        event(&s, 1031, EVENT_SOFTIRQ_EXIT, 2, 3);
        runs(&s, 1032, 0, FRONT, "front");
        build(&s, 10, 1041, 1050, 1);
        expect(&s, "waiting for 127.0.0.1:6379", others ? 0 : 1000, others ? 0 : 1015);
        expect(&s, "head-of-line blocking: waiting for 127.0.0.1:6379", others ? 1000 : 0,
               others ? 1015 : 0);
        close_scene(&s);
    }
}

// The front's thread waits for a worker's word, for half a millisecond at most, and then again.
// Only where it does something else in between it is the first time that it waits for.
static void test_waits_again_and_again(void **state)
{
    (void)state;
    for (int works = 0; works <= 1; works++) {
        struct scene s;
        open_scene(&s);
        call(&s, FRONT, CALL_RECEIVE, 9, 10, CLIENT_SIDE);
        call(&s, FRONT, CALL_SEND, 1340, 1342, CLIENT_SIDE);
        runs(&s, 15, 2, WORKER, "worker");
        for (int again = 0; again < 2; again++) {
            struct event *blocked = event(&s, again ? 810 : 24, EVENT_BLOCKED, 0, FRONT);
            blocked->payload.a = 202; // futex
            blocked->flags = BLOCKED_CONDITION;
            runs(&s, again ? 810 : 24, 0, BYSTANDER, "bystander");
            if (again)
                event(&s, 1300, EVENT_WAKING, 2, FRONT)->payload.b = WORKER;
            else {
                event(&s, 497, EVENT_VECTOR_ENTRY, 1, VECTOR_LOCAL_TIMER);
                event(&s, 498, EVENT_WAKING, 1, FRONT);
                event(&s, 499, EVENT_VECTOR_EXIT, 1, VECTOR_LOCAL_TIMER);
            }
            runs(&s, again ? 1301 : works ? 499 : 800, 0, FRONT, "front");
        }
        runs(&s, 1400, 2, 0, "swapper/2");
        build(&s, 1, 10, 1340, 0);
        expect(&s, "condition wait (futex): worker", works ? 485 : 955, works ? 495 : 970);
        expect(&s, "condition wait (futex), timed out", works ? 465 : 0, works ? 480 : 0);
        close_scene(&s);
    }
}

// The front's thread works for somebody else while a part of the request lies in its socket, which
// has no room for the rest: that the client sends it late is not the client's doing.
static void test_part_of_a_request_unread(void **state)
{
    (void)state;
    for (int parts = 0; parts <= 1; parts++) {
        struct scene s;
        open_scene(&s);
        call(&s, FRONT, CALL_RECEIVE, 5, 6, OTHERS_SIDE);
        call(&s, FRONT, CALL_SEND, 900, 901, OTHERS_SIDE);
        call(&s, FRONT, CALL_RECEIVE, 904, 905, CLIENT_SIDE);
        call(&s, FRONT, CALL_RECEIVE, 949, 950, CLIENT_SIDE);
        call(&s, FRONT, CALL_SEND, 960, 962, CLIENT_SIDE);
        if (parts) {
            s.due_us = 10;
            s.part_ready_us = 20;
            s.part_read_us = 905;
        }
        build(&s, 945, 950, 960, 0);
        expect(&s, "head-of-line blocking", parts ? 875 : 0, parts ? 885 : 2);
        expect(&s, "client queue", parts ? 40 : 0, parts ? 50 : 2);
        close_scene(&s);
    }
}

// The backend works on the front's core for one of its workers, until 1000 us, and then for
// somebody else. The front's thread, which has another request, is ready all the time.
static void peer_has_core(struct scene *s, bool captured)
{
    if (captured) {
        call(s, BACKEND, CALL_RECEIVE, 27, 30, BACKEND_SIDE);
        call(s, BACKEND, CALL_SEND, 1000, 1002, BACKEND_SIDE);
    }
    call(s, WORKER, CALL_RECEIVE, 3, 4, OTHERS_SIDE);
    call(s, WORKER, CALL_SEND, 5, 6, MADE);
    call(s, WORKER, CALL_RECEIVE, 7, 1250, MADE);
    call(s, FRONT, CALL_RECEIVE, 1201, 1202, CLIENT_SIDE);
    call(s, FRONT, CALL_SEND, 1210, 1212, CLIENT_SIDE);
    event(s, 8, EVENT_SWITCH, 0, BACKEND)->flags = SWITCH_WAITS;
    strcpy(s->events.items[s->events.count - 1].payload.text, "backend");
    event(s, 40, EVENT_WAKING, 2, FRONT);
    runs(s, 1200, 0, FRONT, "front");
    build(s, 40, 1202, 1210, 1);
}

static void test_peer_has_core(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s);
    peer_has_core(&s, true);
    expect(&s, "head-of-line blocking: waiting for 127.0.0.1:6379", 955, 965);
    expect(&s, "backend", 195, 205); // what it did then was for others
    close_scene(&s);
}

// Nobody knows that the program is the peer: it has the core, as any other.
static void test_stranger_has_core(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s);
    peer_has_core(&s, false);
    expect(&s, "backend", 1155, 1165);
    close_scene(&s);
}

// The front's thread is woken while a bystander has its core, who has to make way, or goes on for a
// while and then either is preempted, too, or has finished.
static void bystander_until(struct scene *s, int us, bool preempted)
{
    open_scene(s);
    event(s, 8, EVENT_SWITCH, 0, BYSTANDER)->flags = SWITCH_WAITS;
    strcpy(s->events.items[s->events.count - 1].payload.text, "bystander");
    call(s, FRONT, CALL_RECEIVE, us + 2, us + 3, CLIENT_SIDE);
    call(s, FRONT, CALL_SEND, us + 10, us + 12, CLIENT_SIDE);
    event(s, 100, EVENT_WAKING, 2, FRONT);
    runs(s, us, 0, FRONT, "front");
    if (preempted)
        s->events.items[s->events.count - 1].flags = SWITCH_PREEMPTED;
    build(s, 100, us + 3, us + 10, 0);
}

static void test_makes_way(void **state)
{
    (void)state;
    struct scene s;
    bystander_until(&s, 130, true);
    expect(&s, "wake-up latency", 29, 31);
    expect(&s, "bystander", 0, 1); // until the hand-off
    close_scene(&s);
    bystander_until(&s, 130, false); // it had the core as long as it wanted
    expect(&s, "bystander", 30, 32);
    close_scene(&s);
    bystander_until(&s, 400, true); // it was given some time
    expect(&s, "bystander", 300, 302);
    close_scene(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_not_captured),
        cmocka_unit_test(test_captured),
        cmocka_unit_test(test_behind_one_that_waits),
        cmocka_unit_test(test_event_loop),
        cmocka_unit_test(test_connects_first),
        cmocka_unit_test(test_pool),
        cmocka_unit_test(test_event_loop_queues),
        cmocka_unit_test(test_answers_at_once),
        cmocka_unit_test(test_worker_of_an_event_loop),
        cmocka_unit_test(test_worker_that_wakes_nobody),
        cmocka_unit_test(test_put_off_by_an_event_loop),
        cmocka_unit_test(test_put_off_for_nobody_knows_what),
        cmocka_unit_test(test_no_room_for_the_reply),
        cmocka_unit_test(test_sends_without_room),
        cmocka_unit_test(test_works_for_itself_before_it_replies),
        cmocka_unit_test(test_worker_without_a_core),
        cmocka_unit_test(test_asks_before_it_reads),
        cmocka_unit_test(test_waits_again_and_again),
        cmocka_unit_test(test_part_of_a_request_unread),
        cmocka_unit_test(test_peer_has_core),
        cmocka_unit_test(test_stranger_has_core),
        cmocka_unit_test(test_makes_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
