// SPDX-License-Identifier: MIT
//
// Requests over UDP: a scenario whose every stamp is known, with its streams cut into datagrams, of
// which some are lost, doubled or overtake one another.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "analysis/lifetime/datagrams.h"
#include "base/datagram_key.h"
#include "tests/analysis/lifetime/joined.h"

enum { SOCKET = 1 }; // the server's one, as the shim calls it

struct over_udp {
    struct joined joined;
    struct datagrams datagrams;
    uint64_t timeout_ns;
    struct time_source client_clock; // convert NULL: client and server are on one machine
};

static uint64_t key_of(const struct scenario *s, uint32_t client, uint64_t number)
{
    const struct connection *one = &s->client.items[client];
    const uint8_t begin[2] = {(uint8_t)(number >> 8), (uint8_t)number};
    return datagram_key(datagram_client(one->local, one->local_port), begin);
}

static bool is_message(const struct event *event)
{
    return event->kind == EVENT_SEGMENT || event->kind == EVENT_HANDOFF ||
           event->kind == EVENT_TRANSMIT || event->kind == EVENT_DROPPED;
}

// Every request becomes a datagram, and so does its reply; the server has one socket.
static void cut(struct scenario *s)
{
    for (size_t i = 0; i < s->samples.count; i++) {
        struct sample *sample = &s->samples.items[i];
        sample->request_begin = s->requests.items[i].begin / REQUEST_BYTES;
        sample->request_end = sample->request_begin + 1;
        sample->reply_begin = sample->request_begin;
        sample->reply_end = sample->request_end;
    }
    for (size_t c = 0; c < s->client.count; c++)
        s->client.items[c].protocol = CONNECTION_UDP;
    for (size_t i = 0; i < s->events.count; i++) {
        struct event *event = &s->events.items[i];
        if (!is_message(event))
            continue;
        uint32_t bytes = event->kind == EVENT_TRANSMIT ? REPLY_BYTES : REQUEST_BYTES;
        event->payload.a = key_of(s, event->id - 500, event->payload.a / bytes - 1);
        event->payload.b = event->kind == EVENT_HANDOFF ? 0 : event->payload.b;
        event->flags |= EVENT_OF_DATAGRAM;
        event->id = SERVER_PORT;
    }
    for (size_t i = 0; i < s->calls.count; i++) {
        struct call *call = &s->calls.items[i];
        if (call->kind != CALL_RECEIVE && call->kind != CALL_SEND)
            continue;
        uint32_t bytes = call->kind == CALL_SEND ? REPLY_BYTES : REQUEST_BYTES;
        call->offset = key_of(s, call->connection - 7, call->offset / bytes);
        call->connection = SOCKET;
    }
    s->sockets.count = 0;
    s->shim.items[0] = (struct connection){.id = SOCKET,
                                           .protocol = CONNECTION_UDP,
                                           .local_port = SERVER_PORT,
                                           .process = SERVER_PROCESS};
    s->shim.count = 1;
}

static void make(struct over_udp *u, const struct scenario_options *options)
{
    *u = (struct over_udp){.joined = {.counts = {.connections = 0}}};
    scenario_build(&u->joined.scenario, options);
    cut(&u->joined.scenario);
}

static void resolve(struct over_udp *u)
{
    struct scenario *s = &u->joined.scenario;
    const struct datagrams_input in = {
        .samples = s->samples.items,
        .sample_count = s->samples.count,
        .clients = s->client.items,
        .client_count = s->client.count,
        .events = s->events.items,
        .event_count = s->events.count,
        .sockets = s->sockets.items,
        .socket_count = s->sockets.count,
        .calls = s->calls.items,
        .call_count = s->calls.count,
        .connections = s->shim.items,
        .connection_count = s->shim.count,
        .clock = scenario_clock(),
        .client_clock = u->client_clock.convert ? &u->client_clock : NULL,
    };
    assert_int_equal(datagrams_resolve(&in, &u->datagrams), 0);
    assert_true(u->datagrams.any);
}

