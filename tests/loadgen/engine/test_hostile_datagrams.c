// SPDX-License-Identifier: MIT
//
// UDP against a server that loses datagrams, sends them twice, in another order, too late, or sends
// what is no reply: every request is answered once or lost, and what is surplus is counted.
// Runs beside others: requests are counted, not timed.
#include "tests/loadgen/engine/engine_test.h"

#include <poll.h>
#include <pthread.h>

#include "loadgen/client/client_socket.h"
#include "workloads/protocols/memcached_udp.h"
#include "workloads/protocols/protocols.h"

// What the server does with requests.
enum hostility {
    ANSWERS,    // each with a miss
    LOSES,      // every tenth request
    TWICE,      // every answer
    REVERSES,   // answers in pairs, the second first
    PIECES,     // a value of PIECES_COUNT datagrams, in an order of its own
    LACKS,      // the same, but of every tenth answer one datagram is missing
    LACKS_HALF, // of every second: more answers than a client has room for wait for the rest
    NONSENSE,   // answers with frames but no replies in them
    GARBAGE,    // with datagrams that are no frames, and then with the answer
    LATE,       // every tenth request, when it has been given up twice over
    STRANGERS,  // with answers to requests nobody made, and then with the answer
    SILENT,
};

enum { PIECES_COUNT = 4, PIECE = 1392, VALUE = 5000 };

struct udp_server {
    enum hostility hostility;
    int socket_fd, stop[2];
    uint16_t port;
    unsigned requests;
    char key[WORKLOAD_KEY_BYTES_MAX + 1]; // of the request at hand
    struct sockaddr_in client, held_client;
    unsigned held; // the id of an answer that waits for the next, plus 1
    uint64_t timeout_ns;
    struct {
        unsigned id;
        struct sockaddr_in client;
        int64_t from_ns;
    } waiting[1000];
    unsigned waits, late; // of the former, those that were answered
    pthread_t thread;
};

static void frame(char *out, unsigned id, unsigned sequence, unsigned count)
{
    const char bytes[UDP_FRAME_BYTES] = {(char)(id >> 8), (char)id, 0, (char)sequence, 0,
                                         (char)count,     0,        0};
    memcpy(out, bytes, sizeof bytes);
}

static void say(struct udp_server *server, const char *bytes, size_t count)
{
    sendto(server->socket_fd, bytes, count, 0, (void *)&server->client, sizeof server->client);
}

static void say_miss(struct udp_server *server, unsigned id)
{
    char out[UDP_FRAME_BYTES + 5];
    frame(out, id, 0, 1);
    memcpy(out + UDP_FRAME_BYTES, "END\r\n", 5);
    say(server, out, sizeof out);
}

static void say_value(struct udp_server *server, unsigned id, bool whole)
{
    static const unsigned order[PIECES_COUNT] = {2, 0, 3, 1};
    char text[VALUE + 300], out[UDP_FRAME_BYTES + PIECE];
    size_t bytes = (size_t)snprintf(text, sizeof text, "VALUE %s 0 %d\r\n", server->key, VALUE);
    memset(text + bytes, 'v', VALUE);
    memcpy(text + bytes + VALUE, "\r\nEND\r\n", 7);
    bytes += VALUE + 7;
    for (unsigned i = whole ? 0 : 1; i < PIECES_COUNT; i++) {
        size_t begin = order[i] * (size_t)PIECE;
        size_t count = bytes - begin < PIECE ? bytes - begin : PIECE;
        frame(out, id, order[i], PIECES_COUNT);
        memcpy(out + UDP_FRAME_BYTES, text + begin, count);
        say(server, out, UDP_FRAME_BYTES + count);
    }
}

static void answer_late(struct udp_server *server, unsigned id)
{
    const int64_t now_ns = clock_now_ns(CLOCK_MONOTONIC);
    if (server->requests % 10 != 1)
        say_miss(server, id);
    else if (server->waits < sizeof server->waiting / sizeof *server->waiting) {
        server->waiting[server->waits].id = id;
        server->waiting[server->waits].client = server->client;
        server->waiting[server->waits++].from_ns = now_ns;
    }
    for (; server->late < server->waits &&
           now_ns - server->waiting[server->late].from_ns > 2 * (int64_t)server->timeout_ns;
         server->late++) {
        server->client = server->waiting[server->late].client;
        say_miss(server, server->waiting[server->late].id);
    }
}

