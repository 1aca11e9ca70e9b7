// SPDX-License-Identifier: MIT
//
// Whose bytes a delivery brought, where only its time is known: stated where the counts leave no
// choice, and nowhere else.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "analysis/calls/deliveries.h"

enum { THREAD = 7, ROUND_NS = 100000 };

struct server {
    struct thread_sleeps sleeps;
    struct delivery_array deliveries;
    struct application_calls calls;
    uint32_t batch;
};

static void deliver(struct server *server, int64_t at)
{
    assert_int_equal(array_push(&server->deliveries, (struct delivery){.delivered_ns = at}), 0);
}

static void call(struct server *server, enum call_kind kind, int64_t entry, int64_t exit,
                 uint32_t length, unsigned position)
{
    struct application_call one = {.entry_ns = entry,
                                   .exit_ns = exit,
                                   .length = length,
                                   .thread = THREAD,
                                   .batch = server->batch,
                                   .batch_position = (uint16_t)position,
                                   .kind = (uint8_t)kind};
    assert_int_equal(array_push(&server->calls, one), 0);
}

// A wait that returns in the middle of the round, and a receive call for each that is ready.
static void serve(struct server *server, int round, unsigned ready, unsigned receives)
{
    int64_t wake = round * (int64_t)ROUND_NS + ROUND_NS / 2;
    server->batch++;
    call(server, CALL_WAIT, wake - ROUND_NS / 2 + 5000, wake, ready, 0);
    for (unsigned i = 0; i < receives; i++) {
        call(server, CALL_RECEIVE, wake + 1000 * (i + 1), wake + 1000 * (i + 1) + 300, 40, i);
        call(server, CALL_SEND, wake + 1000 * (i + 1) + 400, wake + 1000 * (i + 1) + 700, 40, 0);
    }
}

static int64_t in_round(int round, int64_t ns)
{
    return round * (int64_t)ROUND_NS + ns;
}

// Which receive calls, by number, got which delivery; -1 none.
static void expect(struct server *server, const int *wanted, size_t count)
{
    struct delivered_calls found;
    uint64_t unknown, not_wanted = 0;
    size_t next = 0, receive = 0;
    assert_int_equal(
        deliveries_match(&server->deliveries, &server->sleeps, &server->calls, &found, &unknown),
        0);
    for (uint32_t i = 0; i < server->calls.count; i++) {
        if (server->calls.items[i].kind != CALL_RECEIVE)
            continue;
        assert_true(receive < count);
        int delivery = wanted[receive++];
        not_wanted += delivery < 0;
        if (delivery < 0)
            continue;
        assert_true(next < found.count);
        assert_int_equal(found.items[next].call, i);
        assert_int_equal(found.items[next++].delivery, delivery);
    }
    assert_int_equal(receive, count);
    assert_int_equal(next, found.count);
    assert_int_equal(unknown, not_wanted);
    array_free(&found);
    array_free(&server->deliveries);
    array_free(&server->calls);
}

#define EXPECT(server, ...)                                                                        \
    expect(server, (const int[]){__VA_ARGS__}, sizeof((const int[]){__VA_ARGS__}) / sizeof(int))

// The first return settles what came before it.
static void begin(struct server *server)
{
    *server = (struct server){0};
    serve(server, 0, 0, 0);
}

static void ready_sockets_stand_in_the_order_of_deliveries(void **state)
{
    struct server server;
    (void)state;
    begin(&server);
    for (int i = 0; i < 3; i++)
        deliver(&server, in_round(1, 10000 + 5000 * i));
    serve(&server, 1, 3, 3);
    deliver(&server, in_round(1, 90000)); // while the thread works
    deliver(&server, in_round(2, 40000));
    serve(&server, 2, 2, 2);
    EXPECT(&server, 0, 1, 2, 3, 4);
}

static void two_deliveries_to_one_socket_are_not_told_apart(void **state)
{
    struct server server;
    (void)state;
    begin(&server);
    for (int i = 0; i < 3; i++)
        deliver(&server, in_round(1, 10000 + 5000 * i));
    serve(&server, 1, 2, 2);
    deliver(&server, in_round(2, 10000));
    serve(&server, 2, 1, 1);
    EXPECT(&server, -1, -1, 3);
}