static void join(struct over_udp *u)
{
    struct joined *j = &u->joined;
    struct scenario *s = &j->scenario;
    struct time_source clock = scenario_clock();
    struct error err = {0};
    uint64_t damaged;
    resolve(u);
    application_calls_build(u->datagrams.calls.items, u->datagrams.calls.count, &clock, &j->calls,
                            &damaged, &err);
    const struct join_input input = {
        .samples = s->samples.items,
        .sample_count = s->samples.count,
        .client_connections = s->client.items,
        .client_connection_count = s->client.count,
        .events = u->datagrams.events.items,
        .event_count = u->datagrams.events.count,
        .sockets = u->datagrams.sockets.items,
        .socket_count = u->datagrams.sockets.count,
        .calls = &j->calls,
        .shim_connections = u->datagrams.connections.items,
        .shim_connection_count = u->datagrams.connections.count,
        .timeout_ns = u->timeout_ns,
        .clock = clock,
        .client_clock = u->client_clock.convert ? &u->client_clock : NULL,
    };
    join_all(j, &input);
}

static void drop(struct over_udp *u)
{
    datagrams_free(&u->datagrams);
    release(&u->joined);
}

static void assert_life(const struct over_udp *u, size_t i)
{
    const struct lifetime *life = &u->joined.lives.items[i];
    const struct scenario_request *r = &u->joined.scenario.requests.items[i];
    const int64_t truth[STAMP_KINDS] = {r->intended,  r->send,        r->tx,    r->nic,
                                        r->handoff,   r->application, r->reply, r->server_tx,
                                        r->client_rx, r->read};
    assert_int_equal(life->state, LIFETIME_WHOLE);
    for (int k = 0; k < STAMP_KINDS; k++)
        assert_int_equal(life->stamp_ns[k], truth[k]);
    assert_int_equal(life->thread, SERVER_THREAD);
}

static void assert_lives(const struct over_udp *u)
{
    for (size_t i = 0; i < u->joined.lives.count; i++)
        assert_life(u, i);
    assert_int_equal(u->joined.counts.disorder.violations, 0);
    assert_int_equal(u->joined.counts.connections_without_socket, 0);
    assert_int_equal(u->joined.counts.connections_without_calls, 0);
}

static void plain_run_is_exact(void **state)
{
    (void)state;
    struct over_udp u;
    make(&u, &plain);
    join(&u);
    assert_lives(&u);
    assert_int_equal(u.datagrams.strangers, 0);
    drop(&u);
}

static struct scenario_options many(unsigned requests)
{
    struct scenario_options options = plain;
    options.requests = requests;
    options.connections = 1;
    return options;
}

static void numbers_go_on_beyond_sixteen_bits(void **state)
{
    (void)state;
    struct over_udp u;
    struct scenario_options options = many(150000);
    make(&u, &options);
    join(&u);
    assert_lives(&u);
    drop(&u);
}

static int64_t other_clock(const void *context, enum host_clock clock, uint64_t value)
{
    return scenario_convert(context, clock, value) - 4711000000000;
}

// Client and server on two machines: nothing relates their clocks.
static void clocks_need_nothing_in_common(void **state)
{
    (void)state;
    struct over_udp u;
    struct scenario_options options = many(150000);
    make(&u, &options);
    u.client_clock = (struct time_source){.convert = other_clock};
    join(&u);
    for (size_t i = 0; i < u.joined.lives.count; i++) {
        const struct lifetime *life = &u.joined.lives.items[i];
        const struct scenario_request *r = &u.joined.scenario.requests.items[i];
        assert_int_equal(life->state, LIFETIME_WHOLE);
        assert_int_equal(life->stamp_ns[STAMP_NIC], r->nic);
        assert_int_equal(life->stamp_ns[STAMP_HANDOFF], r->handoff);
        assert_int_equal(life->stamp_ns[STAMP_APPLICATION], r->application);
        assert_int_equal(life->stamp_ns[STAMP_REPLY], r->reply);
        assert_int_equal(life->stamp_ns[STAMP_SERVER_TX], r->server_tx);
        assert_true(fabs(life->latency_ns - (double)(r->read - r->intended)) < 1);
    }
    assert_int_equal(u.joined.counts.disorder.violations, 0);
    drop(&u);
}

// Copies of records: the network delivers some datagrams twice, and the server answers both.
static void doubled_datagrams_count_once(void **state)
{
    (void)state;
    struct over_udp u;
    make(&u, &plain);
    struct scenario *s = &u.joined.scenario;
    for (size_t i = 0, count = s->events.count; i < count; i++) {
        struct event again = s->events.items[i];
        again.time += 40000;
        if (is_message(&again) && (again.payload.a & 7) == 0)
            SCENARIO_PUSH(&s->events, again);
    }
    for (size_t i = 0, count = s->calls.count; i < count; i++) {
        struct call again = s->calls.items[i];
        again.entry_tsc += 40000 * CYCLES_PER_NS;
        again.exit_tsc += 40000 * CYCLES_PER_NS;
        if (again.connection == SOCKET && (again.offset & 7) == 0)
            SCENARIO_PUSH(&s->calls, again);
    }
    join(&u);
    assert_lives(&u);
    drop(&u);
}

