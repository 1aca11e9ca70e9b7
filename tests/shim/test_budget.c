// SPDX-License-Identifier: MIT
//
// What the shim costs a server in memory: a server with a thread or a process for each connection,
// in a control group that would not hold 4 MiB for each of them. The server is this program, run
// again. It prints the memory and the time of first requests, of which only the memory is judged.
#include "tests/shim/shim_test.h"
#include "tests/skip.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "base/process.h"
#include "base/quantile.h"

enum {
    LIMIT_BYTES = 64 << 20,
    MOST = 3500, // more than there are places in root's pool
    MANY = 200,
    PATIENCE_MS = 250000, // a request among thousands of processes takes long where others work
};

// Of each connection.
static int requests_of(int count)
{
    return count > MANY ? 4 : 20;
}

// More connections than that are tried with room enough: what they take is to be known.
static const long wide_limit_bytes = 6L << 30;

// --- the server ----------------------------------------------------------------------------------

static void *serve_connection(void *argument)
{
    int fd = *(int *)argument;
    char byte;
    while (recv(fd, &byte, 1, 0) == 1 && send(fd, &byte, 1, 0) == 1)
        ;
    return NULL;
}

static void serve_by_thread(int *fd)
{
    pthread_t thread;
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    if (pthread_create(&thread, &small, serve_connection, fd) != 0)
        exit(93);
}

static void serve_by_process(int *fd)
{
    pid_t pid = fork();
    if (pid < 0)
        exit(94);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); // it has the client's end, too: nobody else ends it
        serve_connection(fd);
        _exit(0);
    }
}

// Serves `count` connections, all open until the end, and prints how long the first request of each
// took: the median, in us.
static int serve(bool by_thread, int count)
{
    static int clients[MOST], servers[MOST];
    double first_us[MOST];
    struct sockaddr_in address = {.sin_family = AF_INET};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof address;
    int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(listening, (struct sockaddr *)&address, bytes) < 0 || listen(listening, 4) < 0 ||
        getsockname(listening, (struct sockaddr *)&address, &bytes) < 0)
        return 90;
    for (int i = 0; i < count; i++) {
        char byte = 'x';
        clients[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (connect(clients[i], (struct sockaddr *)&address, bytes) < 0)
            return 91;
        int64_t begun_ns = monotonic_ns();
        servers[i] = accept(listening, NULL, NULL);
        (by_thread ? serve_by_thread : serve_by_process)(&servers[i]);
        for (int request = 0; request < requests_of(count); request++) {
            if (send(clients[i], &byte, 1, 0) != 1 || recv(clients[i], &byte, 1, 0) != 1)
                return 92;
            if (request == 0)
                first_us[i] = (double)(monotonic_ns() - begun_ns) / 1e3;
        }
    }
    quantile_sort(first_us, (size_t)count);
    printf("%.0f\n", quantile_sorted(first_us, (size_t)count, 0.5));
    fflush(stdout);
    getchar(); // the other side looks at the memory
    kill(0, SIGTERM);
    return 0;
}

// --- the test ------------------------------------------------------------------------------------

struct group {
    char folder[200];
    const char *usage;
};

static bool number_write(const char *folder, const char *name, long value)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "we");
    bool written = file && fprintf(file, "%ld", value) > 0;
    return file && fclose(file) == 0 && written;
}

// A control group that holds so much memory, of version 1 or 2.
static bool group_make(struct group *group, long limit_bytes)
{
    static const char *const folders[] = {"/sys/fs/cgroup/memory", "/sys/fs/cgroup"};
    static const char *const limits[] = {"memory.limit_in_bytes", "memory.max"};
    for (int i = 0; i < 2; i++) {
        snprintf(group->folder, sizeof group->folder, "%s/taillight-test-%d", folders[i], getpid());
        group->usage = i ? "memory.current" : "memory.usage_in_bytes";
        if (mkdir(group->folder, 0755) < 0)
            continue;
        if (number_write(group->folder, limits[i], limit_bytes)) {
            number_write(group->folder, "memory.memsw.limit_in_bytes", limit_bytes);
            number_write(group->folder, "memory.swap.max", 0);
            return true;
        }
        rmdir(group->folder);
    }
    return false;
}

// Thousands of processes take a while to end.
static void group_remove(const struct group *group)
{
    int removed = -1;
    for (int i = 0; i < 3000 && removed < 0; i++) {
        removed = rmdir(group->folder);
        nanosleep(&(struct timespec){.tv_nsec = removed < 0 ? 10000000 : 0}, NULL);
    }
    assert_int_equal(removed, 0); // nothing of the server lives on
}

static double group_usage_kib(const struct group *group)
{
    char path[300];
    long value = -1;
    snprintf(path, sizeof path, "%s/%s", group->folder, group->usage);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%ld", &value), 1);
    fclose(file);
    return (double)value / 1024;
}

