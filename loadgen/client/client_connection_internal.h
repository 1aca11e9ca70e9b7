// SPDX-License-Identifier: MIT
//
// What the files of a client connection share: client_socket.c opens sockets, client_connection.c
// moves bytes, client_reconnect.c deals with the end of a connection and what comes after.
#ifndef LOADGEN_CLIENT_CONNECTION_INTERNAL_H
#define LOADGEN_CLIENT_CONNECTION_INTERNAL_H

#include "loadgen/client/client_connection.h"

static inline struct sample *connection_sample(struct client_connection *connection, uint64_t slot)
{
    return &connection->context->samples[connection->slots[slot & connection->slot_mask]];
}

// When bytes of replies came.
struct arrival {
    uint64_t tsc, stream_end;
    struct kernel_stamp rx;
};

// A request has its reply.
void connection_answer(struct client_connection *connection, struct sample *sample,
                       const struct reply *reply, const struct arrival *arrival);

int64_t monotonic_ms(void);

// Makes the socket and begins to connect. `patient`: a UNIX socket may wait for room in the
// server's backlog.
int connection_begin(struct client_connection *connection, bool patient, struct error *err);

// The socket is connected, or failed to: turns kernel stamps on, gives a connection that is opened
// again its id, and each its entry in the log.
int connection_finish(struct client_connection *connection, struct error *err);

// The event loop looks after the socket from here on.
int connection_watch(struct client_connection *connection, struct error *err);

// What an errno of a connected socket means.
enum connection_loss connection_loss_of(int number);

// The connection ended: settles its requests and opens it again, now or later.
void connection_end(struct client_connection *connection, enum connection_loss reason,
                    const char *why);

// An event while it was being opened again. True: it is open.
bool connection_reopened(struct client_connection *connection);

// The timer: the next attempt, or the end of one that takes too long.
void connection_retry(evutil_socket_t unused, short what, void *connection);

// --- over UDP (client_datagram.c) ----------------------------------------------------------------

// Encodes a request into the output buffer; returns how many bytes of it that took.
size_t datagram_put(struct client_connection *connection, const struct request *request);

void datagram_flush(struct client_connection *connection);
bool datagram_receive(struct client_connection *connection);

// Gives up the requests that were not answered in time.
void datagram_expire(struct client_connection *connection);

// The socket is gone: nothing that came through it counts any more.
void datagram_forget(struct client_connection *connection);

#endif