static void more_receives_than_ready_sockets_are_not_told_apart(void **state)
{
    struct server server;
    (void)state;
    begin(&server);
    deliver(&server, in_round(1, 10000));
    serve(&server, 1, 1, 2);
    deliver(&server, in_round(2, 10000));
    deliver(&server, in_round(2, 20000));
    serve(&server, 2, 2, 1); // one of the two had nothing to read
    deliver(&server, in_round(3, 20000));
    serve(&server, 3, 1, 1);
    EXPECT(&server, -1, -1, -1, 3);
}

// Two in a row, each counted with the batch before its own, would shift all by one.
static void a_delivery_after_the_ready_were_collected_shifts_nothing(void **state)
{
    struct server server;
    (void)state;
    begin(&server);
    for (int round = 1; round < 4; round++) {
        deliver(&server, in_round(round, 20000));
        deliver(&server, in_round(round, ROUND_NS / 2 - 300)); // received in the next round
        serve(&server, round, round == 1 ? 1 : 2, round == 1 ? 1 : 2);
    }
    deliver(&server, in_round(4, 20000));
    serve(&server, 4, 2, 2);
    deliver(&server, in_round(5, 20000));
    serve(&server, 5, 1, 1);
    EXPECT(&server, 0, 1, 2, 3, 4, 5, 6, 7); // from the last on backwards
}

static void where_the_trace_has_a_hole_nothing_is_told(void **state)
{
    struct server server;
    (void)state;
    begin(&server);
    struct delivery hole = {
        .delivered_ns = in_round(1, 20000), .arrived_ns = in_round(2, 20000), .lost = true};
    assert_int_equal(array_push(&server.deliveries, hole), 0);
    serve(&server, 1, 1, 1);
    deliver(&server, in_round(2, 30000));
    serve(&server, 2, 1, 1);
    deliver(&server, in_round(3, 30000));
    serve(&server, 3, 1, 1);
    EXPECT(&server, -1, -1, 2);
}

// The first bytes of the second went with the first call, or did not.
static void a_delivery_before_the_receive_call_makes_it_unknown(void **state)
{
    struct server server;
    (void)state;
    begin(&server);
    deliver(&server, in_round(1, 10000));
    deliver(&server, in_round(1, ROUND_NS / 2 + 1200));
    serve(&server, 1, 1, 1);
    deliver(&server, in_round(2, 20000));
    serve(&server, 2, 1, 1);
    deliver(&server, in_round(3, 20000));
    deliver(&server, in_round(3, ROUND_NS / 2 + 1200)); // of the next round, as its count shows
    serve(&server, 3, 1, 1);
    deliver(&server, in_round(4, 20000));
    serve(&server, 4, 2, 2);
    EXPECT(&server, -1, -1, 3, 4, 5);
}

// Each has a first return of its own, which settles nothing.
static void threads_are_told_apart_where_only_one_could_have_received(void **state)
{
    struct server server;
    (void)state;
    begin(&server);
    deliver(&server, in_round(1, 10000));
    serve(&server, 1, 1, 1);
    size_t others = server.calls.count;
    for (int round = 2; round < 4; round++) {
        deliver(&server, in_round(round, 10000));
        serve(&server, round, 1, 1);
    }
    for (size_t i = others; i < server.calls.count; i++)
        server.calls.items[i].thread++;
    EXPECT(&server, 0, -1, 2);
}

// As libevent does with a socket that it has just been given.
static void what_a_return_left_is_of_the_next(void **state)
{
    struct server server;
    (void)state;
    begin(&server);
    deliver(&server, in_round(1, 20000));
    serve(&server, 1, 1, 0);
    serve(&server, 2, 1, 1);
    deliver(&server, in_round(3, 20000));
    serve(&server, 3, 1, 0);
    deliver(&server, in_round(4, 20000)); // nothing says whose of both
    serve(&server, 4, 1, 1);
    EXPECT(&server, 0, -1);
}

