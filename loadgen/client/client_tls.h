// SPDX-License-Identifier: MIT
//
// TLS on one connection of the load generator. OpenSSL sees no socket: it is fed the bytes that
// came, and what it says goes into the connection's output buffer. So all that the connection does
// with bytes, their offsets and their stamps is as without TLS, and of the bytes on the wire:
// a request leaves in a record of its own, and request_begin and request_end are that record's; a
// reply was there when the record with its last byte was, whose end is its end.
//
// Records hold 16 KiB of a request at most; a longer one takes several. Memory is OpenSSL's, and
// taken when the connection opens.
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

// And so many bytes there have room for so many of requests; rather fewer.
size_t client_tls_plain_max(size_t wire_bytes);

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

// Puts bytes as records. Returns how many bytes of the output buffer they take; the caller moves
// its end.
size_t client_tls_seal(struct client_connection *connection, const char *bytes, size_t count);

// Where on the wire the record lies that was taken last.
struct http2_place client_tls_record(const struct client_connection *connection);

// Encodes a request and puts it as records. Returns how many bytes of the output buffer it takes;
// the caller moves its end.
size_t client_tls_put(struct client_connection *connection, const struct request *request);

// Replies that lie in the record that was taken last get their places on the wire for those in the
// decrypted stream.
void client_tls_place(struct client_connection *connection, struct reply *replies, size_t count);

// Puts the notice that nothing more comes (RFC 8446, 6.1).
void client_tls_close(struct client_connection *connection);

// The connection has ended: its session is kept, unless handshakes are to be full ones.
void client_tls_end(struct client_connection *connection);

// Frees all of it.
void client_tls_free(struct client_connection *connection);

#endif
