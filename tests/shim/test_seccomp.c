// SPDX-License-Identifier: MIT
//
// Servers that forbid themselves system calls: none may die of the shim, which becomes inert and
// says so. The server is this program, run again; its filters kill it for any call that it does not
// make itself.
// Runs beside others: it counts.
#include "tests/shim/shim_test.h"
#include "tests/skip.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "base/process.h"

// --- the server ----------------------------------------------------------------------------------

struct link {
    int client, listening, server;
};
enum { LISTENING = 100 }; // its descriptor

static struct link link_make(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof address;
    struct link link = {.listening = dup2(socket(AF_INET, SOCK_STREAM, 0), LISTENING),
                        .client = socket(AF_INET, SOCK_STREAM, 0)};
    if (bind(link.listening, (struct sockaddr *)&address, bytes) < 0 ||
        listen(link.listening, 4) < 0 ||
        getsockname(link.listening, (struct sockaddr *)&address, &bytes) < 0 ||
        connect(link.client, (struct sockaddr *)&address, bytes) < 0)
        _exit(90);
    return link;
}

static void link_exchange(const struct link *link, int times)
{
    char byte = 'x';
    for (int i = 0; i < times; i++)
        if (write(link->client, &byte, 1) != 1 || read(link->server, &byte, 1) != 1 ||
            write(link->server, &byte, 1) != 1 || read(link->client, &byte, 1) != 1)
            _exit(91);
}

// Past the shim.
static long call_past_the_shim(long number, long fd)
{
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(fd), "S"(0L), "d"(0L)
                     : "rcx", "r11", "memory");
    return result;
}

#define ALLOW(number)                                                                              \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1),                                           \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

// What the server calls itself, and what the loader does.
static struct sock_filter filter[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    ALLOW(SYS_read),
    ALLOW(SYS_write),
    ALLOW(SYS_accept),
    ALLOW(SYS_close),
    ALLOW(SYS_exit_group),
    // the loader's
    ALLOW(SYS_execve),
    ALLOW(SYS_brk),
    ALLOW(SYS_mmap),
    ALLOW(SYS_mprotect),
    ALLOW(SYS_munmap),
    ALLOW(SYS_access),
    ALLOW(SYS_openat),
    ALLOW(SYS_newfstatat),
    ALLOW(SYS_fstat),
    ALLOW(SYS_pread64),
    ALLOW(SYS_arch_prctl),
    ALLOW(SYS_set_tid_address),
    ALLOW(SYS_set_robust_list),
    ALLOW(SYS_rseq),
    ALLOW(SYS_prlimit64),
    ALLOW(SYS_getrandom),
    ALLOW(SYS_readlink),
    ALLOW(SYS_getcwd),
    // the server's start, after its exec
    ALLOW(SYS_socket),
    ALLOW(SYS_dup2),
    ALLOW(SYS_bind),
    ALLOW(SYS_listen),
    ALLOW(SYS_connect),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getsockname, 0, 3),
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, LISTENING, 0, 1), // not of the one that it accepts
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
};

static void filter_install(bool by_syscall)
{
    struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        (by_syscall ? syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program)
                    : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0)) < 0)
        _exit(77);
}

// --- a filter that one thread installs for all ---------------------------------------------------

// What the threads below, and libc for them, call themselves.
static struct sock_filter filter_of_threads[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    ALLOW(SYS_read),
    ALLOW(SYS_write),
    ALLOW(SYS_socket),
    ALLOW(SYS_connect),
    ALLOW(SYS_accept),
    ALLOW(SYS_close),
    ALLOW(SYS_dup),
    ALLOW(SYS_futex),
    ALLOW(SYS_rseq), // a thread that begins as late
    ALLOW(SYS_set_robust_list),
    ALLOW(SYS_mmap),
    ALLOW(SYS_mprotect),
    ALLOW(SYS_rt_sigprocmask),
    ALLOW(SYS_clock_nanosleep),
    ALLOW(SYS_madvise),
    ALLOW(SYS_munmap),
    ALLOW(SYS_exit),
    ALLOW(SYS_exit_group),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
};

static struct sockaddr_in listening_at;
static _Atomic bool enough;

// Connections come and go, each with bytes, a copy and two ends.
static void *churn(void *listening)
{
    char byte = 'x';
    do {
        struct link link = {.listening = *(int *)listening,
                            .client = socket(AF_INET, SOCK_STREAM, 0)};
        if (connect(link.client, (struct sockaddr *)&listening_at, sizeof listening_at) < 0 ||
            (link.server = accept(link.listening, NULL, NULL)) < 0)
            _exit(94);
        link_exchange(&link, 2);
        int copy = dup(link.server);
        close(link.server);
        if (write(link.client, &byte, 1) != 1 || read(copy, &byte, 1) != 1)
            _exit(95);
        close(copy);
        close(link.client);
    } while (!enough);
    return NULL;
}

// The first call on a connection that was there before, and in which it waits.
static void *read_late(void *link)
{
    char byte;
    return read(((struct link *)link)->server, &byte, 1) == 1 ? link : NULL;
}

static void nap(long us)
{
    nanosleep(&(struct timespec){.tv_nsec = us * 1000}, NULL);
}