// Another program was woken before: its core idled again when that was done.
static void nothing_had_woken_a_thread_while_its_core_idled(void **state)
{
    struct server server;
    (void)state;
    for (int idled = 0; idled < 2; idled++) {
        begin(&server);
        deliver(&server, in_round(1, 20000));
        deliver(&server, in_round(1, 30000));
        for (size_t i = 0; i < 2; i++)
            server.deliveries.items[i].wakes = true;
        struct thread_sleep sleep = {.time_ns = in_round(1, 10000),
                                     .idle_ns = idled ? in_round(1, 25000) : INT64_MIN,
                                     .thread = THREAD};
        assert_int_equal(array_push(&server.sleeps, sleep), 0);
        serve(&server, 1, 1, 1);
        EXPECT(&server, idled ? 1 : -1);
        array_free(&server.sleeps);
    }
}

// --- many threads --------------------------------------------------------------------------------

enum { WORKERS = 4, CONNECTIONS = 32, MOST_DELIVERIES = 5000, ASLEEP_AFTER_NS = 400 };

struct load {
    unsigned workers, mean_ns; // from delivery to delivery
    bool traced;
    unsigned foreign; // each so many-th delivery is another program's
    double least;     // share that must be stated
};

// Deliveries at random times to random connections; connection c is worker c % workers'.
struct busy {
    unsigned short random[3];
    struct server server;
    unsigned workers;
    bool traced; // when they slept, and what woke them
    uint32_t connection[MOST_DELIVERIES];
    uint32_t drained_by[MOST_DELIVERIES];  // the call
    uint32_t drained[3 * MOST_DELIVERIES]; // of a call, by its number: how many
};

static unsigned below(struct busy *busy, unsigned limit)
{
    return (unsigned)nrand48(busy->random) % limit;
}

static void deliver_at_random(struct busy *busy, const struct load *load)
{
    int64_t at = 100000;
    for (unsigned i = 0; i < MOST_DELIVERIES; i++) {
        at += 1 + below(busy, 2 * load->mean_ns);
        deliver(&busy->server, at);
        busy->connection[i] = below(busy, CONNECTIONS);
        if (load->foreign && i % load->foreign == 0) {
            busy->connection[i] = UINT32_MAX;
            busy->server.deliveries.items[i].wakes = busy->traced;
        }
    }
}

// The worker's first delivery from `from` on that nobody received, by `until`; count: none.
static size_t next_own(const struct busy *busy, unsigned worker, size_t from, int64_t until)
{
    const struct delivery_array *all = &busy->server.deliveries;
    while (from < all->count && (busy->connection[from] == UINT32_MAX ||
                                 busy->connection[from] % busy->workers != worker ||
                                 busy->drained_by[from] != UINT32_MAX))
        from++;
    return from < all->count && all->items[from].delivered_ns <= until ? from : all->count;
}

// Receives from each connection that is ready at `now`; returns when it is done.
static int64_t work_off(struct busy *busy, unsigned worker, size_t from, int64_t entry, int64_t now)
{
    struct server *server = &busy->server;
    const struct delivery_array *all = &server->deliveries;
    uint32_t ready[CONNECTIONS], count = 0;
    uint64_t seen = 0;
    for (size_t i = next_own(busy, worker, from, now); i < all->count;
         i = next_own(busy, worker, i + 1, now)) {
        if (!(seen >> busy->connection[i] & 1))
            ready[count++] = busy->connection[i];
        seen |= (uint64_t)1 << busy->connection[i];
    }
    int64_t at = now + 200 + below(busy, 1500);
    server->batch++;
    call(server, CALL_WAIT, entry, at, count, 0);
    for (uint32_t k = 0; k < count; k++) {
        uint32_t number = (uint32_t)server->calls.count;
        at += 200;
        for (size_t i = next_own(busy, worker, from, at); i < all->count;
             i = next_own(busy, worker, i + 1, at))
            if (busy->connection[i] == ready[k]) {
                busy->drained_by[i] = number;
                busy->drained[number]++;
            }
        call(server, CALL_RECEIVE, at, at + 300, 40, k);
        at += 1000 + below(busy, 8000);
    }
    return at;
}

