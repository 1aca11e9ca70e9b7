// SPDX-License-Identifier: MIT
//
// The sockets of client connections: made, connected without waiting, entered into the log,
// watched.
#ifndef LOADGEN_CLIENT_CLIENT_SOCKET_H
#define LOADGEN_CLIENT_CLIENT_SOCKET_H

#include "loadgen/client/client_state.h"

// Makes the socket and begins to connect. `patient`: a UNIX socket may wait for room in the
// server's backlog.
int connection_begin(struct client_connection *connection, bool patient, struct error *err);

// The socket is connected, or failed to: turns kernel stamps on, gives a connection that is opened
// again its id, and each its entry in the log.
int connection_finish(struct client_connection *connection, struct error *err);

// The event loop looks after the socket from here on.
int connection_watch(struct client_connection *connection, struct error *err);

#endif
