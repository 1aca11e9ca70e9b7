// SPDX-License-Identifier: MIT
//
// The collector between servers it does not control and a directory it does not trust: nobody
// comes, everybody comes too early or too late, a process dies in the middle, files are garbage.
// The server here is this program, run again under the shim.
// Runs beside others: it counts.
#include "tests/shim/shim_test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "base/process.h"
#include "shim/ring.h"

static const char asan[] = "ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0";

// --- the server: one byte back and forth over one connection for each line of its stdin ---------

struct link {
    int client, server, listening;
};

static struct link link_make(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof address;
    struct link link = {.listening = socket(AF_INET, SOCK_STREAM, 0),
                        .client = socket(AF_INET, SOCK_STREAM, 0)};
    if (bind(link.listening, (struct sockaddr *)&address, bytes) < 0 ||
        listen(link.listening, 4) < 0 ||
        getsockname(link.listening, (struct sockaddr *)&address, &bytes) < 0 ||
        connect(link.client, (struct sockaddr *)&address, bytes) < 0)
        exit(90);
    link.server = accept(link.listening, NULL, NULL);
    return link;
}

static void link_exchange(const struct link *link, int times)
{
    char byte = 'x';
    for (int i = 0; i < times; i++)
        if (send(link->client, &byte, 1, 0) != 1 || recv(link->server, &byte, 1, 0) != 1 ||
            send(link->server, &byte, 1, 0) != 1 || recv(link->client, &byte, 1, 0) != 1)
            exit(91);
}

static void *busy_thread(void *argument)
{
    for (;;)
        link_exchange(argument, 1000);
    return NULL;
}

static void *short_thread(void *argument)
{
    link_exchange(argument, 5);
    return NULL;
}

// "e<N>": exchange N times; "b": exchange for ever in another thread; "f<N>": fork a child that
// exchanges; "c<N>": the same, over a connection of its own; "z<N>": the same, and it is not waited
// for; "t<N>": N threads, one after the other; "u": make an io_uring. Each is answered by a line.
static int serve(void)
{
    char line[64];
    struct link link = link_make();
    while (fgets(line, sizeof line, stdin)) {
        int number = atoi(line + 1);
        pthread_t thread;
        switch (line[0]) {
        case 'e':
            link_exchange(&link, number);
            break;
        case 'b':
            pthread_create(&thread, NULL, busy_thread, &link);
            break;
        case 't':
            for (int i = 0; i < number; i++) {
                pthread_create(&thread, NULL, short_thread, &link);
                pthread_join(thread, NULL);
            }
            break;
        case 'f':
        case 'c':
        case 'z': {
            siginfo_t ended;
            pid_t child = fork();
            if (child == 0) {
                struct link own = line[0] == 'f' ? link : link_make();
                link_exchange(&own, number);
                _exit(0);
            }
            waitid(P_PID, (id_t)child, &ended, WEXITED | (line[0] == 'z' ? WNOWAIT : 0));
            break;
        }
        case 'u': {
            uint8_t parameters[120] = {0};
            if (syscall(SYS_io_uring_setup, 4, parameters) < 0)
                puts("no io_uring");
            break;
        }
        }
        puts("done");
        fflush(stdout);
    }
    return 0;
}

// --- the tests' side ------------------------------------------------------------------------

struct scene {
    struct places places;
    struct message_collector *collector;
    struct message_stats stats;
    struct process server;
    struct error err;
};

static void scene_open(struct scene *scene, uint64_t memory_bytes)
{
    memset(scene, 0, sizeof *scene);
    places_init(&scene->places, "collector");
    if (message_collector_create(scene->places.rings, memory_bytes, NULL, 0, &scene->collector,
                                 &scene->err) < 0)
        fail_msg("%s", scene->err.text);
}

