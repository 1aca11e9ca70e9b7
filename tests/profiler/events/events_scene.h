// SPDX-License-Identifier: MIT
//
// A TCP server in a network namespace of its own that is spoken to over loopback and over a veth
// pair from another namespace, with known numbers of bytes, while the kernel's events are captured;
// and the logs that came of it. One process plays both sides, blocking: a socket stays in the
// namespace it was made in. Header-only: each test binary stands alone.
#ifndef TESTS_PROFILER_EVENTS_EVENTS_SCENE_H
#define TESTS_PROFILER_EVENTS_EVENTS_SCENE_H

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <arpa/inet.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/connection.h"
#include "base/log_file.h"
#include "base/process.h"
#include "profiler/bpf/event_log.h"
#include "profiler/clock/clock_log.h"
#include "profiler/clock/clock_map.h"
#include "profiler/clock/clock_recorder.h"
#include "profiler/events/events_capture.h"
#include "profiler/host/host_facts.h"

enum { PORT = 21301, CONNECTIONS = 6, ROUNDS = 40, LARGE = 40000 };

// One connection as the test knows it.
struct talk {
    int client, server;
    struct connection truth; // the server's view
    uint64_t cookie;
    uint64_t sent, replied; // bytes in each direction, in all
    uint64_t sent_before;   // of these, before the capture began
    uint64_t replied_before;
};

struct scene {
    char dir[64];
    int home, server_ns, client_ns;
    int listener;
    struct talk talks[CONNECTIONS];
    struct log_reader events, sockets;
    struct clock_map *clocks;
    json_t *stats;
    uint64_t begin_ns, end_ns; // CLOCK_MONOTONIC, while every program was attached
};

static inline uint64_t monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

// --- the two namespaces --------------------------------------------------------------------------

static inline int new_namespace(void)
{
    if (unshare(CLONE_NEWNET) < 0)
        return -1;
    int fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    int control = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq request = {.ifr_name = "lo"};
    request.ifr_flags = IFF_UP | IFF_RUNNING;
    if (fd >= 0 && ioctl(control, SIOCSIFFLAGS, &request) < 0) {
        close(fd);
        fd = -1;
    }
    close(control);
    return fd;
}

static inline void enter(int namespace)
{
    assert_int_equal(setns(namespace, CLONE_NEWNET), 0);
}

static inline void ip(const char *const *arguments)
{
    struct error err;
    if (process_run(arguments, NULL, 5000, NULL, 0, &err) < 0)
        fail_msg("%s", err.text);
}

// 10.213.0.1 in the server's namespace, 10.213.0.2 in the client's.
static inline void join_namespaces(struct scene *scene)
{
    char pid[16];
    enter(scene->client_ns);
    snprintf(pid, sizeof pid, "%d", getpid());
    ip((const char *[]){"ip", "link", "add", "prof-c", "type", "veth", "peer", "name", "prof-s",
                        NULL});
    // `ip` knows namespaces by process: a moment's child holds the server's.
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    pid_t holder = fork();
    if (holder == 0) {
        char byte = 0;
        if (setns(scene->server_ns, CLONE_NEWNET) < 0 || write(ready[1], &byte, 1) != 1)
            _exit(1);
        sleep(10);
        _exit(0);
    }
    char byte;
    assert_int_equal(read(ready[0], &byte, 1), 1);
    snprintf(pid, sizeof pid, "%d", holder);
    ip((const char *[]){"ip", "link", "set", "prof-s", "netns", pid, NULL});
    struct process holding = {.pid = holder, .input = -1, .output = -1};
    process_stop(&holding, 100);
    close(ready[0]);
    close(ready[1]);
    ip((const char *[]){"ip", "address", "add", "10.213.0.2/24", "dev", "prof-c", NULL});
    ip((const char *[]){"ip", "link", "set", "prof-c", "up", NULL});
    enter(scene->server_ns);
    ip((const char *[]){"ip", "address", "add", "10.213.0.1/24", "dev", "prof-s", NULL});
    ip((const char *[]){"ip", "link", "set", "prof-s", "up", NULL});
}

// --- talking -------------------------------------------------------------------------------------

static inline void set_address(uint8_t out[16], struct in_addr address)
{
    memset(out, 0, 10);
    out[10] = out[11] = 0xff;
    memcpy(out + 12, &address, 4);
}

