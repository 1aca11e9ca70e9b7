// SPDX-License-Identifier: MIT
//
// TLS on one connection of the load generator. OpenSSL sees no socket: it is fed the bytes that
// came, and what it says goes into the connection's output buffer. So all that the connection does
// with bytes, their offsets and their stamps is as without TLS, and of the bytes on the wire:
// what is put on a connection one after the other leaves as one record, the thread's open one, and
// request_begin and request_end are that record's for all of its requests: none is there before all
// of it is. A reply was there when the record with its last byte was, whose end is its end.
//
// Requests share a record of up to 8 KiB; a longer one has a record of its own, or several, of 16
// KiB at most. Memory is OpenSSL's, and taken when the connection opens.
#ifndef LOADGEN_CLIENT_CLIENT_TLS_H
#define LOADGEN_CLIENT_CLIENT_TLS_H

#include "loadgen/client/client_state.h"
#include "workloads/protocols/http2_session.h"
#include "workloads/protocols/protocol.h"

// Room in the output buffer for what is said besides requests: handshakes, keys' updates.
enum { TLS_SLACK_BYTES = 8 << 10 };

// A request of that many bytes takes at most so many on the wire.
size_t client_tls_bytes_max(size_t request_bytes);

// How OpenSSL reaches a connection's buffers. NULL: no memory. BIO_meth_free.
struct bio_method_st *client_tls_method(void);

// Begins a handshake, or resumes the session that the connection had before: its first bytes are
// put. ERROR_FAILED: no memory.
int client_tls_begin(struct client_connection *connection, struct error *err);

// Goes on with it, after client_tls_feed. 1: done, and counted; 0: more must come, or be sent;
// ERROR_INPUT: refused.
int client_tls_shake(struct client_connection *connection, struct error *err);

// Gives it `count` bytes that came, in the context's wire_buffer. They must be taken before the
// buffer is used again: until client_tls_take returns 0.
void client_tls_feed(struct client_connection *connection, size_t count);

// Decrypts the next record into the context's receive_buffer. Returns its bytes; 0: no whole record
// is left. *why: the connection is to end, for that reason; else NULL.
size_t client_tls_take(struct client_connection *connection, enum connection_loss *loss,
                       const char **why);

// Puts bytes that are no request's.
void client_tls_say(struct client_connection *connection, const char *bytes, size_t count);

// --- the open record -----------------------------------------------------------------------------
// It is of the connection that was last put something on, and is sealed when another one is, when
// it is full, or when the connection is flushed.

// Of a request, or its begin or end, that lies in the open record.
#define UNPLACED UINT64_MAX

// So much memory an open record needs for requests of that many bytes.
size_t client_tls_record_room(size_t request_bytes);

// Where something may be put at its end, and how much: enough for a request on a connection with
// room for it. Then client_tls_join with what was put, all of which leaves in the same record.
char *client_tls_room(struct client_connection *connection, size_t *room);
void client_tls_join(struct client_connection *connection, size_t count);

// What is put on that connection goes to the end of its output buffer, and its requests have their
// places.
void client_tls_seal(struct client_connection *connection);

// It does not: the connection has ended.
void client_tls_drop(struct client_connection *connection);

// Where on the wire the record lies that was taken last.
struct http2_place client_tls_record(const struct client_connection *connection);

// As the context's `put`: 0, since it takes none of the output buffer yet.
size_t client_tls_put(struct client_connection *connection, const struct request *request);

// Replies that lie in the record that was taken last get their places on the wire for those in the
// decrypted stream.
void client_tls_place(struct client_connection *connection, struct reply *replies, size_t count);

// Puts the notice that nothing more comes (RFC 8446, 6.1).
void client_tls_close(struct client_connection *connection);

// The server's end of the stream came although it had not said so in TLS first (RFC 8446, 6.1): it,
// or somebody on the way, may have cut off what it said.
bool client_tls_is_cut(const struct client_connection *connection);

// The connection has ended: its session is kept, unless handshakes are to be full ones.
void client_tls_end(struct client_connection *connection);

// Frees all of it.
void client_tls_free(struct client_connection *connection);

#endif
