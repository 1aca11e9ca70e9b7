// SPDX-License-Identifier: MIT
//
// One thread of the engine, turned by hand, with this test as its server: what it does first when
// requests are due while replies wait, what becomes of a reply that waits when a send fails, the
// stream ends behind it or an attempt's time is over, and which replies are what was asked for.
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "base/tsc.h"
#include "loadgen/client/client_datagram.h"
#include "loadgen/client/client_socket.h"
#include "loadgen/engine/engine_worker_prepare.h"
#include "loadgen/engine/engine_worker_run.h"
#include "tests/loadgen/engine/engine_test.h"
#include "workloads/protocols/protocols.h"

enum { MOST_CONNECTIONS = 2 };

struct lab {
    struct workload workload;
    struct server_address address;
    struct engine_settings settings;
    struct schedule schedule;
    struct engine_shared shared;
    struct engine_worker worker;
    int accepted[MOST_CONNECTIONS]; // the server's ends, in the order of the connections
};

// A lab whose worker is to be prepared, with that many requests of its schedule, which is due from
// the start; its server has that port.
static struct lab *begin_lab(const char *protocol, uint32_t connections, size_t requests,
                             enum stamp_source stamps, uint16_t port)
{
    struct lab *lab = calloc(1, sizeof *lab);
    resolve(port, &lab->address);
    workload_defaults(&lab->workload);
    lab->workload.protocol = protocol_find(protocol);
    lab->workload.value_size_bytes.first = 2;
    lab->workload.mix[WORKLOAD_GET] = 1;
    lab->workload.mix[WORKLOAD_SET] = 0;
    lab->schedule.items = calloc(requests, sizeof *lab->schedule.items);
    lab->schedule.count = requests;
    lab->settings = (struct engine_settings){.server = &lab->address,
                                             .workload = &lab->workload,
                                             .connections = connections,
                                             .timeout_ns = 1000000000,
                                             .reconnect_ns = 1000000000};
    lab->shared = (struct engine_shared){.settings = &lab->settings,
                                         .schedule = &lab->schedule,
                                         .thread_count = 1,
                                         .depth = 8,
                                         .kernel_stamps = stamps != STAMP_USER,
                                         .hardware_stamps = stamps == STAMP_HARDWARE,
                                         .hardware_tx = stamps == STAMP_HARDWARE,
                                         .ticks_per_ns = 2,
                                         .request_bytes = 512,
                                         .value_bytes = workload_value_bytes_max(&lab->workload)};
    atomic_init(&lab->shared.last_id, connections);
    lab->worker.shared = &lab->shared;
    return lab;
}

// A worker that is connected; to a server that goes on listening.
static struct lab *new_listening_lab(const char *protocol, uint32_t connections, size_t requests,
                                     enum stamp_source stamps, int *listening)
{
    struct error err = {0};
    uint16_t port;
    const int listener = *listening = listen_anywhere(&port);
    struct lab *lab = begin_lab(protocol, connections, requests, stamps, port);
    if (engine_worker_prepare(&lab->worker, &err) < 0)
        fail_msg("%s", err.text);
    for (uint32_t i = 0; i < connections; i++)
        lab->accepted[i] = accept(listener, NULL, NULL);
    return lab;
}

// The same, and it listens no more.
static struct lab *new_stamped_lab(const char *protocol, uint32_t connections, size_t requests,
                                   enum stamp_source stamps)
{
    int listener;
    struct lab *lab = new_listening_lab(protocol, connections, requests, stamps, &listener);
    close(listener);
    return lab;
}

static struct lab *new_lab(const char *protocol, uint32_t connections, size_t requests)
{
    return new_stamped_lab(protocol, connections, requests, STAMP_USER);
}

