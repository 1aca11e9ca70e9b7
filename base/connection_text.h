// SPDX-License-Identifier: MIT
//
// What the other end of a connection is called.
#ifndef BASE_CONNECTION_TEXT_H
#define BASE_CONNECTION_TEXT_H

#include "base/connection.h"

// "127.0.0.1:6379", "[::1]:6379", "/run/redis.sock", of a long path its end. Returns out.
enum { CONNECTION_TEXT_BYTES = 64 };
char *connection_peer_text(const struct connection *connection, char out[CONNECTION_TEXT_BYTES]);

#endif
