// SPDX-License-Identifier: MIT
//
// Waits for descriptors, calls that signals interrupt, and the application's own stamps.
// Runs beside others: what it compares is what calls return, not when.
#include "tests/shim/semantics.h"

#include <fcntl.h>
#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/time.h>
#include <sys/uio.h>

extern int __poll_chk(struct pollfd *fds, nfds_t count, int timeout_ms, size_t room);

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
    // Again and again: a signal before the call that it is to interrupt would be lost.
    struct itimerval soon = {.it_value = {.tv_usec = 20000}, .it_interval = {.tv_usec = 20000}};
    struct itimerval never = {0};
    give(q.client, "ab");
    arrive(q.server, 2);
    setitimer(ITIMER_REAL, &soon, NULL);
    SEE(recv(p.server, a, 1, 0)); // EINTR
    struct epoll_event event;
    int epoll = epoll_create1(0);
    SEE(epoll_wait(epoll, &event, 1, -1));
    arrive(q.client, 2);
    setitimer(ITIMER_REAL, &never, NULL);
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
    setitimer(ITIMER_REAL, &never, NULL);
    account(&p, moved, moved);
    pair_close(&p);
    pair_close(&q);
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
    SEE(epoll_wait(epoll, got, 4, PATIENCE_MS));
    SEE(recv(p.server, a, 1, 0));
    SEE(epoll_pwait(epoll, got, 4, PATIENCE_MS, NULL));
    struct timespec patience = {.tv_sec = PATIENCE_MS / 1000};
    SEE(epoll_pwait2(epoll, got, 4, &patience, NULL));
    struct pollfd one = {.fd = p.server, .events = POLLIN};
    SEE(poll(&one, 1, PATIENCE_MS));
    SEE(__poll_chk(&one, 1, PATIENCE_MS, sizeof one));
    SEE(ppoll(&one, 1, &patience, NULL));
    printf("  %x, %ld s left\n", one.revents, (long)patience.tv_sec);
    fd_set set;
    FD_ZERO(&set);
    FD_SET(p.server, &set);
    struct timeval limit = {.tv_sec = PATIENCE_MS / 1000};
    SEE(select(p.server + 1, &set, NULL, NULL, &limit));
    SEE(pselect(p.server + 1, &set, NULL, NULL, &patience, NULL));
    SEE(recv(p.server, a, 16, 0));
    SEE(poll(&one, 1, 1));
    SEE(close(epoll));
    account(&p, 3, 0);
    pair_close(&p);
}

// Returns when the kernel stamps what arrives, which it begins lazily after somebody asked for it.
static void stamps_await(void)
{
    struct pair p = connected();
    int flags = SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE;
    setsockopt(p.client, SOL_SOCKET, SO_TIMESTAMPING, &flags, sizeof flags);
    for (size_t stamped = 0, tries = 0; stamped == 0; tries++) {
        char byte, control[512];
        struct iovec part = {&byte, 1};
        struct msghdr message = {.msg_iov = &part,
                                 .msg_iovlen = 1,
                                 .msg_control = control,
                                 .msg_controllen = sizeof control};
        if (tries == PATIENCE_MS || send(p.server, "?", 1, 0) != 1 ||
            recvmsg(p.client, &message, 0) != 1)
            exit(94);
        stamped = message.msg_controllen;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    close(p.server);
    close(p.client);
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
    SEE(poll(&one, 1, PATIENCE_MS));
    message.msg_controllen = sizeof control;
    SEE(recvmsg(p.server, &message, MSG_ERRQUEUE));
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c))
        printf("  level %d type %d, %zu bytes\n", c->cmsg_level, c->cmsg_type, c->cmsg_len);
    stamps_await();
    give(p.client, "hello");
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

static void sequence(void)
{
    sequence_signals();
    sequence_waits();
    sequence_stamps();
}

int main(int argc, char **argv)
{
    return semantics_main(
        argc, argv, &(struct semantics){sequence, .connections = 3, .stamped = 1, .dropped = 101});
}