// Of two requests that are under way together the later one comes first all along.
static void datagrams_may_overtake(void **state)
{
    (void)state;
    struct over_udp u;
    struct scenario_options options = many(4000);
    options.gap_ns = 3000;
    make(&u, &options);
    struct scenario *s = &u.joined.scenario;
    size_t overtaken = 0;
    for (size_t i = 0; i + 1 < s->requests.count; i += 2) {
        struct scenario_request *a = &s->requests.items[i], *b = a + 1;
        if (b->tx >= a->nic)
            continue;
        uint64_t of_a = key_of(s, 0, i), of_b = key_of(s, 0, i + 1);
        for (size_t e = 0; e < s->events.count; e++)
            if (s->events.items[e].payload.a == of_a || s->events.items[e].payload.a == of_b)
                s->events.items[e].payload.a ^= of_a ^ of_b;
        for (size_t c = 0; c < s->calls.count; c++)
            if (s->calls.items[c].offset == of_a || s->calls.items[c].offset == of_b)
                s->calls.items[c].offset ^= of_a ^ of_b;
        struct scenario_request was = *a;
#define SWAP(member) (a->member = b->member, b->member = was.member)
        SWAP(nic), SWAP(handoff), SWAP(application), SWAP(reply);
        SWAP(server_tx), SWAP(client_rx), SWAP(read);
        for (size_t k = i; k <= i + 1; k++) {
            s->samples.items[k].rx_ns =
                (uint64_t)(s->requests.items[k].client_rx + REALTIME_AHEAD_NS);
            s->samples.items[k].reply_tsc = (uint64_t)s->requests.items[k].read * CYCLES_PER_NS;
        }
        overtaken++;
    }
    assert_true(overtaken > 20);
    join(&u);
    assert_lives(&u);
    drop(&u);
}

// --- loss ----------------------------------------------------------------------------------------

enum lost_at {
    ON_WAY_IN,  // the server never sees it
    BY_SOCKET,  // it arrives, and the socket has no room for it
    BY_KERNEL,  // it arrives, and nobody wants it
    BY_SERVER,  // it is received, and not answered
    ON_WAY_OUT, // the answer leaves
    BY_CLIENT,  // the answer finds no room in the client's socket
    LOST_AT
};

static bool is_gone(enum lost_at at, uint8_t event_kind)
{
    switch (event_kind) {
    case EVENT_SEGMENT:
        return at <= ON_WAY_IN;
    case EVENT_HANDOFF:
        return at <= BY_KERNEL;
    default:
        return at <= BY_SERVER;
    }
}

// enum lost_at; -1: it is not lost.
static int lost_at(uint64_t key)
{
    return key % 16 < LOST_AT ? (int)(key % 16) : -1;
}

// Takes the records away that a request does not leave which is lost.
static void lose(struct scenario *s)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->events.count; i++) {
        struct event event = s->events.items[i];
        int at = is_message(&event) ? lost_at(event.payload.a) : -1;
        if (at < 0 || !is_gone((enum lost_at)at, event.kind))
            s->events.items[kept++] = event;
    }
    s->events.count = kept;
    kept = 0;
    for (size_t i = 0; i < s->calls.count; i++) {
        struct call call = s->calls.items[i];
        int at = call.connection == SOCKET ? lost_at(call.offset) : -1;
        if (at < 0 || at > BY_SERVER || (at == BY_SERVER && call.kind == CALL_RECEIVE))
            s->calls.items[kept++] = call;
    }
    s->calls.count = kept;
    for (size_t i = 0; i < s->samples.count; i++) {
        struct sample *sample = &s->samples.items[i];
        uint64_t key = key_of(s, sample->connection, sample->request_begin);
        int at = lost_at(key);
        if (at < 0)
            continue;
        sample->status = SAMPLE_LOST;
        sample->reply_tsc = sample->rx_ns = sample->reply_begin = sample->reply_end = 0;
        if (at != BY_SOCKET && at != BY_CLIENT)
            continue;
        int64_t now =
            at == BY_SOCKET ? s->requests.items[i].handoff : s->requests.items[i].client_rx;
        scenario_stream(s, now, EVENT_DROPPED, 1, SERVER_PORT, key,
                        (uint64_t)LOSS_SOCKET_RCVBUFF << 32 | 6);
        s->events.items[s->events.count - 1].flags =
            EVENT_OF_DATAGRAM | DROPPED_BY_SOCKET | (at == BY_CLIENT ? DROPPED_TO_CLIENT : 0);
    }
}