static void answer(struct udp_server *server, unsigned id)
{
    char out[UDP_FRAME_BYTES + 7];
    unsigned n = server->requests++;
    switch (server->hostility) {
    case ANSWERS:
        say_miss(server, id);
        break;
    case LOSES:
        if (n % 10)
            say_miss(server, id);
        break;
    case TWICE:
        say_miss(server, id);
        say_miss(server, id);
        break;
    case REVERSES:
        if (!server->held) {
            server->held = id + 1;
            server->held_client = server->client;
            break;
        }
        say_miss(server, id);
        server->client = server->held_client;
        say_miss(server, server->held - 1);
        server->held = 0;
        break;
    case PIECES:
    case LACKS:
    case LACKS_HALF:
        say_value(server, id,
                  server->hostility == PIECES || n % (server->hostility == LACKS ? 10 : 2));
        break;
    case NONSENSE:
        frame(out, id, 0, 1);
        memcpy(out + UDP_FRAME_BYTES, "what?\r\n", 7);
        say(server, out, sizeof out);
        break;
    case GARBAGE:
        say(server, "short", 5);
        say(server, "\0\1\0\5\0\2\0\0END\r\n", 13); // the sixth of two
        say_miss(server, id);
        break;
    case LATE:
        answer_late(server, id);
        break;
    case STRANGERS:
        say_miss(server, id + 30000);
        say_miss(server, id);
        break;
    case SILENT:
        break;
    }
}

static void *serve(void *argument)
{
    struct udp_server *server = argument;
    for (;;) {
        char bytes[2048];
        struct pollfd ready[2] = {{.fd = server->socket_fd, .events = POLLIN},
                                  {.fd = server->stop[0], .events = POLLIN}};
        poll(ready, 2, -1);
        if (ready[1].revents && !ready[0].revents) // what was sent is all counted
            return NULL;
        socklen_t address_bytes = sizeof server->client;
        ssize_t count = recvfrom(server->socket_fd, bytes, sizeof bytes, MSG_DONTWAIT,
                                 (void *)&server->client, &address_bytes);
        if (count < UDP_FRAME_BYTES + (ssize_t)strlen("get k\r\n"))
            continue;
        const char *key = bytes + UDP_FRAME_BYTES + strlen("get ");
        const char *end = memchr(key, '\r', (size_t)(bytes + count - key));
        snprintf(server->key, sizeof server->key, "%.*s", end ? (int)(end - key) : 0, key);
        answer(server, (unsigned char)bytes[0] * 256u + (unsigned char)bytes[1]);
    }
}

static void start(struct udp_server *server, enum hostility hostility, uint64_t timeout_ms)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof address;
    const int room = 4 << 20;
    *server = (struct udp_server){.hostility = hostility, .timeout_ns = timeout_ms * 1000000};
    server->socket_fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (setsockopt(server->socket_fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room) < 0)
        setsockopt(server->socket_fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    assert_int_equal(bind(server->socket_fd, (void *)&address, sizeof address), 0);
    assert_int_equal(getsockname(server->socket_fd, (void *)&address, &bytes), 0);
    server->port = ntohs(address.sin_port);
    assert_int_equal(pipe(server->stop), 0);
    assert_int_equal(pthread_create(&server->thread, NULL, serve, server), 0);
}

static void stop(struct udp_server *server)
{
    assert_int_equal(write(server->stop[1], "x", 1), 1);
    pthread_join(server->thread, NULL);
    close(server->socket_fd);
    close(server->stop[0]);
    close(server->stop[1]);
}

struct outcome {
    struct engine_result result;
    size_t by_status[6];
    unsigned requests, late; // the server's counts
    uint16_t port;
};

