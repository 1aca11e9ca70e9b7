// SPDX-License-Identifier: MIT
#include "loadgen/client/client_connection.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/tsc.h"
#include "loadgen/client/client_datagram.h"
#include "loadgen/client/client_opening.h"
#include "loadgen/client/client_socket.h"
#include "loadgen/client/client_streams.h"
#include "loadgen/client/client_tls.h"
#include "workloads/protocols/memcached_udp.h"
#include "workloads/protocols/reply_parser.h"

enum {
    REPLY_BATCH = 64,
    READS_AT_ONCE = 16, // then the other connections have their turn
    STOP_LOOK_MS = 100, // so soon a person who ends the load is heard
};

static const char not_allowed[] = "a reply that the protocol does not allow";

// Of replies that are broken.
static const char *what_is_wrong(enum reply_kind kind)
{
    return kind == REPLY_OVERSIZED      ? "a reply, or a line of one, that is too long"
           : kind == REPLY_OUT_OF_ORDER ? "a reply that names another request than the next one"
                                        : not_allowed;
}

// to_the_end: also past a short read. send_error: the errno of a send call that failed before this,
// or 0. If a send failed, a stream that ends then was not closed in order.
static bool replies_receive(struct client_connection *connection, bool to_the_end, int send_error);

void connection_ready(struct client_connection *connection, uint32_t events)
{
    const struct connection_context *context = connection->context;
    connection->context->progress = true;
    if (connection->state < CONNECTION_OPEN && !connection_reopened(connection))
        return;
    // Readiness is edge-triggered: with level triggering the event would repeat for as long as a
    // stamp waits on the error queue. An edge tells all that is ready, not only what is new. That
    // of a stamp has EPOLLERR, like an error; but a stream that broke is also at its end.
    const uint32_t ends = EPOLLRDHUP | EPOLLHUP;
    if (context->datagrams)
        datagram_receive(connection);
    else if ((events & (EPOLLIN | ends)) || !context->kernel_stamps)
        replies_receive(connection, events & ends, 0);
    if (connection->blocked)
        connection_flush(connection);
}

void connection_look(struct client_connection *connection)
{
    if (!connection->context->datagrams && connection->answered != connection->sent)
        replies_receive(connection, true, 0);
}

static uint64_t power_of_two(uint64_t at_least)
{
    uint64_t power = 1;
    while (power < at_least)
        power *= 2;
    return power;
}

static int connection_make(struct client_connection *connection, uint32_t id,
                           struct connection_context *context, uint32_t depth, size_t out_bytes,
                           struct error *err)
{
    *connection = (struct client_connection){.socket_fd = -1,
                                             .id = id,
                                             .server = connection->server,
                                             .room = connection->room,
                                             .context = context,
                                             .depth = depth,
                                             .out_bytes = out_bytes,
                                             .blocked = true};
    // Slots stay in use after the reply until their TX stamps are in, hence twice the depth. Where
    // replies come in any order, one that is late keeps its slot while many others come and go.
    connection->slot_mask = power_of_two(2 * (uint64_t)depth + STAMP_WAITS) - 1;
    connection->window = connection->session = UINT64_MAX;
    bool made = true;
    if (context->datagrams || context->protocol->http2) {
        uint64_t slots = power_of_two(8 * (uint64_t)depth + 4 * STAMP_WAITS);
        connection->slot_mask = (slots < UDP_IDS ? slots : UDP_IDS) - 1;
        // Only half of UDP's ids are in use at once, so a late reply cannot be taken for another
        // request's.
        connection->window = (connection->slot_mask + 1) / 2;
        connection->settled = calloc(connection->slot_mask + 1, sizeof *connection->settled);
        made = connection->settled != NULL;
    }
    if (context->protocol->http2)
        made = client_streams_make(connection) == 0 && made;
    connection->waits = context->kernel_stamps ? calloc(1, sizeof *connection->waits) : NULL;
    connection->slots = calloc(connection->slot_mask + 1, sizeof *connection->slots);
    const size_t slack =
        (context->tls ? TLS_SLACK_BYTES : 0u) + (connection->streams ? STREAMS_SLACK_BYTES : 0u);
    connection->out = malloc(out_bytes + slack);
    connection->timer = event_new(
        context->base, -1, 0, context->datagrams ? datagram_timer : connection_retry, connection);
    if (!connection->slots || !connection->out || !connection->timer ||
        (context->kernel_stamps && !connection->waits) || !made)
        return error_set(err, ERROR_FAILED, "out of memory for connection %u", id);
    connection->list = context->multiget ? multiget_list_new(context->multiget) : NULL;
    if (context->multiget && !connection->list)
        return error_set(err, ERROR_FAILED, "out of memory for connection %u", id);
    memset(connection->slots, 0xff, (connection->slot_mask + 1) * sizeof *connection->slots);
    memset(connection->out, 0, out_bytes); // touches every page before the load begins
    return 0;
}