static void server_start(struct scene *scene)
{
    char self[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    assert_true(length > 0);
    self[length] = '\0';
    const char *argv[] = {self, "--serve", NULL};
    const char *environment[] = {scene->places.preload, scene->places.environment, asan, NULL};
    struct process_place place = {
        .environment = environment, .pipe_input = true, .pipe_output = true};
    if (process_start(&scene->server, argv, &place, &scene->err) < 0)
        fail_msg("%s", scene->err.text);
}

// Sends an order and waits until it is done. Returns whether "done" was all that came back.
static bool server_order(struct scene *scene, const char *order)
{
    char line[64];
    bool clean = true;
    assert_int_equal(write(scene->server.input, order, strlen(order)), strlen(order));
    do {
        assert_int_equal(process_read_line(&scene->server, line, sizeof line, 10000, &scene->err),
                         1);
        clean &= strcmp(line, "done") == 0;
    } while (strcmp(line, "done") != 0);
    return clean;
}

static void server_stop(struct scene *scene)
{
    process_close_pipes(&scene->server);
    process_stop(&scene->server, 2000);
}

static void finish(struct scene *scene, struct logs *logs)
{
    if (message_collector_finish(scene->collector, scene->places.out, &scene->stats, &scene->err) <
        0)
        fail_msg("%s", scene->err.text);
    assert_int_equal(access(scene->places.rings, F_OK), -1);
    logs_open(logs, &scene->places);
    logs_check(logs);
    assert_int_equal(logs->calls.header.dropped, scene->stats.dropped);
    assert_int_equal(logs->calls.count, scene->stats.calls);
    assert_int_equal(logs->connections.count, scene->stats.connections);
}

static void scene_close(struct scene *scene, struct logs *logs)
{
    logs_close(logs);
    message_stats_free(&scene->stats);
    message_collector_free(scene->collector);
    places_clear(&scene->places);
}

static void test_nobody_came(void **state)
{
    (void)state;
    struct scene scene;
    struct logs logs;
    scene_open(&scene, 0);
    message_collector_enable(scene.collector);
    assert_int_equal(message_collector_poll(scene.collector, &scene.err), 0);
    assert_int_equal(message_collector_attached(scene.collector), 0);
    finish(&scene, &logs);
    assert_non_null(strstr(scene.stats.warning, "never loaded"));
    assert_int_equal(logs.calls.count, 0);
    json_t *json = message_stats_json(&scene.stats);
    assert_non_null(json);
    assert_string_equal(json_string_value(json_object_get(json, "warning")), scene.stats.warning);
    json_decref(json);
    scene_close(&scene, &logs);
}

static void test_loaded_but_no_server(void **state)
{
    (void)state;
    struct scene scene;
    struct logs logs;
    scene_open(&scene, 0);
    message_collector_enable(scene.collector);
    const char *argv[] = {"true", NULL};
    const char *environment[] = {scene.places.preload, scene.places.environment, asan, NULL};
    struct process_place place = {.environment = environment};
    if (process_run(argv, &place, 5000, NULL, 0, &scene.err) < 0)
        fail_msg("%s", scene.err.text);
    finish(&scene, &logs);
    assert_int_equal(scene.stats.process_count, 1);
    assert_string_equal(scene.stats.processes[0].name, "true");
    assert_non_null(strstr(scene.stats.warning, "loaded into true"));
    scene_close(&scene, &logs);
}

static void exchanged(const struct logs *logs, size_t connection, uint64_t from, uint64_t to)
{
    const struct connection *connections = logs->connections.records;
    assert_true(connection < logs->connections.count);
    uint32_t id = connections[connection].id;
    assert_int_equal(logs_follow(logs, id, CALL_RECEIVE, from), to);
    assert_int_equal(logs_follow(logs, id, CALL_SEND, from), to);
}

// Bytes before the collector was there are in the offsets, though nobody recorded them.
static void test_server_before_collector(void **state)
{
    (void)state;
    struct scene scene;
    struct logs logs;
    scene_open(&scene, 0);
    message_collector_free(scene.collector);
    assert_int_equal(access(scene.places.rings, F_OK), -1);
    server_start(&scene);
    server_order(&scene, "e7\n");
    if (message_collector_create(scene.places.rings, 0, NULL, 0, &scene.collector, &scene.err) < 0)
        fail_msg("%s", scene.err.text);
    nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL); // it looks ten times a second
    server_order(&scene, "e3\n");
    message_collector_enable(scene.collector);
    server_order(&scene, "e20\n");
    finish(&scene, &logs);
    assert_string_equal(scene.stats.warning, "");
    exchanged(&logs, 0, 10, 30);
    server_order(&scene, "e5\n"); // it lives on without a collector
    // Another capture of the same server.
    logs_close(&logs);
    message_stats_free(&scene.stats);
    message_collector_free(scene.collector);
    if (message_collector_create(scene.places.rings, 8192, NULL, 0, &scene.collector, &scene.err) <
        0)
        fail_msg("%s", scene.err.text);
    nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
    message_collector_enable(scene.collector);
    server_order(&scene, "e4\n");
    finish(&scene, &logs);
    exchanged(&logs, 0, 35, 39);
    server_stop(&scene);
    scene_close(&scene, &logs);
}

