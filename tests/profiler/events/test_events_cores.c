// SPDX-License-Identifier: MIT
//
// Cores that nobody asked the capture for: one that delivers for the server, or that the server
// moves to, is recorded from then on; one that does neither is left alone.
// Runs beside others: it counts.
#include "tests/profiler/events/events_scene.h"
#include "tests/skip.h"

// Puts this process onto one core; 0 where it may not run on that.
static bool run_on(int core)
{
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET((size_t)core, &cores);
    return sched_setaffinity(0, sizeof cores, &cores) == 0;
}

static void run_anywhere(void)
{
    cpu_set_t cores;
    memset(&cores, 0xff, sizeof cores);
    sched_setaffinity(0, sizeof cores, &cores);
}

// What a capture of core 0 has to say of core 1.
struct other_core {
    size_t before;           // records before it is watched, and of these
    size_t scheduler_before; // what only a watched core has
    const struct event *watched;
    size_t switches, softirqs; // from then on
};

static struct other_core look_at_core_1(const struct log_reader *reader)
{
    struct other_core seen = {0};
    const struct event *events = reader->records;
    for (size_t i = 0; i < reader->count; i++) {
        const struct event *event = &events[i];
        bool scheduler = event->kind == EVENT_SWITCH || event->kind == EVENT_SOFTIRQ_ENTRY ||
                         event->kind == EVENT_VECTOR_ENTRY || event->kind == EVENT_PAGE_FAULT;
        if (event->core != 1)
            continue;
        if (event->kind == EVENT_WATCHED) {
            assert_null(seen.watched);
            seen.watched = event;
        }
        seen.before += !seen.watched;
        seen.scheduler_before += !seen.watched && scheduler;
        seen.switches += seen.watched && event->kind == EVENT_SWITCH;
        seen.softirqs += seen.watched && event->kind == EVENT_SOFTIRQ_ENTRY;
    }
    return seen;
}

// Captures core 0 while `act` is made; the log goes to *reader, what was followed to `followed`.
static void capture_core_0(struct scene *scene, void (*act)(struct scene *, void *), void *context,
                           struct log_reader *reader, char followed[16])
{
    struct events_capture *capture;
    struct error err = {0};
    json_t *stats = NULL;
    char path[128];
    const uint16_t port = PORT + 2;
    struct events_capture_settings settings = {
        .ports = &port, .port_count = 1, .ring_bytes = 4 << 20};
    CPU_SET(0, &settings.cores);
    if (events_capture_open(&settings, &capture, &err) < 0)
        fail_msg("%s", err.text);
    act(scene, context);
    if (events_capture_stop(capture, scene->dir, &stats, &err) < 0)
        fail_msg("%s", err.text);
    snprintf(followed, 16, "%s", json_string_value(json_object_get(stats, "followed")));
    assert_int_equal(json_integer_value(json_object_get(stats, "dropped")), 0);
    json_decref(stats);
    events_capture_free(capture);
    snprintf(path, sizeof path, "%s/events.tlog", scene->dir);
    assert_int_equal(
        log_reader_open(reader, path, LOG_EVENTS, EVENT_LOG_VERSION, sizeof(struct event), &err),
        0);
}

// A connection over loopback to a port of its own.
static void connect_pair(struct scene *scene, uint16_t port, int *client, int *server)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    int one = 1;
    enter(scene->client_ns);
    inet_aton("127.0.0.1", &address.sin_addr);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    *client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(connect(*client, (struct sockaddr *)&address, sizeof address), 0);
    *server = accept(listener, NULL, NULL);
    close(listener);
    enter(scene->server_ns);
}

struct pair {
    int client, server;
    uint64_t said_ns; // when the first bytes were sent
};

