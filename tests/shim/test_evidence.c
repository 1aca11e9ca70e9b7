// SPDX-License-Identifier: MIT
//
// The shim's byte counts hold whatever way a program moves its bytes, and where they do not, that
// is said. This program runs itself under the shim, once for each way: a scenario makes a
// connection to itself and prints the client's port and how many bytes its server's end took and
// gave. In the log are these bytes and no others, or the connection's calls are counted as lost.
// Runs beside others: what it compares is counts.
#include "tests/shim/shim_test.h"

#include <aio.h>
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

#include "base/process.h"
#include "tests/ports.h"

// --- scenarios -----------------------------------------------------------------------------------

struct ends {
    int listening, client, server;
};

#define NEED(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #condition, strerror(errno));   \
            exit(90);                                                                              \
        }                                                                                          \
    } while (0)

static void connect_client(struct ends *ends, uint16_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    int yes = 1;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ends->listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(ends->listening, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    NEED(bind(ends->listening, (struct sockaddr *)&address, sizeof address) == 0);
    NEED(listen(ends->listening, 4) == 0);
    ends->client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    NEED(connect(ends->client, (struct sockaddr *)&address, sizeof address) == 0);
}

static struct ends connected(uint16_t port)
{
    struct ends ends;
    connect_client(&ends, port);
    ends.server = accept(ends.listening, NULL, NULL);
    NEED(ends.server >= 0);
    return ends;
}

static void give(const struct ends *ends, const char *text)
{
    NEED(send(ends->client, text, strlen(text), 0) == (ssize_t)strlen(text));
}

static void take(const struct ends *ends, const char *text)
{
    char got[64];
    size_t length = strlen(text);
    NEED(recv(ends->client, got, length, MSG_WAITALL) == (ssize_t)length);
    NEED(memcmp(got, text, length) == 0);
}

static void account(const struct ends *ends, unsigned in, unsigned out)
{
    struct sockaddr_in address;
    socklen_t bytes = sizeof address;
    NEED(getsockname(ends->client, (struct sockaddr *)&address, &bytes) == 0);
    printf("%u %u %u\n", ntohs(address.sin_port), in, out);
    fflush(stdout);
}

// A thread checks one of its calls in about 8 ms: after this its next one is.
static void rest(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
}

// A system call that no library sees.
static long raw(long number, long a, long b, long c)
{
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c)
                     : "rcx", "r11", "memory");
    return result;
}

// libuv closes so; what gets the number next is a file.
static void closes_by_syscall(uint16_t port)
{
    struct ends ends = connected(port);
    char a[64];
    give(&ends, "request");
    NEED(read(ends.server, a, 7) == 7 && write(ends.server, "reply", 5) == 5);
    take(&ends, "reply");
    account(&ends, 7, 5);
    NEED(syscall(SYS_close, ends.server) == 0);
    NEED(open("/dev/zero", O_RDONLY) == ends.server);
    NEED(read(ends.server, a, sizeof a) == sizeof a);
}