static void test_server_killed(void **state)
{
    (void)state;
    struct scene scene;
    struct logs logs;
    scene_open(&scene, 0);
    message_collector_enable(scene.collector);
    server_start(&scene);
    server_order(&scene, "e10\n");
    server_order(&scene, "b\n");
    nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    kill(scene.server.pid, SIGKILL); // wherever it is
    server_stop(&scene);
    finish(&scene, &logs);
    assert_int_equal(scene.stats.rejected, 0);
    const struct connection *connections = logs.connections.records;
    uint64_t received = logs_follow(&logs, connections[0].id, CALL_RECEIVE, 0);
    uint64_t sent = logs_follow(&logs, connections[0].id, CALL_SEND, 0);
    assert_true(received >= 10 && sent <= received && received <= sent + 1);
    scene_close(&scene, &logs);
}

static void test_fork_and_threads(void **state)
{
    (void)state;
    struct scene scene;
    struct logs logs;
    scene_open(&scene, 0);
    message_collector_enable(scene.collector);
    server_start(&scene);
    server_order(&scene, "e10\n");
    server_order(&scene, "t50\n");
    server_order(&scene, "f6\n"); // from here on the connection is the child's
    finish(&scene, &logs);
    server_stop(&scene);
    assert_string_equal(scene.stats.warning, "");
    assert_int_equal(scene.stats.process_count, 2);
    assert_int_equal(logs.connections.count, 2); // the same socket, in two processes' books
    const struct connection *connections = logs.connections.records;
    assert_int_equal(connections[0].cookie, connections[1].cookie);
    size_t parent = logs_count(&logs, connections[0].id, CALL_ACCEPT) ? 0 : 1;
    exchanged(&logs, parent, 0, 10 + 250);
    exchanged(&logs, 1 - parent, 260, 266);
    assert_true(scene.stats.thread_count >= 52);
    uint32_t threads = 0;
    const struct call *calls = logs.calls.records;
    for (size_t i = 1; i < logs.calls.count; i++)
        threads += calls[i].thread != calls[i - 1].thread;
    assert_true(threads >= 50);
    scene_close(&scene, &logs);
}

static void test_io_uring_is_said(void **state)
{
    (void)state;
    struct scene scene;
    struct logs logs;
    scene_open(&scene, 0);
    message_collector_enable(scene.collector);
    server_start(&scene);
    server_order(&scene, "e1\n");
    bool possible = server_order(&scene, "u\n");
    finish(&scene, &logs);
    server_stop(&scene);
    if (possible) {
        assert_true(scene.stats.processes[0].io_uring);
        assert_non_null(strstr(scene.stats.warning, "io_uring"));
    } else {
        print_message("this kernel makes no io_uring\n");
        assert_false(scene.stats.processes[0].io_uring);
    }
    scene_close(&scene, &logs);
}

// No memory is left: the calls are counted, and the server goes on.
static void test_no_room_for_rings(void **state)
{
    (void)state;
    struct scene scene;
    struct logs logs;
    scene_open(&scene, 1); // a single chunk
    server_start(&scene);
    server_order(&scene, "e1\n"); // takes it for the main thread
    message_collector_enable(scene.collector);
    server_order(&scene, "t2\n");
    server_order(&scene, "e1\n");
    server_order(&scene, "f3\n"); // a child for which there is no place either
    finish(&scene, &logs);
    server_stop(&scene);
    assert_int_equal(scene.stats.dropped_full, 20 + 6);
    assert_non_null(strstr(scene.stats.warning, "26 calls lost because the memory"));
    assert_int_equal(scene.stats.calls, 2);
    scene_close(&scene, &logs);
}

static uint64_t dropped_of_cut(const struct scene *scene, const char *name)
{
    char path[256];
    struct log_reader log;
    struct error err;
    snprintf(path, sizeof path, "%s/%s", scene->places.out, name);
    if (log_reader_open(&log, path, LOG_CALLS, MESSAGE_LOG_VERSION, sizeof(struct call), &err) < 0)
        fail_msg("%s", err.text);
    uint64_t dropped = log.header.dropped;
    log_reader_close(&log);
    return dropped;
}

