// SPDX-License-Identifier: MIT
//
// The end of a connection and its being opened again. The first attempt is made at once, those
// after it with pauses that double up to PAUSE_MS_MAX; what never answers anything counts as a
// failed attempt too, so that a server which accepts and closes cannot make this loop busy.
#ifndef LOADGEN_CLIENT_CLIENT_RECONNECT_H
#define LOADGEN_CLIENT_CLIENT_RECONNECT_H

#include "loadgen/client/client_state.h"

// What an errno of a connected socket means.
enum connection_loss connection_loss_of(int number);

// The connection ended: settles its requests and opens it again, now or later.
void connection_end(struct client_connection *connection, enum connection_loss reason,
                    const char *why);

// An event while it was being opened again. True: it is open.
bool connection_reopened(struct client_connection *connection);

// The timer: the next attempt, or the end of one that takes too long.
void connection_retry(evutil_socket_t unused, short what, void *connection);

#endif