static void moves_by_syscall(uint16_t port)
{
    struct ends ends;
    char a[64];
    struct iovec part = {a, 2}, out = {"v2", 2};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    struct mmsghdr many = {.msg_hdr = {.msg_iov = &part, .msg_iovlen = 1}};
    struct msghdr reply = {.msg_iov = &out, .msg_iovlen = 1};
    struct mmsghdr replies = {.msg_hdr = {.msg_iov = &out, .msg_iovlen = 1}};
    connect_client(&ends, port);
    ends.server = (int)syscall(SYS_accept4, ends.listening, NULL, NULL, SOCK_CLOEXEC);
    NEED(ends.server >= 0);
    give(&ends, "aabbccddeeffgg");
    NEED(syscall(SYS_recvfrom, ends.server, a, 2, MSG_PEEK, NULL, NULL) == 2);
    NEED(syscall(SYS_recvfrom, ends.server, a, 2, 0, NULL, NULL) == 2);
    NEED(syscall(SYS_read, ends.server, a, 2) == 2);
    NEED(syscall(SYS_readv, ends.server, &part, 1) == 2);
    NEED(syscall(SYS_preadv2, ends.server, &part, 1, -1L, -1L, 0L) == 2);
    NEED(syscall(SYS_recvmsg, ends.server, &message, 0) == 2);
    NEED(syscall(SYS_recvmmsg, ends.server, &many, 1, 0, NULL) == 1 && many.msg_len == 2);
    int copy = (int)syscall(SYS_dup, ends.server);
    NEED(syscall(SYS_dup3, ends.server, copy + 5, 0) == copy + 5);
    NEED(syscall(SYS_close, ends.server) == 0);
    ends.server = (int)syscall(SYS_fcntl, copy + 5, F_DUPFD_CLOEXEC, 0);
    NEED(syscall(SYS_close_range, copy + 5, copy + 5, 0) == 0);
    NEED(syscall(SYS_read, copy, a, 2) == 2);
    NEED(syscall(SYS_write, ends.server, "wr", 2) == 2);
    NEED(syscall(SYS_writev, ends.server, &out, 1) == 2);
    NEED(syscall(SYS_pwritev2, ends.server, &out, 1, -1L, -1L, 0L) == 2);
    NEED(syscall(SYS_sendto, ends.server, "st", 2, 0, NULL, 0L) == 2);
    NEED(syscall(SYS_sendmsg, ends.server, &reply, 0) == 2);
    NEED(syscall(SYS_sendmmsg, copy, &replies, 1, 0) == 1);
    take(&ends, "wrv2v2stv2v2");
    NEED(syscall(SYS_read, -1, a, 1) == -1 && errno == EBADF);
    account(&ends, 14, 12);
    NEED(syscall(SYS_close, copy) == 0 && syscall(SYS_close, ends.server) == 0);
}

static void moves_by_vectors(uint16_t port)
{
    struct ends ends = connected(port);
    char a[8], b[8];
    struct iovec parts[2] = {{a, 3}, {b, 2}}, reply[2] = {{"ab", 2}, {"cde", 3}};
    for (int i = 0; i < 20; i++) {
        give(&ends, "01234567");
        NEED(poll(&(struct pollfd){.fd = ends.server, .events = POLLIN}, 1, -1) == 1);
        NEED(preadv2(ends.server, parts, 2, -1, i % 2 ? RWF_NOWAIT : 0) == 5);
        NEED(read(ends.server, a, 3) == 3);
        NEED(pwritev2(ends.server, reply, 2, -1, 0) == 5 && write(ends.server, "f", 1) == 1);
        take(&ends, "abcdef");
    }
    account(&ends, 160, 120);
    NEED(close(ends.server) == 0);
}

static void prints(uint16_t port)
{
    struct ends ends = connected(port);
    char a[8];
    ssize_t (*read_plain)(int, void *, size_t) =
        (ssize_t(*)(int, void *, size_t))(uintptr_t)dlsym(RTLD_DEFAULT, "__read_nocancel");
    int (*close_plain)(int) = (int (*)(int))(uintptr_t)dlsym(RTLD_DEFAULT, "__close_nocancel");
    give(&ends, "request");
    NEED(read_plain(ends.server, a, 7) == 7);
    NEED(dprintf(ends.server, "%d-%s", 42, "times") == 8);
    take(&ends, "42-times");
    account(&ends, 7, 8);
    NEED(close_plain(ends.server) == 0);
}

static void aio_finish(struct aiocb *control, ssize_t bytes)
{
    const struct aiocb *list[] = {control};
    while (aio_error(control) == EINPROGRESS)
        aio_suspend(list, 1, NULL);
    NEED(aio_return(control) == bytes);
}

static void moves_by_aio(uint16_t port)
{
    struct ends ends = connected(port);
    char a[8];
    struct aiocb in = {.aio_fildes = ends.server, .aio_buf = a, .aio_nbytes = 5};
    struct aiocb out = {.aio_fildes = ends.server, .aio_buf = "reply", .aio_nbytes = 5};
    struct aiocb listed = {.aio_fildes = ends.server,
                           .aio_buf = "listed",
                           .aio_nbytes = 6,
                           .aio_lio_opcode = LIO_WRITE};
    struct aiocb *list[] = {&listed, NULL};
    NEED(aio_read(&in) == 0);
    give(&ends, "12345");
    aio_finish(&in, 5);
    NEED(aio_write(&out) == 0);
    aio_finish(&out, 5);
    NEED(lio_listio(LIO_WAIT, list, 2, NULL) == 0);
    aio_finish(&listed, 6);
    take(&ends, "replylisted");
    account(&ends, 5, 11);
    NEED(close(ends.server) == 0);
}

