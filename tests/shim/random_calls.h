// SPDX-License-Identifier: MIT
//
// A random sequence of calls on sockets, files and descriptors: the same for the same seed,
// whatever is loaded into the process. Each call's result, errno and data are printed. What makes
// results depend on time is kept out: a call that takes bytes waits until those under way have
// arrived, one that would block is not made, and the other side of an end is waited for. Truth, by
// the calls' own results: how many bytes each end of each connection took and gave.
#ifndef TESTS_SHIM_RANDOM_CALLS_H
#define TESTS_SHIM_RANDOM_CALLS_H

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/hash.h"

enum {
    LINKS = 8,        // connections at once
    ALIASES = 4,      // descriptors of an end
    MOST_BYTES = 300, // of a call
    MOST_PENDING = 8000,
    PATIENCE_S = 20,
    ERRNO_BEFORE_CALL = 4242,
};

struct end {
    int fds[ALIASES], aliases; // 0 aliases: closed
    uint64_t in, out;          // bytes that it took and gave
    uint16_t port;
    bool nonblocking, finished; // finished: it gives no more
};

struct link {
    struct end ends[2]; // 0: that accepted, 1: that connected
    bool live, reset;
};

struct world {
    uint64_t random;
    unsigned
        bare; // of a thousand calls that move bytes, how many are the program's own instructions
    struct link links[LINKS];
    int pipe[2], file, epoll, pair[2], listening;
    struct sockaddr_in address; // of the listening one
    FILE *totals;
    char bytes[1 << 16];
};

static inline unsigned pick(struct world *world, unsigned below)
{
    world->random += 0x9e3779b97f4a7c15ULL;
    return (unsigned)(hash64(world->random) >> 32) % below;
}

// One call, and all that the program can see of it but the data.
#define CALL(name, call)                                                                           \
    ({                                                                                             \
        errno = ERRNO_BEFORE_CALL;                                                                 \
        long result_ = (long)(call);                                                               \
        int after_ = errno;                                                                        \
        printf("%s %ld %d\n", name, result_, after_);                                              \
        result_;                                                                                   \
    })

static inline void show(const char *bytes, long count)
{
    uint64_t sum = 1469598103934665603ULL;
    for (long i = 0; i < count; i++)
        sum = (sum ^ (unsigned char)bytes[i]) * 1099511628211ULL;
    printf("  %016llx\n", (unsigned long long)sum);
}

static inline int any_fd(struct world *world, const struct end *end)
{
    return end->fds[pick(world, (unsigned)end->aliases)];
}

static inline int64_t seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

// Until all that the other end gave has arrived.
static inline void settle(const struct link *link, const struct end *end)
{
    const struct end *other = &link->ends[end == &link->ends[0]];
    int64_t last = seconds_now() + PATIENCE_S;
    for (int there = -1; !link->reset && end->aliases && seconds_now() < last; sched_yield())
        if (ioctl(end->fds[0], FIONREAD, &there) < 0 || end->in + (uint64_t)there >= other->out)
            return;
}

// Until the end of the stream, or of the connection, has reached it.
static inline void await_end(const struct end *end)
{
    struct pollfd one = {.fd = end->fds[0], .events = POLLRDHUP};
    if (end->aliases)
        syscall(SYS_poll, &one, 1, PATIENCE_S * 1000);
}

static inline uint64_t pending(const struct link *link, const struct end *end)
{
    const struct end *other = &link->ends[end == &link->ends[0]];
    return other->out - end->in;
}

// A system call in a way that no library can see. Kept apart from libc's, whose errno it leaves
// alone.
static inline long bare_call(long number, long a, long b, long c)
{
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c)
                     : "rcx", "r11", "memory");
    return result;
}

static inline bool is_bare(struct world *world)
{
    return world->bare && pick(world, 1000) < world->bare;
}

// --- connections ---------------------------------------------------------------------------------

static inline uint16_t port_of(int fd)
{
    struct sockaddr_in address = {0};
    socklen_t bytes = sizeof address;
    getsockname(fd, (struct sockaddr *)&address, &bytes);
    return ntohs(address.sin_port);
}