// The same of one connection, over UDP.
static struct lab *new_datagram_lab(size_t requests)
{
    struct error err = {0};
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof address;
    const int server = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(server, (void *)&address, sizeof address), 0);
    assert_int_equal(getsockname(server, (void *)&address, &bytes), 0);
    struct lab *lab = begin_lab("memcached", 1, requests, STAMP_USER, ntohs(address.sin_port));
    lab->address.transport = SERVER_UDP;
    if (engine_worker_prepare(&lab->worker, &err) < 0)
        fail_msg("%s", err.text);
    const int client = lab->worker.connections[0].socket_fd;
    assert_int_equal(getsockname(client, (void *)&address, &bytes), 0);
    assert_int_equal(connect(server, (void *)&address, bytes), 0);
    lab->accepted[0] = server;
    return lab;
}

static void free_lab(struct lab *lab, uint32_t connections)
{
    for (uint32_t i = 0; i < connections; i++)
        close(lab->accepted[i]);
    engine_worker_close(&lab->worker);
    munmap(lab->worker.samples, lab->worker.sample_bytes);
    array_free(&lab->worker.context.log);
    free(lab->schedule.items);
    workload_free(&lab->workload);
    free(lab);
}

// Populating gigabytes takes seconds, and so may connections.
static void who_interrupts_before_it_begins_does_not_wait_for_the_samples(void **state)
{
    (void)state;
    struct lab *lab = new_stamped_lab("memcached", 1, 1 << 20, STAMP_USER);
    struct engine_worker other = {.shared = &lab->shared};
    unsigned char resident = 0;
    struct error err = {0};
    atomic_store(&lab->shared.stop, true);
    assert_int_equal(engine_worker_prepare(&other, &err), -ERROR_FAILED);
    assert_string_equal(err.text, "interrupted before the load began");
    assert_non_null(other.samples);
    assert_int_equal(mincore(other.samples, 1, &resident), 0);
    assert_int_equal(resident & 1, 0);
    engine_worker_close(&other);
    munmap(other.samples, other.sample_bytes);
    array_free(&other.context.log);
    free_lab(lab, 1);
}

// The worker's next request, out on that connection and with the server.
static void send_one(struct lab *lab, uint32_t connection)
{
    struct engine_worker *worker = &lab->worker;
    struct request request;
    char bytes[1000];
    workload_request(&lab->workload, WORKLOAD_GET, 0, worker->next, 0, worker->key, worker->value,
                     &request);
    connection_put(&worker->connections[connection], (uint32_t)worker->next++, &request);
    connection_flush(&worker->connections[connection]);
    assert_true(read(lab->accepted[connection], bytes, sizeof bytes) > 0);
}

// Until the client's kernel has it: over loopback at once, but where a busy machine leaves the
// delivery to a thread.
static void reply(struct lab *lab, uint32_t connection, const char *text)
{
    struct pollfd arrived = {.fd = lab->worker.connections[connection].socket_fd, .events = POLLIN};
    assert_int_equal(write(lab->accepted[connection], text, strlen(text)), strlen(text));
    assert_int_equal(poll(&arrived, 1, 10000), 1);
}

static bool is_sent(const struct lab *lab, size_t sample)
{
    return lab->worker.samples[sample].sent_tsc != 0;
}

// Of three requests the first is answered in time, the second when it had been given up, and the
// third, for which the load had waited to its end, when nobody read any more.
static void what_nobody_read_until_the_end_is_known_to_have_come(void **state)
{
    (void)state;
    struct lab *lab = new_datagram_lab(3);
    struct engine_worker *worker = &lab->worker;
    struct client_connection *connection = &worker->connections[0];
    static const char frames[][8] = {{0, 0, 0, 0, 0, 1}, {0, 1, 0, 0, 0, 1}, {0, 2, 0, 0, 0, 1}};
    char text[13] = "12345678END\r\n";
    for (unsigned i = 0; i < 3; i++) {
        struct pollfd arrived = {.fd = connection->socket_fd, .events = POLLIN};
        send_one(lab, 0);
        memcpy(text, frames[i], sizeof frames[i]);
        assert_int_equal(write(lab->accepted[0], text, sizeof text), sizeof text);
        assert_int_equal(poll(&arrived, 1, 10000), 1);
        if (i == 0)
            assert_true(datagram_receive(connection));
        if (i == 1) {
            worker->context.timeout_tsc = 0;
            datagram_timer(-1, 0, connection);
            worker->context.timeout_tsc = UINT64_MAX;
        }
    }
    datagram_take_rest(connection);
    static const uint8_t statuses[] = {SAMPLE_MISS, SAMPLE_LOST, SAMPLE_TIMED_OUT};
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(worker->samples[i].status, statuses[i]);
        assert_int_equal(worker->samples[i].sender_high, i > 0 ? SAMPLE_READ_LATE : 0);
        assert_int_equal(worker->samples[i].reply_tsc != 0, i == 0);
    }
    assert_int_equal(worker->counts.datagrams_late, 2);
    assert_int_equal(worker->counts.datagrams_surplus, 2);
    assert_int_equal(worker->counts.in_flight, 1);
    free_lab(lab, 1);
}