int connection_open(struct client_connection *connection, uint32_t id,
                    struct connection_context *context, uint32_t depth, size_t out_bytes,
                    struct error *err)
{
    int status = connection_make(connection, id, context, depth, out_bytes, err);
    return status < 0 ? status : connection_begin(connection, true, err);
}

int connection_open_later(struct client_connection *connection, struct connection_context *context,
                          uint32_t depth, size_t out_bytes, struct error *err)
{
    int status = connection_make(connection, 0, context, depth, out_bytes, err);
    if (status == 0)
        connection_begin_later(connection);
    return status;
}

static const char no_connection[] =
    "no answer within 5 s (a firewall, or a server that accepts no more connections?)";
static const char no_login[] = "it accepts connections, and has not answered the login in 5 s";
static const char no_settings[] =
    "it accepts connections, and has not begun HTTP/2 in 5 s (does it speak it without TLS?)";
static const char no_handshake[] =
    "it accepts connections, and does not answer within 5 s (does it speak TLS?)";

static const char *in_vain(const struct client_connection *connection)
{
    return connection->tls && !connection->secured ? no_handshake
           : connection->streams                   ? no_settings
                                                   : no_login;
}

// Waits for the first `count` of them; found: how many are ready. why: what is said of the server
// that they are of when none is in time.
static int wait_for_server(const struct client_connection *one, struct pollfd *ready,
                           unsigned count, int64_t deadline_ms, const char *why, struct error *err)
{
    const char *server = one->server->text;
    const atomic_bool *stop = one->context->stop;
    int found = 0;
    for (int64_t left = 1; found <= 0 && left > 0 && !atomic_load(stop);) {
        left = deadline_ms - monotonic_ms();
        found = poll(ready, count, left < 0 ? 0 : left < STOP_LOOK_MS ? (int)left : STOP_LOOK_MS);
    }
    if (found > 0)
        return 0;
    if (atomic_load(stop))
        return error_set(err, ERROR_FAILED, "interrupted before %s had accepted all connections",
                         server);
    return error_set(err, ERROR_FAILED, "cannot connect to %s: %s", server, why);
}

int connection_establish(struct client_connection *connection, int64_t deadline_ms,
                         struct error *err)
{
    struct pollfd ready = {.fd = connection->socket_fd, .events = POLLOUT};
    int status = wait_for_server(connection, &ready, 1, deadline_ms, no_connection, err);
    return status < 0 ? status : connection_finish(connection, err);
}

// Takes a step with each that is ready.
static int step_ready(struct client_connection *const *opening, const struct pollfd *ready,
                      unsigned count, struct error *err)
{
    for (unsigned i = 0; i < count; i++) {
        int status = ready[i].revents ? connection_opening_step(opening[i], err) : 0;
        if (status < 0)
            return status;
        if (status > 0)
            connection_flush(opening[i]);
    }
    return 0;
}

int connections_await(struct client_connection *connections, unsigned count, int64_t deadline_ms,
                      struct error *err)
{
    struct client_connection *opening[CONNECTIONS_AWAITED];
    struct pollfd ready[CONNECTIONS_AWAITED];
    // What one that is open has still to say leaves at once: the first request, which could take it
    // along, is not due for long.
    for (unsigned i = 0; i < count; i++)
        if (connection_is_open(&connections[i]))
            connection_flush(&connections[i]);
    for (;;) {
        unsigned left = 0;
        for (unsigned i = 0; i < count; i++) {
            struct client_connection *connection = &connections[i];
            const bool says = connection->out_begin < connection->out_end;
            if (connection_is_open(connection))
                continue;
            ready[left] =
                (struct pollfd){connection->socket_fd, says ? POLLIN | POLLOUT : POLLIN, 0};
            opening[left++] = connection;
        }
        if (left == 0)
            break;
        int status =
            wait_for_server(opening[0], ready, left, deadline_ms, in_vain(opening[0]), err);
        if (status == 0)
            status = step_ready(opening, ready, left, err);
        if (status < 0)
            return status;
    }
    int status = 0;
    for (unsigned i = 0; i < count && status == 0; i++)
        status = connection_watch(&connections[i], err);
    return status;
}

