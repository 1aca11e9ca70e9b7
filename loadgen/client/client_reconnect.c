// SPDX-License-Identifier: MIT
#include "loadgen/client/client_reconnect.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/tsc.h"
#include "loadgen/client/client_samples.h"
#include "loadgen/client/client_socket.h"
#include "base/clock.h"

enum {
    PAUSE_MS_MAX = 100,
    ATTEMPT_MS = 1000, // how long one attempt may take
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

static void close_socket(struct client_connection *connection)
{
    event_del(connection->event);
    event_del(connection->timer);
    if (connection->socket_fd >= 0)
        close(connection->socket_fd);
    connection->socket_fd = -1;
}

// Schedules the next attempt after a pause, or gives the connection up.
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
    set_timer(connection, pause);
}

// Sent requests are lost, requests only put move to another connection. A server that announced
// that it closes the connection has not executed the requests after that point: they may be sent
// again (RFC 9112, 9.3.2; a GET is idempotent).
static void settle_requests(struct client_connection *connection, enum connection_loss reason)
{
    struct connection_context *context = connection->context;
    struct connection_counts *counts = context->counts;
    bool announced = connection->parser.closing && reason == LOSS_CLOSED;
    for (uint64_t slot = connection->answered; slot < connection->put; slot++) {
        struct sample *sample = connection_sample(connection, slot);
        bool was_sent = slot < connection->sent;
        if (was_sent && sample->status != SAMPLE_TIMED_OUT)
            continue; // settled out of order, over UDP
        if (was_sent && !announced) {
            sample->status = SAMPLE_LOST;
            counts->lost[reason]++;
            continue;
        }
        *(was_sent ? &counts->repeated : &counts->moved) += 1;
        context->put_again(context->owner, connection->slots[slot & connection->slot_mask]);
    }
    counts->in_flight -= connection->put - connection->answered - connection->settled_ahead;
}

// Resets it to the state of a connection that has sent nothing.
static void forget_stream(struct client_connection *connection)
{
    if (connection->waits) {
        connection->context->counts->stamps_unknown += connection->waits->unknown;
        memset(connection->waits, 0, sizeof *connection->waits);
    }
    connection->put = connection->sent = connection->answered = 0;
    connection->bytes_put = connection->bytes_sent = connection->bytes_received = 0;
    connection->out_begin = connection->out_end = 0;
    connection->blocked = true;
    connection->settled_ahead = 0;
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
    bool orderly = reason == LOSS_CLOSED && connection->answered &&
                   (connection->answered == connection->sent || connection->parser.closing);
    if (!orderly && counts->broken++ == 0)
        error_set(&counts->first_break, ERROR_FAILED, "connection %u broke after %llu replies: %s",
                  connection->id, (unsigned long long)connection->answered, why);
    if (counts->ended++ == 0)
        counts->first_end_tsc = tsc_now();
    // A server that answers only invalid replies is of no use either.
    if (connection->answered > (reason == LOSS_MALFORMED) ||
        monotonic_ms() - connection->opened_ms >= USE_MS)
        connection->attempts = 0;
    settle_requests(connection, reason);
    forget_stream(connection);
    close_socket(connection);
    context->open--;
    try_again(connection);
}

static void fail_attempt(struct client_connection *connection)
{
    connection->context->counts->reconnects_failed++;
    close_socket(connection);
    try_again(connection);
}

bool connection_reopened(struct client_connection *connection)
{
    struct error why;
    struct connection_counts *counts = connection->context->counts;
    event_del(connection->timer);
    if (connection_finish(connection, &why) < 0) {
        fail_attempt(connection);
        return false;
    }
    counts->reconnects++;
    counts->last_reconnect_tsc = tsc_now();
    return true;
}

void connection_retry(evutil_socket_t unused, short what, void *argument)
{
    (void)unused, (void)what;
    struct error why;
    struct client_connection *connection = argument;
    connection->context->progress = true;
    if (connection->state == CONNECTION_CONNECTING || // it took too long
        connection_begin(connection, false, &why) < 0 || connection_watch(connection, &why) < 0) {
        fail_attempt(connection);
        return;
    }
    set_timer(connection, ATTEMPT_MS);
}