static void what_is_due_is_sent_before_replies_are_read(void **state)
{
    (void)state;
    struct lab *lab = new_lab("memcached", 2, 4);
    const struct sample *samples = lab->worker.samples;
    for (uint32_t i = 0; i < 2; i++) {
        send_one(lab, i);
        reply(lab, i, "END\r\n");
    }
    engine_worker_turn(&lab->worker, tsc_now());
    for (size_t sent = 2; sent < 4; sent++) {
        assert_true(is_sent(lab, sent));
        for (size_t read = 0; read < 2; read++) {
            assert_int_equal(samples[read].status, SAMPLE_MISS);
            assert_true(samples[sent].sent_tsc <= samples[read].reply_tsc);
        }
    }
    free_lab(lab, 2);
}

// It becomes due while replies are read: it waits for one of them.
static void what_becomes_due_waits_for_one_reply(void **state)
{
    (void)state;
    struct lab *lab = new_lab("memcached", 2, 3);
    const struct sample *samples = lab->worker.samples;
    for (uint32_t i = 0; i < 2; i++) {
        send_one(lab, i);
        reply(lab, i, "END\r\n");
    }
    engine_worker_poll(&lab->worker);
    const bool first = samples[0].reply_tsc < samples[1].reply_tsc;
    const uint64_t reads[] = {samples[!first].reply_tsc, samples[first].reply_tsc};
    assert_true(is_sent(lab, 2));
    assert_true(reads[0] <= samples[2].send_tsc && samples[2].sent_tsc <= reads[1]);
    free_lab(lab, 2);
}

