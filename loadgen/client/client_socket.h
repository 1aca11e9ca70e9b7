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
// reconnected connection its new id, and adds the entry in the log.
int connection_finish(struct client_connection *connection, struct error *err);

// From here on the event loop watches the socket.
int connection_watch(struct client_connection *connection, struct error *err);

#endif