static void work(struct busy *busy, unsigned worker)
{
    struct delivery_array *all = &busy->server.deliveries;
    size_t first = busy->server.calls.count;
    int64_t now = work_off(busy, worker, 0, 0, 0);
    for (size_t from = 0; (from = next_own(busy, worker, from, INT64_MAX)) < all->count;) {
        int64_t entry = now, delivered = all->items[from].delivered_ns;
        if (delivered > entry + ASLEEP_AFTER_NS) {
            struct thread_sleep sleep = {.time_ns = entry + ASLEEP_AFTER_NS,
                                         .thread = THREAD + worker};
            if (busy->traced)
                assert_int_equal(array_push(&busy->server.sleeps, sleep), 0);
            all->items[from].wakes = busy->traced;
            now = delivered + 2000 + below(busy, 20000);
        } else if (delivered > now) {
            now = delivered + 100;
        }
        now = work_off(busy, worker, from, entry, now);
    }
    for (size_t i = first; i < busy->server.calls.count; i++)
        busy->server.calls.items[i].thread = THREAD + worker;
}

// Each that is stated is true, and brought no other's bytes.
static void check_told(const struct load *load)
{
    static struct busy busy;
    struct delivered_calls found;
    uint64_t unknown;
    busy = (struct busy){.random = {(unsigned short)load->workers, (unsigned short)load->mean_ns},
                         .workers = load->workers,
                         .traced = load->traced};
    memset(busy.drained_by, 0xff, sizeof busy.drained_by);
    deliver_at_random(&busy, load);
    for (unsigned i = 0; i < load->workers; i++)
        work(&busy, i);
    assert_int_equal(deliveries_match(&busy.server.deliveries, &busy.server.sleeps,
                                      &busy.server.calls, &found, &unknown),
                     0);
    for (size_t i = 0; i < found.count; i++) {
        assert_int_equal(busy.drained_by[found.items[i].delivery], found.items[i].call);
        assert_int_equal(busy.drained[found.items[i].call], 1);
    }
    double share = (double)found.count / (double)(found.count + unknown);
    print_message("%u threads, a delivery each %u us, sleep %s: %.1f %% stated\n", load->workers,
                  load->mean_ns / 1000, load->traced ? "known" : "unknown", 100 * share);
    assert_true(share > load->least);
    array_free(&found);
    array_free(&busy.server.deliveries);
    array_free(&busy.server.sleeps);
    array_free(&busy.server.calls);
}

static void what_is_told_of_many_threads_is_true(void **state)
{
    static const struct load loads[] = {
        {1, 200000, false, 0, 0.95}, {1, 8000, true, 0, 0.6},     {1, 8000, true, 20, 0.4},
        {2, 200000, false, 0, 0.6},  {2, 8000, false, 0, 0.1},    {2, 8000, true, 0, 0.3},
        {4, 200000, false, 0, 0.1},  {4, 200000, true, 0, 0.8},   {4, 200000, true, 20, 0},
        {4, 8000, true, 0, 0.1},     {3, 20000, true, 1000, 0.1}, {3, 4000, true, 3, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof loads / sizeof *loads; i++)
        check_told(&loads[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ready_sockets_stand_in_the_order_of_deliveries),
        cmocka_unit_test(two_deliveries_to_one_socket_are_not_told_apart),
        cmocka_unit_test(more_receives_than_ready_sockets_are_not_told_apart),
        cmocka_unit_test(a_delivery_after_the_ready_were_collected_shifts_nothing),
        cmocka_unit_test(where_the_trace_has_a_hole_nothing_is_told),
        cmocka_unit_test(a_delivery_before_the_receive_call_makes_it_unknown),
        cmocka_unit_test(threads_are_told_apart_where_only_one_could_have_received),
        cmocka_unit_test(what_a_return_left_is_of_the_next),
        cmocka_unit_test(nothing_had_woken_a_thread_while_its_core_idled),
        cmocka_unit_test(what_is_told_of_many_threads_is_true),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