static void pass_on(int to, int fd)
{
    char control[CMSG_SPACE(sizeof fd)] = "", byte = 0;
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof control};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    *head = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    head->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(head), &fd, sizeof fd);
    NEED(sendmsg(to, &message, 0) == 1);
}

static int passed_on(int from)
{
    int fd;
    char control[CMSG_SPACE(sizeof fd)] = "", byte;
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof control};
    NEED(recvmsg(from, &message, 0) == 1 && CMSG_FIRSTHDR(&message));
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    return fd;
}

// A worker gets connections by SCM_RIGHTS, one after the other and, but for the first, under a
// number that was a file's.
static void worker(int from, int rounds)
{
    char a[8];
    for (int i = 0; i < rounds; i++) {
        int file = open("/dev/zero", O_RDONLY);
        NEED(read(file, a, 4) == 4);
        if (i % 2)
            NEED(raw(SYS_close, file, 0, 0) == 0);
        int fd = passed_on(from), copy = dup(fd);
        NEED((fd == file) == (i % 2 == 1));
        NEED(read(fd, a, 7) == 7 && write(copy, "reply", 5) == 5);
        close(fd);
        close(copy);
        if (i % 2 == 0)
            close(file);
    }
    _exit(0);
}

static void passes_on(uint16_t port)
{
    enum { ROUNDS = 4 };
    int tube[2], status;
    NEED(socketpair(AF_UNIX, SOCK_STREAM, 0, tube) == 0);
    pid_t pid = fork();
    if (pid == 0)
        worker(tube[1], ROUNDS);
    for (int i = 0; i < ROUNDS; i++) {
        struct ends ends = connected(port);
        char first[2];
        if (i == 3) { // it looks what it is, and hands it on with what is left
            give(&ends, "??");
            NEED(recv(ends.server, first, 2, MSG_WAITALL) == 2);
        }
        pass_on(tube[0], ends.server);
        close(ends.server);
        give(&ends, "request");
        take(&ends, "reply");
        account(&ends, i == 3 ? 9 : 7, 5);
        close(ends.client);
        close(ends.listening);
    }
    NEED(waitpid(pid, &status, 0) == pid && status == 0);
}

// As inetd does: another program, whose standard input and output are the connection.
static void inherits(uint16_t port)
{
    struct ends ends = connected(port);
    char self[PATH_MAX] = "", first[3];
    int status;
    NEED(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
    give(&ends, "abc");
    NEED(recv(ends.server, first, 3, MSG_WAITALL) == 3);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends.server, 0);
        dup2(ends.server, 1);
        execl(self, self, "--scenario", "inherited", "0", (char *)NULL);
        _exit(91);
    }
    close(ends.server);
    give(&ends, "request");
    take(&ends, "reply");
    account(&ends, 10, 5);
    NEED(waitpid(pid, &status, 0) == pid && status == 0);
}

static void inherited(uint16_t port)
{
    char a[8];
    (void)port;
    NEED(recv(0, a, 7, MSG_WAITALL) == 7 && write(1, "reply", 5) == 5);
}

static void forks(uint16_t port)
{
    struct ends ends = connected(port);
    char a[8];
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        NEED(read(ends.server, a, 7) == 7 && write(ends.server, "reply", 5) == 5);
        exit(0);
    }
    give(&ends, "request");
    NEED(waitpid(pid, &status, 0) == pid && status == 0);
    close(ends.server);
    take(&ends, "reply");
    account(&ends, 7, 5);
}

// --- and those whose bytes cannot be known -------------------------------------------------------

