// SPDX-License-Identifier: MIT
//
// What comes between a connected socket and its first request: the handshake of TLS, and the login.
// Their bytes are part of the
// connection's streams, so that the offsets of requests and replies count from the socket's start.
// Nothing here waits: the caller does, for the socket.
#ifndef LOADGEN_CLIENT_CLIENT_OPENING_H
#define LOADGEN_CLIENT_CLIENT_OPENING_H

#include "loadgen/client/client_state.h"

// Begins: the socket is connected. As connection_opening_step.
int connection_opening_begin(struct client_connection *connection, struct error *err);

// Goes on as far as it can. 1: requests may be put, and what is still to be said in front of the
// first is in the output buffer, to be flushed in this round at the latest; 0: the server is to
// answer. ERROR_INPUT: it refuses the login, and is quoted; ERROR_FAILED: the connection broke.
int connection_opening_step(struct client_connection *connection, struct error *err);

#endif