// Sleeps a little each time, so that there are switches.
static void talk_on_core_1(struct scene *scene, void *context)
{
    struct pair *pair = context;
    (void)scene;
    assert_true(run_on(1));
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    pair->said_ns = monotonic_ns();
    for (int i = 0; i < ROUNDS; i++) {
        pass(pair->client, pair->server, 100);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    run_anywhere();
}

// Core 1 delivers although the capture was asked for core 0: from the first segment on all it does
// is recorded, with its own thread from the very beginning, and nothing of it before.
static void test_delivering_core_is_followed(void **state)
{
    struct scene *scene = *state;
    struct pair pair;
    struct log_reader reader;
    char followed[16];
    if (!run_on(1))
        skip_case("there is no second core");
    connect_pair(scene, PORT + 2, &pair.client, &pair.server);
    capture_core_0(scene, talk_on_core_1, &pair, &reader, followed);
    struct other_core seen = look_at_core_1(&reader);
    assert_string_equal(followed, "1");
    assert_non_null(seen.watched);
    assert_int_equal(seen.watched->flags, WATCHED_LATE);
    assert_int_equal(seen.watched->id, (uint32_t)getpid());
    assert_true(seen.watched->time >= pair.said_ns);
    assert_true(seen.watched->time < pair.said_ns + 1000000);
    assert_int_equal(seen.scheduler_before, 0);
    assert_true(seen.switches >= ROUNDS && seen.softirqs >= ROUNDS);
    log_reader_close(&reader);
    close(pair.client);
    close(pair.server);
}

struct late_read {
    struct pair pair;
    uint64_t sent_ns, read_ns;
};

static void read_what_was_there(struct scene *scene, void *context)
{
    struct late_read *late = context;
    char bytes[100];
    (void)scene;
    assert_int_equal(recv(late->pair.server, bytes, sizeof bytes, MSG_WAITALL), sizeof bytes);
    late->read_ns = monotonic_ns();
    pass(late->pair.client, late->pair.server, sizeof bytes);
}

// Bytes whose hand-off was not recorded, here because it was before the capture: reading them tells
// when the segment was processed. Of those whose hand-off was recorded nothing is told again.
static void test_handoff_not_seen(void **state)
{
    struct scene *scene = *state;
    struct late_read late;
    struct log_reader reader;
    char followed[16], bytes[100] = "";
    need(scene, "sock_recv_length");
    if (!run_on(1))
        skip_case("there is no second core");
    connect_pair(scene, PORT + 2, &late.pair.client, &late.pair.server);
    late.sent_ns = monotonic_ns();
    assert_int_equal(send(late.pair.client, bytes, sizeof bytes, 0), sizeof bytes);
    capture_core_0(scene, read_what_was_there, &late, &reader, followed);
    const struct event *events = reader.records;
    size_t taken = 0;
    for (size_t i = 0; i < reader.count; i++) {
        if (events[i].kind != EVENT_TAKEN)
            continue;
        taken++;
        assert_int_equal(events[i].payload.a, sizeof bytes);
        // an acknowledgement that the read sends is processing, too
        assert_in_range(events[i].payload.b, late.sent_ns - 1000000, late.read_ns);
    }
    assert_int_equal(taken, 1);
    run_anywhere();
    log_reader_close(&reader);
    close(late.pair.client);
    close(late.pair.server);
}

static void talk_of_nothing(struct scene *scene, void *context)
{
    int pipes[2];
    (void)scene;
    (void)context;
    assert_true(run_on(1));
    assert_int_equal(pipe(pipes), 0);
    for (int i = 0; i < ROUNDS; i++)
        nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
    run_anywhere();
    close(pipes[0]);
    close(pipes[1]);
}

static void test_idle_core_is_left_alone(void **state)
{
    struct log_reader reader;
    char followed[16];
    if (!run_on(1))
        skip_case("there is no second core");
    capture_core_0(*state, talk_of_nothing, NULL, &reader, followed);
    struct other_core seen = look_at_core_1(&reader);
    assert_string_equal(followed, "");
    assert_null(seen.watched);
    assert_int_equal(seen.scheduler_before, 0);
    log_reader_close(&reader);
}

// Reads on core 0, then moves to core 1.
static void serve_and_move(struct scene *scene, void *context)
{
    struct pair *pair = context;
    (void)scene;
    assert_true(run_on(0));
    pass(pair->client, pair->server, 100);
    pair->said_ns = monotonic_ns();
    assert_true(run_on(1));
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    run_anywhere();
}

// A thread that reads from a watched socket takes the capture along, before it runs where it goes.
static void test_moved_server_is_followed(void **state)
{
    struct scene *scene = *state;
    struct pair pair;
    struct log_reader reader;
    char followed[16];
    need(scene, "sock_recv_length");
    if (!run_on(1))
        skip_case("there is no second core");
    connect_pair(scene, PORT + 2, &pair.client, &pair.server);
    capture_core_0(scene, serve_and_move, &pair, &reader, followed);
    struct other_core seen = look_at_core_1(&reader);
    assert_string_equal(followed, "1");
    assert_non_null(seen.watched);
    assert_int_equal(seen.watched->flags, WATCHED_LATE);
    assert_true(seen.watched->time >= pair.said_ns);
    const struct event *events = reader.records;
    const struct event *arrives = NULL;
    for (size_t i = 0; i < reader.count && !arrives; i++)
        if (events[i].core == 1 && events[i].kind == EVENT_SWITCH &&
            events[i].id == (uint32_t)getpid())
            arrives = &events[i];
    assert_non_null(arrives);
    assert_true(arrives->time >= seen.watched->time);
    log_reader_close(&reader);
    close(pair.client);
    close(pair.server);
}

int main(void)
{
    if (!can_capture_in_namespaces())
        return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_delivering_core_is_followed),
        cmocka_unit_test(test_handoff_not_seen),
        cmocka_unit_test(test_idle_core_is_left_alone),
        cmocka_unit_test(test_moved_server_is_followed),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