static void reads_unseen(uint16_t port)
{
    struct ends ends = connected(port);
    char a[8];
    give(&ends, "request");
    NEED(raw(SYS_read, ends.server, (long)a, 3) == 3);
    NEED(read(ends.server, a, 4) == 4 && write(ends.server, "reply", 5) == 5);
    take(&ends, "reply");
    account(&ends, 0, 5);
    NEED(close(ends.server) == 0);
}

static void writes_unseen(uint16_t port)
{
    struct ends ends = connected(port);
    char a[8];
    give(&ends, "request");
    NEED(read(ends.server, a, 7) == 7);
    NEED(raw(SYS_write, ends.server, (long)"unseen", 6) == 6);
    NEED(write(ends.server, "reply", 5) == 5);
    take(&ends, "unseenreply");
    account(&ends, 7, 0);
    exit(0); // what is open is checked as the program ends
}

// The descriptor is closed unseen, and read on as a file.
static void reads_a_file(uint16_t port)
{
    struct ends ends = connected(port);
    char a[64];
    give(&ends, "request");
    NEED(read(ends.server, a, 7) == 7 && write(ends.server, "reply", 5) == 5);
    take(&ends, "reply");
    account(&ends, 0, 0);
    NEED(raw(SYS_close, ends.server, 0, 0) == 0);
    NEED(raw(SYS_open, (long)"/dev/zero", O_RDONLY, 0) == ends.server);
    rest();
    NEED(read(ends.server, a, sizeof a) == sizeof a);
    NEED(close(ends.server) == 0);
}

static void shares(uint16_t port)
{
    struct ends ends = connected(port);
    char a[8];
    int status;
    give(&ends, "request");
    pid_t pid = fork();
    if (pid == 0) {
        NEED(read(ends.server, a, 3) == 3);
        exit(0);
    }
    NEED(waitpid(pid, &status, 0) == pid && status == 0);
    NEED(read(ends.server, a, 4) == 4); // which the shim takes to be the first ones
    account(&ends, 3, 0);               // the child's
    NEED(close(ends.server) == 0);
}

// A server asks another one where nobody listens, and how that went by the same call again, as
// HAProxy does: the kernel then forgets the connection, and its numbers are no counts any more.
static void is_refused(uint16_t port)
{
    struct ends ends = connected(port);
    struct sockaddr_in nobody = {.sin_family = AF_INET};
    socklen_t bytes = sizeof nobody;
    char a[8];
    int reserved = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    nobody.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    give(&ends, "request");
    NEED(read(ends.server, a, 7) == 7);
    NEED(bind(reserved, (struct sockaddr *)&nobody, sizeof nobody) == 0);
    NEED(getsockname(reserved, (struct sockaddr *)&nobody, &bytes) == 0);
    NEED(connect(made, (struct sockaddr *)&nobody, sizeof nobody) < 0 && errno == EINPROGRESS);
    NEED(poll(&(struct pollfd){.fd = made, .events = POLLOUT}, 1, 10000) == 1);
    NEED(connect(made, (struct sockaddr *)&nobody, sizeof nobody) < 0 && errno == ECONNREFUSED);
    NEED(close(made) == 0);
    account(&ends, 7, 0);
    NEED(close(ends.server) == 0);
}

struct scenario {
    const char *name;
    void (*run)(uint16_t port);
    uint64_t doubtful; // connections
    uint64_t behind;   // descriptors closed behind the shim's back
    bool peers;        // the connections that it makes are watched, too
};

static const struct scenario scenarios[] = {
    {"closes_by_syscall", closes_by_syscall, 0, 0, false},
    {"moves_by_syscall", moves_by_syscall, 0, 0, false},
    {"moves_by_vectors", moves_by_vectors, 0, 0, false},
    {"prints", prints, 0, 0, false},
    {"moves_by_aio", moves_by_aio, 0, 0, false},
    {"passes_on", passes_on, 0, 0, false},
    {"inherits", inherits, 0, 0, false},
    {"forks", forks, 0, 0, false},
    {"is_refused", is_refused, 0, 0, true},
    {"reads_unseen", reads_unseen, 1, 0, false},
    {"writes_unseen", writes_unseen, 1, 0, false},
    {"reads_a_file", reads_a_file, 1, 1, false},
    {"shares", shares, 1, 0, false},
    {"inherited", inherited, 0, 0, false}, // only as another's second half
};
enum { SCENARIOS = sizeof scenarios / sizeof *scenarios - 1 };

