// SPDX-License-Identifier: MIT
//
// An application must not be able to tell that the shim is there. This program runs a long
// sequence of socket calls, ordinary and perverse, and prints what each returned, what errno was
// afterwards and what data came; then the same with the shim loaded and recording, with the shim
// loaded and no collector, and with an unusable directory. All outputs must be equal, and the
// recording must account for every byte that the sequence says it moved.
// Runs beside others: what it compares is what calls return, not when.
#include "tests/shim/shim_test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

#include "base/process.h"

extern ssize_t __read_chk(int fd, void *buffer, size_t bytes, size_t room);
extern ssize_t __recv_chk(int fd, void *buffer, size_t bytes, size_t room, int flags);
extern int __poll_chk(struct pollfd *fds, nfds_t count, int timeout_ms, size_t room);

enum { ERRNO_BEFORE = 4242 };

// Runs one call and says all that the application can see of it.
#define SEE(call)                                                                                  \
    ({                                                                                             \
        errno = ERRNO_BEFORE;                                                                      \
        long result_ = (long)(call);                                                               \
        int after_ = errno;                                                                        \
        printf("%s = %ld errno %d\n", #call, result_, after_);                                     \
        result_;                                                                                   \
    })

struct pair {
    int client, server;
};

static int listener(int family, struct sockaddr_storage *address, socklen_t *bytes)
{
    memset(address, 0, sizeof *address);
    address->ss_family = (sa_family_t)family;
    *bytes = sizeof(struct sockaddr_in6);
    if (family == AF_INET) {
        ((struct sockaddr_in *)address)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        *bytes = sizeof(struct sockaddr_in);
    } else {
        ((struct sockaddr_in6 *)address)->sin6_addr = in6addr_loopback;
    }
    for (int tries = 0; tries < 100; tries++) { // another thread's connect may take the same port
        int fd = socket(family, SOCK_STREAM, 0), one = 1;
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one); // many ports rest in TIME_WAIT
        if (bind(fd, (struct sockaddr *)address, *bytes) == 0 && listen(fd, 64) == 0 &&
            getsockname(fd, (struct sockaddr *)address, bytes) == 0)
            return fd;
        perror("a port to listen on");
        close(fd);
    }
    exit(90);
}

