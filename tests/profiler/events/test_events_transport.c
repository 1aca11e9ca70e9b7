// SPDX-License-Identifier: MIT
//
// What TCP and a queueing discipline hold back, recorded on the running kernel over a veth pair:
// Nagle's algorithm, a limited device, packets that go to a hardware address that nobody has, and
// those that a firewall or a full queue throws away.
// Runs beside others: it counts.
#include "tests/profiler/events/events_scene.h"
#include "tests/skip.h"

enum { PIECE = 100, OVER_LOOPBACK = 0, OVER_VETH = CONNECTIONS / 2 };

static void be_deaf(int namespace, const char *device, const char *peer, bool deaf)
{
    enter(namespace);
    if (deaf)
        ip((const char *[]){"ip", "neigh", "replace", peer, "lladdr", "02:00:00:00:00:01", "dev",
                            device, "nud", "permanent", NULL});
    else
        ip((const char *[]){"ip", "neigh", "del", peer, "dev", device, NULL});
}

// Bytes that get lost, and come as soon as TCP sends them again.
static void pass_late(int from, int to, int namespace, const char *device, const char *peer)
{
    static char data[PIECE];
    be_deaf(namespace, device, peer, true);
    assert_int_equal(send(from, data, sizeof data, 0), sizeof data);
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    be_deaf(namespace, device, peer, false);
    assert_int_equal(recv(to, data, sizeof data, MSG_WAITALL), sizeof data);
}