static int run_at(uint16_t port, const struct workload *workload, enum stamp_mode stamps,
                  uint64_t timeout_ms, struct outcome *outcome, struct error *err)
{
    struct server_address address;
    struct schedule schedule;
    char text[40];
    // In bounded memory twice round the ring, with what waits until its time is up.
    const struct distribution arrivals = {.kind = DISTRIBUTION_EXPONENTIAL, .first = 1};
    const uint64_t duration_ns = in_bounded_memory ? 900000000 : 300000000, seed = 3;
    const double rate = in_bounded_memory ? 1200 : 1000;
    snprintf(text, sizeof text, "udp:127.0.0.1:%u", port);
    assert_int_equal(server_address_parse(text, &address, err), 0);
    assert_int_equal(server_address_resolve(&address, err), 0);
    assert_int_equal(schedule_draw(workload, &arrivals, rate, duration_ns, seed, &schedule, err),
                     0);
    const struct engine_settings settings = {.server = &address,
                                             .workload = workload,
                                             .connections = 2,
                                             .stamps = stamps,
                                             .duration_ns = duration_ns,
                                             .timeout_ns = timeout_ms * 1000000,
                                             .reconnect_ns = 300000000,
                                             .sleeps = true};
    int status = in_bounded_memory
                     ? run_bounded(settings, &arrivals, rate, seed, &outcome->result, err)
                     : engine_run(&settings, &schedule, &outcome->result, err);
    schedule_free(&schedule);
    return status;
}

// How many requests of that many the server answers.
static size_t answers_of(enum hostility hostility, size_t requests)
{
    switch (hostility) {
    case LOSES:
    case LACKS:
    case LATE:
        return requests - (requests + 9) / 10;
    case LACKS_HALF:
        return requests - (requests + 1) / 2;
    case REVERSES: // the last one waits for a partner that never comes
        return requests - requests % 2;
    case NONSENSE:
    case SILENT:
        return 0;
    default:
        return requests;
    }
}

// Loads it with gets. False: some were not sent, or their answers not read, before their time was
// up.
static bool load_for(enum hostility hostility, uint64_t timeout_ms, struct outcome *outcome)
{
    struct udp_server server;
    struct workload workload;
    struct error err;
    gets_only(&workload);
    workload.value_size_bytes = (struct distribution){.kind = DISTRIBUTION_FIXED, .first = VALUE};
    memset(outcome, 0, sizeof *outcome);
    start(&server, hostility, timeout_ms);
    if (run_at(server.port, &workload, STAMP_MODE_AUTO, timeout_ms, outcome, &err) < 0)
        fail_msg("%s", err.text);
    stop(&server);
    outcome->port = server.port;
    outcome->requests = server.requests;
    outcome->late = server.late;
    size_t answered = 0;
    for (size_t i = 0; i < outcome->result.sample_count; i++) {
        const struct sample *sample = &outcome->result.samples[i];
        outcome->by_status[sample->status]++;
        answered += (size_t)sample_is_answered(sample);
    }
    return outcome->by_status[SAMPLE_UNSENT] == 0 &&
           outcome->requests == outcome->result.sample_count &&
           answered == answers_of(hostility, outcome->result.sample_count);
}