// What the files of a folder take.
static double folder_mib(const char *path)
{
    enum { BLOCK_BYTES = 512 };
    double bytes = 0;
    struct stat status;
    DIR *folder = opendir(path);
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder));)
        if (fstatat(dirfd(folder), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0)
            bytes += (double)status.st_blocks * BLOCK_BYTES;
    closedir(folder);
    return bytes / (1 << 20);
}

struct cost {
    double first_us, memory_kib, shared_mib;
    uint64_t dropped;
};

// Runs a server in a group of its own, with the shim and a collector if `places` is given.
static struct cost server_cost(const char *how, int count, const struct places *places)
{
    char self[PATH_MAX] = "", number[16], line[64];
    struct group group;
    struct error err;
    struct cost cost = {0};
    struct message_collector *collector = NULL;
    if (!group_make(&group, count > MANY ? wide_limit_bytes : LIMIT_BYTES))
        skip_case("no control group with a limit of memory can be made here");
    if (places && message_collector_create(places->rings, 0, NULL, 0, &collector, &err) < 0)
        fail_msg("%s", err.text);
    if (collector)
        message_collector_enable(collector);
    assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
    snprintf(number, sizeof number, "%d", count);
    const char *argv[] = {self, how, number, NULL};
    const char *environment[] = {places ? places->preload : NULL,
                                 places ? places->environment : NULL,
                                 "ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0", NULL};
    struct process_place place = {.environment = places ? environment : NULL,
                                  .cgroup = group.folder,
                                  .pipe_input = true,
                                  .pipe_output = true,
                                  .has_children = true};
    struct process server;
    if (process_start(&server, argv, &place, &err) < 0)
        fail_msg("%s", err.text);
    int said = process_read_line(&server, line, sizeof line, PATIENCE_MS, &err);
    cost = (struct cost){.first_us = strtod(line, NULL),
                         .memory_kib = group_usage_kib(&group),
                         .shared_mib = places ? folder_mib(places->rings) : 0};
    process_close_pipes(&server);
    process_stop(&server, 2000);
    group_remove(&group);
    if (said != 1)
        fail_msg("the server with %d connections %s", count,
                 said == 0 ? "died before it had served all" : err.text);
    if (collector) {
        struct message_stats stats;
        if (message_collector_finish(collector, places->out, &stats, &err) < 0)
            fail_msg("%s", err.text);
        // Each call is there, or said to be lost.
        assert_true(count > MANY || stats.dropped == 0);
        assert_true(stats.calls + stats.dropped >= 2 * (uint64_t)(count * requests_of(count)));
        assert_true(stats.dropped == 0 || strstr(stats.warning, "because the memory"));
        cost.dropped = stats.dropped;
        message_stats_free(&stats);
        message_collector_free(collector);
    }
    return cost;
}

static void server_judge(const char *how, int count)
{
    struct places places;
    places_init(&places, "budget");
    struct cost plain = server_cost(how, count, NULL);
    struct cost watched = server_cost(how, count, &places);
    printf("%s %d: memory %.0f -> %.0f KiB, in all %.1f MiB shared; first request %.0f -> %.0f "
           "us; %llu calls had no room\n",
           how, count, plain.memory_kib, watched.memory_kib, watched.shared_mib, plain.first_us,
           watched.first_us, (unsigned long long)watched.dropped);
    assert_true(watched.shared_mib < 65);
    assert_true(watched.memory_kib - plain.memory_kib < (count > MANY ? 100.0 * count : 16384));
    places_clear(&places);
}

static void test_thread_per_connection(void **state)
{
    (void)state;
    server_judge("--threads", 40);
}

static void test_process_per_connection(void **state)
{
    (void)state;
    server_judge("--processes", 100);
}

// What `make check-trust` has measured beside: docs/security.md has the figures.
static void test_from_one_to_thousands(void **state)
{
    static const int counts[] = {1, 40, 400, MOST};
    struct rlimit files;
    (void)state;
    if (!getenv("TAILLIGHT_TRUST"))
        return;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max; // both ends of a connection are the server's
    setrlimit(RLIMIT_NOFILE, &files);
    if (files.rlim_cur < 2 * MOST + 20)
        skip_case("%d connections take more descriptors than the %llu that are allowed", MOST,
                  (unsigned long long)files.rlim_cur);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        server_judge("--threads", counts[i]);
        server_judge("--processes", counts[i]);
    }
}

int main(int argc, char **argv)
{
    if (argc > 2)
        return serve(strcmp(argv[1], "--threads") == 0, atoi(argv[2]));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_thread_per_connection),
        cmocka_unit_test(test_process_per_connection),
        cmocka_unit_test(test_from_one_to_thousands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
