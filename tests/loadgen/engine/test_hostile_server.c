// SPDX-License-Identifier: MIT
//
// The engine against a server that does what servers must not: it closes in the middle of a reply,
// resets, talks nonsense, says nothing, goes away. Every request is accounted for by its kind, the
// engine tries again without being busy at it, and it comes to an end.
// Runs beside others: requests are counted, not timed.
#include "tests/loadgen/engine/engine_test.h"
#include "tests/skip.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>

// What the server does with the bytes of a connection.
enum hostility {
    NONSENSE,   // answers each request with a line that is no reply
    TALKATIVE,  // sends replies nobody asked for, then reads on
    CLOSES,     // closes after the first read
    RESETS,     // the same, by RST
    HALF_REPLY, // answers half and closes
    GARBAGE,    // answers with bytes of any kind
    SILENT,     // reads and says nothing
    WRONG_KIND, // says STORED to everything
    TIRES,      // answers TIRED_AFTER requests of a connection and closes it
    GOES,       // answers as many of the first connection and goes away for good
    LEAVES,     // answers LEAVES_AFTER with one reply and its FIN behind it, then only reads
};

enum { CLIENTS = 8, TIRED_AFTER = 20, LEAVES_AFTER = 4 };

struct hostile_server {
    enum hostility hostility;
    int listener, stop[2];
    uint16_t port;
    _Atomic unsigned accepted; // and spoken to, if it is talkative
    int clients[CLIENTS];      // -1: none
    unsigned answered[CLIENTS];
    pthread_t thread;
};