static struct pair connected(void)
{
    struct sockaddr_storage address;
    socklen_t bytes;
    int listening = listener(AF_INET, &address, &bytes);
    struct pair pair = {.client = socket(AF_INET, SOCK_STREAM, 0)};
    if (connect(pair.client, (struct sockaddr *)&address, bytes) < 0)
        exit(91);
    pair.server = accept(listening, NULL, NULL);
    if (pair.server < 0)
        exit(92);
    int yes = 1;
    setsockopt(pair.client, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    setsockopt(pair.server, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    close(listening);
    return pair;
}

// Tells the test how many bytes the server side of this connection took and gave.
static void account(const struct pair *pair, unsigned in, unsigned out)
{
    struct sockaddr_in address, peer; // the port lies in the same place for IPv6
    struct sockaddr_storage whole;
    socklen_t bytes = sizeof whole;
    getsockname(pair->client, (struct sockaddr *)&whole, &bytes);
    memcpy(&address, &whole, sizeof address);
    bytes = sizeof whole;
    getpeername(pair->client, (struct sockaddr *)&whole, &bytes);
    memcpy(&peer, &whole, sizeof peer);
    const char *path = getenv("SEQUENCE_TOTALS");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (!file)
        return;
    fprintf(file, "%u %u %u %u\n", ntohs(address.sin_port), ntohs(peer.sin_port), in, out);
    fclose(file);
}

static void pair_close(struct pair *pair)
{
    SEE(close(pair->server));
    SEE(close(pair->client));
}

// Until so many bytes, or the end, or such an event, have arrived: even loopback takes its time.
static void arrive(int fd, int bytes)
{
    for (int there = 0; there < bytes;)
        ioctl(fd, FIONREAD, &there);
}

static void happen(int fd, short event)
{
    struct pollfd one = {.fd = fd, .events = event};
    poll(&one, 1, 5000);
}

static void give(int fd, const char *text)
{
    if (send(fd, text, strlen(text), 0) != (ssize_t)strlen(text))
        exit(93);
}

static void see_text(const char *text, size_t length)
{
    printf("  '%.*s'\n", (int)length, text);
}

static void sequence_receive(void)
{
    struct pair p = connected();
    char a[64] = "", b[64] = "";
    give(p.client, "abcdefghijklmnopqrstuvwxyz0123456789");
    SEE(recv(p.server, a, 3, MSG_PEEK));
    SEE(recv(p.server, a, 3, 0));
    see_text(a, 3);
    SEE(read(p.server, a, 2));
    see_text(a, 2);
    SEE(recvfrom(p.server, a, 4, 0, NULL, NULL));
    struct sockaddr_storage from;
    socklen_t from_bytes = sizeof from;
    SEE(recvfrom(p.server, a, 1, 0, (struct sockaddr *)&from, &from_bytes));
    printf("  from %u bytes\n", from_bytes);
    struct iovec parts[2] = {{a, 2}, {b, 3}};
    SEE(readv(p.server, parts, 2));
    see_text(a, 2);
    see_text(b, 3);
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    SEE(recvmsg(p.server, &message, MSG_PEEK));
    SEE(recvmsg(p.server, &message, 0));
    printf("  flags %x\n", message.msg_flags);
    SEE(__read_chk(p.server, a, 1, sizeof a));
    SEE(__recv_chk(p.server, a, 1, sizeof a, 0));
    struct mmsghdr many[2] = {{.msg_hdr = {.msg_iov = parts, .msg_iovlen = 1}},
                              {.msg_hdr = {.msg_iov = parts + 1, .msg_iovlen = 1}}};
    SEE(recvmmsg(p.server, many, 2, 0, NULL));
    printf("  %u %u\n", many[0].msg_len, many[1].msg_len);
    SEE(recv(p.server, NULL, 2, MSG_TRUNC)); // thrown away, but off the stream
    SEE(recv(p.server, a, 0, 0));
    SEE(read(p.server, a, 0));
    SEE(recv(p.server, a, sizeof a, MSG_DONTWAIT));
    see_text(a, 9);
    SEE(recv(p.server, a, 1, MSG_DONTWAIT));
    SEE(recv(p.server, a, 1, MSG_DONTWAIT | MSG_ERRQUEUE));
    SEE(recvmmsg(p.server, many, 2, MSG_DONTWAIT, NULL));
    account(&p, 36, 0);
    SEE(shutdown(p.client, SHUT_WR));
    SEE(recv(p.server, a, 1, 0));
    SEE(readv(p.server, parts, 2));
    pair_close(&p);
}

static void sequence_send(void)
{
    struct pair p = connected();
    char a[64];
    SEE(send(p.server, "abc", 3, 0));
    SEE(write(p.server, "defg", 4));
    SEE(sendto(p.server, "hi", 2, 0, NULL, 0));
    struct iovec parts[2] = {{"jk", 2}, {"lmn", 3}};
    SEE(writev(p.server, parts, 2));
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    SEE(sendmsg(p.server, &message, 0));
    struct mmsghdr many[2] = {{.msg_hdr = {.msg_iov = parts, .msg_iovlen = 1}},
                              {.msg_hdr = {.msg_iov = parts, .msg_iovlen = 2}}};
    SEE(sendmmsg(p.server, many, 2, 0));
    SEE(send(p.server, "", 0, 0));
    SEE(write(p.server, "", 0));
    FILE *file = tmpfile();
    fputs("from a file", file);
    fflush(file);
    off_t offset = 2;
    SEE(sendfile(p.server, fileno(file), &offset, 6));
    printf("  offset %ld\n", (long)offset);
    int tube[2];
    SEE(pipe(tube));
    SEE(write(tube[1], "spliced", 7));
    SEE(splice(tube[0], NULL, p.server, NULL, 7, 0));
    SEE(recv(p.client, a, 26, MSG_WAITALL));
    see_text(a, 26);
    arrive(p.client, 13);
    SEE(recv(p.client, a, sizeof a, MSG_DONTWAIT));
    SEE(send(p.client, "back", 4, 0));
    SEE(splice(p.server, NULL, tube[1], NULL, 4, 0));
    fclose(file);
    close(tube[0]);
    close(tube[1]);
    account(&p, 4, 39);
    pair_close(&p);
}

static void sequence_errors(void)
{
    char a[16];
    struct iovec none = {NULL, 8};
    struct msghdr message = {.msg_iov = &none, .msg_iovlen = 1};
    int missing = 9999, beyond = 2000000;
    void *volatile nowhere = NULL; // volatile: the compiler shall not see what is wrong
    volatile int negative = -1;
    SEE(read(-1, a, 1));
    SEE(read(missing, a, 1));
    SEE(read(beyond, a, 1));
    SEE(recv(missing, a, 1, 0));
    SEE(recvmsg(missing, &message, 0));
    SEE(write(-1, a, 1));
    SEE(sendmsg(-1, &message, 0));
    SEE(close(-1));
    SEE(close(missing));
    SEE(close(beyond));
    SEE(dup(-1));
    SEE(dup2(-1, 5));
    SEE(dup2(missing, beyond));
    SEE(accept(-1, NULL, NULL));
    SEE(fcntl(-1, F_DUPFD, 0));
    SEE(epoll_wait(-1, nowhere, 1, 0));
    SEE(poll(NULL, 0, 0));
    SEE(select(-1, NULL, NULL, NULL, NULL));
    struct pair p = connected();
    SEE(accept(p.server, NULL, NULL));
    SEE(send(p.client, "xyz", 3, 0));
    SEE(recv(p.server, nowhere, 2, 0));
    SEE(readv(p.server, &none, 1));
    SEE(recvmsg(p.server, &message, 0));
    SEE(recvmsg(p.server, NULL, 0));
    SEE(write(p.server, nowhere, 2));
    struct iovec parts[1025];
    for (int i = 0; i < 1025; i++)
        parts[i] = (struct iovec){a, 1};
    SEE(readv(p.server, parts, 1025));
    SEE(writev(p.server, parts, 1025));
    SEE(readv(p.server, parts, 1024));
    SEE(writev(p.server, parts, 1024));
    SEE(readv(p.server, parts, negative));
    SEE(recv(p.server, a, 1, MSG_OOB));
    SEE(dup2(p.server, -1));
    SEE(dup3(p.server, p.server, 0));
    SEE(dup2(p.server, p.server));
    SEE(dup2(missing, p.server)); // must leave it as it was
    SEE(send(p.client, "still", 5, 0));
    SEE(recv(p.server, a, 5, 0));
    account(&p, 8, 1024);
    SEE(close(p.client));
    happen(p.server, 0); // the peer's reset
    SEE(send(p.server, a, 1, MSG_NOSIGNAL));
    SEE(send(p.server, a, 1, MSG_NOSIGNAL));
    SEE(close(p.server));
    SEE(close(p.server));
    SEE(recv(p.server, a, 1, 0));
}

static int interrupted_fd;
static void on_alarm(int number)
{
    (void)number;
    char byte;
    int saved = errno;
    if (recv(interrupted_fd, &byte, 1, MSG_DONTWAIT) == 1)
        (void)!write(interrupted_fd, &byte, 1);
    errno = saved;
}

static void sequence_signals(void)
{
    struct pair p = connected(), q = connected();
    char a[16];
    interrupted_fd = q.server;
    struct sigaction action = {.sa_handler = on_alarm};
    sigaction(SIGALRM, &action, NULL);
    struct itimerval soon = {.it_value = {.tv_usec = 20000}};
    give(q.client, "ab");
    setitimer(ITIMER_REAL, &soon, NULL);
    SEE(recv(p.server, a, 1, 0)); // EINTR
    struct epoll_event event;
    int epoll = epoll_create1(0);
    setitimer(ITIMER_REAL, &soon, NULL);
    SEE(epoll_wait(epoll, &event, 1, -1));
    close(epoll);
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, NULL);
    struct timeval wait = {.tv_usec = 60000};
    setsockopt(p.server, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    SEE(read(p.server, a, 1)); // EAGAIN after the timeout
    SEE(recv(q.client, a, 2, MSG_WAITALL));
    see_text(a, 2);
    wait = (struct timeval){0};
    setsockopt(p.server, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    // The handler's calls may fall anywhere between ours.
    soon.it_interval.tv_usec = 500;
    soon.it_value.tv_usec = 500;
    setitimer(ITIMER_REAL, &soon, NULL);
    unsigned moved = 0;
    struct timespec begun, now;
    clock_gettime(CLOCK_MONOTONIC, &begun);
    do {
        if (send(q.client, "z", 1, 0) != 1 || send(p.client, "y", 1, 0) != 1 ||
            recv(p.server, a, 1, 0) != 1 || send(p.server, a, 1, 0) != 1 ||
            recv(p.client, a, 1, 0) != 1)
            exit(95);
        moved++;
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (moved < 20000 && now.tv_sec - begun.tv_sec < 3);
    soon = (struct itimerval){0};
    setitimer(ITIMER_REAL, &soon, NULL);
    account(&p, moved, moved);
    pair_close(&p);
    pair_close(&q);
}

static void sequence_duplicates(void)
{
    struct pair p = connected(), q = connected();
    char a[16];
    int one = (int)SEE(dup(p.server));
    int two = (int)SEE(fcntl(p.server, F_DUPFD, 100));
    int three = (int)SEE(fcntl(p.server, F_DUPFD_CLOEXEC, 100));
    SEE(dup3(p.server, 120, O_CLOEXEC));
    SEE(fcntl(120, F_GETFD));
    give(p.client, "abcdefgh");
    SEE(recv(one, a, 1, 0));
    SEE(close(p.server));
    SEE(read(two, a, 2));
    SEE(recv(p.server, a, 1, 0)); // closed
    SEE(recv(three, a, 1, 0));
    SEE(dup2(120, q.server)); // closes q's server side
    SEE(recv(q.client, a, 1, 0));
    SEE(read(q.server, a, 1));
    see_text(a, 1);
    SEE(send(q.server, "123", 3, 0));
    SEE(close_range((unsigned)two, (unsigned)two, 0));
    SEE(close_range((unsigned)three, 120, (int)CLOSE_RANGE_CLOEXEC));
    SEE(recv(three, a, 1, 0));
    SEE(fcntl(p.client, F_GETFL));
    SEE(fcntl(p.client, F_SETFL, O_NONBLOCK));
    account(&p, 8, 3);
    SEE(close_range((unsigned)three, 200, 0));
    SEE(recv(one, a, 16, 0));
    SEE(close(one));
    SEE(close(q.server));
    arrive(p.client, 3);
    SEE(recv(p.client, a, 16, 0));
    happen(p.client, POLLRDHUP);
    SEE(recv(p.client, a, 16, 0));
    SEE(close(p.client));
    SEE(close(q.client));
    // The descriptor's next user is nobody's connection.
    struct pair r = connected();
    int number = r.server;
    SEE(close(r.server) == 0 && open("/dev/zero", O_RDONLY) == number);
    SEE(read(number, a, 5));
    SEE(close(number));
    SEE(close(r.client));
}

static void sequence_processes(void)
{
    struct pair p = connected();
    char a[16];
    int status;
    give(p.client, "abcdef");
    SEE(recv(p.server, a, 2, 0));
    fflush(stdout);
    pid_t child = vfork();
    if (child == 0) { // what it closes is its own
        close(p.server);
        dup2(p.client, p.server);
        close(p.client);
        closefrom(3);
        execlp("true", "true", (char *)NULL);
        _exit(1);
    }
    SEE(waitpid(child, &status, 0) == child && status == 0);
    SEE(recv(p.server, a, 1, 0));
    fflush(stdout);
    child = fork();
    if (child == 0) {
        SEE(recv(p.server, a, 1, 0));
        SEE(send(p.server, "from the child", 14, 0));
        SEE(close(p.server));
        fflush(stdout);
        _exit(7);
    }
    SEE(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 7);
    SEE(recv(p.client, a, 16, 0));
    see_text(a, 14);
    SEE(recv(p.server, a, 2, 0));
    see_text(a, 2);
    char *argv[] = {"true", NULL};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addclose(&actions, p.server);
    SEE(posix_spawnp(&child, "true", &actions, NULL, argv, environ));
    posix_spawn_file_actions_destroy(&actions);
    SEE(waitpid(child, &status, 0) == child && status == 0);
    account(&p, 5, 0); // the child's byte is in the child's own book
    pair_close(&p);
}

static void sequence_waits(void)
{
    struct pair p = connected();
    char a[16];
    struct epoll_event event = {.events = EPOLLIN}, got[4];
    int epoll = (int)SEE(epoll_create1(0));
    SEE(epoll_ctl(epoll, EPOLL_CTL_ADD, p.server, &event));
    SEE(epoll_wait(epoll, got, 4, 0));
    SEE(epoll_wait(epoll, got, 0, 0));
    give(p.client, "abc");
    SEE(epoll_wait(epoll, got, 4, 1000));
    SEE(recv(p.server, a, 1, 0));
    SEE(epoll_pwait(epoll, got, 4, 1000, NULL));
    struct timespec second = {.tv_sec = 1};
    SEE(epoll_pwait2(epoll, got, 4, &second, NULL));
    struct pollfd one = {.fd = p.server, .events = POLLIN};
    SEE(poll(&one, 1, 1000));
    SEE(__poll_chk(&one, 1, 1000, sizeof one));
    SEE(ppoll(&one, 1, &second, NULL));
    printf("  %x, %ld s left\n", one.revents, (long)second.tv_sec);
    fd_set set;
    FD_ZERO(&set);
    FD_SET(p.server, &set);
    struct timeval limit = {.tv_sec = 1};
    SEE(select(p.server + 1, &set, NULL, NULL, &limit));
    SEE(pselect(p.server + 1, &set, NULL, NULL, &second, NULL));
    SEE(recv(p.server, a, 16, 0));
    SEE(poll(&one, 1, 1));
    SEE(close(epoll));
    account(&p, 3, 0);
    pair_close(&p);
}

// The application's own stamps and error queue.
static void sequence_stamps(void)
{
    struct pair p = connected();
    char a[16], control[512];
    int flags = SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_TX_SOFTWARE |
                SOF_TIMESTAMPING_SOFTWARE | SOF_TIMESTAMPING_OPT_ID | SOF_TIMESTAMPING_OPT_TSONLY;
    SEE(setsockopt(p.server, SOL_SOCKET, SO_TIMESTAMPING, &flags, sizeof flags));
    struct iovec part = {a, sizeof a};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof control};
    SEE(recvmsg(p.server, &message, MSG_ERRQUEUE | MSG_DONTWAIT));
    SEE(send(p.server, "stamped", 7, 0));
    struct pollfd one = {.fd = p.server};
    SEE(poll(&one, 1, 1000));
    message.msg_controllen = sizeof control;
    SEE(recvmsg(p.server, &message, MSG_ERRQUEUE));
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c))
        printf("  level %d type %d, %zu bytes\n", c->cmsg_level, c->cmsg_type, c->cmsg_len);
    give(p.client, "hello");
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL); // stamping is switched on lazily
    give(p.client, "again");
    arrive(p.server, 10);
    message.msg_controllen = sizeof control;
    SEE(recvmsg(p.server, &message, 0));
    printf("  control %d, flags %x\n", message.msg_controllen > 0, message.msg_flags);
    message.msg_controllen = 4; // too short for anything
    give(p.client, "x");
    SEE(recvmsg(p.server, &message, 0));
    printf("  control %zu, flags %x\n", message.msg_controllen, message.msg_flags);
    account(&p, 11, 7);
    pair_close(&p);
}