// The server is gone, by a reset that the next send call meets.
static void reset_before_a_send(struct lab *lab)
{
    struct engine_worker *worker = &lab->worker;
    struct request request;
    const struct linger at_once = {.l_onoff = 1};
    setsockopt(lab->accepted[0], SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close(lab->accepted[0]);
    workload_request(&lab->workload, WORKLOAD_GET, 0, worker->next, 0, worker->key, worker->value,
                     &request);
    connection_put(&worker->connections[0], (uint32_t)worker->next++, &request);
    connection_flush(&worker->connections[0]);
    assert_int_equal(worker->counts.ended, 1);
    assert_int_equal(worker->counts.in_flight, 0);
    assert_int_equal(worker->counts.moved, 1); // what was not sent goes to another connection
    assert_int_equal(worker->again.count, 1);
}

// It answered, and said that it closes: then the end is an orderly one, with nothing lost.
static void a_reply_counts_though_the_next_send_fails(void **state)
{
    (void)state;
    struct lab *lab = new_lab("http", 1, 2);
    send_one(lab, 0);
    reply(lab, 0, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
    reset_before_a_send(lab);
    assert_int_equal(lab->worker.samples[0].status, SAMPLE_ANSWERED);
    assert_int_equal(lab->worker.counts.broken, 0);
    for (unsigned reason = 0; reason < LOSS_REASONS; reason++)
        assert_int_equal(lab->worker.counts.lost[reason], 0);
    free_lab(lab, 0);
}

// It said nothing of an end, whether or not it answered one of two: the others are lost by the
// reset.
static void a_reset_that_a_send_meets_is_one(void **state)
{
    (void)state;
    for (unsigned answers = 0; answers < 2; answers++) {
        struct lab *lab = new_lab("memcached", 1, 3);
        send_one(lab, 0);
        send_one(lab, 0);
        if (answers)
            reply(lab, 0, "END\r\n");
        reset_before_a_send(lab);
        assert_int_equal(lab->worker.samples[0].status, answers ? SAMPLE_MISS : SAMPLE_LOST);
        assert_int_equal(lab->worker.samples[1].status, SAMPLE_LOST);
        assert_int_equal(lab->worker.counts.broken, 1);
        assert_int_equal(lab->worker.counts.lost[LOSS_RESET], 2 - answers);
        free_lab(lab, 0);
    }
}

// The end of the stream waits behind a reply before either is read, so that there is one edge for
// both.
static void end_behind_a_reply(enum stamp_source stamps, bool reset)
{
    struct lab *lab = new_stamped_lab("memcached", 1, 2, stamps);
    struct engine_worker *worker = &lab->worker;
    struct pollfd ended = {.fd = worker->connections[0].socket_fd, .events = POLLRDHUP};
    const struct linger at_once = {.l_onoff = 1};
    send_one(lab, 0);
    send_one(lab, 0);
    reply(lab, 0, "END\r\n");
    if (reset)
        setsockopt(lab->accepted[0], SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close(lab->accepted[0]);
    assert_int_equal(poll(&ended, 1, 10000), 1);
    assert_int_equal(worker->counts.ended, 0);
    engine_worker_turn(worker, tsc_now());
    assert_int_equal(worker->counts.ended, 1);
    assert_int_equal(worker->samples[0].status, SAMPLE_MISS);
    assert_int_equal(worker->samples[1].status, SAMPLE_LOST);
    assert_int_equal(worker->counts.lost[reset ? LOSS_RESET : LOSS_CLOSED], 1);
    assert_int_equal(worker->counts.in_flight, 0);
    free_lab(lab, 0);
}

static void an_end_behind_a_reply_is_seen(void **state)
{
    static const enum stamp_source stamps[] = {STAMP_USER, STAMP_SOFTWARE, STAMP_HARDWARE};
    (void)state;
    for (size_t i = 0; i < sizeof stamps / sizeof *stamps; i++) {
        end_behind_a_reply(stamps[i], false);
        end_behind_a_reply(stamps[i], true);
    }
}

// One request, its reply, and what became of it.
static void judge_reply(const char *protocol, const char *text, enum sample_status status,
                        const char *fault)
{
    struct lab *lab = new_lab(protocol, 1, 1);
    struct engine_worker *worker = &lab->worker;
    send_one(lab, 0);
    reply(lab, 0, text);
    engine_worker_turn(worker, tsc_now());
    assert_int_equal(worker->samples[0].status, status);
    if (status == SAMPLE_LOST) { // by a reply that nobody can take for an answer
        assert_int_equal(worker->counts.lost[LOSS_MALFORMED], 1);
        assert_int_equal(worker->samples[0].reply_tsc, 0);
        if (!strstr(worker->counts.first_break.text, fault))
            fail_msg("%s: not %s", worker->counts.first_break.text, fault);
    } else {
        assert_int_equal(worker->counts.wrong_values,
                         fault && (strstr(fault, "value") || strstr(fault, "key")));
        assert_string_equal(worker->counts.first_fault.text, fault ? fault : "");
    }
    free_lab(lab, 1);
}

static void only_what_was_asked_for_answers(void **state)
{
    (void)state;
#define KEY "0000000000000000000000000000000"
    judge_reply("memcached", "VALUE " KEY " 0 2\r\nab\r\nEND\r\n", SAMPLE_ANSWERED, NULL);
    judge_reply("memcached", "VALUE " KEY " 0 3\r\nabc\r\nEND\r\n", SAMPLE_ERROR_REPLY,
                "a value of 3 bytes, and the key's has 2");
    judge_reply("memcached", "VALUE 1" KEY " 0 2\r\nab\r\nEND\r\n", SAMPLE_ERROR_REPLY,
                "the value of another key");
    judge_reply("memcached", "VALUE " KEY " 0 2\r\nab\r\nVALUE " KEY " 0 2\r\nab\r\nEND\r\n",
                SAMPLE_LOST, "it said \"VALUE " KEY);
    judge_reply("memcached", "SERVER_ERROR out of memory\r\n", SAMPLE_ERROR_REPLY,
                "\"SERVER_ERROR out of memory\"");
    judge_reply("memcached", "STORED\r\n", SAMPLE_ERROR_REPLY, "a reply \"stored\" to get");
    judge_reply("memcached", "SSH-2.0-OpenSSH_9.2p1\r\n", SAMPLE_LOST, "\"SSH-2.0-OpenSSH_9.2p1\"");
    judge_reply("memcached-meta", "VA 3\r\nabc\r\n", SAMPLE_ERROR_REPLY,
                "a value of 3 bytes, and the key's has 2");
    judge_reply("redis", "$2\r\nab\r\n", SAMPLE_ANSWERED, NULL);
    judge_reply("redis", "$5\r\nabcde\r\n", SAMPLE_ERROR_REPLY,
                "a value of 5 bytes, and the key's has 2");
    judge_reply("redis", "-NOAUTH Authentication required.\r\n", SAMPLE_ERROR_REPLY,
                "\"-NOAUTH Authentication required.\"");
    judge_reply("redis-resp3", "%1\r\n+a\r\n+b\r\n!9\r\nERR a\1bc\2\r\n", SAMPLE_ERROR_REPLY,
                "\"ERR a?bc?\"");
    judge_reply("http", "HTTP/1.1 503 Busy\r\nContent-Length: 3\r\n\r\nabc", SAMPLE_ERROR_REPLY,
                "\"HTTP/1.1 503 Busy\"");
#undef KEY
}

// Redis says so to who connects, and closes.
static void what_is_said_before_a_close_is_quoted(void **state)
{
    (void)state;
    struct lab *lab = new_lab("redis", 1, 1);
    struct engine_worker *worker = &lab->worker;
    reply(lab, 0, "-ERR max number of clients reached\r\n");
    close(lab->accepted[0]);
    struct pollfd ended = {.fd = worker->connections[0].socket_fd, .events = POLLRDHUP};
    assert_int_equal(poll(&ended, 1, 10000), 1);
    engine_worker_poll(worker);
    assert_int_equal(worker->counts.ended, 1);
    assert_int_equal(worker->counts.unexpected, 0); // it raises no doubt about others
    assert_non_null(strstr(worker->counts.first_break.text,
                           "refused it; it said \"-ERR max number of clients reached\""));
    free_lab(lab, 0);
}

// The same where a request had left by then: it answers none, which another connection may have.
static void refuse(const char *protocol, const char *said, size_t piece)
{
    struct lab *lab = new_lab(protocol, 1, 1);
    struct engine_worker *worker = &lab->worker;
    char text[100];
    send_one(lab, 0);
    for (size_t at = 0; at < strlen(said); at += piece) {
        snprintf(text, sizeof text, "%.*s", (int)piece, said + at);
        reply(lab, 0, text);
        engine_worker_poll(worker);
    }
    assert_int_equal(worker->counts.ended, 1);
    assert_int_equal(worker->counts.broken, 1);
    assert_int_equal(worker->counts.repeated, 1);
    assert_int_equal(worker->counts.unexpected, 0);
    assert_int_equal(worker->samples[0].status, SAMPLE_UNSENT);
    for (size_t i = 0; i < REPLY_KINDS; i++)
        assert_int_equal(worker->counts.replies[i], 0);
    char quoted[120];
    snprintf(quoted, sizeof quoted, "after 0 replies: the server refused it; it said \"%.*s\"",
             (int)strcspn(said, "\r"), said);
    if (!strstr(worker->counts.first_break.text, quoted))
        fail_msg("%s: not %s", worker->counts.first_break.text, quoted);
    free_lab(lab, 0);
}

static void a_refused_connection_answers_nothing(void **state)
{
    (void)state;
    static const char full[] = "ERROR Too many open connections\r\n",
                      crowded[] = "-ERR max number of clients reached\r\n",
                      protected[] = "-DENIED Redis is running in protected mode\r\n";
    for (size_t piece = 1; piece < sizeof full; piece += 7) {
        refuse("memcached", full, piece);
        refuse("memcached-meta", full, piece);
        refuse("redis", crowded, piece);
        refuse("redis", protected, piece);
        refuse("redis-resp3", crowded, piece);
        refuse("memcached-binary", "ERROR Too many open connections", piece);
    }
}

// A server that announced its end has executed what it had begun to answer: that is lost, and what
// was behind it is asked again.
static void a_reply_that_is_cut_off_is_lost(void **state)
{
    (void)state;
    struct lab *lab = new_lab("http", 1, 2);
    struct engine_worker *worker = &lab->worker;
    send_one(lab, 0);
    send_one(lab, 0);
    reply(lab, 0, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 9\r\n\r\nhalf");
    close(lab->accepted[0]);
    struct pollfd ended = {.fd = worker->connections[0].socket_fd, .events = POLLRDHUP};
    assert_int_equal(poll(&ended, 1, 10000), 1);
    engine_worker_poll(worker);
    assert_int_equal(worker->counts.ended, 1);
    assert_int_equal(worker->counts.lost[LOSS_CLOSED], 1);
    assert_int_equal(worker->counts.repeated, 1);
    assert_int_equal(worker->samples[0].status, SAMPLE_LOST);
    assert_int_equal(worker->samples[1].status, SAMPLE_UNSENT);
    free_lab(lab, 0);
}

// Behind a reply it is the next one's, whatever it says; so are other words.
static void what_is_said_later_refuses_no_connection(void **state)
{
    (void)state;
    judge_reply("redis", "-ERR unknown command\r\n", SAMPLE_ERROR_REPLY,
                "\"-ERR unknown command\"");
    judge_reply("memcached-binary", "ERROR Too many cooks\r\n", SAMPLE_LOST,
                "it said \"ERROR Too many cooks\"");
    struct lab *lab = new_lab("memcached", 1, 2);
    send_one(lab, 0);
    send_one(lab, 0);
    reply(lab, 0, "END\r\nERROR Too many open connections\r\n");
    engine_worker_poll(&lab->worker);
    assert_int_equal(lab->worker.samples[1].status, SAMPLE_ERROR_REPLY);
    assert_int_equal(lab->worker.counts.ended, 0);
    free_lab(lab, 1);
}

// No line is as long as that: it would never end.
static void an_endless_line_is_no_silence(void **state)
{
    (void)state;
    enum { LINE_BYTES = 100000 };
    struct lab *lab = new_lab("memcached", 1, 1);
    char *line = malloc(LINE_BYTES + 1);
    memset(line, 'x', LINE_BYTES);
    line[LINE_BYTES] = '\0';
    send_one(lab, 0);
    reply(lab, 0, line);
    const uint64_t begin = tsc_now();
    while (!lab->worker.counts.ended && tsc_now() - begin < UINT64_C(30000000000))
        engine_worker_turn(&lab->worker, tsc_now());
    assert_int_equal(lab->worker.samples[0].status, SAMPLE_LOST);
    assert_int_equal(lab->worker.counts.replies[REPLY_OVERSIZED], 1);
    assert_int_equal(lab->worker.counts.lost[LOSS_MALFORMED], 1);
    const char *said = lab->worker.counts.first_break.text;
    assert_non_null(strstr(said, "a reply, or a line of one, that is too long; it said \"xxxx"));
    free(line);
    free_lab(lab, 1);
}

// What servers send at the end is not read any more: it may be without end.
static void past_the_deadline_nothing_is_read(void **state)
{
    (void)state;
    struct lab *lab = new_lab("memcached", 1, 1);
    send_one(lab, 0);
    reply(lab, 0, "END\r\n");
    lab->worker.deadline_tsc = tsc_now();
    engine_worker_poll(&lab->worker);
    assert_int_equal(lab->worker.samples[0].status, SAMPLE_TIMED_OUT);
    free_lab(lab, 1);
}

// One connection of Redis. The server has ended it; of an attempt to open it again nobody has seen
// yet that it is accepted, and it is to be answered a login.
static struct lab *new_reopening_lab(void)
{
    static const struct login_words login = {.count = 6, .answers = 1, .bytes = "AUTH\r\n"};
    int listener;
    struct lab *lab = new_listening_lab("redis", 1, 1, STAMP_USER, &listener);
    struct client_connection *connection = &lab->worker.connections[0];
    struct pollfd ended = {.fd = connection->socket_fd, .events = POLLRDHUP};
    lab->worker.context.login = &login;
    close(lab->accepted[0]);
    assert_int_equal(poll(&ended, 1, 10000), 1);
    engine_worker_poll(&lab->worker);
    assert_int_equal(lab->worker.counts.ended, 1);
    connection_retry(-1, 0, connection);
    struct pollfd connected = {.fd = connection->socket_fd, .events = POLLOUT};
    assert_int_equal(poll(&connected, 1, 10000), 1);
    assert_int_equal(connection->state, CONNECTION_CONNECTING);
    lab->accepted[0] = accept(listener, NULL, NULL);
    close(listener);
    return lab;
}

// Servers that close behind each reply: the next round begins anew, and waits for no timer. Not in
// the middle of a round, one of whose events may be of the old socket. One that ends unasked right
// after that is tried again after a pause.
static void what_ended_is_opened_again_in_the_next_round(void **state)
{
    (void)state;
    int listener;
    struct lab *lab = new_listening_lab("redis", 1, 1, STAMP_USER, &listener);
    struct client_connection *connection = &lab->worker.connections[0];
    send_one(lab, 0);
    reply(lab, 0, "$-1\r\n");
    close(lab->accepted[0]);
    struct pollfd ended = {.fd = connection->socket_fd, .events = POLLRDHUP};
    assert_int_equal(poll(&ended, 1, 10000), 1);
    engine_worker_poll(&lab->worker);
    assert_int_equal(lab->worker.counts.ended, 1);
    assert_int_equal(connection->state, CONNECTION_PAUSING);
    for (int i = 0; i < 10000 && connection->state != CONNECTION_OPEN; i++) {
        engine_worker_poll(&lab->worker);
        assert_int_not_equal(connection->state, CONNECTION_PAUSING);
    }
    assert_int_equal(connection->state, CONNECTION_OPEN);
    assert_int_equal(lab->worker.counts.reconnects, 1);
    close(accept(listener, NULL, NULL));
    ended.fd = connection->socket_fd;
    assert_int_equal(poll(&ended, 1, 10000), 1);
    for (int i = 0; i < 2; i++)
        engine_worker_poll(&lab->worker);
    assert_int_equal(lab->worker.counts.ended, 2);
    assert_int_equal(connection->state, CONNECTION_PAUSING);
    close(listener);
    free_lab(lab, 0);
}

// The thread had no core for as long as an answer may take: its time is over before anybody has
// looked at what the server said, first that there is a connection, then to the login.
static void an_answer_that_lies_there_is_no_silence(void **state)
{
    (void)state;
    struct lab *lab = new_reopening_lab();
    struct client_connection *connection = &lab->worker.connections[0];
    const struct timeval over = {0}, most_of_it = {.tv_usec = 900000}; // its clock is coarse
    struct timeval least, set;
    connection_retry(-1, 0, connection);
    // The next one has its own time.
    event_add(connection->timer, &over);
    event_base_gettimeofday_cached(lab->worker.base, &least);
    timeradd(&least, &most_of_it, &least);
    engine_worker_poll(&lab->worker);
    assert_int_equal(connection->state, CONNECTION_OPENING);
    assert_true(event_pending(connection->timer, EV_TIMEOUT, &set));
    assert_true(timercmp(&set, &least, >=));
    reply(lab, 0, "+OK\r\n");
    connection_retry(-1, 0, connection);
    engine_worker_poll(&lab->worker);
    assert_int_equal(connection->state, CONNECTION_OPEN);
    assert_int_equal(lab->worker.counts.reconnects, 1);
    assert_int_equal(lab->worker.counts.reconnects_failed, 0);
    free_lab(lab, 1);
}

static void a_silence_ends_an_attempt(void **state)
{
    (void)state;
    struct lab *lab = new_reopening_lab();
    struct client_connection *connection = &lab->worker.connections[0];
    const struct connection_counts *counts = &lab->worker.counts;
    engine_worker_poll(&lab->worker);
    assert_int_equal(connection->state, CONNECTION_OPENING);
    connection_retry(-1, 0, connection);
    assert_int_equal(connection->state, CONNECTION_PAUSING);
    assert_int_equal(counts->reconnects_failed, 1);
    assert_non_null(strstr(counts->first_failure.text, "did not answer within 1.00 s"));
    free_lab(lab, 1);
}

// One that it has held for a while and that nobody had a request for: it was idle. Not so one that
// it closes at once, or that waits for a reply.
static void an_idle_connection_that_is_closed_is_not_broken(void **state)
{
    (void)state;
    static const struct {
        int64_t held_ms;
        bool waits, broken;
    } ends[] = {{1000, false, false}, {-10000, false, true}, {1000, true, true}};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        struct lab *lab = new_lab("redis", 1, 1);
        struct client_connection *connection = &lab->worker.connections[0];
        struct pollfd ended = {.fd = connection->socket_fd, .events = POLLRDHUP};
        if (ends[i].waits)
            send_one(lab, 0);
        close(lab->accepted[0]);
        assert_int_equal(poll(&ended, 1, 10000), 1);
        connection->opened_ms = monotonic_ms() - ends[i].held_ms;
        engine_worker_poll(&lab->worker);
        assert_int_equal(lab->worker.counts.ended, 1);
        assert_int_equal(lab->worker.counts.broken, ends[i].broken);
        assert_int_equal(lab->worker.counts.lost[LOSS_CLOSED], ends[i].waits);
        free_lab(lab, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_interrupts_before_it_begins_does_not_wait_for_the_samples),
        cmocka_unit_test(what_is_due_is_sent_before_replies_are_read),
        cmocka_unit_test(what_nobody_read_until_the_end_is_known_to_have_come),
        cmocka_unit_test(what_becomes_due_waits_for_one_reply),
        cmocka_unit_test(a_reply_counts_though_the_next_send_fails),
        cmocka_unit_test(a_reset_that_a_send_meets_is_one),
        cmocka_unit_test(an_end_behind_a_reply_is_seen),
        cmocka_unit_test(only_what_was_asked_for_answers),
        cmocka_unit_test(what_is_said_before_a_close_is_quoted),
        cmocka_unit_test(a_refused_connection_answers_nothing),
        cmocka_unit_test(what_is_said_later_refuses_no_connection),
        cmocka_unit_test(a_reply_that_is_cut_off_is_lost),
        cmocka_unit_test(an_endless_line_is_no_silence),
        cmocka_unit_test(past_the_deadline_nothing_is_read),
        cmocka_unit_test(what_ended_is_opened_again_in_the_next_round),
        cmocka_unit_test(an_answer_that_lies_there_is_no_silence),
        cmocka_unit_test(a_silence_ends_an_attempt),
        cmocka_unit_test(an_idle_connection_that_is_closed_is_not_broken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