static inline void end_open(struct end *end, int fd, bool nonblocking)
{
    const int yes = 1;
    *end = (struct end){.fds = {fd}, .aliases = 1, .nonblocking = nonblocking, .port = port_of(fd)};
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

static inline int accept_somehow(struct world *world, int listening, bool nonblocking)
{
    struct sockaddr_storage from;
    socklen_t room[] = {sizeof from, sizeof(struct sockaddr_in), 5, 0};
    socklen_t *bytes = &room[pick(world, 4)];
    if (nonblocking)
        return (int)CALL("accept4", accept4(listening, NULL, NULL, SOCK_NONBLOCK));
    if (pick(world, 2))
        return (int)CALL("accept", accept(listening, NULL, NULL));
    return (int)CALL("accept", accept(listening, (struct sockaddr *)&from, bytes));
}

static inline void link_open(struct world *world, struct link *link)
{
    struct sockaddr_in address = world->address;
    socklen_t bytes = sizeof address;
    bool background = pick(world, 3) == 0, nonblocking = pick(world, 2);
    int client =
        (int)CALL("socket", socket(AF_INET, SOCK_STREAM | (background ? SOCK_NONBLOCK : 0), 0));
    CALL("connect", connect(client, (struct sockaddr *)&address, bytes));
    struct pollfd there = {.fd = world->listening, .events = POLLIN};
    CALL("poll", poll(&there, 1, PATIENCE_S * 1000));
    int server = accept_somehow(world, world->listening, nonblocking);
    there = (struct pollfd){.fd = client, .events = POLLOUT};
    CALL("poll", poll(&there, 1, PATIENCE_S * 1000));
    if (background && pick(world, 2))
        CALL("connect again", connect(client, (struct sockaddr *)&address, bytes));
    if (server < 0)
        exit(91);
    link->live = true;
    link->reset = false;
    end_open(&link->ends[0], server, nonblocking);
    end_open(&link->ends[1], client, background);
}

static inline void link_account(struct world *world, struct link *link)
{
    for (int i = 0; i < 2 && world->totals; i++)
        fprintf(world->totals, "%u %u %u %llu %llu\n", i, link->ends[i].port,
                link->ends[1 - i].port, (unsigned long long)link->ends[i].in,
                (unsigned long long)link->ends[i].out);
    link->live = false;
}

// --- calls that take bytes -----------------------------------------------------------------------

enum take_kind {
    TAKE_READ,
    TAKE_READV,
    TAKE_RECV,
    TAKE_RECV_PEEK,
    TAKE_RECV_TRUNC,
    TAKE_RECV_ALL,
    TAKE_RECVFROM,
    TAKE_RECVMSG,
    TAKE_RECVMSG_PEEK,
    TAKE_RECVMMSG,
    TAKE_SPLICE,
    TAKE_PREADV2,
    TAKE_SYSCALL_READ,
    TAKE_SYSCALL_RECVFROM,
    TAKE_SYSCALL_READV,
    TAKE_SYSCALL_RECVMSG,
    TAKE_KINDS,
};

// Some of it in each of two or three parts.
static inline int parts_make(struct world *world, struct iovec parts[3], char *bytes, size_t count)
{
    size_t first = pick(world, (unsigned)count + 1), second = pick(world, (unsigned)count + 1);
    parts[0] = (struct iovec){bytes, first};
    parts[1] = (struct iovec){bytes + first, count - first < second ? count - first : second};
    parts[2] = (struct iovec){bytes + first + parts[1].iov_len, count - first - parts[1].iov_len};
    return 3;
}

static inline long take_many(struct world *world, int fd, size_t count)
{
    struct iovec parts[3];
    struct mmsghdr messages[3] = {0};
    parts_make(world, parts, world->bytes, count);
    for (int i = 0; i < 3; i++)
        messages[i].msg_hdr = (struct msghdr){.msg_iov = &parts[i], .msg_iovlen = 1};
    long filled = CALL("recvmmsg", recvmmsg(fd, messages, 3, MSG_DONTWAIT, NULL)), sum = 0;
    for (long i = 0; i < filled; i++) {
        printf("  %u\n", messages[i].msg_len);
        show(parts[i].iov_base, messages[i].msg_len);
        sum += messages[i].msg_len;
    }
    return sum;
}

static inline long take_into_pipe(struct world *world, int fd, size_t count)
{
    long moved = CALL("splice", splice(fd, NULL, world->pipe[1], NULL, count, SPLICE_F_NONBLOCK));
    if (moved > 0)
        CALL("read pipe", read(world->pipe[0], world->bytes, (size_t)moved));
    return moved;
}

static inline long take_message(struct world *world, int fd, size_t count, int flags)
{
    struct iovec parts[3];
    char control[64];
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 3};
    parts_make(world, parts, world->bytes, count);
    if (pick(world, 2)) {
        message.msg_control = control;
        message.msg_controllen = sizeof control;
    }
    long moved = flags & MSG_CONFIRM
                     ? CALL("syscall recvmsg", syscall(SYS_recvmsg, fd, &message, MSG_DONTWAIT))
                     : CALL("recvmsg", recvmsg(fd, &message, flags));
    printf("  flags %x control %zu\n", message.msg_flags, message.msg_controllen);
    return moved;
}

