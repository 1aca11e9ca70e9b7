// SPDX-License-Identifier: MIT
//
// HTTP/2 on one connection of the load generator (workloads/protocols/http2_session.h): requests
// are streams, and are answered in any order. What nghttp2 has to say goes into the connection's
// output buffer, so bytes, their offsets and their stamps are as those of any stream.
//
// A request is put whole. If the server's windows have no room for its body, the connection takes
// no other until the rest has left, as if its socket were full; also while the server allows no
// further stream. After GOAWAY it takes none, and ends when those under way are settled; requests
// that the server has not looked at are put again.
#ifndef LOADGEN_CLIENT_CLIENT_STREAMS_H
#define LOADGEN_CLIENT_CLIENT_STREAMS_H

#include "loadgen/client/client_samples.h"
#include "loadgen/client/client_state.h"

// Room in the output buffer for what is said besides requests.
enum { STREAMS_SLACK_BYTES = 8 << 10 };

// Puts what ends it in order (GOAWAY).
void client_streams_leave(struct client_connection *connection);

// Takes the session's memory. -1: there is none.
int client_streams_make(struct client_connection *connection);
void client_streams_free(struct client_connection *connection);

// The socket is connected, and encrypts: puts what HTTP/2 begins with. ERROR_FAILED: no memory.
int client_streams_begin(struct client_connection *connection, struct error *err);

// The connection has ended.
void client_streams_end(struct client_connection *connection);

// Takes `count` bytes that came before the connection was open, in the context's receive_buffer,
// and puts what they ask for. ERROR_INPUT: the server speaks something else.
int client_streams_meet(struct client_connection *connection, size_t count, struct error *err);

// The server has said how it wants to be spoken to.
bool client_streams_met(const struct client_connection *connection);

// As the context's `put`.
size_t client_streams_put(struct client_connection *connection, const struct request *request);

// Takes `count` bytes of replies, in the context's receive_buffer, and puts what they ask for.
// False: they break the protocol.
bool client_streams_take(struct client_connection *connection, size_t count,
                         const struct arrival *arrival);

// The load ends without having said all: counts what the server holds it back with.
void client_streams_note_wait(const struct client_connection *connection);

// Of what was put a part was dropped, which nothing can follow: not even TLS's last words, whose
// record would have another number than the server expects.
// What the parser has for people is this side's word, not the server's.
bool client_streams_say_themselves(const struct client_connection *connection);

bool client_streams_are_mute(const struct client_connection *connection);

// It is of no more use: no memory, or a GOAWAY and all that was sent is settled. Why, or NULL.
const char *client_streams_over(const struct client_connection *connection,
                                enum connection_loss *loss);

#endif
