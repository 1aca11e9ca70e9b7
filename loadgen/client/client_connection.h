// SPDX-License-Identifier: MIT
//
// One connection of the load generator: requests go in, bytes go out, replies come back in order,
// and the samples they belong to are filled in on the way. All memory is taken when it is opened.
//
// A request is put into the output buffer (connection_put), leaves with a later connection_flush,
// which sends all buffered requests in one call, and waits in a slot until its reply comes. Byte
// offsets of both directions count from the connection's start.
//
// When the stream ends or breaks the protocol, the requests in flight are lost; requests put but
// not sent move to another connection; and the connection is opened again from the event loop
// (loadgen/client/client_socket.c), after growing pauses, until it has failed for reconnect_ms.
// Each reconnect counts as a new connection: a new id, a new entry for connections.tlog, offsets
// and request numbers from 0.
#ifndef LOADGEN_CLIENT_CONNECTION_H
#define LOADGEN_CLIENT_CONNECTION_H

#include "loadgen/client/client_samples.h"
#include "loadgen/client/client_state.h"

// Allocates a connection's memory and begins to connect, without waiting for the result. The caller
// has set its server and room, and keeps what they point to.
int connection_open(struct client_connection *connection, uint32_t id,
                    struct connection_context *context, uint32_t depth, size_t out_bytes,
                    struct error *err);

// The same while the load lasts: the event loop connects, as after a connection's end.
int connection_open_later(struct client_connection *connection, struct connection_context *context,
                          uint32_t depth, size_t out_bytes, struct error *err);

// Waits until the socket is connected, or until deadline_ms (CLOCK_MONOTONIC), and begins what
// comes before the first request.
int connection_establish(struct client_connection *connection, int64_t deadline_ms,
                         struct error *err);

// Waits until requests may be put on each of them, too, at most CONNECTIONS_AWAITED, whichever the
// server answers first: one that serves one connection after the other waits for none that this
// client does not look at. From then on the event loop handles their events and reconnects.
enum { CONNECTIONS_AWAITED = 64 };
int connections_await(struct client_connection *connections, unsigned count, int64_t deadline_ms,
                      struct error *err);

void connection_close(struct client_connection *connection);

// Handles the events of its socket (epoll's). Where that was the last of its opening, what is still
// to be said waits for a flush.
void connection_ready(struct client_connection *connection, uint32_t events);

// Reads to the end of what came, without an event: who waits for replies and gets none looks now
// and then.
void connection_look(struct client_connection *connection);

// Encodes the request of a sample behind what is already buffered. Call only if there is room.
void connection_put(struct client_connection *connection, uint32_t sample,
                    const struct request *request);

// Hands the buffered bytes to the kernel, in one send call.
void connection_flush(struct client_connection *connection);

#endif