static inline long take_bytes(struct world *world, enum take_kind kind, int fd, size_t count)
{
    struct iovec parts[3];
    char *bytes = world->bytes;
    struct sockaddr_storage from;
    socklen_t from_bytes = sizeof from;
    int some = parts_make(world, parts, bytes, count);
    switch (kind) {
    case TAKE_READ:
        return CALL("read", read(fd, bytes, count));
    case TAKE_READV:
        return CALL("readv", readv(fd, parts, some));
    case TAKE_RECV:
        return CALL("recv", recv(fd, bytes, count, pick(world, 2) ? MSG_DONTWAIT : 0));
    case TAKE_RECV_PEEK:
        return CALL("recv peek", recv(fd, bytes, count, MSG_PEEK));
    case TAKE_RECV_TRUNC:
        return CALL("recv trunc", recv(fd, NULL, count, MSG_TRUNC | MSG_DONTWAIT));
    case TAKE_RECV_ALL:
        return CALL("recv all", recv(fd, bytes, count, MSG_WAITALL));
    case TAKE_RECVFROM:
        return CALL("recvfrom",
                    recvfrom(fd, bytes, count, 0, (struct sockaddr *)&from, &from_bytes));
    case TAKE_RECVMSG:
        return take_message(world, fd, count, 0);
    case TAKE_RECVMSG_PEEK:
        return take_message(world, fd, count, MSG_PEEK);
    case TAKE_RECVMMSG:
        return take_many(world, fd, count);
    case TAKE_SPLICE:
        return take_into_pipe(world, fd, count);
    case TAKE_PREADV2:
        return CALL("preadv2", preadv2(fd, parts, some, -1, 0));
    case TAKE_SYSCALL_READ:
        return CALL("syscall read", syscall(SYS_read, fd, bytes, count));
    case TAKE_SYSCALL_RECVFROM:
        return CALL("syscall recvfrom",
                    syscall(SYS_recvfrom, fd, bytes, count, MSG_DONTWAIT, NULL, NULL));
    case TAKE_SYSCALL_READV:
        return CALL("syscall readv", syscall(SYS_readv, fd, parts, some));
    case TAKE_SYSCALL_RECVMSG:
        return take_message(world, fd, count, MSG_CONFIRM);
    default:
        exit(92);
    }
}

static inline void take(struct world *world, struct link *link, struct end *end)
{
    const struct end *other = &link->ends[end == &link->ends[0]];
    enum take_kind kind = (enum take_kind)pick(world, TAKE_KINDS);
    size_t count = pick(world, 20) ? 1 + pick(world, MOST_BYTES) : 0;
    int fd = any_fd(world, end);
    settle(link, end);
    uint64_t there = pending(link, end);
    if (kind == TAKE_RECV_ALL && there < count)
        count = there;
    // Nothing may block: what is there, or an end, or a descriptor that does not.
    if (there == 0 && !other->finished && !end->nonblocking) {
        CALL("recv", recv(fd, world->bytes, count, MSG_DONTWAIT));
        return;
    }
    memset(world->bytes, 0, MOST_BYTES);
    long moved;
    if (is_bare(world)) {
        moved = bare_call(SYS_read, fd, (long)world->bytes, (long)count);
        printf("bare read %ld\n", moved);
        kind = TAKE_READ;
    } else {
        moved = take_bytes(world, kind, fd, count);
    }
    show(world->bytes, MOST_BYTES);
    if (moved > 0 && kind != TAKE_RECV_PEEK && kind != TAKE_RECVMSG_PEEK)
        end->in += (uint64_t)moved;
}