void connection_close(struct client_connection *connection)
{
    if (connection->timer)
        event_free(connection->timer);
    connection_say_end(connection);
    if (connection->socket_fd >= 0)
        close(connection->socket_fd);
    client_streams_free(connection);
    client_tls_free(connection);
    free(connection->slots);
    free(connection->settled);
    free(connection->out);
    free(connection->waits);
    free(connection->list);
    *connection = (struct client_connection){.socket_fd = -1};
}

void connection_put(struct client_connection *connection, uint32_t sample_index,
                    const struct request *request)
{
    struct connection_context *context = connection->context;
    struct connection_counts *counts = context->counts;
    struct sample *sample = &context->samples[sample_index];
    size_t bytes = context->put
                       ? context->put(connection, request)
                       : context->protocol->encode(request, connection->out + connection->out_end,
                                                   connection->out_bytes - connection->out_end);
    uint64_t ahead = connection->put - connection->answered - connection->settled_ahead;
    sample->connection = connection->id;
    sample_set_sender(sample, context->sender);
    sample->in_flight = (uint16_t)(ahead < UINT16_MAX ? ahead : UINT16_MAX);
    sample->request_begin = connection->bytes_put;
    connection->bytes_put += context->datagrams ? 1 : bytes;
    sample->request_end = connection->bytes_put;
    if (connection->unsealed)
        sample->request_begin = sample->request_end = UNPLACED;
    if (connection->unended)
        sample->request_end = UNPLACED; // until all of it was said
    connection->out_end += bytes;
    if (connection->waits && connection->put > connection->slot_mask)
        stamp_waits_forget_before(connection->waits, connection->put - connection->slot_mask);
    connection->slots[connection->put & connection->slot_mask] = sample_index;
    if (connection->settled)
        connection->settled[connection->put & connection->slot_mask] = SLOT_AWAITS;
    connection->put++;
    connection->held |= connection->put == connection->session;
    if (++counts->in_flight > counts->in_flight_max)
        counts->in_flight_max = counts->in_flight;
}

// Up to where the bytes of that request go, which is put and not sent yet. What is put besides
// requests is always in front of one.
static uint64_t end_of_request(struct client_connection *connection, uint64_t slot)
{
    const struct sample *sample = connection_sample(connection, slot);
    return sample != connection->context->scrap
               ? sample->request_end
               : connection_sample(connection, slot + 1)->request_begin;
}

// The kernel has taken everything up to bytes_sent: marks the complete requests as sent. kept_back:
// before, it had had no room for them.
static void mark_sent(struct client_connection *connection, bool stamped, bool kept_back,
                      uint64_t before, uint64_t after)
{
    uint64_t first = connection->sent;
    while (connection->sent < connection->put) {
        struct sample *sample = connection_sample(connection, connection->sent);
        if (end_of_request(connection, connection->sent) > connection->bytes_sent)
            break;
        sample->send_tsc = before;
        sample->sent_tsc = after;
        sample->status = SAMPLE_TIMED_OUT; // until its reply comes
        sample->tx_source = stamped || !connection->waits ? STAMP_NONE : STAMP_LEFT_OUT;
        sample->sender_high |= kept_back ? SAMPLE_KEPT_BACK : 0;
        connection->sent++;
    }
    if (connection->waits && stamped)
        stamp_waits_push(connection->waits, connection->bytes_sent - 1, first,
                         (uint32_t)(connection->sent - first), after);
}

// Whether the next send call has a TX stamp. Drawn (Knuth's MMIX generator), since what is every
// 16th may be every 16th of something else, too.
static bool draw_stamped(struct connection_context *context)
{
    if (context->stamps_every < 2)
        return true;
    context->stamps_random = context->stamps_random * 6364136223846793005u + 1442695040888963407u;
    return (context->stamps_random >> 32) % context->stamps_every == 0;
}

// A server that closes answers later bytes with a reset (RFC 9112, 9.6). The send call then fails
// while replies, and the server's notice that it closes, are still waiting to be read.
static void end_by_send(struct client_connection *connection, int send_error)
{
    replies_receive(connection, true, send_error);
    if (connection_is_open(connection))
        connection_end(connection, connection_loss_of(send_error), strerror(send_error));
}

