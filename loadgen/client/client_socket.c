// SPDX-License-Identifier: MIT
#include "loadgen/client/client_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/text.h"
#include "base/tsc.h"
#include "loadgen/client/client_opening.h"
#include "loadgen/client/client_samples.h"
#include "loadgen/client/client_streams.h"
#include "loadgen/client/client_tls.h"

enum {
    BACKLOG_S = 5,
    BACKLOG_LOOK_US = 100000, // so soon a person who ends the load is heard
    // bytes of stamps that may wait; without CAP_NET_ADMIN at most net.core.rmem_max
    DATAGRAMS_BYTES = 4 << 20,
};

static int server_refuse(const struct server_address *server, struct error *err)
{
    if (errno == EADDRNOTAVAIL && server->transport == SERVER_TCP)
        return error_set(err, ERROR_FAILED,
                         "cannot connect to %s: no local port is left for another connection; "
                         "allow more (sysctl -w net.ipv4.ip_local_port_range=\"1024 65535\"), ask "
                         "for fewer with --connections, or let the server keep them open",
                         server->text);
    return error_set_errno(err, ERROR_FAILED, "cannot connect to %s (is a server running there?)",
                           server->text);
}

int connection_begin(struct client_connection *connection, bool patient, struct error *err)
{
    const struct server_address *server = connection->server;
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
    const int64_t deadline_ms = monotonic_ms() + BACKLOG_S * 1000;
    const struct timeval patience = {0, BACKLOG_LOOK_US};
    if (waits) {
        setsockopt(socket_fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
        fcntl(socket_fd, F_SETFL, 0);
    }
    int status;
    do
        status =
            connect(socket_fd, (const void *)&server->socket_address, server->socket_address_bytes);
    while (status < 0 && waits && errno == EAGAIN && monotonic_ms() < deadline_ms &&
           !atomic_load(connection->context->stop));
    if (status < 0 && errno != EINPROGRESS) {
        connection->context->counts->portless += errno == EADDRNOTAVAIL;
        return server_refuse(server, err);
    }
    if (waits)
        fcntl(socket_fd, F_SETFL, O_NONBLOCK);
    return 0;
}

static struct connection connection_describe(const struct client_connection *connection)
{
    struct connection entry = {.id = connection->id,
                               .protocol =
                                   connection->context->datagrams ? CONNECTION_UDP : CONNECTION_TCP,
                               .process = (uint32_t)gettid(),
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

static uint16_t opening_100us(const struct client_connection *connection, uint64_t opened_tsc)
{
    double us = (double)(opened_tsc - connection->ended_tsc) / connection->context->ticks_per_us;
    return us / 100 < UINT16_MAX ? (uint16_t)(us / 100) : UINT16_MAX;
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
        return server_refuse(connection->server, err);
    }
    if (context->kernel_stamps &&
        client_stamps_enable(connection->socket_fd, context->hardware_stamps,
                             context->stamps_every ? STAMPED_ASKED : STAMPED_ALL, err) < 0)
        return -ERROR_FAILED;
    if (array_reserve(&context->log, context->log.count + 1) < 0)
        return error_set(err, ERROR_FAILED, "out of memory for the log of connections");
    busy_poll(connection);
    struct connection entry = connection_describe(connection);
    if (connection->opened_ms || !connection->id)
        connection->id = entry.id = atomic_fetch_add(context->last_id, 1) + 1;
    if (connection->ended_tsc) // it is a reconnect
        entry.opening_100us = opening_100us(connection, entry.opened_time);
    context->log.items[context->log.count++] = entry;
    connection->opened_ms = monotonic_ms();
    // The first ones end one by one, wherever in a session they are then.
    if (context->session)
        connection->session = connection->ended_tsc ? context->session
                                                    : 1 + hash64(connection->id) % context->session;
    return connection_opening_begin(connection, err);
}

int connection_watch(struct client_connection *connection, struct error *err)
{
    struct epoll_event watched = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
                                  .data.ptr = connection};
    return epoll_ctl(connection->context->epoll_fd, EPOLL_CTL_ADD, connection->socket_fd,
                     &watched) < 0
               ? error_set_errno(err, ERROR_FAILED, "cannot watch connection %u", connection->id)
               : 0;
}

// --- opening connections again -------------------------------------------------------------------

enum {
    PAUSE_MS_MAX = 100,
    ATTEMPT_MS = 1000, // how long each answer may take: that it is connected, TLS, a login's
    USE_MS = 1000,     // a connection that lived this long counts as useful, even without requests
};

enum connection_loss connection_loss_of(int number)
{
    return number == ECONNRESET || number == EPIPE ? LOSS_RESET : LOSS_OTHER;
}

static void set_timer(struct client_connection *connection, int64_t ms)
{
    const struct timeval wait = {ms / 1000, ms % 1000 * 1000};
    event_add(connection->timer, &wait);
}

void connection_note_overruns(const struct client_connection *connection)
{
    uint32_t memory[SK_MEMINFO_VARS] = {0}; // stays so before Linux 4.12, without SO_MEMINFO
    socklen_t bytes = sizeof memory;
    getsockopt(connection->socket_fd, SOL_SOCKET, SO_MEMINFO, memory, &bytes);
    connection->context->counts->datagrams_overrun += memory[SK_MEMINFO_DROPS];
}

static void close_socket(struct client_connection *connection)
{
    event_del(connection->timer);
    if (connection->socket_fd >= 0 && connection->context->datagrams)
        connection_note_overruns(connection);
    if (connection->socket_fd >= 0)
        close(connection->socket_fd);
    connection->socket_fd = -1;
}

void connection_begin_later(struct client_connection *connection)
{
    connection->state = CONNECTION_PAUSING;
    connection->down_ms = monotonic_ms();
    connection->attempts = 1;
    connection->context->open_again(connection->context->owner, connection);
}

// Schedules the next attempt, at once or after a pause, or gives the connection up.
static void try_again(struct client_connection *connection)
{
    struct connection_context *context = connection->context;
    int64_t now = monotonic_ms(), pause = 0;
    if (connection->attempts == 0)
        connection->down_ms = now;
    else
        pause = connection->attempts < 8 ? 1 << (connection->attempts - 1) : PAUSE_MS_MAX;
    if (pause > PAUSE_MS_MAX)
        pause = PAUSE_MS_MAX;
    if (now + pause - connection->down_ms >= context->reconnect_ms) {
        connection->state = CONNECTION_GONE;
        context->counts->given_up++;
        return;
    }
    connection->state = CONNECTION_PAUSING;
    connection->attempts++;
    if (pause)
        set_timer(connection, pause);
    else // timers are looked at once a millisecond
        context->open_again(context->owner, connection);
}

// Sent requests are lost, requests only put move to another connection. A server that announced
// that it closes the connection has not executed the requests after that point, nor has one that
// refused it executed any: they may be sent again (RFC 9112, 9.3.2; a GET is idempotent).
static void settle_requests(struct client_connection *connection, enum connection_loss reason)
{
    struct connection_context *context = connection->context;
    struct connection_counts *counts = context->counts;
    bool announced = connection->parser.closing && reason == LOSS_CLOSED;
    for (uint64_t slot = connection->answered; slot < connection->put; slot++) {
        struct sample *sample = connection_sample(connection, slot);
        bool was_sent = slot < connection->sent;
        if (sample == context->scrap ||
            (was_sent && connection->settled && !connection_awaits(connection, slot)))
            continue;
        if (sample >= context->fills) {
            counts->fills.lost++;
            context->fill_ended(context->owner, sample);
            continue;
        }
        // Of a reply that was cut off in its middle the request was executed.
        const bool begun = slot == connection->answered && connection->parser.in_reply;
        if (was_sent && (!announced || begun)) {
            sample->status = SAMPLE_LOST;
            counts->lost[reason]++;
            continue;
        }
        *(was_sent ? &counts->repeated : &counts->moved) += 1;
        context->put_again(context->owner, connection->slots[slot & connection->slot_mask]);
    }
    counts->in_flight -= connection->put - connection->answered - connection->settled_ahead;
}

void connection_say_end(struct client_connection *connection)
{
    // What is to be said cannot follow a part of something else.
    if (connection->socket_fd < 0 || connection->out_begin < connection->out_end ||
        connection->unsealed || (connection->streams && client_streams_are_mute(connection)))
        return;
    if (connection->streams)
        client_streams_leave(connection);
    if (connection->tls)
        client_tls_close(connection);
    if (connection->out_end) // the server may have gone: then nobody reads it
        send(connection->socket_fd, connection->out, connection->out_end,
             MSG_NOSIGNAL | MSG_DONTWAIT);
    connection->out_end = 0;
}

// Resets it to the state of a connection that has sent nothing.
static void forget_stream(struct client_connection *connection)
{
    connection_say_end(connection);
    if (connection->parser.closing && !connection->settled)
        connection->window = 1;
    if (connection->waits)
        memset(connection->waits, 0, sizeof *connection->waits);
    connection->put = connection->sent = connection->answered = connection->replies = 0;
    connection->bytes_put = connection->bytes_sent = connection->bytes_received = 0;
    connection->out_begin = connection->out_end = 0;
    connection->blocked = true;
    connection->settled_ahead = 0;
    connection->spells = false;
    connection->spelled = 0;
    connection->login_answers = 0;
    connection->secured = connection->held = false;
    client_streams_end(connection);
    client_tls_end(connection);
    connection->expiry_set = false;
    memset(&connection->parser, 0, sizeof connection->parser);
}

void connection_end(struct client_connection *connection, enum connection_loss reason,
                    const char *why)
{
    struct connection_context *context = connection->context;
    struct connection_counts *counts = context->counts;
    // TX stamps that have arrived must be read before the socket goes.
    for (unsigned i = 0; context->kernel_stamps && i <= STAMP_WAITS / STAMP_BATCH; i++)
        if (connection_take_stamps(connection, tsc_now()) < STAMP_BATCH)
            break;
    // One that nobody had a request for may be closed as idle.
    const bool useful =
        !connection->parser.refused &&
        (connection->replies > 0 || monotonic_ms() - connection->opened_ms >= USE_MS);
    bool orderly = reason == LOSS_CLOSED && useful &&
                   (connection->answered == connection->sent || connection->parser.closing);
    const char *said = connection->parser.said;
    const bool own = connection->streams && client_streams_say_themselves(connection);
    const char *server = connection->server->text;
    const size_t server_most = sizeof counts->broken_at - 1;
    if (!orderly && counts->broken && strncmp(counts->broken_at, server, server_most) != 0)
        counts->broken_elsewhere++;
    if (!orderly && counts->broken == 0)
        snprintf(counts->broken_at, sizeof counts->broken_at, "%.*s", (int)server_most, server);
    if (!orderly && counts->broken++ == 0)
        error_set(&counts->first_break, ERROR_FAILED,
                  "connection %u broke after %s repl%s: %s%s%s%s", connection->id,
                  TEXT_COUNT(connection->replies), connection->replies == 1 ? "y" : "ies", why,
                  !*said ? ""
                  : own  ? " ("
                         : "; it said \"",
                  said,
                  !*said ? ""
                  : own  ? ")"
                         : "\"");
    connection->ended_tsc = tsc_now();
    if (counts->ended++ == 0)
        counts->first_end_tsc = connection->ended_tsc;
    if (useful)
        connection->attempts = 0;
    settle_requests(connection, reason);
    forget_stream(connection);
    close_socket(connection);
    context->open--;
    try_again(connection);
}

void connection_end_session(struct client_connection *connection)
{
    connection->context->counts->sessions.ended++;
    connection_end(connection, LOSS_CLOSED, "its session is over");
}

static void fail_attempt(struct client_connection *connection, const struct error *why)
{
    struct connection_counts *counts = connection->context->counts;
    if (counts->reconnects_failed++ == 0)
        counts->first_failure = *why;
    forget_stream(connection);
    close_socket(connection);
    try_again(connection);
}

bool connection_reopened(struct client_connection *connection)
{
    struct error why;
    struct connection_counts *counts = connection->context->counts;
    const bool connecting = connection->state == CONNECTION_CONNECTING;
    const bool secured = connection->secured;
    int status = connecting ? connection_finish(connection, &why)
                            : connection_opening_step(connection, &why);
    if (status == 0 && (connecting || connection->secured != secured))
        set_timer(connection, ATTEMPT_MS);
    if (status == 0)
        return false;
    if (status < 0) {
        if (connection->state == CONNECTION_OPENING && !counts->first_refusal.kind)
            counts->first_refusal = why;
        fail_attempt(connection, &why);
        return false;
    }
    event_del(connection->timer);
    if (!connection->ended_tsc) {
        counts->redirections.connections++;
        return true;
    }
    counts->reconnects++;
    if (connection->context->session)
        timed_count_note(&counts->sessions.opening,
                         (uint64_t)((double)(tsc_now() - connection->ended_tsc) /
                                    connection->context->ticks_per_us * 1e3));
    counts->last_reconnect_tsc = tsc_now();
    return true;
}

// Whether its answer lies there unread: where this thread had no core for as long as that may take,
// the server has not been silent, and the next look takes it.
static bool has_answered(const struct client_connection *connection)
{
    const short answer = connection->state == CONNECTION_CONNECTING ? POLLOUT : POLLIN;
    struct pollfd socket = {.fd = connection->socket_fd, .events = answer};
    return poll(&socket, 1, 0) > 0 && (socket.revents & answer);
}

void connection_retry(evutil_socket_t unused, short what, void *argument)
{
    (void)unused, (void)what;
    struct error why;
    struct client_connection *connection = argument;
    connection->context->progress = true;
    int status;
    if (connection->state == CONNECTION_CONNECTING || connection->state == CONNECTION_OPENING) {
        status = has_answered(connection)
                     ? 0
                     : error_set(&why, ERROR_FAILED, "%s did not answer within %s",
                                 connection->server->text, TEXT_NS(1e6 * ATTEMPT_MS));
    } else {
        status = connection_begin(connection, false, &why);
        if (status == 0)
            status = connection_watch(connection, &why);
    }
    if (status == 0)
        set_timer(connection, ATTEMPT_MS);
    else
        fail_attempt(connection, &why);
}
