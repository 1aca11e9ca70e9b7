// SPDX-License-Identifier: MIT
//
// One connection of the load generator: requests go in, bytes go out, replies come back in order,
// and the samples they belong to are filled in on the way. All memory is taken when it is opened.
//
// A request is put into the output buffer (connection_put), leaves with a later connection_flush
// together with its neighbours in one send call, and waits in a slot until its reply comes. Byte
// offsets of both directions count from the connection's start.
//
// When the stream ends, or is no longer what the protocol allows, what was in flight is lost, what
// was only put goes to another connection, and the connection is opened again from the event loop
// (loadgen/client/client_reconnect.c), after growing pauses, until it has failed for reconnect_ms.
// Each such reconnect is a connection of its own: a new id, a new entry for connections.tlog,
// offsets and request numbers from 0.
#ifndef LOADGEN_CLIENT_CONNECTION_H
#define LOADGEN_CLIENT_CONNECTION_H

#include "loadgen/client/client_samples.h"
#include "loadgen/client/client_state.h"

// Takes the memory of a connection and begins to connect, without waiting for the end.
int connection_open(struct client_connection *connection, uint32_t id,
                    struct connection_context *context, uint32_t depth, size_t out_bytes,
                    struct error *err);

// Waits for the end of connecting until deadline_ms (CLOCK_MONOTONIC). From then on its events, and
// its being opened again, are the event loop's.
int connection_establish(struct client_connection *connection, int64_t deadline_ms,
                         struct error *err);

void connection_close(struct client_connection *connection);

// Does what an event of its socket asks for.
void connection_ready(struct client_connection *connection);

// Encodes the request of a sample behind what waits already. Only with room for it.
void connection_put(struct client_connection *connection, uint32_t sample,
                    const struct request *request);

// Gives the kernel what waits, in one send call.
void connection_flush(struct client_connection *connection);

// Takes what has arrived. Returns true when there was anything. An end or error of the stream, or
// a reply that is not what the protocol allows, ends the connection: what was in flight is lost.
bool connection_receive(struct client_connection *connection);

#endif