// What is lost until a cut is on record then, once, whatever becomes of the collector.
static void test_losses_are_told_at_each_cut(void **state)
{
    (void)state;
    struct scene scene;
    struct message_stats so_far;
    scene_open(&scene, 1); // a single chunk
    server_start(&scene);
    server_order(&scene, "e1\n"); // takes it for the main thread
    message_collector_enable(scene.collector);
    server_order(&scene, "t2\n"); // 20 calls for which there is no room
    for (int i = 1; i <= 3; i++) {
        char name[32];
        snprintf(name, sizeof name, "calls-%06d.tlog", i);
        assert_int_equal(message_collector_poll(scene.collector, &scene.err), 0);
        assert_int_equal(message_collector_cut(scene.collector, scene.places.out, name, &scene.err),
                         0);
        assert_int_equal(dropped_of_cut(&scene, name), i == 1 ? 20 : i == 2 ? 0 : 10);
        assert_int_equal(message_collector_so_far(scene.collector, &so_far, &scene.err), 0);
        assert_int_equal(so_far.dropped_full, i == 3 ? 30 : 20);
        assert_int_equal(so_far.dropped, i == 3 ? 30 : 20);
        message_stats_free(&so_far);
        if (i == 2)
            server_order(&scene, "t1\n");
    }
    assert_int_equal(
        message_collector_finish(scene.collector, scene.places.out, &scene.stats, &scene.err), 0);
    server_stop(&scene);
    assert_int_equal(dropped_of_cut(&scene, "calls.tlog"), 0);
    assert_int_equal(scene.stats.dropped, 30);
    message_stats_free(&scene.stats);
    message_collector_free(scene.collector);
    places_clear(&scene.places);
}

// A server that was there before its collector, which found the memory prepared, attaches without
// looking at the directory again.
static void test_prepared(void **state)
{
    (void)state;
    struct scene scene;
    struct logs logs;
    memset(&scene, 0, sizeof scene);
    places_init(&scene.places, "prepared");
    int held = -1;
    if (message_collector_prepare(scene.places.rings, 0, &held, &scene.err) < 0)
        fail_msg("%s", scene.err.text);
    server_start(&scene);
    server_order(&scene, "e7\n");
    if (message_collector_create(scene.places.rings, 0, NULL, 0, &scene.collector, &scene.err) < 0)
        fail_msg("%s", scene.err.text);
    close(held);
    message_collector_enable(scene.collector);
    char path[200];
    snprintf(path, sizeof path, "%s/control", scene.places.rings);
    assert_int_equal(unlink(path), 0);
    server_order(&scene, "e20\n"); // at once, and without the file
    finish(&scene, &logs);
    exchanged(&logs, 0, 7, 27);
    server_stop(&scene);
    scene_close(&scene, &logs);
}

// Processes that come and go leave nothing: their memory serves the next ones. looks: how often the
// collector looks after ten of them.
static void many_come_and_go(const char *order, int looks)
{
    struct scene scene;
    struct logs logs;
    scene_open(&scene, 1 << 20); // for some forty processes at once
    message_collector_enable(scene.collector);
    server_start(&scene);
    for (int i = 0; i < 300; i++) {
        server_order(&scene, order);
        for (int look = 0; look < (i % 10 == 9 ? looks : 0); look++)
            assert_int_equal(message_collector_poll(scene.collector, &scene.err), 0);
    }
    finish(&scene, &logs);
    server_stop(&scene);
    assert_int_equal(scene.stats.process_count, 301);
    assert_int_equal(scene.stats.dropped, 0);
    assert_int_equal(scene.stats.calls, 300 * 7 + 1);
    scene_close(&scene, &logs);
}

static void test_the_dead_leave_nothing(void **state)
{
    (void)state;
    many_come_and_go("c3\n", 16);
}

// As in a container whose first process waits for nobody.
static void test_zombies_leave_nothing(void **state)
{
    (void)state;
    many_come_and_go("z3\n", 16 * 16);
}

