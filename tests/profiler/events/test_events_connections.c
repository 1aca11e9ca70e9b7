// SPDX-License-Identifier: MIT
//
// The capture's table of connections: those that have ended make room, what finds no room is
// counted, and one whose beginning the kernel did not tell of is entered with its first segment. A
// request that opens its connection is seen like others.
// Runs beside others: it counts.
#include "tests/profiler/events/events_scene.h"

enum { ROOM = 64, SHORT = 300, MOST_OPEN = 100 };

struct pair {
    int client, server;
    uint64_t cookie;
};

static int listener_open(struct sockaddr_in *address)
{
    *address = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(PORT)};
    address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)address, sizeof *address), 0);
    assert_int_equal(listen(listener, MOST_OPEN), 0);
    return listener;
}

static uint64_t cookie_of(int socket) // as the shim asks for it
{
    uint64_t cookie = 0;
    socklen_t bytes = sizeof cookie;
    getsockopt(socket, SOL_SOCKET, SO_COOKIE, &cookie, &bytes);
    return cookie;
}

static struct pair pair_open(int listener, const struct sockaddr_in *address)
{
    struct pair pair = {.client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    assert_int_equal(connect(pair.client, (const struct sockaddr *)address, sizeof *address), 0);
    pair.server = accept(listener, NULL, NULL);
    assert_true(pair.server >= 0);
    pair.cookie = cookie_of(pair.server);
    return pair;
}

static void pair_close(const struct pair *pair)
{
    close(pair->client);
    close(pair->server);
}

static struct events_capture *capture_open(unsigned groups)
{
    static const uint16_t port = PORT;
    struct events_capture_settings settings = {.ports = &port,
                                               .port_count = 1,
                                               .groups = groups,
                                               .ring_bytes = 4 << 20,
                                               .connections = ROOM};
    struct events_capture *capture;
    struct error err = {0};
    if (events_capture_open(&settings, &capture, &err) < 0)
        fail_msg("%s", err.text);
    return capture;
}

// Ends the capture. Its table of sockets, which the caller closes.
static json_t *capture_close(struct events_capture *capture, struct log_reader *sockets)
{
    char dir[] = "/tmp/prof-connections-XXXXXX", path[64];
    struct error err = {0};
    json_t *stats;
    assert_non_null(mkdtemp(dir));
    if (events_capture_stop(capture, dir, &stats, &err) < 0)
        fail_msg("%s", err.text);
    events_capture_free(capture);
    snprintf(path, sizeof path, "%s/events.tlog", dir);
    unlink(path);
    snprintf(path, sizeof path, "%s/sockets.tlog", dir);
    assert_int_equal(log_reader_open(sockets, path, LOG_CONNECTIONS, EVENT_LOG_VERSION,
                                     sizeof(struct connection), &err),
                     0);
    unlink(path);
    rmdir(dir);
    return stats;
}

static json_int_t number(const json_t *stats, const char *name)
{
    return json_integer_value(json_object_get(stats, name));
}

static void test_ended_make_room(void **state)
{
    struct sockaddr_in address;
    struct log_reader sockets;
    (void)state;
    int listener = listener_open(&address);
    struct events_capture *capture = capture_open(EVENT_GROUP_RECEIVE | EVENT_GROUP_CONNECTIONS);
    uint64_t cookies[SHORT];
    struct pair lasting = pair_open(listener, &address);
    for (int i = 0; i < SHORT; i++) {
        struct pair pair = pair_open(listener, &address);
        pass(pair.client, pair.server, 10);
        cookies[i] = pair.cookie;
        pair_close(&pair);
        events_capture_poll(capture);
    }
    pass(lasting.client, lasting.server, 10);
    json_t *stats = capture_close(capture, &sockets);
    assert_int_equal(number(stats, "sockets_dropped"), 0);
    assert_int_equal(sockets.count, SHORT + 1);
    const struct connection *all = sockets.records;
    struct stat own;
    assert_int_equal(stat("/proc/self/ns/net", &own), 0);
    const uint16_t namespace = (uint16_t)own.st_ino;
    for (int i = 0; i < SHORT; i++) {
        size_t found = 0;
        for (size_t j = 0; j < sockets.count; j++) {
            found += all[j].cookie == cookies[i] && all[j].opened_time != 0;
            assert_true(all[j].process == 0 && all[j].namespace == namespace);
        }
        assert_int_equal(found, 1);
    }
    pair_close(&lasting);
    close(listener);
    log_reader_close(&sockets);
    json_decref(stats);
}

// How often each of these cookies is in a log, if there is one.
static void count_in(const char *path, const uint64_t cookies[SHORT], size_t counts[SHORT])
{
    struct log_reader sockets;
    struct error err = {0};
    if (access(path, F_OK) < 0)
        return;
    assert_int_equal(log_reader_open(&sockets, path, LOG_CONNECTIONS, EVENT_LOG_VERSION,
                                     sizeof(struct connection), &err),
                     0);
    const struct connection *all = sockets.records;
    for (size_t i = 0; i < sockets.count * SHORT; i++)
        counts[i % SHORT] += all[i / SHORT].cookie == cookies[i % SHORT];
    log_reader_close(&sockets);
    unlink(path);
}

// Of a capture in segments, too, whichever segment was the last in which they were in the table.
static void test_ended_are_in_segments(void **state)
{
    struct sockaddr_in address;
    struct error err = {0};
    char dir[] = "/tmp/prof-connections-XXXXXX", path[64];
    uint64_t cookies[SHORT];
    size_t counts[SHORT] = {0};
    unsigned cuts = 0;
    json_t *stats;
    (void)state;
    assert_non_null(mkdtemp(dir));
    int listener = listener_open(&address);
    struct events_capture *capture = capture_open(EVENT_GROUP_RECEIVE | EVENT_GROUP_CONNECTIONS);
    for (int i = 0; i < SHORT; i++) {
        struct pair pair = pair_open(listener, &address);
        pass(pair.client, pair.server, 10);
        cookies[i] = pair.cookie;
        pair_close(&pair);
        events_capture_poll(capture);
        if (i % (SHORT / 4) == SHORT / 8)
            assert_int_equal(
                events_capture_cut(capture, dir, ++cuts, &(struct events_segment){0}, &err), 0);
    }
    assert_int_equal(events_capture_stop(capture, dir, &stats, &err), 0);
    assert_int_equal(number(stats, "sockets"), SHORT);
    events_capture_free(capture);
    for (unsigned cut = 0; cut <= cuts; cut++) {
        snprintf(path, sizeof path, cut ? "%s/sockets-%06u.tlog" : "%s/sockets.tlog", dir, cut);
        count_in(path, cookies, counts);
        snprintf(path, sizeof path, cut ? "%s/events-%06u.tlog" : "%s/events.tlog", dir, cut);
        unlink(path);
    }
    for (int i = 0; i < SHORT; i++)
        assert_int_equal(counts[i], 1);
    rmdir(dir);
    close(listener);
    json_decref(stats);
}

static void test_no_room(void **state)
{
    struct sockaddr_in address;
    struct log_reader sockets;
    struct pair pairs[MOST_OPEN];
    (void)state;
    int listener = listener_open(&address);
    struct events_capture *capture = capture_open(EVENT_GROUP_RECEIVE | EVENT_GROUP_CONNECTIONS);
    for (int i = 0; i < MOST_OPEN; i++) {
        pairs[i] = pair_open(listener, &address);
        pass(pairs[i].client, pairs[i].server, 10);
        events_capture_poll(capture);
    }
    json_t *stats = capture_close(capture, &sockets);
    assert_true(number(stats, "sockets_dropped") >= MOST_OPEN - ROOM);
    assert_int_equal(sockets.count, ROOM);
    assert_int_equal(sockets.header.dropped, number(stats, "sockets_dropped"));
    for (int i = 0; i < MOST_OPEN; i++)
        pair_close(&pairs[i]);
    close(listener);
    log_reader_close(&sockets);
    json_decref(stats);
}

// The kernel tells of neither its beginning nor its end.
static void test_birth_not_seen(void **state)
{
    struct sockaddr_in address;
    struct log_reader sockets;
    (void)state;
    int listener = listener_open(&address);
    struct events_capture *capture = capture_open(EVENT_GROUP_RECEIVE);
    struct pair pair = pair_open(listener, &address);
    pass(pair.client, pair.server, 10);
    json_t *stats = capture_close(capture, &sockets);
    const struct connection *found = sockets.records;
    assert_int_equal(sockets.count, 1);
    assert_int_equal(found->cookie, pair.cookie);
    assert_int_equal(found->local_port, PORT);
    assert_int_equal(found->opened_time, 0);
    pair_close(&pair);
    close(listener);
    log_reader_close(&sockets);
    json_decref(stats);
}

// A listener with TCP_DEFER_ACCEPT has its sockets made by their first request, of which the kernel
// has M(n) like of any other.
static void test_opened_by_request(void **state)
{
    struct sockaddr_in address;
    struct error err = {0};
    struct log_reader events;
    char dir[] = "/tmp/prof-connections-XXXXXX", path[64];
    uint64_t segments[2], stamps[2], count = 0, handoffs = 0;
    json_t *stats;
    int seconds = 5;
    (void)state;
    assert_non_null(mkdtemp(dir));
    int listener = listener_open(&address);
    assert_int_equal(setsockopt(listener, IPPROTO_TCP, TCP_DEFER_ACCEPT, &seconds, sizeof seconds),
                     0);
    struct events_capture *capture = capture_open(EVENT_GROUP_RECEIVE | EVENT_GROUP_CONNECTIONS);
    int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(client, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(send(client, "0123456789", 10, 0), 10);
    int server = accept(listener, NULL, NULL);
    uint64_t cookie = cookie_of(server);
    pass(client, server, 7);
    assert_int_equal(events_capture_stop(capture, dir, &stats, &err), 0);
    events_capture_free(capture);
    snprintf(path, sizeof path, "%s/events.tlog", dir);
    assert_int_equal(
        log_reader_open(&events, path, LOG_EVENTS, EVENT_LOG_VERSION, sizeof(struct event), &err),
        0);
    unlink(path);
    const struct event *all = events.records;
    for (size_t i = 0; i < events.count; i++)
        if (all[i].kind == EVENT_SEGMENT && all[i].id == (uint32_t)cookie) {
            assert_true(count < 2);
            segments[count] = all[i].payload.a;
            stamps[count++] = all[i].payload.b;
        } else if (all[i].kind == EVENT_HANDOFF && all[i].id == (uint32_t)cookie) {
            assert_int_equal(all[i].flags, handoffs++ ? 0 : HANDOFF_UNACCEPTED);
        }
    log_reader_close(&events);
    snprintf(path, sizeof path, "%s/sockets.tlog", dir);
    struct log_reader sockets;
    assert_int_equal(log_reader_open(&sockets, path, LOG_CONNECTIONS, EVENT_LOG_VERSION,
                                     sizeof(struct connection), &err),
                     0);
    unlink(path);
    rmdir(dir);
    assert_int_equal(count, 2);
    assert_int_equal(handoffs, 2);
    assert_int_equal(segments[0], 10);
    assert_int_equal(segments[1], 17);
    assert_true(stamps[0] != 0 && stamps[0] <= stamps[1]);
    assert_int_equal(sockets.count, 1);
    assert_true(((const struct connection *)sockets.records)->opened_time != 0);
    log_reader_close(&sockets);
    close(client);
    close(server);
    close(listener);
    json_decref(stats);
}

static int home_leave(void **state)
{
    (void)state;
    return new_namespace() < 0 ? -1 : 0;
}

int main(void)
{
    if (!can_capture_in_namespaces())
        return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_ended_make_room, home_leave),
        cmocka_unit_test_setup(test_ended_are_in_segments, home_leave),
        cmocka_unit_test_setup(test_no_room, home_leave),
        cmocka_unit_test_setup(test_birth_not_seen, home_leave),
        cmocka_unit_test_setup(test_opened_by_request, home_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