static void losses_have_a_place(void **state)
{
    (void)state;
    struct over_udp u;
    struct scenario_options options = many(1600);
    make(&u, &options);
    lose(&u.joined.scenario);
    join(&u);
    static const enum datagram_loss places[LOST_AT] = {
        [ON_WAY_IN] = DATAGRAM_LOST_TO_SERVER,     [BY_SOCKET] = DATAGRAM_LOST_SERVER_SOCKET,
        [BY_KERNEL] = DATAGRAM_LOST_SERVER_KERNEL, [BY_SERVER] = DATAGRAM_LOST_SERVER,
        [ON_WAY_OUT] = DATAGRAM_LOST_TO_CLIENT,    [BY_CLIENT] = DATAGRAM_LOST_CLIENT_SOCKET,
    };
    for (int at = 0; at < LOST_AT; at++)
        assert_int_equal(u.joined.counts.datagrams_lost.at[places[at]], 100);
    assert_int_equal(u.joined.counts.datagrams_lost.at[DATAGRAM_LOST_UNKNOWN], 0);
    const struct datagram_losses *lost = &u.joined.counts.datagrams_lost;
    char words[DATAGRAM_LOSS_WORDS];
    assert_string_equal(datagram_loss_by_words(lost, DATAGRAM_LOST_SERVER_SOCKET, words),
                        " (100 by the socket, its receive buffer full (SOCKET_RCVBUFF))");
    assert_int_equal(lost->by[DATAGRAM_LOST_CLIENT_SOCKET][LOSS_SOCKET_RCVBUFF], 100);
    assert_string_equal(datagram_loss_by_words(lost, DATAGRAM_LOST_TO_SERVER, words), "");
    assert_int_equal(u.joined.counts.disorder.violations, 0);
    for (size_t i = 0; i < u.joined.lives.count; i++)
        if (u.joined.scenario.samples.items[i].status == SAMPLE_LOST)
            assert_int_equal(u.joined.lives.items[i].state, LIFETIME_UNANSWERED);
        else
            assert_life(&u, i);
    drop(&u);
}

static void replies_may_be_too_late(void **state)
{
    (void)state;
    struct over_udp u;
    struct scenario_options options = many(160);
    make(&u, &options);
    lose(&u.joined.scenario);
    u.timeout_ns = 1;
    join(&u);
    assert_int_equal(u.joined.counts.datagrams_lost.at[DATAGRAM_LOST_TOO_LATE], 10);
    assert_int_equal(u.joined.counts.datagrams_lost.at[DATAGRAM_LOST_TO_CLIENT], 0);
    drop(&u);
}

// The client's thread had no core, or the reply came late though the server had sent it in time.
static void replies_may_be_read_too_late(void **state)
{
    (void)state;
    struct over_udp u;
    struct scenario_options options = many(160);
    make(&u, &options);
    struct scenario *s = &u.joined.scenario;
    lose(s);
    for (size_t i = 0; i < s->samples.count; i++) {
        struct sample *sample = &s->samples.items[i];
        if (lost_at(key_of(s, sample->connection, sample->request_begin)) == ON_WAY_OUT)
            sample->sender_high |= SAMPLE_READ_LATE;
    }
    join(&u);
    assert_int_equal(u.joined.counts.datagrams_lost.at[DATAGRAM_LOST_READ_LATE], 10);
    assert_int_equal(u.joined.counts.datagrams_lost.at[DATAGRAM_LOST_TO_CLIENT], 0);
    drop(&u);
}

static void without_events_nobody_knows_where(void **state)
{
    (void)state;
    struct over_udp u;
    struct scenario_options options = many(160);
    make(&u, &options);
    lose(&u.joined.scenario);
    array_free(&u.joined.scenario.events);
    join(&u);
    assert_int_equal(u.joined.counts.datagrams_lost.at[DATAGRAM_LOST_UNKNOWN], 60);
    drop(&u);
}

// --- other things in the logs --------------------------------------------------------------------