// A request may be waited for as long as the machine needs where all are answered. Where not, that
// time passes, so it is short; and on a machine that was too busy for it, longer the next time.
static void load(enum hostility hostility, uint64_t timeout_ms, struct outcome *outcome)
{
    while (!load_for(hostility, timeout_ms, outcome) && (timeout_ms *= 4) <= patient_ms)
        engine_result_free(&outcome->result);
    const struct engine_result *result = &outcome->result;
    uint64_t sent[3] = {0}, unstamped = 0;
    for (size_t i = 0; i < result->sample_count; i++) {
        const struct sample *sample = &result->samples[i];
        assert_in_range(sample->connection, 1, 2);
        assert_int_equal(sample->request_begin, sent[sample->connection]++); // the n-th datagram
        assert_int_equal(sample->request_end, sample->request_begin + 1);
        if (sample_is_answered(sample))
            assert_true(sample->reply_end > sample->reply_begin &&
                        sample->reply_tsc > sample->send_tsc);
        else
            assert_int_equal(sample->reply_end, 0);
        unstamped += result->kernel_stamps && !sample->tx_ns;
        if (sample->tx_ns && sample->rx_ns)
            assert_true(sample->rx_ns > sample->tx_ns);
    }
    // Each datagram has its own stamp, but for the few that a client finds too late; those count.
    assert_int_equal(result->stamps_missing, unstamped);
    assert_in_range(unstamped, 0, result->sample_count / 4);
    assert_int_equal(result->connections[0].protocol, CONNECTION_UDP);
    assert_int_equal(result->connections[0].peer_port, outcome->port);
    assert_int_equal(result->counts.lost[LOSS_UNANSWERED] + result->counts.lost[LOSS_MALFORMED],
                     outcome->by_status[SAMPLE_LOST]);
    assert_int_equal(result->counts.in_flight, outcome->by_status[SAMPLE_TIMED_OUT]);
    assert_int_equal(result->counts.ended, 0);
    assert_int_equal(outcome->requests, result->sample_count); // there was room for all of them
}

static size_t read_late(const struct engine_result *result)
{
    size_t count = 0;
    for (size_t i = 0; i < result->sample_count; i++)
        if (result->samples[i].sender_high & SAMPLE_READ_LATE) {
            assert_int_equal(result->samples[i].status, SAMPLE_LOST);
            count++;
        }
    return count;
}

static void all_are_answered(void **state)
{
    (void)state;
    struct outcome outcome;
    load(ANSWERS, patient_ms, &outcome);
    assert_int_equal(outcome.by_status[SAMPLE_MISS], outcome.result.sample_count);
    assert_int_equal(outcome.result.counts.datagrams_surplus, 0);
    assert_int_equal(outcome.result.end, ENGINE_COMPLETE);
    engine_result_free(&outcome.result);
}

static void what_is_not_answered_is_lost(void **state)
{
    (void)state;
    struct outcome outcome;
    load(LOSES, 400, &outcome);
    size_t unanswered = (outcome.result.sample_count + 9) / 10;
    assert_int_equal(outcome.by_status[SAMPLE_LOST] + outcome.by_status[SAMPLE_TIMED_OUT],
                     unanswered);
    assert_true(outcome.by_status[SAMPLE_LOST] > unanswered / 2);
    assert_int_equal(outcome.by_status[SAMPLE_MISS], outcome.result.sample_count - unanswered);
    engine_result_free(&outcome.result);
}

static void late_answers_are_counted(void **state)
{
    (void)state;
    enum { TRIES = 20 };
    struct outcome outcome;
    // A server that had no core until the load had ended met all requests at once: none was late.
    for (unsigned try = 0; load(LATE, 20, &outcome), outcome.late == 0 && try < TRIES; try++)
        engine_result_free(&outcome.result);
    assert_int_equal(outcome.result.counts.datagrams_late, outcome.late);
    assert_int_equal(outcome.result.counts.datagrams_surplus, outcome.late);
    // In bounded memory as long as their samples were there.
    const size_t marked = read_late(&outcome.result);
    in_bounded_memory ? assert_in_range(marked, 0, outcome.late)
                      : assert_int_equal(marked, outcome.late);
    assert_in_range(outcome.late, 1, outcome.by_status[SAMPLE_LOST]);
    assert_int_equal(outcome.result.counts.datagrams_overrun, 0);
    engine_result_free(&outcome.result);
}

static void answers_twice_count_once(void **state)
{
    (void)state;
    struct outcome outcome;
    load(TWICE, patient_ms, &outcome);
    assert_int_equal(outcome.by_status[SAMPLE_MISS], outcome.result.sample_count);
    // The last one's second answer may have come after the end.
    assert_in_range(outcome.result.counts.datagrams_surplus, outcome.result.sample_count - 2,
                    outcome.result.sample_count);
    engine_result_free(&outcome.result);
}

