// SPDX-License-Identifier: MIT
//
// Servers that forbid themselves system calls: none may die of the shim, which becomes inert and
// says so. The server is this program, run again; its filters kill it for any call that it does not
// make itself.
#include "tests/shim/shim_test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

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

static int serve(const char *how, char **argv)
{
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
    skip(); // makes system calls of its own
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
        cmocka_unit_test(test_filter_before_the_shim),
        cmocka_unit_test(test_without_a_filter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