static void strangers_are_left_alone(void **state)
{
    (void)state;
    struct over_udp u;
    make(&u, &plain);
    struct scenario *s = &u.joined.scenario;
    uint8_t address[16] = {1, 2, 3}, begin[2] = {0, 1};
    uint64_t key = datagram_key(datagram_client(address, 9), begin);
    for (int i = 0; i < 10; i++) {
        scenario_stream(s, SCENARIO_BEGIN_NS + i, EVENT_SEGMENT, 1, SERVER_PORT, key, 0);
        s->events.items[s->events.count - 1].flags = EVENT_OF_DATAGRAM;
    }
    join(&u);
    assert_lives(&u);
    assert_int_equal(u.datagrams.strangers, 10);
    drop(&u);
}

// A load over TCP, and somebody else's datagrams to the same port: their port is no socket's
// number.
static void a_load_over_tcp_is_left_alone(void **state)
{
    (void)state;
    struct over_udp u;
    make(&u, &plain);
    struct scenario *s = &u.joined.scenario;
    for (size_t c = 0; c < s->client.count; c++)
        s->client.items[c].protocol = CONNECTION_TCP;
    resolve(&u);
    assert_true(u.datagrams.strangers > plain.requests);
    for (size_t i = 0; i < u.datagrams.events.count; i++)
        assert_true(!is_message(&u.datagrams.events.items[i]) ||
                    u.datagrams.events.items[i].id == 0);
    drop(&u);
}

// A client's second socket may have the port of its first: what came later is the second's.
static void ports_may_be_used_again(void **state)
{
    (void)state;
    struct over_udp u;
    struct scenario_options options = many(1000);
    make(&u, &options);
    struct scenario *s = &u.joined.scenario;
    struct connection second = s->client.items[0];
    second.id++;
    SCENARIO_PUSH(&s->client, second);
    for (size_t i = 500; i < 1000; i++) {
        struct sample *sample = &s->samples.items[i];
        sample->connection = second.id;
        sample->request_begin -= 500;
        sample->request_end -= 500;
    }
    for (size_t i = 0; i < s->events.count; i++)
        if (is_message(&s->events.items[i]) && (uint16_t)s->events.items[i].payload.a >= 500)
            s->events.items[i].payload.a -= 500;
    for (size_t i = 0; i < s->calls.count; i++)
        if (s->calls.items[i].connection == SOCKET && (uint16_t)s->calls.items[i].offset >= 500)
            s->calls.items[i].offset -= 500;
    join(&u);
    // Around the change a record of the first may come when the second has begun.
    size_t whole = 0;
    for (size_t i = 0; i < 1000; i++)
        whole += u.joined.lives.items[i].state == LIFETIME_WHOLE;
    assert_true(whole >= 990);
    drop(&u);
}

static void damaged_logs_do_no_harm(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= 40; seed++) {
        struct over_udp u;
        struct scenario_options options = plain;
        options.requests = 200;
        options.seed = seed;
        make(&u, &options);
        struct scenario *s = &u.joined.scenario;
        struct {
            void *items;
            size_t bytes;
        } const logs[] = {
            {s->events.items, s->events.count * sizeof *s->events.items},
            {s->calls.items, s->calls.count * sizeof *s->calls.items},
            {s->samples.items, s->samples.count * sizeof *s->samples.items},
            {s->client.items, s->client.count * sizeof *s->client.items},
            {s->shim.items, s->shim.count * sizeof *s->shim.items},
        };
        for (size_t log = 0; log < sizeof logs / sizeof *logs; log++)
            for (size_t i = 0; i < 1 + logs[log].bytes / 100; i++)
                ((uint8_t *)logs[log].items)[scenario_random(s) % logs[log].bytes] =
                    (uint8_t)scenario_random(s);
        s->client.items[0].protocol = CONNECTION_UDP;
        if (seed % 2)
            u.client_clock = (struct time_source){.convert = other_clock};
        join(&u);
        drop(&u);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_run_is_exact),
        cmocka_unit_test(numbers_go_on_beyond_sixteen_bits),
        cmocka_unit_test(clocks_need_nothing_in_common),
        cmocka_unit_test(doubled_datagrams_count_once),
        cmocka_unit_test(datagrams_may_overtake),
        cmocka_unit_test(losses_have_a_place),
        cmocka_unit_test(replies_may_be_too_late),
        cmocka_unit_test(replies_may_be_read_too_late),
        cmocka_unit_test(without_events_nobody_knows_where),
        cmocka_unit_test(strangers_are_left_alone),
        cmocka_unit_test(a_load_over_tcp_is_left_alone),
        cmocka_unit_test(ports_may_be_used_again),
        cmocka_unit_test(damaged_logs_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