// --- calls that give bytes -----------------------------------------------------------------------

enum give_kind {
    GIVE_WRITE,
    GIVE_WRITEV,
    GIVE_SEND,
    GIVE_SENDTO,
    GIVE_SENDMSG,
    GIVE_SENDMMSG,
    GIVE_SENDFILE,
    GIVE_SENDFILE_AT,
    GIVE_SPLICE,
    GIVE_PWRITEV2,
    GIVE_DPRINTF,
    GIVE_SYSCALL_WRITE,
    GIVE_SYSCALL_SENDTO,
    GIVE_SYSCALL_WRITEV,
    GIVE_SYSCALL_SENDMSG,
    GIVE_KINDS,
};

static inline long give_many(struct world *world, int fd, size_t count)
{
    struct iovec parts[3];
    struct mmsghdr messages[3] = {0};
    parts_make(world, parts, world->bytes, count);
    for (int i = 0; i < 3; i++)
        messages[i].msg_hdr = (struct msghdr){.msg_iov = &parts[i], .msg_iovlen = 1};
    long taken = CALL("sendmmsg", sendmmsg(fd, messages, 3, 0)), sum = 0;
    for (long i = 0; i < taken; i++) {
        printf("  %u\n", messages[i].msg_len);
        sum += messages[i].msg_len;
    }
    return sum;
}

static inline long give_from_pipe(struct world *world, int fd, size_t count)
{
    if (count == 0 || CALL("write pipe", write(world->pipe[1], world->bytes, count)) <= 0)
        return 0;
    long moved = CALL("splice", splice(world->pipe[0], NULL, fd, NULL, count, 0));
    long left = (long)count - (moved > 0 ? moved : 0);
    if (left > 0)
        CALL("read pipe", read(world->pipe[0], world->bytes, (size_t)left));
    return moved;
}

static inline long give_bytes(struct world *world, enum give_kind kind, int fd, size_t count)
{
    struct iovec parts[3];
    char *bytes = world->bytes;
    int some = parts_make(world, parts, bytes, count);
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = (size_t)some};
    off_t at = pick(world, 1000);
    switch (kind) {
    case GIVE_WRITE:
        return CALL("write", write(fd, bytes, count));
    case GIVE_WRITEV:
        return CALL("writev", writev(fd, parts, some));
    case GIVE_SEND:
        return CALL("send", send(fd, bytes, count, pick(world, 2) ? MSG_DONTWAIT : MSG_NOSIGNAL));
    case GIVE_SENDTO:
        return CALL("sendto", sendto(fd, bytes, count, 0, NULL, 0));
    case GIVE_SENDMSG:
        return CALL("sendmsg", sendmsg(fd, &message, 0));
    case GIVE_SENDMMSG:
        return give_many(world, fd, count);
    case GIVE_SENDFILE:
        CALL("lseek", lseek(world->file, at, SEEK_SET));
        return CALL("sendfile", sendfile(fd, world->file, NULL, count));
    case GIVE_SENDFILE_AT: {
        long moved = CALL("sendfile", sendfile(fd, world->file, &at, count));
        printf("  at %ld\n", (long)at);
        return moved;
    }
    case GIVE_SPLICE:
        return give_from_pipe(world, fd, count);
    case GIVE_PWRITEV2:
        return CALL("pwritev2", pwritev2(fd, parts, some, -1, 0));
    case GIVE_DPRINTF:
        return CALL("dprintf", dprintf(fd, "%zu and %u\n", count, (unsigned)at));
    case GIVE_SYSCALL_WRITE:
        return CALL("syscall write", syscall(SYS_write, fd, bytes, count));
    case GIVE_SYSCALL_SENDTO:
        return CALL("syscall sendto", syscall(SYS_sendto, fd, bytes, count, 0, NULL, 0));
    case GIVE_SYSCALL_WRITEV:
        return CALL("syscall writev", syscall(SYS_writev, fd, parts, some));
    case GIVE_SYSCALL_SENDMSG:
        return CALL("syscall sendmsg", syscall(SYS_sendmsg, fd, &message, 0));
    default:
        exit(93);
    }
}