static void hang_up(int *client, bool reset)
{
    const struct linger at_once = {1, 0};
    if (reset)
        setsockopt(*client, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close(*client);
    *client = -1;
}

static void send_garbage(int client)
{
    unsigned char bytes[4096];
    uint32_t random = 1;
    for (size_t i = 0; i < sizeof bytes; i++) {
        random = random * 1664525 + 1013904223;
        bytes[i] = (unsigned char)(random >> 24);
    }
    send(client, bytes, sizeof bytes, MSG_NOSIGNAL);
}

// Answers one request. False: the connection is done with.
static bool answer(struct hostile_server *server, int i)
{
    int client = server->clients[i];
    switch (server->hostility) {
    case NONSENSE:
        return send(client, "what?\r\n", 7, MSG_NOSIGNAL) > 0;
    case WRONG_KIND:
        return send(client, "STORED\r\n", 8, MSG_NOSIGNAL) > 0;
    case HALF_REPLY:
        send(client, "VALUE x 0 10\r\nabc", 17, MSG_NOSIGNAL);
        return false;
    case GARBAGE:
        send_garbage(client);
        return true;
    case TIRES:
    case GOES:
        return send(client, "END\r\n", 5, MSG_NOSIGNAL) > 0 && ++server->answered[i] < TIRED_AFTER;
    case LEAVES:
        if (++server->answered[i] == LEAVES_AFTER) {
            send(client, "END\r\n", 5, MSG_NOSIGNAL | MSG_MORE); // leaves with the FIN
            shutdown(client, SHUT_WR);
        }
        return true;
    default:
        return true;
    }
}

static void take_requests(struct hostile_server *server, int i)
{
    char bytes[4096];
    ssize_t count = read(server->clients[i], bytes, sizeof bytes);
    bool goes_on = count > 0 && server->hostility != CLOSES && server->hostility != RESETS;
    for (ssize_t k = 0; k < count && goes_on; k++)
        if (bytes[k] == '\n')
            goes_on = answer(server, i);
    if (goes_on)
        return;
    hang_up(&server->clients[i], server->hostility == RESETS);
    if (server->hostility == GOES && server->listener >= 0) {
        close(server->listener);
        server->listener = -1;
    }
}

static void take_client(struct hostile_server *server)
{
    static const char unasked[] = "STORED\r\nEND\r\nVALUE x 0 1\r\na\r\nEND\r\n";
    int client = accept(server->listener, NULL, NULL);
    for (int i = 0; i < CLIENTS && client >= 0; i++) {
        if (server->clients[i] >= 0)
            continue;
        server->clients[i] = client;
        server->answered[i] = 0;
        if (server->hostility == TALKATIVE)
            send(client, unasked, sizeof unasked - 1, MSG_NOSIGNAL);
        server->accepted++;
        return;
    }
}

static void *serve(void *argument)
{
    struct hostile_server *server = argument;
    for (;;) {
        struct pollfd ready[CLIENTS + 2];
        for (int i = 0; i < CLIENTS; i++)
            ready[i] = (struct pollfd){.fd = server->clients[i], .events = POLLIN};
        ready[CLIENTS] = (struct pollfd){.fd = server->listener, .events = POLLIN};
        ready[CLIENTS + 1] = (struct pollfd){.fd = server->stop[0], .events = POLLIN};
        poll(ready, CLIENTS + 2, -1);
        if (ready[CLIENTS + 1].revents)
            break;
        for (int i = 0; i < CLIENTS; i++)
            if (ready[i].revents)
                take_requests(server, i);
        if (ready[CLIENTS].revents && server->listener >= 0)
            take_client(server);
    }
    return NULL;
}

static void start(struct hostile_server *server, enum hostility hostility)
{
    *server = (struct hostile_server){.hostility = hostility};
    memset(server->clients, 0xff, sizeof server->clients);
    server->listener = listen_anywhere(&server->port);
    assert_int_equal(pipe(server->stop), 0);
    assert_int_equal(pthread_create(&server->thread, NULL, serve, server), 0);
}

static void stop(struct hostile_server *server)
{
    assert_int_equal(write(server->stop[1], "x", 1), 1);
    pthread_join(server->thread, NULL);
    for (int i = 0; i < CLIENTS; i++)
        if (server->clients[i] >= 0)
            close(server->clients[i]);
    if (server->listener >= 0)
        close(server->listener);
    close(server->stop[0]);
    close(server->stop[1]);
}

// What it says unasked answers nobody only if it comes before the first request.
static struct hostile_server *talkative;

static void await_unasked(void)
{
    for (uint64_t ms = 0; ms < patient_ms && !talkative->accepted; ms++)
        usleep(1000);
}

// Loads it with gets; every request must end in one of the ways that are counted.
static unsigned load_for(enum hostility hostility, uint32_t connections, uint32_t depth,
                         uint64_t timeout_ms, struct engine_result *result, struct tally *tally)
{
    struct hostile_server server;
    struct workload workload;
    gets_only(&workload);
    start(&server, hostility);
    // Enough to go several times round its ring, where they are not all open at once.
    bool more = in_bounded_memory && (hostility == TIRES || hostility == WRONG_KIND);
    talkative = &server;
    await_server = hostility == TALKATIVE ? await_unasked : NULL;
    const bool given_up = hostility == NONSENSE || hostility == GARBAGE || hostility == CLOSES ||
                          hostility == RESETS || hostility == HALF_REPLY || hostility == GOES;
    load_ns = given_up ? 4000000000 : 400000000;
    run(&workload, server.port, more ? 8000 : 2000, connections, depth, STAMP_MODE_AUTO, timeout_ms,
        result, tally);
    await_server = NULL;
    stop(&server);
    assert_int_equal(result->counts.in_flight, tally->by_status[SAMPLE_TIMED_OUT]);
    return server.accepted;
}

// A server that never answers is waited for as long as the client is allowed to; so that is short,
// and on a machine that had no core to send everything by then, it is longer the next time.
static unsigned load(enum hostility hostility, uint32_t connections, uint32_t depth,
                     struct engine_result *result, struct tally *tally)
{
    bool silent = hostility == SILENT || hostility == TALKATIVE;
    uint64_t timeout_ms = silent ? 300 : patient_ms;
    unsigned accepted = load_for(hostility, connections, depth, timeout_ms, result, tally);
    while (silent && tally->by_status[SAMPLE_UNSENT] && (timeout_ms *= 4) <= patient_ms) {
        engine_result_free(result);
        accepted = load_for(hostility, connections, depth, timeout_ms, result, tally);
    }
    return accepted;
}

// It never answers as it should: given up, and not tried too often before.
static void check_given_up(const struct engine_result *result, unsigned accepted)
{
    assert_int_equal(result->end, ENGINE_BROKEN);
    assert_int_equal(result->counts.given_up, 1);
    assert_int_equal(result->counts.broken, result->counts.ended);
    assert_int_equal(accepted, 1 + result->counts.reconnects);
    assert_in_range(accepted, 2, 12); // pauses of 0, 1, 2, 4, ... 100 ms within 300 ms
    assert_non_null(strstr(result->counts.first_break.text, "connection 1 broke"));
    assert_true(result->counts.first_end_tsc > result->start_tsc);
}

static void nonsense_ends_the_connection(void **state)
{
    (void)state;
    struct engine_result result;
    struct tally tally;
    unsigned accepted = load(NONSENSE, 1, 0, &result, &tally);
    check_given_up(&result, accepted);
    // It answers nobody, and what is behind it who knows whom.
    assert_int_equal(tally.by_status[SAMPLE_ERROR_REPLY], 0);
    assert_int_equal(result.counts.replies[REPLY_MALFORMED], accepted);
    assert_non_null(strstr(result.counts.first_break.text, "it said \"what?\""));
    assert_int_equal(result.counts.lost[LOSS_MALFORMED], tally.by_status[SAMPLE_LOST]);
    engine_result_free(&result);
}

static void garbage_is_counted_by_kind(void **state)
{
    (void)state;
    struct engine_result result;
    struct tally tally;
    unsigned accepted = load(GARBAGE, 1, 0, &result, &tally);
    check_given_up(&result, accepted);
    assert_int_equal(
        result.counts.replies[REPLY_MALFORMED] + result.counts.replies[REPLY_OVERSIZED], accepted);
    assert_int_equal(tally.by_status[SAMPLE_ERROR_REPLY], 0);
    engine_result_free(&result);
}

static void a_closed_connection_loses_its_requests(void **state)
{
    (void)state;
    struct engine_result result;
    struct tally tally;
    check_given_up(&result, load(CLOSES, 1, 0, &result, &tally));
    assert_true(tally.by_status[SAMPLE_LOST] >= 2);
    assert_true(result.counts.lost[LOSS_CLOSED] + result.counts.lost[LOSS_RESET] ==
                tally.by_status[SAMPLE_LOST]);
    assert_int_equal(tally.by_status[SAMPLE_LOST] + tally.by_status[SAMPLE_UNSENT],
                     result.sample_count);
    engine_result_free(&result);
}

static void a_reset_is_told_from_a_close(void **state)
{
    (void)state;
    struct engine_result result;
    struct tally tally;
    check_given_up(&result, load(RESETS, 1, 0, &result, &tally));
    assert_int_equal(result.counts.lost[LOSS_RESET], tally.by_status[SAMPLE_LOST]);
    assert_true(result.counts.lost[LOSS_RESET] >= 2);
    engine_result_free(&result);
}

static void half_a_reply_is_none(void **state)
{
    (void)state;
    struct engine_result result;
    struct tally tally;
    check_given_up(&result, load(HALF_REPLY, 1, 0, &result, &tally));
    assert_int_equal(tally.by_status[SAMPLE_LOST] + tally.by_status[SAMPLE_UNSENT],
                     result.sample_count);
    engine_result_free(&result);
}

static void a_reply_of_the_wrong_kind_is_an_error(void **state)
{
    (void)state;
    struct engine_result result;
    struct tally tally;
    load(WRONG_KIND, 1, 0, &result, &tally);
    assert_int_equal(tally.by_status[SAMPLE_ERROR_REPLY], result.sample_count);
    assert_int_equal(result.counts.mismatched, result.sample_count);
    assert_int_equal(result.counts.ended, 0);
    engine_result_free(&result);
}

static void unasked_replies_are_counted(void **state)
{
    (void)state;
    struct engine_result result;
    struct tally tally;
    load(TALKATIVE, 1, 0, &result, &tally);
    assert_int_equal(result.counts.unexpected, 3);
    assert_int_equal(tally.by_status[SAMPLE_TIMED_OUT], result.sample_count);
    engine_result_free(&result);
}

static void silence_times_out(void **state)
{
    (void)state;
    struct engine_result result;
    struct tally tally;
    load(SILENT, 1, 0, &result, &tally);
    assert_int_equal(result.end, ENGINE_TIMED_OUT);
    assert_int_equal(tally.by_status[SAMPLE_TIMED_OUT], result.sample_count);
    engine_result_free(&result);
}

// As HTTP's keepalive_requests: the load goes on, on ever new connections.
static void a_server_that_tires_is_connected_again(void **state)
{
    (void)state;
    struct engine_result result;
    struct tally tally;
    load(TIRES, 4, 1, &result, &tally);
    assert_int_equal(result.end, ENGINE_COMPLETE);
    assert_int_equal(result.counts.given_up, 0);
    assert_true(result.counts.reconnects >= result.sample_count / TIRED_AFTER / 2);
    // What a connection had not sent when it ended, another did.
    assert_int_equal(tally.by_status[SAMPLE_MISS] + tally.by_status[SAMPLE_LOST],
                     result.sample_count);
    // With one in flight at a time only one sent into the close can be lost with its connection.
    assert_true(tally.by_status[SAMPLE_LOST] <= result.counts.broken);
    assert_true(tally.by_status[SAMPLE_MISS] > result.sample_count / 2);
    engine_result_free(&result);
}

// The ids of all threads' reconnects are distinct, and their logs are one.
static void threads_connect_again_each_its_own(void **state)
{
    (void)state;
    struct engine_result result;
    struct tally tally;
    struct hostile_server server;
    struct workload workload;
    cpu_set_t allowed;
    sched_getaffinity(0, sizeof allowed, &allowed);
    if (CPU_COUNT(&allowed) < 2)
        skip_case("a thread and a server need a core each");
    gets_only(&workload);
    start(&server, TIRES);
    run_threads(2, &workload, server.port, 2000, 4, 1, STAMP_MODE_AUTO, patient_ms, &result,
                &tally);
    stop(&server);
    assert_int_equal(result.end, ENGINE_COMPLETE);
    assert_true(result.counts.reconnects >= result.sample_count / TIRED_AFTER / 2);
    for (size_t i = 0; i < result.sample_count; i++)
        if (result.samples[i].sent_tsc)
            assert_in_range(result.samples[i].connection, 1, result.connection_count);
    engine_result_free(&result);
}

// The end of the stream comes with the last reply, in one segment: one event for both.
static void an_end_behind_a_reply_is_seen(void **state)
{
    (void)state;
    static const enum stamp_mode stamps[] = {STAMP_MODE_USER, STAMP_MODE_AUTO};
    for (size_t i = 0; i < sizeof stamps / sizeof *stamps; i++) {
        struct engine_result result;
        struct tally tally;
        struct hostile_server server;
        struct workload workload;
        gets_only(&workload);
        start(&server, LEAVES);
        // The last requests of all may be too few for a reply.
        run(&workload, server.port, 2000, 2, LEAVES_AFTER, stamps[i], 1000, &result, &tally);
        stop(&server);
        assert_int_equal(result.counts.in_flight, tally.by_status[SAMPLE_TIMED_OUT]);
        assert_true(result.counts.reconnects > 10);
        // Each of the two may have ended so late that no time was left to connect it again.
        assert_in_range(result.counts.ended, result.counts.reconnects,
                        result.counts.reconnects + 2);
        assert_int_equal(tally.by_status[SAMPLE_MISS], result.counts.ended);
        assert_int_equal(result.counts.lost[LOSS_CLOSED], tally.by_status[SAMPLE_LOST]);
        assert_true(tally.by_status[SAMPLE_LOST] >= (LEAVES_AFTER - 1) * result.counts.ended);
        engine_result_free(&result);
    }
}

static void a_server_that_goes_is_given_up(void **state)
{
    (void)state;
    struct engine_result result;
    struct tally tally;
    load(GOES, 1, 1, &result, &tally);
    assert_int_equal(result.end, ENGINE_BROKEN);
    assert_int_equal(result.counts.given_up, 1);
    assert_int_equal(tally.by_status[SAMPLE_MISS], TIRED_AFTER);
    assert_in_range(result.counts.reconnects_failed, 2, 12);
    assert_true(tally.by_status[SAMPLE_UNSENT] + 1 + TIRED_AFTER >= result.sample_count);
    engine_result_free(&result);
}

int main(void)
{
    asleep = true; // they wait for much: others may have the core meanwhile
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nonsense_ends_the_connection),
        cmocka_unit_test(garbage_is_counted_by_kind),
        cmocka_unit_test(a_closed_connection_loses_its_requests),
        cmocka_unit_test(a_reset_is_told_from_a_close),
        cmocka_unit_test(half_a_reply_is_none),
        cmocka_unit_test(a_reply_of_the_wrong_kind_is_an_error),
        cmocka_unit_test(unasked_replies_are_counted),
        cmocka_unit_test(silence_times_out),
        cmocka_unit_test(a_server_that_tires_is_connected_again),
        cmocka_unit_test(threads_connect_again_each_its_own),
        cmocka_unit_test(a_server_that_goes_is_given_up),
        cmocka_unit_test(an_end_behind_a_reply_is_seen),
    };
    const struct CMUnitTest bounded[] = {
        cmocka_unit_test(a_closed_connection_loses_its_requests),
        cmocka_unit_test(a_reply_of_the_wrong_kind_is_an_error),
        cmocka_unit_test(silence_times_out),
        cmocka_unit_test(a_server_that_tires_is_connected_again),
        cmocka_unit_test(threads_connect_again_each_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) +
           run_in_bounded_memory(bounded, sizeof bounded / sizeof *bounded);
}
