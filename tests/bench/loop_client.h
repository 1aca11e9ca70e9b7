// SPDX-License-Identifier: MIT
//
// The clients that bench_io_uring.c compares: connections, one request over and over, replies
// counted, and for each connection that has had replies a send of as many requests. By epoll, as
// the engine does it, or by io_uring.
#ifndef BENCH_LOOP_CLIENT_H
#define BENCH_LOOP_CLIENT_H

#include <arpa/inet.h>
#include <linux/net_tstamp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>

#include "tests/bench/bench.h"
#include "tests/bench/io_ring.h"

enum {
    CONNECTIONS_MAX = 256,
    DEPTH_MAX = 8,
    VALUE_BYTES = 200,
    EVENTS_AT_ONCE = 64,
    TURNS = 16, // between looks at the clock
    CONTROL_BYTES = 64,
};
#define WARM_SECONDS 0.03
static const uint64_t of_send = 1u << 31; // in a completion's user_data, beside the connection

// By what it sends and receives.
struct form {
    const char *name;
    unsigned setup; // of the ring
    bool ring, sends_alone;
};

// Whom it asks. Every request asks for the one value that is stored at first.
struct target {
    const char *name, *url, *command, *store, *stored, *request;
    uint16_t port;
    size_t reply_bytes; // beside the value
};

struct client {
    const struct form *form;
    const struct target *target;
    unsigned connections, depth;
    bool stamps, sleeps;
    int sockets[CONNECTIONS_MAX];
    uint64_t received[CONNECTIONS_MAX]; // bytes
    unsigned owed[CONNECTIONS_MAX];     // requests, for the replies that came
    unsigned dirty[CONNECTIONS_MAX], dirty_count;
    uint64_t replies, receives, stamped;
    char requests[DEPTH_MAX * 64];
    size_t request_bytes, reply_bytes;
    int epoll_fd;
    struct io_ring ring;
    struct msghdr with_control; // what a multishot receive with stamps is made like
};

struct figures {
    double rate, cpu_us, stamped;
};

__attribute__((noreturn)) static inline void client_fail(const char *what)
{
    bench_fail("%s: %s", what, strerror(errno));
}

static inline void take_bytes(struct client *client, unsigned at, size_t bytes)
{
    const uint64_t before = client->received[at] / client->reply_bytes;
    client->received[at] += bytes;
    const unsigned count = (unsigned)(client->received[at] / client->reply_bytes - before);
    client->receives++;
    client->replies += count;
    if (count && !client->owed[at])
        client->dirty[client->dirty_count++] = at;
    client->owed[at] += count;
}

static inline void send_owed(struct client *client, unsigned at)
{
    const size_t bytes = client->owed[at] * client->request_bytes;
    if (send(client->sockets[at], client->requests, bytes, MSG_NOSIGNAL | MSG_DONTWAIT) !=
        (ssize_t)bytes)
        client_fail("send");
    client->owed[at] = 0;
}

static inline void send_all_owed(struct client *client)
{
    for (unsigned i = 0; i < client->dirty_count; i++)
        send_owed(client, client->dirty[i]);
    client->dirty_count = 0;
}

// --- stamps --------------------------------------------------------------------------------------

static inline void count_stamp(struct client *client, struct msghdr *message)
{
    for (struct cmsghdr *h = CMSG_FIRSTHDR(message); h; h = CMSG_NXTHDR(message, h))
        client->stamped += h->cmsg_level == SOL_SOCKET && h->cmsg_type == SO_TIMESTAMPING_NEW;
}

static inline void read_sent_stamps(const struct client *client, unsigned at)
{
    char control[256];
    struct msghdr message;
    do
        message = (struct msghdr){.msg_control = control, .msg_controllen = sizeof control};
    while (recvmsg(client->sockets[at], &message, MSG_ERRQUEUE | MSG_DONTWAIT) >= 0);
}

// --- epoll ---------------------------------------------------------------------------------------

static inline void epoll_begin(struct client *client)
{
    client->epoll_fd = epoll_create1(0);
    for (unsigned i = 0; i < client->connections; i++) {
        struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
                                    .data.u32 = i};
        if (epoll_ctl(client->epoll_fd, EPOLL_CTL_ADD, client->sockets[i], &event) < 0)
            client_fail("epoll_ctl");
    }
}

static inline void epoll_receive(struct client *client, unsigned at)
{
    static char bytes[65536];
    char control[CONTROL_BYTES];
    struct iovec buffer = {bytes, sizeof bytes};
    struct msghdr message = {.msg_iov = &buffer,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof control};
    const ssize_t count = client->stamps
                              ? recvmsg(client->sockets[at], &message, MSG_DONTWAIT)
                              : recv(client->sockets[at], bytes, sizeof bytes, MSG_DONTWAIT);
    if (count < 0 && errno == EAGAIN)
        return;
    if (count <= 0)
        client_fail("recv");
    if (client->stamps) {
        count_stamp(client, &message);
        read_sent_stamps(client, at);
    }
    take_bytes(client, at, (size_t)count);
}

static inline void epoll_turn(struct client *client)
{
    struct epoll_event events[EVENTS_AT_ONCE];
    const int count = epoll_wait(client->epoll_fd, events, EVENTS_AT_ONCE, client->sleeps ? -1 : 0);
    for (int i = 0; i < count; i++)
        if (events[i].events & EPOLLIN)
            epoll_receive(client, events[i].data.u32);
    send_all_owed(client);
}

// --- io_uring ------------------------------------------------------------------------------------