// --- the test ------------------------------------------------------------------------------------

// Every byte of one direction once, in order, whichever processes took turns. Returns how many.
static uint64_t follow(const struct logs *logs, unsigned peer_port, enum call_kind kind)
{
    const struct call *calls = logs->calls.records;
    const struct connection *connections = logs->connections.records;
    uint64_t at = 0;
    for (size_t i = 0; i < logs->calls.count; i++) {
        if (calls[i].kind != (uint8_t)kind)
            continue;
        assert_in_range(calls[i].connection, 1, logs->connections.count);
        assert_int_equal(connections[calls[i].connection - 1].id, calls[i].connection);
        if (connections[calls[i].connection - 1].peer_port != peer_port)
            continue;
        assert_int_equal(calls[i].offset, at);
        at += calls[i].length;
    }
    return at;
}

static void totals_check(const struct places *places, char *totals)
{
    struct logs logs;
    logs_open(&logs, places);
    logs_check(&logs);
    for (char *line; (line = strsep(&totals, "\n")) && *line;) {
        unsigned port, in, out;
        assert_int_equal(sscanf(line, "%u %u %u", &port, &in, &out), 3);
        assert_int_equal(follow(&logs, port, CALL_RECEIVE), in);
        assert_int_equal(follow(&logs, port, CALL_SEND), out);
    }
    logs_close(&logs);
}

static void test_scenario(void **state)
{
    const struct scenario *scenario = *state;
    struct places places;
    places_init(&places, scenario->name);
    struct error err = {0};
    char text[PORT_TEXT_BYTES], self[PATH_MAX] = "", totals[1024] = "";
    const uint16_t port = claim_port(text);
    struct message_collector *collector = NULL;
    struct message_stats stats;
    assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
    if (message_collector_create(places.rings, 4 << 20, &port, 1, &collector, &err) < 0)
        fail_msg("%s", err.text);
    if (scenario->peers)
        message_collector_watch_peers(collector);
    message_collector_enable(collector);
    const char *argv[] = {self, "--scenario", scenario->name, text, NULL};
    const char *environment[] = {places.preload, places.environment,
                                 "ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0", NULL};
    struct process_place place = {.environment = environment};
    if (process_run(argv, &place, 60000, totals, sizeof totals, &err) < 0)
        fail_msg("%s: %s", scenario->name, err.text);
    if (message_collector_finish(collector, places.out, &stats, &err) < 0)
        fail_msg("%s", err.text);
    print_message("%s: %llu comparisons, %llu even; %s\n", scenario->name,
                  (unsigned long long)stats.checks, (unsigned long long)stats.checks_agreed,
                  stats.warning);
    assert_int_equal(stats.doubtful_connections, scenario->doubtful);
    assert_int_equal(stats.doubtful > 0, scenario->doubtful > 0);
    assert_int_equal(stats.dropped, stats.doubtful);
    assert_int_equal(stats.behind, scenario->behind);
    assert_int_equal(strstr(stats.warning, "are not those that the kernel counted") != NULL,
                     scenario->doubtful > 0);
    totals_check(&places, totals);
    assert_true(stats.checks > 0);
    assert_true(scenario->doubtful == 0 || stats.checks > stats.checks_agreed);
    message_stats_free(&stats);
    message_collector_free(collector);
    places_clear(&places);
}

int main(int argc, char **argv)
{
    struct CMUnitTest tests[SCENARIOS];
    for (size_t i = 0; argc == 4 && i <= SCENARIOS; i++)
        if (strcmp(argv[2], scenarios[i].name) == 0) {
            scenarios[i].run((uint16_t)atoi(argv[3]));
            return 0;
        }
    for (size_t i = 0; i < SCENARIOS; i++)
        tests[i] = (struct CMUnitTest){.name = scenarios[i].name,
                                       .test_func = test_scenario,
                                       .initial_state = (void *)(uintptr_t)&scenarios[i]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
