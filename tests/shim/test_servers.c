// SPDX-License-Identifier: MIT
//
// Real servers under the shim: memcached, redis, and a Python server that goes through every kind
// of socket call. The client sends requests cut at random places, pipelined, on several
// connections, and knows every byte of the replies; afterwards the log must account for exactly
// the bytes that each connection carried, in order, without a gap.
// Runs beside others: it counts.
#include "tests/shim/shim_test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>

#include "base/process.h"
#include "tests/ports.h"
#include "tests/skip.h"

enum { CONNECTIONS = 8, REQUESTS = 300, VALUE_LIMIT = 9000 };

struct bytes {
    char *data;
    size_t used, room;
};

// One client connection: what it will send, what it must get back, how far it is.
struct client {
    int fd;
    uint16_t port;
    struct bytes requests, replies;
    size_t sent, received;
    uint64_t early_in, early_out; // bytes moved before the recording began, as the server sees it
};

struct server {
    const char *name;
    const char *const *argv;
    uint16_t port;
    void (*request)(struct client *client, int connection, int number, const char *value,
                    size_t length);
};

static void put(struct bytes *bytes, const void *data, size_t length)
{
    if (bytes->used + length > bytes->room) {
        bytes->room = (bytes->used + length) * 2;
        bytes->data = realloc(bytes->data, bytes->room);
        assert_non_null(bytes->data);
    }
    memcpy(bytes->data + bytes->used, data, length);
    bytes->used += length;
}

__attribute__((format(printf, 2, 3))) static void putf(struct bytes *bytes, const char *format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    put(bytes, text, (size_t)length);
}

static void memcached_request(struct client *client, int connection, int number, const char *value,
                              size_t length)
{
    putf(&client->requests, "set key-%d-%d 0 0 %zu\r\n", connection, number % 20, length);
    put(&client->requests, value, length);
    putf(&client->requests, "\r\nget key-%d-%d\r\n", connection, number % 20);
    putf(&client->replies, "STORED\r\nVALUE key-%d-%d 0 %zu\r\n", connection, number % 20, length);
    put(&client->replies, value, length);
    putf(&client->replies, "\r\nEND\r\n");
}

static void redis_request(struct client *client, int connection, int number, const char *value,
                          size_t length)
{
    char key[64];
    int key_length = snprintf(key, sizeof key, "key-%d-%d", connection, number % 20);
    putf(&client->requests, "*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%zu\r\n", key_length, key, length);
    put(&client->requests, value, length);
    putf(&client->requests, "\r\n*2\r\n$3\r\nGET\r\n$%d\r\n%s\r\n", key_length, key);
    putf(&client->replies, "+OK\r\n$%zu\r\n", length);
    put(&client->replies, value, length);
    putf(&client->replies, "\r\n");
}

static void echo_request(struct client *client, int connection, int number, const char *value,
                         size_t length)
{
    (void)connection;
    (void)number;
    put(&client->requests, value, length);
    put(&client->replies, value, length);
}

static void client_plan(struct client *client, const struct server *server, int connection,
                        int requests)
{
    char value[VALUE_LIMIT];
    for (int i = 0; i < requests; i++) {
        size_t length = (size_t)(rand() % 4 == 0 ? rand() % VALUE_LIMIT : rand() % 200);
        for (size_t b = 0; b < length; b++)
            value[b] = (char)('a' + rand() % 26);
        server->request(client, connection, i, value, length);
    }
}

static bool client_connect(struct client *client, uint16_t port)
{
    client->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(client->fd, (struct sockaddr *)&address, sizeof address) < 0) {
        close(client->fd);
        return false;
    }
    socklen_t bytes = sizeof address;
    assert_int_equal(getsockname(client->fd, (struct sockaddr *)&address, &bytes), 0);
    client->port = ntohs(address.sin_port);
    return true;
}