static void pass_in_halves(int from, int to)
{
    static char data[2 * PIECE];
    const int on = 1, off = 0;
    setsockopt(from, IPPROTO_TCP, TCP_NODELAY, &off, sizeof off);
    assert_int_equal(send(from, data, PIECE, 0), PIECE);
    assert_int_equal(send(from, data, PIECE, 0), PIECE);
    assert_int_equal(recv(to, data, sizeof data, MSG_WAITALL), sizeof data);
    setsockopt(from, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

static void pass_slowly(int from, int to, int namespace, const char *device)
{
    enter(namespace);
    ip((const char *[]){"tc", "qdisc", "replace", "dev", device, "root", "tbf", "rate", "8mbit",
                        "burst", "3kb", "limit", "1mb", NULL});
    pass(from, to, LARGE);
    ip((const char *[]){"tc", "qdisc", "del", "dev", device, "root", NULL});
}

// A firewall throws a request away, in the server's namespace.
static bool pass_firewall(struct scene *scene, struct talk *talk)
{
    static char data[PIECE];
    enter(scene->server_ns);
    if (system(
            "nft 'table ip walls { chain in { type filter hook input priority 0; tcp dport 21301 "
            "drop; }; }' 2>/dev/null") != 0)
        return false;
    assert_int_equal(send(talk->client, data, PIECE, 0), PIECE);
    assert_int_equal(send(talk->client, data, PIECE, 0), PIECE);
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    assert_int_equal(system("nft delete table ip walls"), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(recv(talk->server, data, PIECE, MSG_WAITALL), PIECE);
    talk->sent += 2 * PIECE;
    return true;
}

// The same for a reply, by a queueing discipline of no length, where this kernel has it.
static bool pass_full_queue(struct scene *scene, struct talk *talk)
{
    static char data[PIECE];
    enter(scene->server_ns);
    if (system("tc qdisc replace dev prof-s root tbf rate 8mbit burst 3kb limit 1 2>/dev/null"))
        return false;
    assert_int_equal(send(talk->server, data, PIECE, 0), PIECE);
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    ip((const char *[]){"tc", "qdisc", "del", "dev", "prof-s", "root", NULL});
    assert_int_equal(recv(talk->client, data, PIECE, MSG_WAITALL), PIECE);
    talk->replied += PIECE;
    return true;
}

static bool dropped(const struct scene *scene, const struct talk *talk, uint8_t flags, uint64_t end)
{
    for (size_t i = 0; i < scene->events.count; i++) {
        const struct event *one = (const struct event *)scene->events.records + i;
        uint64_t loss = one->payload.b >> 32;
        if (one->kind == EVENT_SEGMENT_DROPPED && one->id == (uint32_t)talk->cookie &&
            one->flags == flags && one->payload.a == end && (uint32_t)one->payload.b == PIECE &&
            (flags ? loss >= LOSS_QDISC_DROP && loss <= LOSS_DUALPI2_STEP_DROP
                   : loss == LOSS_NETFILTER_DROP))
            return true;
    }
    return false;
}

struct expected {
    uint8_t kind, flags, mask;
    uint64_t end;
};

static bool recorded_of(const struct scene *scene, uint64_t cookie, const struct expected *expected)
{
    const struct event *events = scene->events.records;
    for (size_t i = 0; i < scene->events.count; i++)
        if (events[i].kind == expected->kind && events[i].id == (uint32_t)cookie &&
            (events[i].flags & expected->mask) == expected->flags &&
            (expected->end == 0 || events[i].payload.a == expected->end))
            return true;
    return false;
}

static bool recorded(const struct scene *scene, const struct talk *talk,
                     const struct expected *expected)
{
    return recorded_of(scene, talk->cookie, expected);
}

static void capture_begin(struct scene *scene, struct events_capture **capture)
{
    struct error err = {0};
    const uint16_t port = PORT;
    const struct events_capture_settings settings = {.ports = &port, .port_count = 1};
    const struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    strcpy(scene->dir, "/tmp/prof-capture-XXXXXX");
    assert_non_null(mkdtemp(scene->dir));
    scene->home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    scene->client_ns = new_namespace();
    scene->server_ns = new_namespace();
    join_namespaces(scene);
    scene->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(scene->listener, (const struct sockaddr *)&any, sizeof any), 0);
    assert_int_equal(listen(scene->listener, 16), 0);
    if (events_capture_open(&settings, capture, &err) < 0)
        fail_msg("%s", err.text);
}

// Bytes that this thread has read by system calls, since it began.
static unsigned long read_so_far(void)
{
    unsigned long bytes = 0;
    FILE *file = fopen("/proc/thread-self/io", "r");
    assert_true(file && fscanf(file, "rchar: %lu", &bytes) == 1);
    fclose(file);
    return bytes;
}

// Also where segments were lost, whose reasons have names, the kernel's BTF (some MiB) is not read.
static void capture_end(struct scene *scene, struct events_capture *capture)
{
    struct error err = {0};
    char path[128];
    const unsigned long before = read_so_far();
    assert_int_equal(events_capture_stop(capture, scene->dir, &scene->stats, &err), 0);
    assert_in_range(read_so_far() - before, 0, 1 << 20);
    events_capture_free(capture);
    snprintf(path, sizeof path, "%s/sockets.tlog", scene->dir);
    unlink(path);
    snprintf(path, sizeof path, "%s/events.tlog", scene->dir);
    assert_int_equal(log_reader_open(&scene->events, path, LOG_EVENTS, EVENT_LOG_VERSION,
                                     sizeof(struct event), &err),
                     0);
    unlink(path);
    rmdir(scene->dir);
    setns(scene->home, CLONE_NEWNET);
}

static void scene_close(struct scene *scene, const struct talk *talk)
{
    log_reader_close(&scene->events);
    json_decref(scene->stats);
    close(talk->client);
    close(talk->server);
    close(scene->listener);
    close(scene->client_ns);
    close(scene->server_ns);
    close(scene->home);
}

// Which of the four is not recorded; NULL: all are.
static const char *what_is_missing(void)
{
    struct scene scene = {0};
    struct events_capture *capture;
    capture_begin(&scene, &capture);
    connect_talk(&scene, OVER_VETH);
    struct talk *talk = &scene.talks[OVER_VETH];
    for (int r = 0; r < ROUNDS; r++) // until acknowledgements are delayed
        round_trip(talk, PIECE, PIECE);
    pass_in_halves(talk->server, talk->client);
    talk->replied += 2 * PIECE;
    const struct expected nagle = {EVENT_HELD, HELD_NAGLE, 0xff, 0};
    // One that asks a server from where the watched one is. Its cookie is asked for.
    connect_talk(&scene, OVER_LOOPBACK);
    struct talk *asker = &scene.talks[OVER_LOOPBACK];
    uint64_t asking = 0;
    assert_int_equal(
        getsockopt(asker->client, SOL_SOCKET, SO_COOKIE, &asking, &(socklen_t){sizeof asking}), 0);
    for (int r = 0; r < ROUNDS; r++)
        round_trip(asker, PIECE, PIECE);
    pass_in_halves(asker->client, asker->server);
    const struct expected question = {EVENT_HELD, HELD_NAGLE, 0xff, asker->sent + PIECE};
    pass_slowly(talk->server, talk->client, scene.server_ns, "prof-s");
    talk->replied += LARGE;
    const struct expected queued = {EVENT_QUEUED, QUEUE_TBF, 0xff, talk->replied};
    pass_slowly(talk->client, talk->server, scene.client_ns, "prof-c");
    talk->sent += LARGE;
    const struct expected by_client = {EVENT_QUEUED, QUEUE_TBF | QUEUED_BY_CLIENT, 0xff,
                                       talk->sent};
    pass_late(talk->server, talk->client, scene.server_ns, "prof-s", "10.213.0.2");
    talk->replied += PIECE;
    const struct expected reply = {EVENT_RETRANSMIT, 0, RETRANSMIT_BY_CLIENT, talk->replied};
    pass_late(talk->client, talk->server, scene.client_ns, "prof-c", "10.213.0.1");
    talk->sent += PIECE;
    const struct expected request = {EVENT_RETRANSMIT, RETRANSMIT_BY_CLIENT, RETRANSMIT_BY_CLIENT,
                                     talk->sent};
    const bool walled = pass_firewall(&scene, talk), full = pass_full_queue(&scene, talk);
    capture_end(&scene, capture);
    if (!attached(&scene, "tcp_retransmit_skb") || !attached(&scene, "tcp_probe") ||
        !attached(&scene, "net_dev_start_xmit"))
        skip_case("not all of its programs attach here");
    const json_t *reasons = json_object_get(scene.stats, "segments_dropped");
    if (attached(&scene, "kfree_skb"))
        assert_true(json_integer_value(json_object_get(reasons, "OTHERHOST")) >= 2);
    const char *missing = !recorded(&scene, talk, &nagle)           ? "Nagle"
                          : !recorded_of(&scene, asking, &question) ? "Nagle, of a question"
                          : !recorded(&scene, talk, &queued)        ? "the queue"
                          : !recorded(&scene, talk, &by_client)     ? "the client's queue"
                          : !recorded(&scene, talk, &reply)         ? "the reply sent again"
                          : !recorded(&scene, talk, &request)       ? "the request sent again"
                          : walled && !(dropped(&scene, talk, 0, talk->sent - PIECE) &&
                                        dropped(&scene, talk, 0, talk->sent))
                              ? "the firewall's drops"
                          : full && !dropped(&scene, talk, DROPPED_TO_CLIENT, talk->replied)
                              ? "the full queue's drop"
                              : NULL;
    close(asker->client);
    close(asker->server);
    scene_close(&scene, talk);
    return missing;
}

// A host that stalls in between changes what TCP does: twice that is no failure.
static void what_is_held_back_is_recorded(void **state)
{
    (void)state;
    const char *missing = what_is_missing();
    for (int again = 0; again < 2 && missing; again++) {
        printf("not recorded: %s; once more\n", missing);
        missing = what_is_missing();
    }
    if (missing)
        fail_msg("not recorded: %s", missing);
}

int main(void)
{
    char lacking[64];
    if (geteuid() != 0 || privilege_lacking_for_bpf(lacking, sizeof lacking)[0]) {
        printf("needs root: namespaces and BPF\n");
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_held_back_is_recorded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
