// SPDX-License-Identifier: MIT
//
// The socket calls of a program that knows nothing of it, recorded on the running kernel: by every
// way into a socket and out of it.
// Runs beside others: it counts.
#include <linux/io_uring.h>
#include <sys/sendfile.h>
#include <sys/uio.h>

#include "tests/profiler/events/events_scene.h"

enum { CALLS = 64 };

struct expected {
    uint8_t kind; // EVENT_RECEIVED or EVENT_SENT
    uint64_t end;
    uint32_t bytes;
};

enum {
    DOORS = 2,
    HIGH_PORT = 45600,
    LOW_PORT = 20000,
    NAMES_PORT = 45700
}; // beyond what connections get by default

struct door {
    int listener, client, server;
    uint16_t port;
    bool open;
    uint64_t asks, answers; // cookies of both ends
};

struct said {
    struct scene scene;
    struct talk *talk;
    struct door doors[DOORS]; // opened before the capture, and within
    uint64_t resolver, names; // cookies of a UDP socket that is connected, and of whom it asks
    struct expected calls[CALLS];
    size_t count;
};

static void took(struct said *said, ssize_t bytes)
{
    assert_true(bytes > 0);
    said->talk->sent += (uint64_t)bytes;
    said->calls[said->count++] =
        (struct expected){EVENT_RECEIVED, said->talk->sent, (uint32_t)bytes};
}

static void gave(struct said *said, ssize_t bytes)
{
    assert_true(bytes > 0);
    said->talk->replied += (uint64_t)bytes;
    said->calls[said->count++] =
        (struct expected){EVENT_SENT, said->talk->replied, (uint32_t)bytes};
}

static void receive_in_every_way(struct said *said)
{
    char data[1000] = {0};
    int server = said->talk->server;
    struct iovec parts[2] = {{data, 10}, {data + 10, 90}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    assert_int_equal(send(said->talk->client, data, 700, 0), 700);
    assert_int_equal(recv(server, data, 100, MSG_PEEK), 100); // takes nothing
    took(said, recv(server, data, 100, 0));
    took(said, read(server, data, 100));
    took(said, readv(server, parts, 2));
    took(said, recvmsg(server, &message, 0));
    took(said, recvfrom(server, data, sizeof data, 0, NULL, NULL));
    assert_int_equal(recv(server, data, 1, MSG_DONTWAIT), -1);
}

static void send_in_every_way(struct said *said)
{
    static char data[LARGE];
    int server = said->talk->server, file = memfd_create("reply", 0), ends[2];
    struct iovec parts[2] = {{data, 10}, {data + 10, 90}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    assert_int_equal(write(file, data, 500), 500);
    off_t from = 0;
    gave(said, send(server, data, 100, 0));
    gave(said, write(server, data, 100));
    gave(said, writev(server, parts, 2));
    gave(said, sendmsg(server, &message, 0));
    gave(said, sendfile(server, file, &from, 500));
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], data, 300), 300);
    gave(said, splice(ends[0], NULL, server, NULL, 300, 0));
    gave(said, send(server, data, sizeof data, 0)); // in several rounds
    assert_int_equal(recv(said->talk->client, data, sizeof data, MSG_WAITALL), sizeof data);
    close(ends[0]);
    close(ends[1]);
    close(file);
}

// Until the peer, who reads nothing, has no more room: some call takes a part of its bytes, and the
// last one none. On a slow machine there is some room again after the first that took a part: the
// peer's kernel makes it.
static void send_more_than_there_is_room(struct said *said)
{
    static char data[1 << 20];
    ssize_t bytes;
    while ((bytes = send(said->talk->server, data, sizeof data, MSG_DONTWAIT)) > 0) {
        gave(said, bytes);
        assert_true(said->count < CALLS);
    }
    assert_int_equal(bytes, -1);
}