void connection_flush(struct client_connection *connection)
{
    enum connection_loss loss;
    const char *why;
    connection->dirty = false;
    if (connection_is_open(connection) && connection->streams &&
        (why = client_streams_over(connection, &loss))) {
        connection_end(connection, loss, why);
        return;
    }
    if (!connection_is_open(connection))
        return;
    if (connection->unsealed)
        client_tls_seal(connection);
    if (connection->out_begin == connection->out_end)
        return;
    if (connection->context->datagrams) {
        datagram_flush(connection);
        return;
    }
    const char *bytes = connection->out + connection->out_begin;
    const size_t wanted = connection->out_end - connection->out_begin;
    const int flags = MSG_NOSIGNAL | MSG_DONTWAIT;
    const bool stamped = connection->waits && draw_stamped(connection->context);
    const bool kept_back = connection->blocked;
    uint64_t before = tsc_now();
    ssize_t taken = stamped && connection->context->stamps_every
                        ? client_stamps_send(connection->socket_fd, bytes, wanted, flags)
                        : send(connection->socket_fd, bytes, wanted, flags);
    uint64_t after = tsc_now();
    if (taken < 0 && (errno == EAGAIN || errno == EINTR)) {
        connection->blocked = true;
        return;
    }
    if (taken < 0) {
        end_by_send(connection, errno);
        return;
    }
    connection->out_begin += (size_t)taken;
    connection->bytes_sent += (uint64_t)taken;
    connection->send_tsc = before;
    connection->sent_tsc = after;
    connection->blocked = (size_t)taken < wanted;
    if (connection->out_begin == connection->out_end)
        connection->out_begin = connection->out_end = 0;
    mark_sent(connection, stamped, kept_back, before, after);
}

// An error in answer to nothing with which the server ends a connection: it refuses one that it has
// no room for, or one that was idle for too long (HTTP's 408; RFC 9110, 15.5.9). Nothing of it
// raises a doubt about which reply answers which request.
static bool is_farewell(const struct client_connection *connection, const struct reply *reply)
{
    return reply_is_fault(reply->kind) && !reply_is_broken(reply->kind) &&
           (connection->sent == 0 || connection->parser.closing);
}

// A broken reply answers nobody: its request is lost when the connection ends.
static void take_reply(struct client_connection *connection, const struct reply *reply,
                       const struct arrival *arrival)
{
    struct connection_counts *counts = connection->context->counts;
    if (connection->answered == connection->sent && is_farewell(connection, reply)) {
        connection->parser.closing = true;
        return;
    }
    if (connection->answered == connection->sent) {
        counts->unexpected++;
        connection_note_fault(connection, NULL, reply);
        return;
    }
    if (reply_is_broken(reply->kind)) {
        counts->replies[reply->kind]++;
        return;
    }
    counts->in_flight--;
    if (connection->context->redirect && reply_is_fault(reply->kind) &&
        connection->context->redirect(connection, connection->answered)) {
        connection->replies++;
        connection->answered++;
        return;
    }
    connection_answer(connection, connection_sample(connection, connection->answered++), reply,
                      arrival);
}

// A reply begins: what it is made of follows from what it answers.
static void expect_next(struct client_connection *connection)
{
    const struct reply_parser *parser = &connection->parser;
    if ((parser->in_reply && !parser->aside) || connection->answered == connection->sent)
        return;
    const struct sample *sample = connection_sample(connection, connection->answered);
    if (sample != connection->context->scrap)
        connection_expect(connection, sample, connection->answered);
}

// Returns NULL, or in which way replies break the protocol: it is then unknown which requests later
// replies answer.
static const char *take_bytes(struct client_connection *connection, size_t count,
                              const struct arrival *arrival)
{
    const struct connection_context *context = connection->context;
    const struct protocol *protocol = context->protocol;
    const char *at = context->receive_buffer;
    if (connection->streams)
        return client_streams_take(connection, count, arrival) ? NULL : not_allowed;
    // One, where more is to be known of each than what it comes to: its words, parts or values.
    const size_t at_once = context->redirect || context->expects ? 1 : REPLY_BATCH;
    while (count) {
        struct reply replies[REPLY_BATCH];
        size_t found;
        if (context->expects)
            expect_next(connection);
        size_t used =
            reply_parse(protocol, &connection->parser, at, count, replies, at_once, &found);
        if (connection->tls)
            client_tls_place(connection, replies, found);
        for (size_t i = 0; i < found; i++) {
            take_reply(connection, &replies[i], arrival);
            if (reply_is_broken(replies[i].kind))
                return what_is_wrong(replies[i].kind);
        }
        at += used;
        count -= used;
    }
    if (connection->window <= connection->replies)
        connection->window = connection->replies + 1;
    return NULL;
}