static void client_step(struct client *client, short ready)
{
    char buffer[4096];
    if (ready & POLLIN) {
        ssize_t got =
            recv(client->fd, buffer, (size_t)(1 + rand() % (int)sizeof buffer), MSG_DONTWAIT);
        assert_true(got > 0);
        assert_true(client->received + (size_t)got <= client->replies.used);
        assert_memory_equal(buffer, client->replies.data + client->received, (size_t)got);
        client->received += (size_t)got;
    }
    size_t left = client->requests.used - client->sent;
    if ((ready & POLLOUT) && left > 0) {
        size_t piece = (size_t)(rand() % 3 ? 1 + rand() % 40 : 1 + rand() % 6000);
        ssize_t put_in = send(client->fd, client->requests.data + client->sent,
                              piece < left ? piece : left, MSG_DONTWAIT | MSG_NOSIGNAL);
        assert_true(put_in > 0 || errno == EAGAIN);
        client->sent += put_in > 0 ? (size_t)put_in : 0;
    }
}

// Moves everything that is planned on all of them.
static void clients_run(struct client *clients, int count, struct message_collector *collector)
{
    for (;;) {
        struct pollfd fds[CONNECTIONS];
        int open = 0;
        for (int i = 0; i < count; i++) {
            bool sending = clients[i].sent < clients[i].requests.used;
            bool waiting = clients[i].received < clients[i].replies.used;
            fds[i] = (struct pollfd){.fd = clients[i].fd,
                                     .events =
                                         (short)((sending ? POLLOUT : 0) | (waiting ? POLLIN : 0))};
            open += sending || waiting;
        }
        if (!open)
            return;
        assert_true(poll(fds, (nfds_t)count, 60000) > 0);
        for (int i = 0; i < count; i++)
            client_step(&clients[i], fds[i].revents);
        struct error err = {0};
        if (rand() % 100 == 0)
            assert_int_equal(message_collector_poll(collector, &err), 0);
    }
}

// Ends the client's side, and returns when the server has closed the connection too.
static void client_close(struct client *client)
{
    char byte;
    struct pollfd end = {.fd = client->fd, .events = POLLIN};
    assert_int_equal(shutdown(client->fd, SHUT_WR), 0);
    assert_int_equal(poll(&end, 1, 60000), 1);
    assert_int_equal(recv(client->fd, &byte, 1, 0), 0);
    close(client->fd);
}

static bool server_wait(struct client *first, const struct server *server)
{
    for (int i = 0; i < 2400; i++) {
        if (client_connect(first, server->port))
            return true;
        nanosleep(&(struct timespec){.tv_nsec = 25000000}, NULL);
    }
    return false;
}

// Within a wait's return receives are numbered from 0 without a gap.
static void batches_check(const struct logs *logs)
{
    const struct call *calls = logs->calls.records;
    size_t batched = 0;
    for (size_t i = 0; i < logs->calls.count; i++) {
        if (calls[i].kind != CALL_RECEIVE || calls[i].batch == 0)
            continue;
        batched++;
        uint16_t expected = 0;
        bool whole = false; // the batch's wait is in the log, so nothing of it was before the start
        for (size_t j = i; j-- > 0;) {
            if (calls[j].thread != calls[i].thread || calls[j].batch != calls[i].batch) {
                if (calls[j].thread == calls[i].thread)
                    break;
                continue;
            }
            if (calls[j].kind == CALL_WAIT) {
                whole = true;
                break;
            }
            expected = (uint16_t)(expected + (calls[j].kind == CALL_RECEIVE));
        }
        if (whole)
            assert_int_equal(calls[i].batch_position, expected);
    }
    assert_true(batched > 0);
}

// Where the log of a connection may begin: with its first byte after the start. A server that
// blocks in receive (no batches) was in the middle of a call then, and that one call is not
// recorded.
static uint64_t first_offset(const struct logs *logs, uint32_t connection, uint64_t early,
                             bool blocking)
{
    const struct call *calls = logs->calls.records;
    for (size_t i = 0; blocking && early > 0 && i < logs->calls.count; i++) {
        if (calls[i].connection != connection || calls[i].kind != CALL_RECEIVE)
            continue;
        assert_in_range(calls[i].offset, early, early + 5000);
        return calls[i].offset;
    }
    return early;
}