static void serve_threads(long us)
{
    struct sock_fprog program = {.len = sizeof filter_of_threads / sizeof *filter_of_threads,
                                 .filter = filter_of_threads};
    struct link waits = link_make();
    socklen_t bytes = sizeof listening_at;
    pthread_t threads[3];
    void *got = NULL;
    int other = socket(AF_INET, SOCK_STREAM, 0);
    listening_at.sin_family = AF_INET;
    listening_at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(other, (struct sockaddr *)&listening_at, bytes) < 0 || listen(other, 4) < 0 ||
        getsockname(other, (struct sockaddr *)&listening_at, &bytes) < 0)
        _exit(96);
    // By an instruction of the program's own, as of another process: the shim has not looked at it.
    waits.server = (int)call_past_the_shim(SYS_accept, waits.listening);
    pthread_create(&threads[0], NULL, read_late, &waits);
    for (int i = 1; i < 3; i++)
        pthread_create(&threads[i], NULL, churn, &other);
    nap(20000 + us);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) < 0)
        _exit(77);
    nap(5000);
    enough = true;
    if (write(waits.client, "x", 1) != 1)
        _exit(97);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], i ? NULL : &got);
    _exit(got ? 0 : 98);
}

static int serve(const char *how, char **argv)
{
    if (strncmp(how, "threads", 7) == 0)
        serve_threads(atol(how + 7));
    if (strcmp(how, "before") == 0) { // the filter is there when the shim starts
        char *again[] = {argv[0], "plain", NULL};
        filter_install(false);
        execv("/proc/self/exe", again);
        _exit(92);
    }
    struct link link = link_make();
    if (strcmp(how, "refused") == 0 && // as programs ask whether there is seccomp
        (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL, 0, 0) == 0 || errno != EFAULT ||
         syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, NULL) == 0 || errno != EFAULT))
        _exit(93);
    if (strcmp(how, "strict") == 0) { // no accept from then on
        link.server = accept(link.listening, NULL, NULL);
        link_exchange(&link, 5);
        if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) < 0)
            _exit(77);
        link_exchange(&link, 5);
        syscall(SYS_exit, 0);
    }
    if (strcmp(how, "prctl") == 0 || strcmp(how, "syscall") == 0)
        filter_install(strcmp(how, "syscall") == 0);
    if (strcmp(how, "vfork") == 0 && vfork() == 0) { // a child whose memory is the server's
        filter_install(false);
        _exit(0);
    }
    link.server = accept(link.listening, NULL, NULL);
    link_exchange(&link, 10);
    close(link.server);
    _exit(0);
}

// --- the test ------------------------------------------------------------------------------------

// Runs a server under the shim. Its calls are seen: until its filter came, or all.
static void server_judge(const char *how, bool filtered, uint64_t least_calls)
{
#ifdef __SANITIZE_ADDRESS__
    skip_case("the address sanitizer makes system calls of its own");
#endif
    struct places places;
    struct error err;
    struct message_collector *collector = NULL;
    struct message_stats stats;
    struct process server;
    int status = -1;
    char self[PATH_MAX] = "";
    places_init(&places, "seccomp");
    if (message_collector_create(places.rings, 0, NULL, 0, &collector, &err) < 0)
        fail_msg("%s", err.text);
    message_collector_enable(collector);
    assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
    const char *argv[] = {self, how, NULL};
    const char *environment[] = {places.preload, places.environment, NULL};
    struct process_place place = {.environment = environment};
    if (process_start(&server, argv, &place, &err) < 0 ||
        process_wait(&server, 20000, &status, &err) != 1)
        fail_msg("%s", err.text);
    if (message_collector_finish(collector, places.out, &stats, &err) < 0)
        fail_msg("%s", err.text);
    printf("%s: %llu calls; %s\n", how, (unsigned long long)stats.calls, stats.warning);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(strstr(stats.warning, "inert because of seccomp") != NULL, filtered);
    assert_true(stats.calls >= least_calls);
    message_stats_free(&stats);
    message_collector_free(collector);
    places_clear(&places);
}

static void test_strict(void **state)
{
    (void)state;
    server_judge("strict", true, 11);
}

static void test_filter(void **state)
{
    (void)state;
    server_judge("prctl", true, 0);
    server_judge("syscall", true, 0);
    server_judge("vfork", true, 0);
}

// One thread's filter is all threads': none may be amid what the shim asks of a connection.
static void test_filter_of_threads(void **state)
{
    (void)state;
    char how[32];
    for (int i = 0; i < (getenv("TAILLIGHT_TRUST") ? 400 : 25); i++) {
        snprintf(how, sizeof how, "threads%d", i * 37 % 400);
        server_judge(how, true, 0);
    }
}

static void test_filter_before_the_shim(void **state)
{
    (void)state;
    server_judge("before", true, 0);
}

static void test_without_a_filter(void **state)
{
    (void)state;
    server_judge("plain", false, 21);
    server_judge("refused", false, 21);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return serve(argv[1], argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_strict),
        cmocka_unit_test(test_filter),
        cmocka_unit_test(test_filter_of_threads),
        cmocka_unit_test(test_filter_before_the_shim),
        cmocka_unit_test(test_without_a_filter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
