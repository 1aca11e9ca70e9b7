// SPDX-License-Identifier: MIT
//
// The end of a connection and how it is opened again. The first attempt is made without delay,
// later ones after pauses that double up to PAUSE_MS_MAX. A connection that never answers anything
// counts as a failed attempt too, so a server that accepts and closes cannot cause a busy loop.
#ifndef LOADGEN_CLIENT_CLIENT_RECONNECT_H
#define LOADGEN_CLIENT_CLIENT_RECONNECT_H

#include "loadgen/client/client_state.h"

// The reason that an errno of a connected socket stands for.
enum connection_loss connection_loss_of(int number);

// To be called when the connection ended: settles its requests and opens it again, now or later.
void connection_end(struct client_connection *connection, enum connection_loss reason,
                    const char *why);

// Handles an event of a connection that is being opened again. True: it is open.
bool connection_reopened(struct client_connection *connection);

// The timer: begins the next attempt, or gives up one that takes too long.
void connection_retry(evutil_socket_t unused, short what, void *connection);

#endif