// One operation of io_uring, without its library. False: this kernel has none for us.
static bool by_ring(uint8_t operation, int socket, void *data, uint32_t bytes, int *result)
{
    struct io_uring_params params = {0};
    int ring = (int)syscall(SYS_io_uring_setup, 1, &params);
    if (ring < 0)
        return false;
    size_t sent_bytes = params.sq_off.array + params.sq_entries * sizeof(uint32_t);
    size_t done_bytes = params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe);
    char *sent =
        mmap(NULL, sent_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
    char *done =
        mmap(NULL, done_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_CQ_RING);
    struct io_uring_sqe *entry =
        mmap(NULL, sizeof *entry, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQES);
    assert_true(sent != MAP_FAILED && done != MAP_FAILED && entry != MAP_FAILED);
    *entry = (struct io_uring_sqe){
        .opcode = operation, .fd = socket, .addr = (uint64_t)(uintptr_t)data, .len = bytes};
    *(uint32_t *)(sent + params.sq_off.array) = 0;
    __atomic_store_n((uint32_t *)(sent + params.sq_off.tail), 1, __ATOMIC_RELEASE);
    assert_int_equal(syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0), 1);
    *result = ((struct io_uring_cqe *)(done + params.cq_off.cqes))->res;
    munmap(sent, sent_bytes);
    munmap(done, done_bytes);
    munmap(entry, sizeof *entry);
    close(ring);
    return true;
}

static void use_a_ring(struct said *said)
{
    char data[200] = {0};
    int result = 0;
    assert_int_equal(send(said->talk->client, data, sizeof data, 0), sizeof data);
    if (by_ring(IORING_OP_RECV, said->talk->server, data, sizeof data, &result))
        took(said, result);
    else
        took(said, recv(said->talk->server, data, sizeof data, 0));
    if (by_ring(IORING_OP_SEND, said->talk->server, data, sizeof data, &result))
        gave(said, result);
}