// The tables and chunks of a pool are full of noise; one chunk is well-formed, and lies about who
// calls.
static void test_garbage_beside_a_server(void **state)
{
    (void)state;
    struct scene scene;
    struct logs logs;
    struct pool_header header;
    scene_open(&scene, 1 << 20);
    message_collector_enable(scene.collector);
    server_start(&scene);
    server_order(&scene, "e1\n");
    char path[200];
    snprintf(path, sizeof path, "%s/pool-%u", scene.places.rings, geteuid());
    int fd = open(path, O_RDWR);
    assert_int_equal(pread(fd, &header, sizeof header, 0), sizeof header);
    size_t bytes = pool_layout_of(header.chunks).bytes;
    char *mapping = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(mapping != MAP_FAILED);
    struct ring_pool pool = ring_pool_at(mapping, header.chunks);
    srand(7);
    for (uint32_t i = 10; i < 20; i++) {
        for (size_t byte = 0; byte < RING_CHUNK_BYTES; byte++)
            ((char *)&pool.chunks[i])[byte] = (char)rand();
        pool.owners[i] = (uint32_t)rand() | CHUNK_SEALED;
        pool.places[i] = (uint64_t)rand() << 32 | (uint32_t)rand();
        pool.pages[i].ready = (uint64_t)rand();
    }
    struct ring_chunk *liar = &pool.chunks[20];
    liar->used = 64;
    liar->process = 4000000000U;
    liar->instance = 5;
    for (uint32_t i = 0; i < 64; i++)
        liar->entries[i].call = (struct call){.entry_tsc = 1000 - i,
                                              .exit_tsc = 2000,
                                              .kind = CALL_SEND,
                                              .length = UINT32_MAX,
                                              .connection = 1 + i,
                                              .process = 4000000000U,
                                              .padding = ring_sequence(i)};
    pool.owners[20] = 21 | CHUNK_SEALED;
    munmap(mapping, bytes);
    close(fd);
    assert_int_equal(message_collector_poll(scene.collector, &scene.err), 0);
    server_order(&scene, "e9\n");
    assert_int_equal(message_collector_poll(scene.collector, &scene.err), 0);
    finish(&scene, &logs);
    server_stop(&scene);
    assert_int_equal(scene.stats.damaged, 21); // ten chunks, ten places, and the liar's chunk
    assert_int_equal(scene.stats.unidentified, 0);
    assert_int_equal(scene.stats.dropped, 0);
    exchanged(&logs, 0, 0, 10);
    scene_close(&scene, &logs);
}

static void test_directories(void **state)
{
    (void)state;
    struct scene scene;
    struct logs logs;
    scene_open(&scene, 0);
    struct message_collector *other = NULL;
    char path[300];
    struct error err = {0};
    assert_int_equal(message_collector_create("", 0, NULL, 0, &other, &err), -ERROR_INPUT);
    assert_int_equal(message_collector_create("/dev/shm/no/such", 0, NULL, 0, &other, &err),
                     -ERROR_INPUT);
    assert_int_equal(message_collector_create("/proc", 0, NULL, 0, &other, &err), -ERROR_INPUT);
    assert_non_null(strstr(err.text, "/dev/shm"));
    snprintf(path, sizeof path, "%s/sub", scene.places.rings);
    assert_int_equal(mkdir(path, 0700), 0);
    char inside[310];
    snprintf(inside, sizeof inside, "%s/file", path);
    close(open(inside, O_CREAT | O_WRONLY, 0600));
    assert_int_equal(message_collector_create(path, 0, NULL, 0, &other, &err), -ERROR_INPUT);
    assert_non_null(strstr(err.text, "other files"));
    assert_int_equal(access(inside, F_OK), 0); // not ours to remove
    unlink(inside);
    rmdir(path);
    assert_null(other);
    finish(&scene, &logs);
    scene_close(&scene, &logs);
}

