// SPDX-License-Identifier: MIT
#include "loadgen/client/client_opening.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/tsc.h"
#include "loadgen/client/client_samples.h"
#include "loadgen/client/client_streams.h"
#include "loadgen/client/client_tls.h"
#include "workloads/protocols/reply_parser.h"

// More than any server has to say to a login; one that goes on for ever is not listened to.
enum { ANSWERS_BYTES_MAX = 64 << 10 };

static int opening_broke(const struct client_connection *connection, const char *why,
                         struct error *err)
{
    return error_set(err, ERROR_FAILED, "%s broke a connection off before it had answered: %s",
                     connection->server->text, why);
}

static int opening_refused(const struct client_connection *connection, struct error *err)
{
    return error_set(err, ERROR_FAILED, "%s refuses connections: \"%s\"", connection->server->text,
                     connection->parser.said);
}

static int send_words(struct client_connection *connection, struct error *err)
{
    client_tls_seal(connection);
    while (connection->out_begin < connection->out_end) {
        ssize_t taken =
            send(connection->socket_fd, connection->out + connection->out_begin,
                 connection->out_end - connection->out_begin, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (taken < 0)
            return errno == EAGAIN || errno == EINTR
                       ? 0
                       : opening_broke(connection, strerror(errno), err);
        connection->out_begin += (size_t)taken;
        connection->bytes_sent += (uint64_t)taken;
        if (connection->waits) // its stamp is nobody's
            stamp_waits_push(connection->waits, connection->bytes_sent - 1, 0, 0, tsc_now());
    }
    connection->out_begin = connection->out_end = 0;
    return 0;
}

static int take_answer(struct client_connection *connection, const struct reply *reply,
                       struct error *err)
{
    const char *said = connection->parser.said;
    said = *said ? said : reply_kind_names[reply->kind];
    connection->login_answers--;
    if (reply->kind == REPLY_STORED)
        return 0;
    if (reply_is_broken(reply->kind))
        return error_set(err, ERROR_INPUT,
                         "%s does not log one in: protocol %s has no such answer to a login: "
                         "\"%s\"",
                         connection->server->text, connection->context->protocol->name, said);
    return error_set(err, reply->kind == REPLY_SERVER_ERROR ? ERROR_FAILED : ERROR_INPUT,
                     "%s refuses the login: \"%s\"", connection->server->text, said);
}

static int take_answers(struct client_connection *connection, size_t count, struct error *err)
{
    const char *at = connection->context->receive_buffer;
    while (count && connection->login_answers) {
        struct reply answer;
        size_t found, used = reply_parse(connection->context->protocol, &connection->parser, at,
                                         count, &answer, 1, &found);
        if (connection->parser.refused)
            return opening_refused(connection, err);
        if (found && take_answer(connection, &answer, err) < 0)
            return -(int)err->kind;
        at += used;
        count -= used;
    }
    if (count)
        return opening_broke(connection, "it says more than the login asks for", err);
    if (connection->bytes_received > ANSWERS_BYTES_MAX)
        return opening_broke(connection, "its answer to the login does not end", err);
    return 0;
}

// Of what is said before the first request.
static int take_plain(struct client_connection *connection, size_t count, struct error *err)
{
    return connection->streams ? client_streams_meet(connection, count, err)
                               : take_answers(connection, count, err);
}

static void put_login(struct client_connection *connection)
{
    const struct login_words *login = connection->context->login;
    if (!login || !login->count)
        return;
    connection->login_answers = login->answers;
    connection->parser.login = true;
    if (connection->tls) {
        client_tls_say(connection, login->bytes, login->count);
        return;
    }
    memcpy(connection->out, login->bytes, login->count);
    connection->out_end = login->count;
}

// The connection is as safe as it will be: puts what is said before the first request.
static int put_beginning(struct client_connection *connection, struct error *err)
{
    if (connection->streams)
        return client_streams_begin(connection, err);
    put_login(connection);
    return 0;
}

// Of a handshake, of what may follow it at once, and of answers to the login.
static int take_records(struct client_connection *connection, size_t count, struct error *err)
{
    const char *wire = connection->context->wire_buffer;
    // memcached says so in plain.
    if (connection->bytes_received == count &&
        reply_refuses(connection->context->protocol, wire, count)) {
        const char *end = memchr(wire, '\r', count);
        reply_note_said(&connection->parser, wire, end ? (size_t)(end - wire) : count);
        return opening_refused(connection, err);
    }
    client_tls_feed(connection, count);
    if (!connection->secured) {
        int status = client_tls_shake(connection, err);
        if (status <= 0)
            return status;
        connection->secured = true;
        if (put_beginning(connection, err) < 0)
            return -(int)err->kind;
    }
    enum connection_loss loss;
    const char *why;
    size_t plain;
    while ((plain = client_tls_take(connection, &loss, &why)))
        if (take_plain(connection, plain, err) < 0)
            return -(int)err->kind;
    return why ? opening_broke(connection, why, err) : 0;
}

// From here on all is requests and replies.
static int opening_end(struct client_connection *connection)
{
    connection->parser = (struct reply_parser){.offset = connection->parser.offset};
    connection->bytes_put = connection->bytes_sent + connection->out_end - connection->out_begin;
    connection->state = CONNECTION_OPEN;
    connection->blocked = false;
    connection->context->open++;
    if (connection->waits && connection->bytes_sent)
        connection_take_stamps(connection, tsc_now());
    return 1;
}

// The server is to say something before the first request. What is to be said to it then, the end
// of a handshake, can leave together with that request.
static bool awaits_answer(const struct client_connection *connection)
{
    return connection->login_answers || (connection->streams && !client_streams_met(connection)) ||
           (connection->context->tls && !connection->secured);
}

int connection_opening_begin(struct client_connection *connection, struct error *err)
{
    connection->state = CONNECTION_OPENING;
    int status = connection->context->tls ? client_tls_begin(connection, err)
                                          : put_beginning(connection, err);
    if (status < 0)
        return -(int)err->kind;
    return connection_opening_step(connection, err);
}

int connection_opening_step(struct client_connection *connection, struct error *err)
{
    struct connection_context *context = connection->context;
    if (send_words(connection, err) < 0)
        return -(int)err->kind;
    while (awaits_answer(connection)) {
        ssize_t count =
            recv(connection->socket_fd, context->wire_buffer, context->receive_bytes, MSG_DONTWAIT);
        if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
            // Stamps that are not read make the socket seem ready for ever.
            if (connection->waits)
                connection_take_stamps(connection, tsc_now());
            return 0;
        }
        if (count <= 0)
            return opening_broke(connection,
                                 count < 0 ? strerror(errno)
                                 : client_tls_is_cut(connection)
                                     ? "it closed it without TLS's close_notify"
                                     : "it closed it",
                                 err);
        connection->bytes_received += (uint64_t)count;
        int status = context->tls ? take_records(connection, (size_t)count, err)
                                  : take_plain(connection, (size_t)count, err);
        if (status < 0)
            return status;
        if (awaits_answer(connection) && send_words(connection, err) < 0)
            return -(int)err->kind;
    }
    return opening_end(connection);
}