// Connections of this process to itself at ports that nobody watches: at the one end it asks, at
// the other it answers.
static void open_door(struct door *door, uint16_t port)
{
    const int one = 1;
    socklen_t bytes = sizeof door->asks;
    struct sockaddr_in6 at = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
    struct sockaddr_in6 from = at;
    at.sin6_port = htons(port);
    from.sin6_port = htons((uint16_t)(LOW_PORT + port % 100));
    door->port = port;
    door->listener = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    door->client = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(door->client, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    door->open = bind(door->listener, (struct sockaddr *)&at, sizeof at) == 0; // no IPv6: not
    if (!door->open)
        return;
    assert_int_equal(listen(door->listener, 1), 0);
    assert_int_equal(bind(door->client, (struct sockaddr *)&from, sizeof from), 0);
    assert_int_equal(connect(door->client, (struct sockaddr *)&at, sizeof at), 0);
    door->server = accept(door->listener, NULL, NULL);
    assert_true(door->server >= 0);
    assert_int_equal(getsockopt(door->client, SOL_SOCKET, SO_COOKIE, &door->asks, &bytes), 0);
    assert_int_equal(getsockopt(door->server, SOL_SOCKET, SO_COOKIE, &door->answers, &bytes), 0);
}

static void use_door(const struct door *door)
{
    if (!door->open)
        return;
    pass(door->client, door->server, 10);
    pass(door->server, door->client, 10);
}

static int datagram_socket(uint16_t port, uint64_t *cookie)
{
    const struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof *cookie;
    int made = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_true(made >= 0);
    assert_int_equal(bind(made, (const struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(getsockopt(made, SOL_SOCKET, SO_COOKIE, cookie, &bytes), 0);
    return made;
}

// As a resolver does.
static void ask_by_datagram(struct said *said)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons(NAMES_PORT),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof at;
    char data[10] = {0};
    int names = datagram_socket(NAMES_PORT, &said->names);
    int resolver = datagram_socket(0, &said->resolver);
    assert_int_equal(connect(resolver, (const struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(send(resolver, data, 10, 0), 10);
    assert_int_equal(recvfrom(names, data, 10, 0, (struct sockaddr *)&at, &bytes), 10);
    assert_int_equal(sendto(names, data, 5, 0, (const struct sockaddr *)&at, bytes), 5);
    assert_int_equal(recv(resolver, data, 10, 0), 5);
    close(resolver);
    close(names);
}

static void close_door(struct door *door)
{
    close(door->listener);
    close(door->client);
    if (door->open)
        close(door->server);
}

static void hold_talk(struct said *said)
{
    struct scene *scene = &said->scene;
    struct error err = {0};
    struct events_capture *capture;
    const uint16_t port = PORT;
    const struct events_capture_settings settings = {
        .ports = &port, .port_count = 1, .groups = EVENT_GROUPS_ALL};
    const struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    char path[128];
    *said = (struct said){.talk = &said->scene.talks[0]};
    strcpy(scene->dir, "/tmp/prof-capture-XXXXXX");
    assert_non_null(mkdtemp(scene->dir));
    scene->home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    scene->server_ns = new_namespace();
    scene->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(scene->listener, (const struct sockaddr *)&any, sizeof any), 0);
    assert_int_equal(listen(scene->listener, 16), 0);
    connect_talk(scene, 0);
    open_door(&said->doors[0], HIGH_PORT);
    round_trip(said->talk, 77, 55); // before the capture
    if (events_capture_open(&settings, &capture, &err) < 0)
        fail_msg("%s", err.text);
    open_door(&said->doors[1], HIGH_PORT + 1);
    receive_in_every_way(said);
    send_in_every_way(said);
    for (int i = 0; i < DOORS; i++)
        use_door(&said->doors[i]);
    ask_by_datagram(said);
    use_a_ring(said);
    send_more_than_there_is_room(said);
    assert_int_equal(events_capture_stop(capture, scene->dir, &scene->stats, &err), 0);
    events_capture_free(capture);
    snprintf(path, sizeof path, "%s/sockets.tlog", scene->dir);
    unlink(path);
    snprintf(path, sizeof path, "%s/events.tlog", scene->dir);
    if (log_reader_open(&scene->events, path, LOG_EVENTS, EVENT_LOG_VERSION, sizeof(struct event),
                        &err) < 0)
        fail_msg("%s", err.text);
    unlink(path);
    rmdir(scene->dir);
    enter(scene->home);
}

static void forget(struct said *said)
{
    struct scene *scene = &said->scene;
    log_reader_close(&scene->events);
    json_decref(scene->stats);
    for (int i = 0; i < DOORS; i++)
        close_door(&said->doors[i]);
    close(said->talk->client);
    close(said->talk->server);
    close(scene->listener);
    close(scene->server_ns);
    close(scene->home);
}

// The records of one kind of call in order of time; they are of one thread, but not of one core.
static size_t records_of(const struct said *said, uint8_t kind, const struct event **out)
{
    const struct event *events = said->scene.events.records;
    size_t count = 0;
    for (size_t i = 0; i < said->scene.events.count; i++) {
        if (events[i].kind != kind || events[i].id != (uint32_t)said->talk->cookie)
            continue;
        assert_true(count < CALLS);
        size_t to = count++;
        for (; to > 0 && out[to - 1]->time > events[i].time; to--)
            out[to] = out[to - 1];
        out[to] = &events[i];
    }
    return count;
}

static void check_calls(const struct said *said, uint8_t kind)
{
    const struct event *found[CALLS];
    size_t count = records_of(said, kind, found), at = 0;
    for (size_t i = 0; i < said->count; i++) {
        const struct expected *call = &said->calls[i];
        if (call->kind != kind)
            continue;
        assert_true(at < count);
        assert_int_equal(found[at]->payload.a, call->end);
        assert_int_equal(found[at]->payload.b >> 32, call->bytes);
        assert_int_equal((uint32_t)found[at]->payload.b, (uint32_t)found[0]->payload.b);
        at++;
    }
    assert_int_equal(at, count);
}

// Every send call that took bytes began where the one before had ended, and before it returned. The
// last one took none.
static void check_beginnings(const struct said *said)
{
    const struct event *begun[CALLS], *sent[CALLS];
    size_t count = records_of(said, EVENT_SENT, sent);
    size_t beginnings = records_of(said, EVENT_SENDING, begun);
    assert_true(beginnings >= count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(begun[i]->payload.a, sent[i]->payload.a - (sent[i]->payload.b >> 32));
        assert_int_equal(begun[i]->payload.b, (uint32_t)sent[i]->payload.b);
        assert_true(begun[i]->time <= sent[i]->time);
        assert_true(i == 0 || begun[i]->time >= sent[i - 1]->time);
    }
}

// Whether an address comes just before, on the same core.
static bool has_address_before(const struct event *events, size_t one)
{
    size_t before = one;
    while (before > 0 && events[before - 1].core != events[one].core)
        before--;
    return before > 0 && events[before - 1].kind == EVENT_ASKED &&
           events[before - 1].flags & ASKED_ADDRESS;
}

// What this process does at the client's end it does as one that serves: it takes somebody's
// answers. Only as long as both ends have been open, no others of its sockets.
static void check_answers(const struct said *said)
{
    const struct event *events = said->scene.events.records;
    const uint64_t server = (uint64_t)PORT << 32 | htonl(INADDR_LOOPBACK);
    size_t taken = 0, asked[DOORS] = {0}, resolved[2] = {0};
    for (size_t i = 0; i < said->scene.events.count; i++) {
        const struct event *one = &events[i];
        if (one->kind != EVENT_ASKED)
            continue;
        if (one->flags & ASKED_ADDRESS) {
            assert_memory_equal(one->payload.text, &in6addr_loopback, 16);
            continue;
        }
        assert_true(one->payload.b != said->names);
        if (one->payload.b == said->resolver) {
            assert_int_equal(one->payload.a, (uint64_t)NAMES_PORT << 32 | htonl(INADDR_LOOPBACK));
            resolved[one->flags & ASKED_ANSWERED]++;
            continue;
        }
        for (int d = 0; d < DOORS; d++) {
            const struct door *door = &said->doors[d];
            assert_false(door->open && one->payload.b == door->answers);
            if (!door->open || one->payload.b != door->asks)
                continue;
            assert_true(one->flags & ASKED_IPV6);
            assert_int_equal(one->payload.a >> 32, door->port);
            assert_true(has_address_before(events, i));
            asked[d]++;
        }
        if (one->flags & ASKED_IPV6)
            continue;
        assert_int_equal(one->payload.a, server);
        taken += one->flags == ASKED_ANSWERED && one->payload.b != said->talk->cookie;
    }
    assert_true(taken > 0);
    // What stands in for these programs sees TCP alone.
    assert_int_equal(resolved[0], !stood_in(&said->scene, "sock_send_length"));
    assert_int_equal(resolved[ASKED_ANSWERED], !stood_in(&said->scene, "sock_recv_length"));
    for (int d = 0; d < DOORS; d++)
        assert_int_equal(asked[d], said->doors[d].open ? 2 : 0);
}

static void calls_are_recorded_however_they_are_made(void **state)
{
    enum { TRIES = 5 }; // some kernels deliver nothing while certain threads run
    struct said said;
    (void)state;
    for (int try = 1;; try++) {
        hold_talk(&said);
        if (figure(&said.scene, "unseen_switches") + figure(&said.scene, "skipped") == 0 ||
            try == TRIES)
            break;
        forget(&said);
    }
    need(&said.scene, "sock_recv_length");
    check_calls(&said, EVENT_RECEIVED);
    need(&said.scene, "sock_send_length");
    check_calls(&said, EVENT_SENT);
    need(&said.scene, "tcp_sendmsg_locked");
    check_beginnings(&said);
    check_answers(&said);
    forget(&said);
}

int main(void)
{
    char lacking[64];
    if (geteuid() != 0 || privilege_lacking_for_bpf(lacking, sizeof lacking)[0]) {
        printf("needs root: namespaces and BPF\n");
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_are_recorded_however_they_are_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
