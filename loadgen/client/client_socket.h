// SPDX-License-Identifier: MIT
//
// The sockets of client connections: creates them, connects them without waiting, adds their
// entries to the log, and registers them with the event loop.
#ifndef LOADGEN_CLIENT_CLIENT_SOCKET_H
#define LOADGEN_CLIENT_CLIENT_SOCKET_H

#include "loadgen/client/client_state.h"

// Creates the socket and begins to connect. `patient`: a UNIX socket may wait for room in the
// server's backlog.
int connection_begin(struct client_connection *connection, bool patient, struct error *err);

// To be called when the socket is connected or has failed: turns kernel stamps on, gives a
// reconnected connection its new id, adds the entry in the log, and begins the opening
// (connection_opening_step, whose results are its own).
int connection_finish(struct client_connection *connection, struct error *err);

// From here on the event loop watches the socket.
int connection_watch(struct client_connection *connection, struct error *err);

// To be called instead of connection_begin while the event loop runs: it connects from there.
void connection_begin_later(struct client_connection *connection);

// Of a datagram socket that will not be read any more: counts what the kernel threw away for want
// of room in it.
void connection_note_overruns(const struct client_connection *connection);

// --- opening connections again -------------------------------------------------------------------
// The end of a connection and how it is opened again. The first attempt is made with the next
// round, later ones after pauses that double up to PAUSE_MS_MAX. A connection that never answers
// anything counts as a failed attempt too, so a server that accepts and closes cannot cause a busy
// loop.

// The reason that an errno of a connected socket stands for.
enum connection_loss connection_loss_of(int number);

// To be called when the connection ended: settles its requests and opens it again, now or later.
void connection_end(struct client_connection *connection, enum connection_loss reason,
                    const char *why);

// To be called before the socket of a connection goes: says so, where its protocol has words for
// it.
void connection_say_end(struct client_connection *connection);

// Its session has had its requests, and all their replies: it is closed, and opened again.
void connection_end_session(struct client_connection *connection);

// Handles an event of a connection that is being opened again. True: it is open for requests.
bool connection_reopened(struct client_connection *connection);

// The timer: begins the next attempt, or gives up one that takes too long.
void connection_retry(evutil_socket_t unused, short what, void *connection);

#endif
