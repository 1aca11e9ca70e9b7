// SPDX-License-Identifier: MIT
//
// The collector between servers it does not control and a directory it does not trust: nobody
// comes, everybody comes too early or too late, a process dies in the middle, files are garbage.
// The server here is this program, run again under the shim.
#include "tests/shim/shim_test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
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
// exchanges; "t<N>": N threads, one after the other; "u": make an io_uring; "l": no large files.
// Each is answered by a line.
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
        case 'f': {
            pid_t child = fork();
            if (child == 0) {
                link_exchange(&link, number);
                _exit(0);
            }
            waitpid(child, NULL, 0);
            break;
        }
        case 'u': {
            uint8_t parameters[120] = {0};
            if (syscall(SYS_io_uring_setup, 4, parameters) < 0)
                puts("no io_uring");
            break;
        }
        case 'l': {
            signal(SIGXFSZ, SIG_DFL);
            struct rlimit limit = {.rlim_cur = 100000, .rlim_max = 100000};
            setrlimit(RLIMIT_FSIZE, &limit);
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

static void scene_open(struct scene *scene, size_t ring_bytes)
{
    memset(scene, 0, sizeof *scene);
    places_init(&scene->places, "collector");
    if (message_collector_create(scene->places.rings, ring_bytes, NULL, 0, &scene->collector,
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
    server_order(&scene, "f6\n");
    server_order(&scene, "t50\n");
    finish(&scene, &logs);
    server_stop(&scene);
    assert_string_equal(scene.stats.warning, "");
    assert_int_equal(scene.stats.process_count, 2);
    assert_int_equal(logs.connections.count, 2); // the same socket, in two processes' books
    const struct connection *connections = logs.connections.records;
    assert_int_equal(connections[0].cookie, connections[1].cookie);
    size_t parent = logs_count(&logs, connections[0].id, CALL_ACCEPT) ? 0 : 1;
    exchanged(&logs, parent, 0, 10 + 250);
    exchanged(&logs, 1 - parent, 10, 16);
    // Threads that follow one another share rings.
    assert_true(scene.stats.thread_count <= 4);
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

// No ring can be made: the calls are counted, and the reason is told.
static void test_no_room_for_rings(void **state)
{
    (void)state;
    struct scene scene;
    struct logs logs;
    scene_open(&scene, 0);
    server_start(&scene);
    server_order(&scene, "e1\n"); // makes the main thread's
    message_collector_enable(scene.collector);
    server_order(&scene, "l\n");
    server_order(&scene, "t2\n");
    server_order(&scene, "e1\n");
    finish(&scene, &logs);
    server_stop(&scene);
    assert_int_equal(scene.stats.dropped_without_ring, 20);
    assert_non_null(strstr(scene.stats.warning, "File too large"));
    assert_int_equal(scene.stats.calls, 2);
    scene_close(&scene, &logs);
}

static void garbage_write(const char *dir, const char *name, const void *data, size_t bytes)
{
    char path[200];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, bytes), (ssize_t)bytes);
    close(fd);
}

static void test_garbage_beside_a_server(void **state)
{
    (void)state;
    struct scene scene;
    struct logs logs;
    scene_open(&scene, 0);
    message_collector_enable(scene.collector);
    const char *dir = scene.places.rings;
    char noise[9000];
    srand(7);
    for (size_t i = 0; i < sizeof noise; i++)
        noise[i] = (char)rand();
    garbage_write(dir, "ring-noise", noise, sizeof noise);
    garbage_write(dir, "ring-empty", noise, 0);
    garbage_write(dir, "process-noise", noise, sizeof noise);
    garbage_write(dir, "process-short", noise, 10);
    char path[200];
    snprintf(path, sizeof path, "%s/ring-directory", dir);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/ring-link", dir);
    assert_int_equal(symlink("/etc/passwd", path), 0);
    // One that is well-formed, and lies about who calls.
    char ring[RING_PAGE_BYTES + 64 * RING_ENTRY_BYTES] = {0};
    struct ring_header *header = (struct ring_header *)ring;
    header->version = RING_VERSION;
    header->process = 4000000000U;
    header->entries = 64;
    header->head = 64;
    header->magic = RING_MAGIC;
    union ring_entry *entries = (union ring_entry *)(ring + RING_PAGE_BYTES);
    for (uint32_t i = 0; i < 64; i++)
        entries[i].call = (struct call){.entry_tsc = 1000 - i,
                                        .exit_tsc = 2000,
                                        .kind = CALL_SEND,
                                        .length = UINT32_MAX,
                                        .connection = 1 + i,
                                        .process = 4000000000U,
                                        .padding = ring_sequence(i)};
    garbage_write(dir, "ring-liar", ring, sizeof ring);
    server_start(&scene);
    server_order(&scene, "e10\n");
    assert_int_equal(message_collector_poll(scene.collector, &scene.err), 0);
    assert_int_equal(message_collector_poll(scene.collector, &scene.err), 0);
    snprintf(path, sizeof path, "%s/ring-directory", dir);
    rmdir(path);
    finish(&scene, &logs);
    server_stop(&scene);
    assert_int_equal(scene.stats.damaged_files, 4); // ring-noise, -directory, -link, process-noise
    assert_int_equal(scene.stats.unidentified, 64);
    assert_int_equal(scene.stats.dropped, 64);
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
        cmocka_unit_test(test_garbage_beside_a_server),
        cmocka_unit_test(test_directories),
        cmocka_unit_test(test_takeover),
        cmocka_unit_test(test_peers),
        cmocka_unit_test(test_out_dir_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