static inline void give(struct world *world, struct link *link, struct end *end)
{
    const struct end *other = &link->ends[end == &link->ends[0]];
    size_t count = pick(world, 20) ? 1 + pick(world, MOST_BYTES) : 0;
    enum give_kind kind = (enum give_kind)pick(world, GIVE_KINDS);
    if (other->aliases && other->in + MOST_PENDING < end->out)
        return;
    for (size_t i = 0; i < count; i++)
        world->bytes[i] = (char)pick(world, 256);
    long moved;
    if (is_bare(world)) {
        moved = bare_call(SYS_write, any_fd(world, end), (long)world->bytes, (long)count);
        printf("bare write %ld\n", moved);
    } else {
        moved = give_bytes(world, kind, any_fd(world, end), count);
    }
    if (moved > 0)
        end->out += (uint64_t)moved;
    if (moved > 0 && !other->aliases) { // answered by a reset
        struct pollfd one = {.fd = end->fds[0]};
        syscall(SYS_poll, &one, 1, PATIENCE_S * 1000);
        link->reset = true;
    }
}

// More than there is room for: how much there is room for depends on time, and is not printed.
static inline void overfill(struct world *world, struct link *link, struct end *end)
{
    struct end *other = &link->ends[end == &link->ends[0]];
    if (!other->aliases || end->finished || link->reset)
        return;
    for (;;) {
        ssize_t sent = send(end->fds[0], world->bytes, sizeof world->bytes, MSG_DONTWAIT);
        if (sent < 0)
            break;
        end->out += (uint64_t)sent;
    }
    printf("overfill %d\n", errno == EAGAIN);
    while (other->in < end->out) {
        ssize_t got = recv(other->fds[0], world->bytes, sizeof world->bytes, 0);
        if (got < 0 && errno == EAGAIN)
            continue;
        if (got <= 0)
            exit(94);
        other->in += (uint64_t)got;
    }
}

// --- calls that move nothing ---------------------------------------------------------------------

static inline void fail_somehow(struct world *world, struct link *link, struct end *end)
{
    void *volatile nowhere = NULL; // volatile: the compiler shall not see what is wrong
    volatile int negative = -1, too_many = 100000;
    struct iovec bad = {NULL, 8};
    struct msghdr message = {.msg_iov = &bad, .msg_iovlen = 1};
    int fd = any_fd(world, end);
    settle(link, end);
    bool bytes_there = pending(link, end) > 0;
    switch (pick(world, 14)) {
    case 0:
        CALL("recv to nowhere", bytes_there ? recv(fd, nowhere, 3, MSG_DONTWAIT) : 0);
        break;
    case 1:
        CALL("readv to nowhere", bytes_there ? readv(fd, &bad, 1) : 0);
        break;
    case 2:
        CALL("recvmsg to nowhere", bytes_there ? recvmsg(fd, &message, MSG_DONTWAIT) : 0);
        break;
    case 3:
        CALL("write from nowhere", write(fd, nowhere, 3));
        break;
    case 4:
        CALL("sendmsg from nowhere", sendmsg(fd, &message, 0));
        break;
    case 5:
        CALL("writev of fewer than none", writev(fd, &bad, negative));
        break;
    case 6:
        CALL("readv of too many", readv(fd, &bad, too_many));
        break;
    case 7:
        CALL("accept", accept(fd, NULL, NULL));
        break;
    case 8:
        CALL("read of nothing", read(-1, world->bytes, 1));
        break;
    case 9:
        CALL("dup2", dup2(fd, -1));
        break;
    case 10:
        CALL("dup3", dup3(fd, fd, 0));
        break;
    case 11:
        CALL("close", close(987654));
        break;
    case 12:
        CALL("recv error queue", recv(fd, world->bytes, 1, MSG_ERRQUEUE | MSG_DONTWAIT));
        break;
    default:
        CALL("recv urgent", recv(fd, world->bytes, 1, MSG_OOB | MSG_DONTWAIT));
    }
}