static void answers_find_their_request(void **state)
{
    (void)state;
    struct outcome outcome;
    load(REVERSES, 400, &outcome);
    size_t odd = outcome.result.sample_count % 2; // it waits for a partner that never comes
    assert_int_equal(outcome.by_status[SAMPLE_MISS], outcome.result.sample_count - odd);
    assert_int_equal(outcome.result.counts.datagrams_surplus, 0);
    engine_result_free(&outcome.result);
}

static void replies_are_put_together(void **state)
{
    (void)state;
    struct outcome outcome;
    load(PIECES, patient_ms, &outcome);
    assert_int_equal(outcome.by_status[SAMPLE_ANSWERED], outcome.result.sample_count);
    assert_int_equal(outcome.result.counts.datagrams_unassembled, 0);
    engine_result_free(&outcome.result);
}

static void a_missing_piece_loses_the_reply(void **state)
{
    (void)state;
    struct outcome outcome;
    load(LACKS, 400, &outcome);
    size_t lacking = (outcome.result.sample_count + 9) / 10;
    assert_int_equal(outcome.by_status[SAMPLE_ANSWERED], outcome.result.sample_count - lacking);
    assert_int_equal(outcome.by_status[SAMPLE_LOST] + outcome.by_status[SAMPLE_TIMED_OUT], lacking);
    engine_result_free(&outcome.result);
}

// What waits in vain for its last datagram makes room for those that come.
static void missing_pieces_lose_no_other_reply(void **state)
{
    (void)state;
    struct outcome outcome;
    load(LACKS_HALF, 400, &outcome);
    const size_t lacking = (outcome.result.sample_count + 1) / 2;
    assert_true(lacking > 100);
    assert_int_equal(outcome.by_status[SAMPLE_ANSWERED], outcome.result.sample_count - lacking);
    // Each lost reply gave up all that had come of it, or none.
    const uint64_t given_up = outcome.result.counts.datagrams_unassembled;
    assert_true(given_up > 0 && given_up % (PIECES_COUNT - 1) == 0 &&
                given_up / (PIECES_COUNT - 1) < lacking);
    engine_result_free(&outcome.result);
}

static void nonsense_answers_nobody(void **state)
{
    (void)state;
    struct outcome outcome;
    load(NONSENSE, patient_ms, &outcome);
    assert_int_equal(outcome.by_status[SAMPLE_LOST], outcome.result.sample_count);
    assert_int_equal(outcome.result.counts.lost[LOSS_MALFORMED], outcome.result.sample_count);
    assert_int_equal(outcome.result.counts.replies[REPLY_MALFORMED], outcome.result.sample_count);
    engine_result_free(&outcome.result);
}

static void garbage_is_counted(void **state)
{
    (void)state;
    struct outcome outcome;
    load(GARBAGE, patient_ms, &outcome);
    assert_int_equal(outcome.by_status[SAMPLE_MISS], outcome.result.sample_count);
    assert_int_equal(outcome.result.counts.datagrams_malformed, 2 * outcome.result.sample_count);
    engine_result_free(&outcome.result);
}

static void answers_to_nothing_are_surplus(void **state)
{
    (void)state;
    struct outcome outcome;
    load(STRANGERS, patient_ms, &outcome);
    assert_int_equal(outcome.by_status[SAMPLE_MISS], outcome.result.sample_count);
    assert_int_equal(outcome.result.counts.datagrams_surplus, outcome.result.sample_count);
    engine_result_free(&outcome.result);
}