static void server_check(const struct server *server, const struct places *places,
                         struct client *clients, const struct message_stats *stats, bool blocking)
{
    struct logs logs;
    logs_open(&logs, places);
    assert_int_equal(logs.calls.count, stats->calls);
    assert_int_equal(logs.calls.header.dropped, 0);
    assert_int_equal(logs.connections.count, CONNECTIONS);
    logs_check(&logs);
    for (int i = 0; i < CONNECTIONS; i++) {
        const struct connection *connection = logs_connection(&logs, clients[i].port);
        assert_non_null(connection);
        assert_int_equal(connection->local_port, server->port);
        assert_true(connection->cookie != 0 && connection->opened_time != 0);
        assert_int_equal(connection->protocol, CONNECTION_TCP);
        static const uint8_t loopback[16] = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1};
        assert_memory_equal(connection->local, loopback, 16);
        assert_memory_equal(connection->peer, loopback, 16);
        uint64_t first = first_offset(&logs, connection->id, clients[i].early_in, blocking);
        assert_int_equal(logs_follow(&logs, connection->id, CALL_RECEIVE, first),
                         clients[i].requests.used);
        assert_int_equal(logs_follow(&logs, connection->id, CALL_SEND, clients[i].early_out),
                         clients[i].replies.used);
        bool early = clients[i].early_in > 0;
        assert_int_equal(logs_count(&logs, connection->id, CALL_ACCEPT), early ? 0 : 1);
        assert_int_equal(logs_count(&logs, connection->id, CALL_CLOSE), i % 2);
    }
    logs_close(&logs);
}

