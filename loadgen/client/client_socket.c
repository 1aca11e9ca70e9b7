// SPDX-License-Identifier: MIT
#include "loadgen/client/client_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "base/tsc.h"
#include "base/clock.h"

enum {
    BACKLOG_S = 5,
    // bytes of stamps that may wait; without CAP_NET_ADMIN at most net.core.rmem_max
    DATAGRAMS_BYTES = 4 << 20,
};

static int server_refuse(const struct server_address *server, struct error *err)
{
    if (errno == EADDRNOTAVAIL && server->transport == SERVER_TCP)
        return error_set(err, ERROR_FAILED,
                         "cannot connect to %s: no local port is left for another connection; "
                         "allow more (sysctl -w net.ipv4.ip_local_port_range=\"1024 65535\") or "
                         "ask for fewer with --connections",
                         server->text);
    return error_set_errno(err, ERROR_FAILED, "cannot connect to %s (is a server running there?)",
                           server->text);
}

int connection_begin(struct client_connection *connection, bool patient, struct error *err)
{
    const struct server_address *server = connection->context->server;
    const int on = 1, receive_bytes = DATAGRAMS_BYTES;
    int family = server->socket_address.ss_family;
    bool udp = server->transport == SERVER_UDP;
    int type = udp ? SOCK_DGRAM : SOCK_STREAM;
    int socket_fd = socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (socket_fd < 0)
        return error_set_errno(err, ERROR_FAILED, "cannot open a socket");
    connection->socket_fd = socket_fd;
    connection->state = CONNECTION_CONNECTING;
    if (udp &&
        setsockopt(socket_fd, SOL_SOCKET, SO_RCVBUFFORCE, &receive_bytes, sizeof receive_bytes) < 0)
        setsockopt(socket_fd, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
    if (server->transport == SERVER_TCP)
        setsockopt(socket_fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    // If the server's backlog is full a UNIX socket fails with EAGAIN, unless it may wait.
    bool waits = family == AF_UNIX && patient;
    const struct timeval patience = {BACKLOG_S, 0};
    if (waits) {
        setsockopt(socket_fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
        fcntl(socket_fd, F_SETFL, 0);
    }
    if (connect(socket_fd, (const void *)&server->socket_address, server->socket_address_bytes) <
            0 &&
        errno != EINPROGRESS)
        return server_refuse(server, err);
    if (waits)
        fcntl(socket_fd, F_SETFL, O_NONBLOCK);
    return 0;
}

static struct connection connection_describe(const struct client_connection *connection)
{
    struct connection entry = {.id = connection->id,
                               .protocol =
                                   connection->context->datagrams ? CONNECTION_UDP : CONNECTION_TCP,
                               .process = (uint32_t)getpid(),
                               .opened_time = tsc_now()};
    struct sockaddr_storage socket_address = {0};
    socklen_t bytes = sizeof socket_address;
    getsockname(connection->socket_fd, (struct sockaddr *)&socket_address, &bytes);
    server_address_bytes(&socket_address, entry.local, &entry.local_port);
    if (socket_address.ss_family == AF_UNIX)
        entry.protocol = CONNECTION_UNIX;
    bytes = sizeof socket_address;
    getpeername(connection->socket_fd, (struct sockaddr *)&socket_address, &bytes);
    server_address_bytes(&socket_address, entry.peer, &entry.peer_port);
    bytes = sizeof entry.cookie;
    getsockopt(connection->socket_fd, SOL_SOCKET, SO_COOKIE, &entry.cookie, &bytes);
    return entry;
}

// Raising it takes CAP_NET_ADMIN (socket(7)). Otherwise the socket stays as it was, which is
// reported.
static void busy_poll(const struct client_connection *connection)
{
    struct connection_context *context = connection->context;
    int us = (int)context->busy_poll_us;
    if (us && setsockopt(connection->socket_fd, SOL_SOCKET, SO_BUSY_POLL, &us, sizeof us) < 0)
        error_set_errno(&context->busy_poll_why, ERROR_FAILED, "no SO_BUSY_POLL");
}

int connection_finish(struct client_connection *connection, struct error *err)
{
    struct connection_context *context = connection->context;
    int failure = 0;
    socklen_t bytes = sizeof failure;
    getsockopt(connection->socket_fd, SOL_SOCKET, SO_ERROR, &failure, &bytes);
    if (failure) {
        errno = failure;
        return server_refuse(context->server, err);
    }
    if (context->kernel_stamps &&
        client_stamps_enable(connection->socket_fd, context->hardware_stamps, err) < 0)
        return -ERROR_FAILED;
    if (array_reserve(&context->log, context->log.count + 1) < 0)
        return error_set(err, ERROR_FAILED, "out of memory for the log of connections");
    busy_poll(connection);
    if (connection->opened_ms) // it is a reconnect
        connection->id = atomic_fetch_add(context->last_id, 1) + 1;
    context->log.items[context->log.count++] = connection_describe(connection);
    connection->state = CONNECTION_OPEN;
    connection->opened_ms = monotonic_ms();
    connection->blocked = false;
    context->open++;
    return 0;
}

int connection_watch(struct client_connection *connection, struct error *err)
{
    event_assign(connection->event, connection->context->base, connection->socket_fd,
                 EV_READ | EV_WRITE | EV_PERSIST | EV_ET, connection->context->on_ready,
                 connection);
    return event_add(connection->event, NULL) < 0
               ? error_set(err, ERROR_FAILED, "cannot watch connection %u", connection->id)
               : 0;
}