static void what_a_full_socket_loses_is_counted(void **state)
{
    (void)state;
    enum { SENT = 500 };
    struct connection_counts counts = {.datagrams_overrun = 0};
    struct connection_context context = {.counts = &counts};
    struct client_connection connection = {.context = &context};
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof address;
    const int room = 4096;
    char text[1000] = "";
    uint64_t read = 0;
    int sender = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    connection.socket_fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    setsockopt(connection.socket_fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    assert_int_equal(bind(connection.socket_fd, (void *)&address, sizeof address), 0);
    assert_int_equal(getsockname(connection.socket_fd, (void *)&address, &bytes), 0);
    for (int i = 0; i < SENT; i++)
        assert_int_equal(sendto(sender, text, sizeof text, 0, (void *)&address, sizeof address),
                         sizeof text);
    while (recv(connection.socket_fd, text, sizeof text, MSG_DONTWAIT) > 0)
        read++;
    connection_note_overruns(&connection);
    assert_in_range(read, 1, SENT - 1);
    assert_int_equal(counts.datagrams_overrun, SENT - read);
    close(sender);
    close(connection.socket_fd);
}

// A client that had no core in time did not send the last of them.
static void check_unanswered(const struct outcome *outcome)
{
    size_t gone = outcome->by_status[SAMPLE_LOST] + outcome->by_status[SAMPLE_TIMED_OUT];
    assert_true(gone > 0);
    assert_int_equal(gone + outcome->by_status[SAMPLE_UNSENT], outcome->result.sample_count);
}

static void silence_loses_everything_in_time(void **state)
{
    (void)state;
    struct outcome outcome;
    load(SILENT, 100, &outcome);
    check_unanswered(&outcome);
    engine_result_free(&outcome.result);
}

static void nobody_there_is_told(void **state)
{
    (void)state;
    struct outcome outcome = {0};
    struct workload workload;
    struct error err;
    gets_only(&workload);
    assert_int_equal(run_at(free_port(), &workload, STAMP_MODE_USER, 100, &outcome, &err), 0);
    // Datagrams that leave in one call are refused together.
    assert_in_range(outcome.result.counts.datagrams_refused, 1, outcome.result.sample_count);
    for (size_t i = 0; i < outcome.result.sample_count; i++)
        outcome.by_status[outcome.result.samples[i].status]++;
    check_unanswered(&outcome);
    engine_result_free(&outcome.result);
}

static void what_does_not_go_over_udp_is_refused(void **state)
{
    (void)state;
    struct outcome outcome;
    struct workload workload;
    struct error err;
    workload_defaults(&workload);
    workload.value_size_bytes = (struct distribution){.kind = DISTRIBUTION_FIXED, .first = 70000};
    assert_int_equal(run_at(9, &workload, STAMP_MODE_USER, 100, &outcome, &err), -ERROR_INPUT);
    assert_non_null(strstr(err.text, "do not fit into a datagram"));
    assert_int_equal(workload_set_protocol(&workload, protocol_find("redis"), &err), 0);
    assert_int_equal(run_at(9, &workload, STAMP_MODE_USER, 100, &outcome, &err), -ERROR_INPUT);
    assert_non_null(strstr(err.text, "redis does not go over UDP"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_are_answered),
        cmocka_unit_test(what_is_not_answered_is_lost),
        cmocka_unit_test(late_answers_are_counted),
        cmocka_unit_test(answers_twice_count_once),
        cmocka_unit_test(answers_find_their_request),
        cmocka_unit_test(replies_are_put_together),
        cmocka_unit_test(a_missing_piece_loses_the_reply),
        cmocka_unit_test(missing_pieces_lose_no_other_reply),
        cmocka_unit_test(nonsense_answers_nobody),
        cmocka_unit_test(garbage_is_counted),
        cmocka_unit_test(answers_to_nothing_are_surplus),
        cmocka_unit_test(silence_loses_everything_in_time),
        cmocka_unit_test(what_a_full_socket_loses_is_counted),
        cmocka_unit_test(nobody_there_is_told),
        cmocka_unit_test(what_does_not_go_over_udp_is_refused),
    };
    const struct CMUnitTest bounded[] = {
        cmocka_unit_test(all_are_answered),
        cmocka_unit_test(what_is_not_answered_is_lost),
        cmocka_unit_test(late_answers_are_counted),
        cmocka_unit_test(answers_twice_count_once),
        cmocka_unit_test(answers_find_their_request),
        cmocka_unit_test(nonsense_answers_nobody),
        cmocka_unit_test(answers_to_nothing_are_surplus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) +
           run_in_bounded_memory(bounded, sizeof bounded / sizeof *bounded);
}