// Connections 0 and up to half go over loopback, the others over the veth pair.
static inline void connect_talk(struct scene *scene, size_t index)
{
    struct talk *talk = &scene->talks[index];
    bool veth = index >= CONNECTIONS / 2;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(PORT)}, peer;
    socklen_t bytes = sizeof peer;
    inet_aton(veth ? "10.213.0.1" : "127.0.0.1", &to.sin_addr);
    enter(veth ? scene->client_ns : scene->server_ns);
    talk->client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    enter(scene->server_ns);
    if (connect(talk->client, (struct sockaddr *)&to, sizeof to) < 0)
        fail_msg("connect: %s", strerror(errno));
    talk->server = accept(scene->listener, (struct sockaddr *)&peer, &bytes);
    assert_true(talk->server >= 0);
    int one = 1;
    setsockopt(talk->client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(talk->server, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    bytes = sizeof talk->cookie;
    assert_int_equal(getsockopt(talk->server, SOL_SOCKET, SO_COOKIE, &talk->cookie, &bytes), 0);
    talk->truth = (struct connection){.protocol = CONNECTION_TCP, .local_port = PORT};
    talk->truth.peer_port = ntohs(peer.sin_port);
    set_address(talk->truth.local, to.sin_addr);
    set_address(talk->truth.peer, peer.sin_addr);
}

static inline void pass(int from, int to, size_t bytes)
{
    static char data[LARGE];
    assert_true(bytes <= sizeof data);
    assert_int_equal(send(from, data, bytes, 0), bytes);
    assert_int_equal(recv(to, data, bytes, MSG_WAITALL), bytes);
}

static inline void round_trip(struct talk *talk, size_t request, size_t reply)
{
    pass(talk->client, talk->server, request);
    talk->sent += request;
    pass(talk->server, talk->client, reply);
    talk->replied += reply;
}

static inline void hold_talks(struct scene *scene)
{
    for (int r = 0; r < ROUNDS; r++) {
        for (size_t i = 0; i < CONNECTIONS; i++)
            round_trip(&scene->talks[i], 1 + (size_t)rand() % 900, 1 + (size_t)rand() % 3000);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL); // timers, switches, wake-ups
    }
    for (size_t i = 0; i < CONNECTIONS; i++)
        round_trip(&scene->talks[i], LARGE, LARGE);
    // Half are ended by the client, the others by the server: a FIN is no payload either way.
    for (size_t i = 0; i < CONNECTIONS; i++) {
        char byte;
        int first = i % 2 ? scene->talks[i].client : scene->talks[i].server;
        int second = i % 2 ? scene->talks[i].server : scene->talks[i].client;
        shutdown(first, SHUT_WR);
        assert_int_equal(recv(second, &byte, 1, 0), 0);
        close(second);
        close(first);
    }
}

static inline json_int_t figure(const struct scene *scene, const char *name)
{
    json_t *value = json_object_get(scene->stats, name);
    assert_true(json_is_integer(value));
    return json_integer_value(value);
}