static inline void arm(struct client *client, unsigned at)
{
    struct io_uring_sqe *sqe =
        ring_fill(&client->ring, client->stamps ? IORING_OP_RECVMSG : IORING_OP_RECV, at);
    sqe->ioprio = IORING_RECV_MULTISHOT;
    sqe->flags |= IOSQE_BUFFER_SELECT;
    sqe->user_data = at;
    if (client->stamps) {
        sqe->addr = (uint64_t)(uintptr_t)&client->with_control;
        sqe->len = 1;
    }
}

static inline void ring_begin(struct client *client)
{
    if (ring_make(&client->ring, client->form->setup, client->sockets, client->connections) < 0)
        client_fail("io_uring");
    client->with_control = (struct msghdr){.msg_controllen = CONTROL_BYTES};
    for (unsigned i = 0; i < client->connections; i++)
        arm(client, i);
}

static inline void ring_receive(struct client *client, unsigned at, const struct io_uring_cqe *cqe)
{
    const unsigned id = cqe->flags >> IORING_CQE_BUFFER_SHIFT;
    size_t bytes = (size_t)cqe->res;
    if (client->stamps) {
        struct io_uring_recvmsg_out *out = (void *)ring_buffer(&client->ring, id);
        struct msghdr message = {.msg_control = out + 1, .msg_controllen = out->controllen};
        bytes = out->payloadlen;
        count_stamp(client, &message);
        read_sent_stamps(client, at);
    }
    take_bytes(client, at, bytes);
    ring_give(&client->ring, id);
}

static inline void take_completion(struct client *client, const struct io_uring_cqe *cqe)
{
    const unsigned at = (unsigned)(cqe->user_data & ~of_send);
    errno = cqe->res < 0 ? -cqe->res : ECONNRESET;
    if (cqe->user_data & of_send) { // the engine, too, would have to know that all of it left
        if (cqe->res <= 0 || (size_t)cqe->res % client->request_bytes)
            client_fail("send through io_uring");
        return;
    }
    if (cqe->res > 0)
        ring_receive(client, at, cqe);
    else if (errno != ENOBUFS && errno != EAGAIN)
        client_fail("receive through io_uring");
    if (!(cqe->flags & IORING_CQE_F_MORE))
        arm(client, at);
}

static inline void fill_sends(struct client *client)
{
    for (unsigned i = 0; i < client->dirty_count; i++) {
        const unsigned at = client->dirty[i];
        struct io_uring_sqe *sqe = ring_fill(&client->ring, IORING_OP_SEND, at);
        sqe->addr = (uint64_t)(uintptr_t)client->requests;
        sqe->len = (unsigned)(client->owed[at] * client->request_bytes);
        sqe->msg_flags = MSG_NOSIGNAL | MSG_WAITALL;
        sqe->user_data = of_send | at;
        client->owed[at] = 0;
    }
    client->dirty_count = 0;
}

static inline void ring_turn(struct client *client)
{
    struct io_ring *ring = &client->ring;
    const struct io_uring_cqe *cqe;
    if (ring_enter(ring, client->sleeps) < 0)
        client_fail("io_uring_enter");
    unsigned head = *ring->cq_head;
    while ((cqe = ring_next(ring, &head)))
        take_completion(client, cqe);
    ring_seen(ring, head);
    ring_publish(ring);
    if (client->form->sends_alone)
        send_all_owed(client);
    else
        fill_sends(client);
}

// --- a client ------------------------------------------------------------------------------------

static inline int connect_once(const struct target *target)
{
    const int yes = 1, made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(target->port)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (made >= 0 && connect(made, (struct sockaddr *)&to, sizeof to) == 0 &&
        setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes) == 0)
        return made;
    if (made >= 0)
        close(made);
    return -1;
}

static inline void connect_all(struct client *client)
{
    const unsigned flags = SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_TX_SOFTWARE |
                           SOF_TIMESTAMPING_SOFTWARE | SOF_TIMESTAMPING_OPT_TSONLY |
                           SOF_TIMESTAMPING_OPT_ID;
    for (unsigned i = 0; i < client->connections; i++)
        if ((client->sockets[i] = connect_once(client->target)) < 0 ||
            (client->stamps && setsockopt(client->sockets[i], SOL_SOCKET, SO_TIMESTAMPING_NEW,
                                          &flags, sizeof flags) < 0))
            client_fail("connect");
}

static inline double cpu_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static inline void run_until(struct client *client, double end)
{
    while (bench_now() < end)
        for (int i = 0; i < TURNS; i++)
            (client->form->ring ? ring_turn : epoll_turn)(client);
}

static inline struct figures run_client(struct client *client, double seconds)
{
    client->request_bytes = strlen(client->target->request);
    client->reply_bytes = VALUE_BYTES + client->target->reply_bytes;
    for (unsigned i = 0; i < client->depth; i++)
        memcpy(client->requests + i * client->request_bytes, client->target->request,
               client->request_bytes);
    connect_all(client);
    (client->form->ring ? ring_begin : epoll_begin)(client);
    for (unsigned i = 0; i < client->connections; i++) {
        client->owed[i] = client->depth;
        send_owed(client, i);
    }
    run_until(client, bench_now() + WARM_SECONDS);
    const uint64_t replies = client->replies;
    const double began = bench_now(), cpu = cpu_now();
    run_until(client, began + seconds);
    const double count = (double)(client->replies - replies);
    return (struct figures){count / (bench_now() - began), (cpu_now() - cpu) / count * 1e6,
                            (double)client->stamped / (double)client->receives};
}

#endif