// Record by record. Returns why the connection is to end, or NULL.
static const char *take_records(struct client_connection *connection, size_t count,
                                const struct arrival *arrival, enum connection_loss *loss)
{
    const char *why, *wrong;
    size_t plain;
    client_tls_feed(connection, count);
    while ((plain = client_tls_take(connection, loss, &why)))
        if ((wrong = take_bytes(connection, plain, arrival)))
            return wrong;
    if (!why && connection->out_begin < connection->out_end)
        connection_flush(connection); // OpenSSL had something to say to that
    return why;
}

// The server closed it in order, which may be how the reply under way ends. It has no stamp then:
// that of its last byte was there before it was known to be the last.
static bool take_last_reply(struct client_connection *connection)
{
    struct reply reply;
    struct arrival arrival = {.tsc = tsc_now(), .stream_end = connection->bytes_received};
    if (connection->streams || !reply_end_with_stream(&connection->parser, &reply))
        return false;
    if (connection->tls)
        client_tls_place(connection, &reply, 1);
    take_reply(connection, &reply, &arrival);
    return true;
}

static bool replies_receive(struct client_connection *connection, bool to_the_end, int send_error)
{
    struct connection_context *context = connection->context;
    char control[STAMP_CONTROL_BYTES] __attribute__((aligned(16)));
    bool any = false;
    for (unsigned i = 0; connection_is_open(connection); i++) {
        struct iovec buffer = {context->wire_buffer, context->receive_bytes};
        struct msghdr message = {.msg_iov = &buffer,
                                 .msg_iovlen = 1,
                                 .msg_control = control,
                                 .msg_controllen = sizeof control};
        ssize_t count = context->kernel_stamps
                            ? recvmsg(connection->socket_fd, &message, MSG_DONTWAIT)
                            : recv(connection->socket_fd, context->wire_buffer,
                                   context->receive_bytes, MSG_DONTWAIT);
        struct arrival arrival = {.tsc = tsc_now()};
        if (count < 0 && (errno == EAGAIN || errno == EINTR))
            break;
        if (count <= 0) {
            // Under TLS it would say so itself: without that more may have been to come.
            const bool cut = client_tls_is_cut(connection);
            const bool whole = count == 0 && !cut && take_last_reply(connection);
            const int error = count < 0 ? errno : whole ? 0 : send_error;
            connection_end(connection, error ? connection_loss_of(error) : LOSS_CLOSED,
                           error ? strerror(error)
                           : cut ? "the server closed it without TLS's close_notify, and may have "
                                   "said more than came"
                                 : "the server closed it");
            return true;
        }
        any = true;
        connection->bytes_received += (uint64_t)count;
        arrival.stream_end = connection->bytes_received;
        if (context->kernel_stamps)
            arrival.rx = client_stamps_receive(&message);
        enum connection_loss loss = LOSS_MALFORMED;
        const char *why = context->tls ? take_records(connection, (size_t)count, &arrival, &loss)
                                       : take_bytes(connection, (size_t)count, &arrival);
        if (why) {
            if (loss == LOSS_CLOSED)
                take_last_reply(connection);
            connection_end(connection, loss, why);
            return true;
        }
        if (connection->streams && !send_error) {
            connection_flush(connection); // HTTP/2 had something to say to that, or it is over
            if (!connection_is_open(connection))
                return true;
        }
        if (connection->parser.closing && !connection->parser.in_reply) {
            connection_end(connection, LOSS_CLOSED,
                           connection->sent && !connection->parser.refused
                               ? "the server said that it closes it"
                               : "the server refused it");
            return true;
        }
        if (connection->answered == connection->session) {
            connection_end_session(connection);
            return true;
        }
        if ((size_t)count < context->receive_bytes && !to_the_end)
            break; // a short read empties the socket: the next bytes trigger the next edge
        if (i + 1 == READS_AT_ONCE) {
            context->read_again(context->owner, connection);
            break;
        }
    }
    return any;
}
