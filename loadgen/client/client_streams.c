// SPDX-License-Identifier: MIT
#include "loadgen/client/client_streams.h"

#include <stdlib.h>

#include "loadgen/client/client_tls.h"
#include "workloads/protocols/http2_session.h"

struct client_streams {
    struct http2_session *session;
    const struct arrival *arrival; // of the bytes being taken; NULL: a stream ended by itself
    bool mute;                     // nothing more is sent: the rest of what was, is dropped
    bool surplus;                  // a reply came to what was not sent
};

// --- what replies are ----------------------------------------------------------------------------

// A reply may come before all of its request has left: then no more of it has to.
static bool was_sent(struct client_connection *connection, uint64_t slot)
{
    if (slot < connection->sent)
        return true;
    struct sample *sample = connection_sample(connection, slot);
    if (slot > connection->sent || connection->bytes_sent <= sample->request_begin)
        return false;
    sample->send_tsc = connection->send_tsc;
    sample->sent_tsc = connection->sent_tsc;
    sample->request_end = connection->bytes_put;
    sample->tx_source = connection->waits ? STAMP_LEFT_OUT : STAMP_NONE;
    connection->sent++;
    connection->unended &= connection->sent < connection->put;
    return true;
}

static void take_answer(void *owner, uint64_t number, const struct reply *reply)
{
    struct client_connection *connection = owner;
    if (was_sent(connection, number)) {
        connection_take_reply(connection, number, reply, connection->streams->arrival);
        return;
    }
    connection->context->counts->unexpected++;
    connection_note_fault(connection, NULL, reply);
    connection->streams->surplus = true;
}

// One that has not left yet moves with the others when the connection ends.
static void take_refusal(void *owner, uint64_t number)
{
    struct client_connection *connection = owner;
    struct connection_context *context = connection->context;
    if (number >= connection->sent)
        return;
    uint32_t *place = &connection->slots[number & connection->slot_mask];
    context->counts->repeated++;
    context->put_again(context->owner, *place);
    *place = (uint32_t)(context->scrap - context->samples); // a stamp still to come is of no use
    connection_settle(connection, number);
}

static void take_surplus(void *owner)
{
    struct client_connection *connection = owner;
    connection->context->counts->unexpected++;
    connection_note_fault(connection, NULL, &(struct reply){.kind = REPLY_VALUE});
}

static const struct http2_events events = {
    .answered = take_answer, .refused = take_refusal, .surplus = take_surplus};

// --- bytes ---------------------------------------------------------------------------------------

// Puts what there is to say behind the output buffer's end, whose end the caller moves, or into the
// open record. Returns how many bytes.
static size_t say_once(struct client_connection *connection)
{
    struct http2_session *session = connection->streams->session;
    size_t room = connection->out_bytes + STREAMS_SLACK_BYTES - connection->out_end;
    if (connection->streams->mute)
        return 0;
    if (!connection->tls)
        return http2_session_say(session, connection->out + connection->out_end, room);
    char *at = client_tls_room(connection, &room);
    size_t count = http2_session_say(session, at, room);
    client_tls_join(connection, count);
    return count;
}

static void note_held(struct client_connection *connection)
{
    struct client_streams *streams = connection->streams;
    connection->held =
        !http2_session_takes(streams->session) || connection->put == connection->session;
    if (connection->unended && http2_session_whole(streams->session)) {
        if (!connection->unsealed)
            connection_sample(connection, connection->put - 1)->request_end = connection->bytes_put;
        connection->unended = false;
    }
}

static void say(struct client_connection *connection)
{
    for (size_t count; (count = say_once(connection));) {
        connection->out_end += connection->tls ? 0 : count;
        connection->bytes_put += connection->tls ? 0 : count;
    }
    note_held(connection);
}

size_t client_streams_put(struct client_connection *connection, const struct request *request)
{
    struct client_streams *streams = connection->streams;
    if (connection->unended || !http2_session_whole(streams->session))
        say(connection); // what is not of this request stands in front of it
    http2_session_put(streams->session, request);
    size_t count = say_once(connection);
    connection->unended = !http2_session_whole(streams->session);
    connection->held = !http2_session_takes(streams->session);
    return connection->tls ? 0 : count;
}