static void server_account(const struct server *server, bool batched)
{
    struct places places;
    places_init(&places, server->name);
    struct error err = {0};
    struct message_collector *collector = NULL;
    if (message_collector_create(places.rings, 1 << 20, &server->port, 1, &collector, &err) < 0)
        fail_msg("%s", err.text);
    const char *environment[] = {places.preload, places.environment,
                                 "ASAN_OPTIONS=verify_asan_link_order=0", NULL};
    char log[160];
    snprintf(log, sizeof log, "%s/server.log", places.out);
    struct process process = {0};
    struct process_place place = {.environment = environment, .log_path = log};
    if (process_start(&process, server->argv, &place, &err) < 0)
        fail_msg("%s", err.text);

    struct client clients[CONNECTIONS] = {0};
    assert_true(server_wait(&clients[0], server));
    // The first connection works before the recording begins: its bytes count all the same.
    client_plan(&clients[0], server, 0, 10);
    clients_run(clients, 1, collector);
    clients[0].early_in = clients[0].requests.used;
    clients[0].early_out = clients[0].replies.used;
    message_collector_enable(collector);
    client_plan(&clients[0], server, 0, REQUESTS);
    for (int i = 1; i < CONNECTIONS; i++) {
        assert_true(client_connect(&clients[i], server->port));
        client_plan(&clients[i], server, i, REQUESTS);
    }
    clients_run(clients, CONNECTIONS, collector);
    for (int i = 1; i < CONNECTIONS; i += 2)
        client_close(&clients[i]);
    // The last of these closes is in the ring as soon as the thread returns from it.
    nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
    struct message_stats stats;
    if (message_collector_finish(collector, places.out, &stats, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(access(places.rings, F_OK), -1);
    for (int i = 0; i < CONNECTIONS; i += 2)
        close(clients[i].fd);
    process_stop(&process, 2000);
    assert_string_equal(stats.warning, "");
    assert_int_equal(stats.dropped, 0);
    assert_true(stats.process_count >= 1);
    server_check(server, &places, clients, &stats, !batched);
    struct logs logs;
    logs_open(&logs, &places);
    if (batched)
        batches_check(&logs);
    printf("%s: %zu calls on %zu connections, %zu rings\n", server->name, logs.calls.count,
           logs.connections.count, stats.thread_count);
    logs_close(&logs);
    message_stats_free(&stats);
    message_collector_free(collector);
    for (int i = 0; i < CONNECTIONS; i++) {
        free(clients[i].requests.data);
        free(clients[i].replies.data);
    }
    places_clear(&places);
}

static bool missing(const char *program)
{
    char command[128], out[256];
    snprintf(command, sizeof command, "command -v %s", program);
    struct error err = {0};
    const char *argv[] = {"sh", "-c", command, NULL};
    if (process_run(argv, &(struct process_place){0}, 5000, out, sizeof out, &err) == 0)
        return false;
    print_message("%s is not installed\n", program);
    return true;
}

static void test_memcached(void **state)
{
    (void)state;
    if (missing("memcached"))
        skip_case("there is no memcached");
    char port[PORT_TEXT_BYTES];
    const uint16_t number = claim_port(port);
    const char *const argv[] = {"memcached", "-u", "root", "-l", "127.0.0.1", "-p",
                                port,        "-U", "0",    "-t", "2",         NULL};
    server_account(&(struct server){"memcached", argv, number, memcached_request}, true);
}

static void test_redis(void **state)
{
    (void)state;
    if (missing("redis-server"))
        skip_case("there is no redis-server");
    char port[PORT_TEXT_BYTES];
    const uint16_t number = claim_port(port);
    const char *const argv[] = {"redis-server", "--bind", "127.0.0.1",    "--port", port,
                                "--save",       "",       "--appendonly", "no",     NULL};
    server_account(&(struct server){"redis", argv, number, redis_request}, true);
}

// A thread per connection; what comes in by one kind of call goes out by another.
static const char python_server[] =
    "import array, os, socket, sys, tempfile, threading\n"
    "def receive(c, n):\n"
    "    size = 1 + n * 37 % 5000\n"
    "    kind = n % 6\n"
    "    if kind == 0: return c.recv(size)\n"
    "    if kind == 1: return os.read(c.fileno(), size)\n"
    "    if kind == 2: return c.recvmsg(size, 256)[0]\n"
    "    if kind == 3: return c.recvfrom(size)[0]\n"
    "    if kind == 4:\n"
    "        c.recv(size, socket.MSG_PEEK)\n"
    "        b = bytearray(size); return bytes(b[:c.recv_into(b)])\n"
    "    a, b = bytearray(size // 2 + 1), bytearray(size)\n"
    "    got = os.readv(c.fileno(), [a, b])\n"
    "    return bytes((a + b)[:got])\n"
    "def reply(c, n, data):\n"
    "    while data:\n"
    "        kind = n % 6\n"
    "        if kind == 0: sent = c.send(data)\n"
    "        elif kind == 1: sent = os.write(c.fileno(), data)\n"
    "        elif kind == 2: sent = c.sendmsg([data[:7], data[7:]])\n"
    "        elif kind == 3: sent = os.writev(c.fileno(), [data[:3], data[3:]])\n"
    "        elif kind == 4:\n"
    "            with tempfile.TemporaryFile() as f:\n"
    "                f.write(data); f.flush()\n"
    "                sent = os.sendfile(c.fileno(), f.fileno(), 0, len(data))\n"
    "        else:\n"
    "            d = os.dup(c.fileno()); sent = os.write(d, data); os.close(d)\n"
    "        data = data[sent:]; n += 1\n"
    "def serve(c):\n"
    "    n = 0\n"
    "    while True:\n"
    "        data = receive(c, n)\n"
    "        if not data: break\n"
    "        reply(c, n // 3, data); n += 1\n"
    "    c.close()\n"
    "s = socket.create_server(('127.0.0.1', int(sys.argv[1])))\n"
    "while True:\n"
    "    c, _ = s.accept()\n"
    "    threading.Thread(target=serve, args=(c,), daemon=True).start()\n";

static void test_python(void **state)
{
    (void)state;
    if (missing("python3"))
        skip_case("there is no python3");
    char port[PORT_TEXT_BYTES];
    const uint16_t number = claim_port(port);
    const char *const argv[] = {"python3", "-c", python_server, port, NULL};
    server_account(&(struct server){"python", argv, number, echo_request}, false);
}

int main(void)
{
    srand(1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memcached),
        cmocka_unit_test(test_redis),
        cmocka_unit_test(test_python),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