// A collector that lives keeps its directory; one that died leaves it to the next, and servers
// that were attached follow.
static void test_takeover(void **state)
{
    (void)state;
    struct scene scene;
    struct logs logs;
    scene_open(&scene, 0);
    message_collector_enable(scene.collector);
    server_start(&scene);
    server_order(&scene, "e5\n");
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        struct message_collector *other = NULL;
        struct error err = {0};
        int refused = message_collector_create(scene.places.rings, 0, NULL, 0, &other, &err);
        _exit(refused == -ERROR_INPUT && strstr(err.text, "in use") ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    // As if it had been killed: the owner's pid is nobody's.
    char path[200];
    snprintf(path, sizeof path, "%s/control", scene.places.rings);
    int fd = open(path, O_RDWR);
    uint32_t nobody = (uint32_t)child;
    assert_int_equal(pwrite(fd, &nobody, sizeof nobody, offsetof(struct control_page, owner)), 4);
    close(fd);
    struct message_collector *died = scene.collector;
    if (message_collector_create(scene.places.rings, 0, NULL, 0, &scene.collector, &scene.err) < 0)
        fail_msg("%s", scene.err.text);
    nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
    message_collector_enable(scene.collector);
    server_order(&scene, "e5\n");
    finish(&scene, &logs);
    server_stop(&scene);
    exchanged(&logs, 0, 5, 10);
    scene_close(&scene, &logs);
    message_collector_free(died);
}

// The server's peers: who they are, and that their bytes are counted like those of its own side.
static void test_peers(void **state)
{
    (void)state;
    struct scene scene;
    struct logs logs;
    scene_open(&scene, 0);
    message_collector_watch_peers(scene.collector);
    message_collector_enable(scene.collector);
    server_start(&scene);
    server_order(&scene, "e5\n");
    pid_t server = scene.server.pid;
    if (message_collector_finish(scene.collector, scene.places.out, &scene.stats, &scene.err) < 0)
        fail_msg("%s", scene.err.text);
    server_stop(&scene);
    logs_open(&logs, &scene.places);
    logs_check(&logs);
    const struct connection *ends = logs.connections.records;
    assert_int_equal(logs.connections.count, 2);
    assert_int_equal(scene.stats.connections, 1);
    assert_int_equal(scene.stats.outgoing, 1);
    assert_int_equal(ends[0].outgoing + ends[1].outgoing, 1);
    assert_true(connection_mirrors(&ends[0], &ends[1]));
    const struct connection *outgoing = &ends[ends[1].outgoing];
    assert_int_equal(logs_count(&logs, outgoing->id, CALL_CONNECT), 1);
    assert_int_equal(logs_follow(&logs, outgoing->id, CALL_SEND, 0), 5);
    assert_int_equal(logs_follow(&logs, outgoing->id, CALL_RECEIVE, 0), 5);
    char address[32];
    snprintf(address, sizeof address, "127.0.0.1:%u", outgoing->peer_port);
    assert_int_equal(scene.stats.peers.count, 1);
    assert_string_equal(scene.stats.peers.items[0].address, address);
    assert_string_equal(scene.stats.peers.items[0].program, "test_message_co");
    assert_int_equal(scene.stats.peers.items[0].process, server);
    json_t *json = message_stats_json(&scene.stats);
    assert_int_equal(json_array_size(json_object_get(json, "peers")), 1);
    json_decref(json);
    scene_close(&scene, &logs);
}

static void test_out_dir_missing(void **state)
{
    (void)state;
    struct scene scene;
    scene_open(&scene, 0);
    assert_true(message_collector_finish(scene.collector, "/tmp/shim-no-such-directory",
                                         &scene.stats, &scene.err) < 0);
    assert_non_null(strstr(scene.err.text, "/tmp/shim-no-such-directory"));
    assert_int_equal(access(scene.places.rings, F_OK), -1);
    message_stats_free(&scene.stats);
    message_collector_free(scene.collector);
    places_clear(&scene.places);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--serve") == 0)
        return serve();
    signal(SIGPIPE, SIG_IGN);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nobody_came),
        cmocka_unit_test(test_loaded_but_no_server),
        cmocka_unit_test(test_server_before_collector),
        cmocka_unit_test(test_server_killed),
        cmocka_unit_test(test_fork_and_threads),
        cmocka_unit_test(test_io_uring_is_said),
        cmocka_unit_test(test_no_room_for_rings),
        cmocka_unit_test(test_losses_are_told_at_each_cut),
        cmocka_unit_test(test_prepared),
        cmocka_unit_test(test_the_dead_leave_nothing),
        cmocka_unit_test(test_zombies_leave_nothing),
        cmocka_unit_test(test_garbage_beside_a_server),
        cmocka_unit_test(test_directories),
        cmocka_unit_test(test_takeover),
        cmocka_unit_test(test_peers),
        cmocka_unit_test(test_out_dir_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