static void sequence_accepts(void)
{
    struct sockaddr_storage address, peer;
    socklen_t bytes, peer_bytes;
    for (int family = AF_INET; family <= AF_INET6; family += AF_INET6 - AF_INET) {
        int listening = listener(family, &address, &bytes);
        SEE(accept4(listening, NULL, NULL, 0x40000000));
        SEE(fcntl(listening, F_SETFL, O_NONBLOCK));
        SEE(accept(listening, NULL, NULL));
        for (socklen_t room = 0; room <= sizeof peer; room += sizeof peer / 8) {
            int client = socket(family, SOCK_STREAM, 0);
            if (connect(client, (struct sockaddr *)&address, bytes) < 0)
                exit(96);
            peer_bytes = room;
            happen(listening, POLLIN);
            int server =
                (int)SEE(accept4(listening, (struct sockaddr *)&peer, &peer_bytes, SOCK_NONBLOCK));
            printf("  %u bytes\n", peer_bytes);
            SEE(fcntl(server, F_GETFL));
            SEE(read(server, &peer, 1));
            struct pair p = {client, server};
            account(&p, 0, 0);
            pair_close(&p);
        }
        // Gone before it is accepted.
        int client = socket(family, SOCK_STREAM, 0);
        if (connect(client, (struct sockaddr *)&address, bytes) < 0)
            exit(97);
        struct linger reset = {.l_onoff = 1};
        setsockopt(client, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        close(client);
        happen(listening, POLLIN);
        int server = (int)SEE(accept(listening, NULL, NULL));
        happen(server, 0);
        SEE(recv(server, &peer, 1, 0));
        SEE(close(server));
        SEE(close(listening));
    }
    int ends[2]; // not TCP: not watched
    SEE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
    SEE(write(ends[0], "unix", 4));
    SEE(read(ends[1], &peer, 16));
    close(ends[0]);
    close(ends[1]);
    struct pair p = connected();
    give(p.client, "one line\nanother\n");
    FILE *file = fdopen(p.server, "r+");
    char line[32];
    SEE(fgets(line, sizeof line, file) != NULL);
    printf("  %s", line);
    SEE(fclose(file));
    SEE(close(p.client));
}

// Many short connections on few descriptor numbers, from threads that come and go.
static void *echo_thread(void *argument)
{
    unsigned seed = *(unsigned *)argument;
    for (int i = 0; i < 40; i++) {
        struct pair p = connected();
        unsigned total = 0;
        for (int n = rand_r(&seed) % 8; n >= 0; n--) {
            char text[300], back[300];
            size_t length = 1 + (size_t)rand_r(&seed) % sizeof text;
            memset(text, 'a' + n, length);
            if (send(p.client, text, length, 0) != (ssize_t)length ||
                recv(p.server, back, length, MSG_WAITALL) != (ssize_t)length ||
                memcmp(text, back, length) != 0 ||
                write(p.server, back, length) != (ssize_t)length ||
                recv(p.client, text, length, MSG_WAITALL) != (ssize_t)length)
                exit(98);
            total += (unsigned)length;
        }
        account(&p, total, total);
        close(p.server);
        close(p.client);
    }
    return NULL;
}

static void sequence_threads(void)
{
    for (int round = 0; round < 3; round++) {
        pthread_t threads[6];
        unsigned seeds[6];
        for (unsigned i = 0; i < 6; i++) {
            seeds[i] = 100 * (unsigned)round + i;
            pthread_create(&threads[i], NULL, echo_thread, &seeds[i]);
        }
        for (unsigned i = 0; i < 6; i++)
            pthread_join(threads[i], NULL);
    }
    printf("threads done\n");
}

// A thread blocked in recv while another closes the descriptor and its number finds a new user.
static void *blocked_thread(void *argument)
{
    char a[16];
    ssize_t got = recv(*(int *)argument, a, sizeof a, 0);
    printf("blocked = %zd\n", got);
    return NULL;
}

static void sequence_late(void)
{
    struct pair old = connected();
    int number = old.server;
    pthread_t thread;
    pthread_create(&thread, NULL, blocked_thread, &number);
    nanosleep(&(struct timespec){.tv_nsec = 30000000}, NULL);
    SEE(close(old.server));
    struct pair fresh = connected(); // takes the lowest numbers, the old server's among them
    give(old.client, "late");
    pthread_join(thread, NULL);
    give(fresh.client, "fresh!");
    char a[16];
    SEE(recv(fresh.server, a, sizeof a, 0));
    account(&fresh, 6, 0);
    pair_close(&fresh);
    SEE(close(old.client));
}

static int sequence(void)
{
    setvbuf(stdout, NULL, _IOFBF, 1 << 16);
    sequence_receive();
    sequence_send();
    sequence_errors();
    sequence_signals();
    sequence_duplicates();
    sequence_processes();
    sequence_waits();
    sequence_stamps();
    sequence_accepts();
    sequence_threads();
    sequence_late();
    printf("end\n");
    fflush(stdout);
    return 0;
}

// --- the test: the sequence in four surroundings --------------------------------------------

static char *sequence_output(const char *const *environment)
{
    enum { ROOM = 1 << 18 };
    char *out = malloc(ROOM);
    assert_non_null(out);
    struct error err = {0};
    const char *argv[] = {"/proc/self/exe", "--sequence", NULL};
    char self[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    assert_true(length > 0);
    self[length] = '\0';
    argv[0] = self;
    struct process_place place = {.environment = environment};
    if (process_run(argv, &place, 60000, out, ROOM, &err) < 0)
        fail_msg("%s", err.text);
    assert_true(strlen(out) < ROOM - 1);
    assert_non_null(strstr(out, "\nend\n"));
    return out;
}

static void outputs_equal(char *expected, char *actual)
{
    char *rest_expected = expected, *rest_actual = actual;
    for (;;) {
        char *a = strsep(&rest_expected, "\n"), *b = strsep(&rest_actual, "\n");
        if (!a || !b) {
            assert_true(!a && !b);
            return;
        }
        assert_string_equal(a, b);
    }
}

static const char asan[] = "ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0";

static void compare_with(const char *const *environment)
{
    char *plain = sequence_output((const char *const[]){asan, NULL});
    char *shimmed = sequence_output(environment);
    outputs_equal(plain, shimmed);
    free(plain);
    free(shimmed);
}

// Each connection that the sequence accounted for is in the log with just these bytes.
static void totals_check(const struct places *places, const char *path)
{
    struct logs logs;
    logs_open(&logs, places);
    logs_check(&logs);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    unsigned port, local, in, out;
    size_t checked = 0;
    while (fscanf(file, "%u %u %u %u", &port, &local, &in, &out) == 4) {
        const struct connection *connections = logs.connections.records;
        const struct connection *found = NULL;
        for (size_t i = 0; i < logs.connections.count; i++) // the parent's entry, not the child's
            if (connections[i].peer_port == port && connections[i].local_port == local &&
                logs_count(&logs, connections[i].id, CALL_ACCEPT) == 1)
                found = &connections[i];
        assert_non_null(found);
        assert_int_equal(logs_follow(&logs, found->id, CALL_RECEIVE, 0), in);
        assert_int_equal(logs_follow(&logs, found->id, CALL_SEND, 0), out);
        assert_int_equal(logs_count(&logs, found->id, CALL_CLOSE), 1);
        checked++;
    }
    fclose(file);
    assert_true(checked > 720);
    size_t stamped = 0;
    const struct call *calls = logs.calls.records;
    for (size_t i = 0; i < logs.calls.count; i++)
        stamped += calls[i].rx_ns != 0;
    assert_true(stamped >= 1); // sequence_stamps asked the kernel for them
    printf("%zu connections accounted for, %zu calls\n", checked, logs.calls.count);
    logs_close(&logs);
}

struct poller {
    struct message_collector *collector;
    _Atomic bool stop;
    bool failed;
};

static void *poller_run(void *argument)
{
    struct poller *poller = argument;
    struct error err = {0};
    while (!poller->stop) {
        poller->failed |= message_collector_poll(poller->collector, &err) < 0;
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    return NULL;
}

static void test_recording(void **state)
{
    (void)state;
    struct places places;
    places_init(&places, "semantics");
    char totals[160], totals_path[140];
    snprintf(totals_path, sizeof totals_path, "%s/totals", places.out);
    snprintf(totals, sizeof totals, "SEQUENCE_TOTALS=%s", totals_path);
    struct error err = {0};
    struct message_collector *collector = NULL;
    if (message_collector_create(places.rings, 0, NULL, 0, &collector, &err) < 0)
        fail_msg("%s", err.text);
    message_collector_enable(collector);
    struct poller poller = {.collector = collector};
    pthread_t thread;
    pthread_create(&thread, NULL, poller_run, &poller);
    compare_with((const char *const[]){places.preload, places.environment, totals, asan, NULL});
    poller.stop = true;
    pthread_join(thread, NULL);
    assert_false(poller.failed);
    struct message_stats stats;
    if (message_collector_finish(collector, places.out, &stats, &err) < 0)
        fail_msg("%s", err.text);
    // Signal handlers that fall into the writing of a record are lost, and counted.
    assert_int_equal(stats.dropped, stats.dropped_without_ring);
    assert_int_equal(stats.rejected, 0);
    assert_true(stats.late >= 1);                  // sequence_late
    assert_int_equal(stats.unseen_connections, 1); // fdopen
    totals_check(&places, totals_path);
    message_stats_free(&stats);
    message_collector_free(collector);
    places_clear(&places);
}

static void test_armed_only(void **state)
{
    (void)state;
    struct places places;
    places_init(&places, "armed");
    struct error err = {0};
    struct message_collector *collector = NULL;
    if (message_collector_create(places.rings, 4096, NULL, 0, &collector, &err) < 0)
        fail_msg("%s", err.text);
    compare_with((const char *const[]){places.preload, places.environment, asan, NULL});
    struct message_stats stats;
    if (message_collector_finish(collector, places.out, &stats, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(stats.calls, 0);
    assert_true(stats.process_count >= 1);
    message_stats_free(&stats);
    message_collector_free(collector);
    places_clear(&places);
}

// Rings of 64 entries that nobody empties: everything is dropped, nothing waits.
static void test_full_rings(void **state)
{
    (void)state;
    struct places places;
    places_init(&places, "full");
    struct error err = {0};
    struct message_collector *collector = NULL;
    if (message_collector_create(places.rings, 4096, NULL, 0, &collector, &err) < 0)
        fail_msg("%s", err.text);
    message_collector_enable(collector);
    compare_with((const char *const[]){places.preload, places.environment, asan, NULL});
    struct message_stats stats;
    if (message_collector_finish(collector, places.out, &stats, &err) < 0)
        fail_msg("%s", err.text);
    assert_true(stats.dropped_full > 100);
    assert_non_null(strstr(stats.warning, "rings were full"));
    struct logs logs;
    logs_open(&logs, &places);
    logs_check(&logs);
    assert_int_equal(logs.calls.header.dropped, stats.dropped);
    logs_close(&logs);
    message_stats_free(&stats);
    message_collector_free(collector);
    places_clear(&places);
}

static void test_inert(void **state)
{
    (void)state;
    struct places places;
    places_init(&places, "inert");
    compare_with((const char *const[]){places.preload, asan, NULL});
    compare_with((const char *const[]){places.preload, places.environment, asan, NULL});
    compare_with((const char *const[]){places.preload, "TAILLIGHT_SHIM_DIR=/dev/null", asan, NULL});
    compare_with((const char *const[]){places.preload, "TAILLIGHT_SHIM_DIR=/proc", asan, NULL});
    places_clear(&places);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--sequence") == 0)
        return sequence();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recording),
        cmocka_unit_test(test_armed_only),
        cmocka_unit_test(test_full_rings),
        cmocka_unit_test(test_inert),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