void client_streams_note_wait(const struct client_connection *connection)
{
    struct connection_counts *counts = connection->context->counts;
    if (!connection_is_open(connection) || connection->out_begin < connection->out_end)
        return; // it is TCP's window, if any
    const enum http2_wait wait = http2_session_waits(connection->streams->session);
    counts->windows_shut += wait == HTTP2_WAITS_WINDOW;
    counts->streams_spent += wait == HTTP2_WAITS_STREAM;
    counts->ends_awaited += wait == HTTP2_WAITS_END;
}

// What has not left when the server says that it takes no more is not to leave: it moves.
static void drop_unsent(struct client_connection *connection)
{
    if (!http2_session_is_ending(connection->streams->session) ||
        (connection->out_begin == connection->out_end && !connection->unsealed))
        return;
    connection->out_begin = connection->out_end = 0;
    client_tls_drop(connection);
    connection->streams->mute = true;
}

bool client_streams_take(struct client_connection *connection, size_t count,
                         const struct arrival *arrival)
{
    struct client_streams *streams = connection->streams;
    struct http2_place record;
    streams->arrival = arrival;
    if (connection->tls)
        record = client_tls_record(connection);
    bool right = http2_session_take(streams->session, connection->context->receive_buffer, count,
                                    connection->tls ? &record : NULL);
    streams->arrival = NULL;
    drop_unsent(connection);
    say(connection);
    return right && !streams->surplus && !http2_session_is_broken(streams->session);
}

bool client_streams_say_themselves(const struct client_connection *connection)
{
    return http2_session_says_itself(connection->streams->session);
}

bool client_streams_are_mute(const struct client_connection *connection)
{
    return connection->streams->mute;
}

const char *client_streams_over(const struct client_connection *connection,
                                enum connection_loss *loss)
{
    const struct http2_session *session = connection->streams->session;
    *loss = LOSS_CLOSED;
    if (http2_session_is_broken(session)) {
        *loss = LOSS_OTHER;
        return "HTTP/2 broke off";
    }
    if (http2_session_is_ended(session))
        return "the server ended it";
    return http2_session_is_ending(session) && connection->answered == connection->sent
               ? "the server said that it closes it"
               : NULL;
}

// --- its begin and its end -----------------------------------------------------------------------

int client_streams_make(struct client_connection *connection)
{
    const struct connection_context *context = connection->context;
    const struct http2_settings settings = {.dialect = context->protocol->http2,
                                            .words = &context->workload->http,
                                            .tls = context->tls != NULL,
                                            .depth = connection->depth,
                                            .value_bytes = context->carried_bytes,
                                            .parser = &connection->parser,
                                            .events = &events,
                                            .owner = connection};
    struct client_streams *streams = connection->streams = calloc(1, sizeof *streams);
    if (streams)
        streams->session = http2_session_new(&settings);
    return streams && streams->session ? 0 : -1;
}

void client_streams_free(struct client_connection *connection)
{
    if (connection->streams)
        http2_session_free(connection->streams->session);
    free(connection->streams);
    connection->streams = NULL;
}

int client_streams_begin(struct client_connection *connection, struct error *err)
{
    if (!http2_session_begin(connection->streams->session))
        return error_set(err, ERROR_FAILED, "out of memory for HTTP/2 on connection %u",
                         connection->id);
    say(connection);
    return 0;
}

void client_streams_leave(struct client_connection *connection)
{
    struct client_streams *streams = connection->streams;
    if (connection->unended || !http2_session_ready(streams->session) ||
        http2_session_is_broken(streams->session))
        return;
    http2_session_leave(streams->session);
    size_t count = say_once(connection);
    connection->out_end += connection->tls ? 0 : count;
}

void client_streams_end(struct client_connection *connection)
{
    struct client_streams *streams = connection->streams;
    if (!streams)
        return;
    http2_session_end(streams->session);
    *streams = (struct client_streams){.session = streams->session};
    connection->held = connection->unended = false;
}

bool client_streams_met(const struct client_connection *connection)
{
    return http2_session_ready(connection->streams->session);
}

int client_streams_meet(struct client_connection *connection, size_t count, struct error *err)
{
    const struct arrival none = {0};
    const char *said = connection->parser.said; // nothing, where it was GOAWAY without an error
    if (!client_streams_take(connection, count, &none))
        return error_set(err, ERROR_INPUT, "%s does not speak HTTP/2: \"%s\"",
                         connection->server->text, connection->parser.said);
    if (http2_session_is_ending(connection->streams->session))
        return error_set(err, ERROR_FAILED, "%s closes connections of HTTP/2 at once%s%s",
                         connection->server->text, *said ? ": " : "", said);
    return 0;
}