static inline void look(struct world *world, struct link *link, struct end *end)
{
    int fd = any_fd(world, end);
    struct epoll_event event = {.events = EPOLLIN}, events[4];
    struct pollfd one = {.fd = fd, .events = POLLIN};
    struct timespec at_once = {0};
    fd_set set;
    settle(link, end);
    switch (pick(world, 6)) {
    case 0:
        CALL("poll", poll(&one, 1, 0));
        break;
    case 1:
        CALL("ppoll", ppoll(&one, 1, &at_once, NULL));
        break;
    case 2:
        FD_ZERO(&set);
        FD_SET(fd, &set);
        CALL("select", select(fd + 1, &set, NULL, NULL, &(struct timeval){0}));
        break;
    case 3:
        CALL("epoll_ctl", epoll_ctl(world->epoll, EPOLL_CTL_ADD, fd, &event));
        CALL("epoll_wait", epoll_wait(world->epoll, events, 4, 0));
        CALL("epoll_ctl", epoll_ctl(world->epoll, EPOLL_CTL_DEL, fd, &event));
        break;
    case 4:
        CALL("epoll_ctl", epoll_ctl(world->epoll, EPOLL_CTL_ADD, fd, &event));
        CALL("epoll_pwait", epoll_pwait(world->epoll, events, 4, 0, NULL));
        CALL("syscall epoll_wait", syscall(SYS_epoll_wait, world->epoll, events, 4, 0));
        CALL("epoll_ctl", epoll_ctl(world->epoll, EPOLL_CTL_DEL, fd, &event));
        break;
    default:
        CALL("fcntl", fcntl(fd, F_GETFL));
    }
}

// Descriptors of no connection, whose numbers were and will be a connection's.
static inline void use_file(struct world *world)
{
    char block[512];
    int fd = (int)CALL("memfd_create", memfd_create("random", MFD_CLOEXEC));
    CALL("write file", write(fd, world->bytes, 1 + pick(world, 400)));
    CALL("lseek", lseek(fd, 0, SEEK_SET));
    CALL("read file", read(fd, block, sizeof block));
    CALL("read file", read(fd, block, sizeof block));
    CALL(pick(world, 2) ? "close" : "close", close(fd));
}

// --- descriptors ---------------------------------------------------------------------------------

// Sends the descriptor to this very process, as servers send theirs to their workers.
static inline int pass_rights(struct world *world, int fd)
{
    char byte = 'x', room[CMSG_SPACE(sizeof(int))] = "", room_in[CMSG_SPACE(sizeof(int))] = "";
    struct iovec part = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
    *rights = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
    memcpy(CMSG_DATA(rights), &fd, sizeof fd);
    CALL("sendmsg rights", sendmsg(world->pair[0], &message, 0));
    message.msg_control = room_in;
    CALL("recvmsg rights", recvmsg(world->pair[1], &message, 0));
    rights = CMSG_FIRSTHDR(&message);
    if (!rights)
        exit(95);
    memcpy(&fd, CMSG_DATA(rights), sizeof fd);
    printf("  %d\n", fd);
    return fd;
}

static inline void alias(struct world *world, struct end *end)
{
    int fd = any_fd(world, end), *copy = &end->fds[end->aliases];
    if (end->aliases == ALIASES)
        return;
    switch (pick(world, 6)) {
    case 0:
        *copy = (int)CALL("dup", dup(fd));
        break;
    case 1:
        *copy = (int)CALL("F_DUPFD", fcntl(fd, F_DUPFD, 50));
        break;
    case 2:
        *copy = (int)CALL("F_DUPFD_CLOEXEC", fcntl(fd, F_DUPFD_CLOEXEC, 60));
        break;
    case 3:
        *copy = (int)CALL("memfd_create", memfd_create("replaced", 0));
        CALL("dup2", dup2(fd, *copy));
        break;
    case 4:
        *copy = (int)CALL("dup", syscall(SYS_dup, fd));
        break;
    default:
        *copy = pass_rights(world, fd);
    }
    if (*copy < 0)
        exit(96);
    end->aliases++;
}