static inline struct scene *make_scene(void)
{
    struct scene *scene = calloc(1, sizeof *scene);
    struct error err = {0};
    struct events_capture *capture;
    struct clock_recorder clocks;
    char path[128];
    strcpy(scene->dir, "/tmp/prof-capture-XXXXXX");
    assert_non_null(mkdtemp(scene->dir));
    scene->home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    scene->client_ns = new_namespace();
    scene->server_ns = new_namespace();
    assert_true(scene->client_ns >= 0 && scene->server_ns >= 0);
    join_namespaces(scene);
    scene->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    assert_int_equal(bind(scene->listener, (struct sockaddr *)&any, sizeof any), 0);
    assert_int_equal(listen(scene->listener, 16), 0);
    // The first connection of each kind is older than the capture, and not at offset 0.
    for (size_t i = 0; i < CONNECTIONS; i += CONNECTIONS / 2) {
        connect_talk(scene, i);
        round_trip(&scene->talks[i], 777, 555);
        scene->talks[i].sent_before = 777;
        scene->talks[i].replied_before = 555;
    }
    const uint16_t port = PORT;
    struct events_capture_settings settings = {.ports = &port, .port_count = 1};
    assert_int_equal(clock_recorder_start(&clocks, 5000000, 4096, &err), 0);
    if (events_capture_open(&settings, &capture, &err) < 0)
        fail_msg("%s", err.text);
    scene->begin_ns = monotonic_ns();
    for (size_t i = 0; i < CONNECTIONS; i++)
        if (i % (CONNECTIONS / 2))
            connect_talk(scene, i);
    clock_recorder_poll(&clocks);
    hold_talks(scene);
    events_capture_poll(capture);
    scene->end_ns = monotonic_ns();
    if (events_capture_stop(capture, scene->dir, &scene->stats, &err) < 0)
        fail_msg("%s", err.text);
    events_capture_free(capture);
    snprintf(path, sizeof path, "%s/clock.tlog", scene->dir);
    assert_int_equal(clock_recorder_write(&clocks, path, &err), 0);
    clock_recorder_free(&clocks);
    assert_int_equal(clock_map_open(path, &scene->clocks, &err), 0);
    snprintf(path, sizeof path, "%s/events.tlog", scene->dir);
    if (log_reader_open(&scene->events, path, LOG_EVENTS, EVENT_LOG_VERSION, sizeof(struct event),
                        &err) < 0)
        fail_msg("%s", err.text);
    snprintf(path, sizeof path, "%s/sockets.tlog", scene->dir);
    if (log_reader_open(&scene->sockets, path, LOG_CONNECTIONS, EVENT_LOG_VERSION,
                        sizeof(struct connection), &err) < 0)
        fail_msg("%s", err.text);
    char *text = json_dumps(scene->stats, JSON_COMPACT);
    printf("%s\n", text);
    free(text);
    return scene;
}

static inline int tear_down(void **state)
{
    struct scene *scene = *state;
    char path[128];
    setns(scene->home, CLONE_NEWNET);
    const char *const names[] = {"clock", "events", "sockets"};
    for (size_t i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s.tlog", scene->dir, names[i]);
        unlink(path);
    }
    rmdir(scene->dir);
    log_reader_close(&scene->events);
    log_reader_close(&scene->sockets);
    clock_map_free(scene->clocks);
    json_decref(scene->stats);
    close(scene->listener);
    close(scene->client_ns);
    close(scene->server_ns);
    close(scene->home);
    free(scene);
    return 0;
}

// Some kernels run no programs while certain threads have the core (SWITCH_UNSEEN). What was said
// then cannot all be recorded: such a scene is played again, five times in all.
static inline int set_up(void **state)
{
    enum { TRIES = 5 };
    for (int try = 1;; try++) {
        *state = make_scene();
        json_int_t unseen = figure(*state, "unseen_switches") + figure(*state, "skipped");
        if (unseen == 0 || try == TRIES)
            return 0;
        print_message("try %d: the kernel delivered nothing %lld times; once more\n", try,
                      (long long)unseen);
        tear_down(state);
    }
}

// Whether a test can capture here at all, with namespaces of its own; prints why not.
static inline bool can_capture_in_namespaces(void)
{
    char lacking[64];
    struct error err = {0};
    struct events_capture *trial;
    struct events_capture_settings settings = {.groups = EVENT_GROUP_FAULTS, .ring_bytes = 1};
    if (events_capture_open(&settings, &trial, &err) < 0) {
        printf("BPF capture is not possible here: %s\n", err.text);
        return false;
    }
    events_capture_free(trial);
    if (!privilege_lacking_for_bpf(lacking, sizeof lacking)[0] &&
        privilege_held(PRIVILEGE_SYS_ADMIN))
        return true;
    printf("making network namespaces needs CAP_SYS_ADMIN\n");
    return false;
}

// --- what the logs must say ----------------------------------------------------------------------

static inline bool attached(const struct scene *scene, const char *program)
{
    json_t *one = json_object_get(json_object_get(scene->stats, "programs"), program);
    return json_is_true(json_object_get(one, "attached"));
}

// Whether another one gives what it would, as far as it can, on this kernel.
static inline bool stood_in(const struct scene *scene, const char *program)
{
    json_t *one = json_object_get(json_object_get(scene->stats, "programs"), program);
    return json_is_string(json_object_get(one, "stand_in"));
}

// Programs are optional; what one that is missing gives cannot be tested.
static inline void need(const struct scene *scene, const char *program)
{
    if (attached(scene, program))
        return;
    print_message("%s is not attached on this kernel\n", program);
    skip();
}

#endif