// Ends one of its descriptors. After the last the other side has seen the end.
static inline void unalias(struct world *world, struct link *link, struct end *end)
{
    struct end *other = &link->ends[end == &link->ends[0]];
    int i = (int)pick(world, (unsigned)end->aliases), fd = end->fds[i], file;
    settle(link, end);
    uint64_t unread = pending(link, end);
    switch (pick(world, 5)) {
    case 0:
        CALL("close_range", close_range((unsigned)fd, (unsigned)fd, 0));
        break;
    case 1:
        file = (int)CALL("memfd_create", memfd_create("over", MFD_CLOEXEC));
        CALL("dup2", dup2(file, fd));
        CALL("write file", write(fd, "file", 4)); // nobody's connection
        CALL("close", close(file));
        CALL("close", close(fd));
        break;
    case 2:
        CALL("syscall close", syscall(SYS_close, fd));
        break;
    default:
        CALL("close", close(fd));
    }
    end->fds[i] = end->fds[--end->aliases];
    if (end->aliases)
        return;
    end->finished = true;
    link->reset |= unread > 0;
    await_end(other);
    if (!other->aliases)
        link_account(world, link);
}

static inline void finish(struct world *world, struct link *link, struct end *end)
{
    const struct end *other = &link->ends[end == &link->ends[0]];
    if (link->reset)
        return;
    CALL("shutdown", shutdown(any_fd(world, end), SHUT_WR));
    end->finished = true;
    await_end(other);
}

// A child that has all descriptors and ends, by exec or not.
static inline void have_child(struct world *world)
{
    int status = -1;
    bool fast = pick(world, 2);
    fflush(stdout);
    pid_t child = fast ? vfork() : fork();
    if (child == 0 && fast) {
        execl("/bin/true", "true", (char *)NULL);
        _exit(1);
    }
    if (child == 0) {
        closefrom(3);
        _exit(0);
    }
    CALL("waitpid", waitpid(child, &status, 0) == child && status == 0);
}

// --- the sequence --------------------------------------------------------------------------------

static inline void step(struct world *world)
{
    struct link *link = &world->links[pick(world, LINKS)];
    unsigned what = pick(world, 1000);
    if (!link->live) {
        link_open(world, link);
        return;
    }
    struct end *end = &link->ends[pick(world, 2)];
    if (!end->aliases)
        end = &link->ends[end == &link->ends[0]];
    const struct end *other = &link->ends[end == &link->ends[0]];
    bool ending = link->reset || end->finished || !other->aliases;
    if (ending && pick(world, 4) == 0) // most calls on it fail
        unalias(world, link, end);
    else if (what < 350)
        take(world, link, end);
    else if (what < 700)
        give(world, link, end);
    else if (what < 770)
        fail_somehow(world, link, end);
    else if (what < 860)
        look(world, link, end);
    else if (what < 910)
        alias(world, end);
    else if (what < 965)
        unalias(world, link, end);
    else if (what < 975)
        finish(world, link, end);
    else if (what < 990)
        use_file(world);
    else if (what < 996)
        overfill(world, link, end);
    else
        have_child(world);
}

static inline void listen_on(struct world *world, uint16_t port)
{
    const int yes = 1;
    world->address = (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    world->listening = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(world->listening, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(world->listening, (struct sockaddr *)&world->address, sizeof world->address) < 0 ||
        listen(world->listening, 8) < 0)
        exit(90);
}

static inline void random_calls(uint64_t seed, unsigned steps, unsigned bare, uint16_t port)
{
    static struct world world;
    const char *totals = getenv("SEQUENCE_TOTALS");
    signal(SIGPIPE, SIG_IGN);
    world.random = seed;
    world.bare = bare;
    listen_on(&world, port);
    world.totals = totals ? fopen(totals, "we") : NULL;
    world.file = memfd_create("file", MFD_CLOEXEC);
    world.epoll = epoll_create1(EPOLL_CLOEXEC);
    if (pipe2(world.pipe, O_CLOEXEC) < 0 || fcntl(world.pipe[1], F_SETPIPE_SZ, 1 << 20) < 0 ||
        socketpair(AF_UNIX, SOCK_STREAM, 0, world.pair) < 0)
        exit(97);
    for (unsigned i = 0; i < 4096; i++)
        world.bytes[i] = (char)i;
    CALL("write file", write(world.file, world.bytes, 4096));
    for (unsigned i = 0; i < steps; i++)
        step(&world);
    for (int i = 0; i < LINKS; i++)
        while (world.links[i].live)
            unalias(&world, &world.links[i],
                    &world.links[i].ends[world.links[i].ends[0].aliases == 0]);
    if (world.totals)
        fclose(world.totals);
}

#endif
