// SPDX-License-Identifier: MIT
//
// A connection over UDP (memcached; workloads/memcached_udp.h). Requests are datagrams, and so what
// its samples count instead of bytes is datagrams: the request is the n-th one sent, [n, n + 1);
// its reply came in datagrams [first, last + 1) of those received, in the order they arrived, among
// which those of other replies may lie. Kernel stamps name the datagram, too (OPT_ID).
//
// UDP keeps no order: replies find their request by its id, the low 16 bits of its number. What is
// not answered within the time allowed is lost, and later answers to it are surplus.
#ifndef LOADGEN_CLIENT_DATAGRAM_H
#define LOADGEN_CLIENT_DATAGRAM_H

#include "loadgen/client/client_state.h"

// What the output buffer holds beside each request: its length, and its frame.
enum { DATAGRAM_OVERHEAD = 4 + 8 };

// What the UDP connections of one thread share: room to take a batch of datagrams at once, and for
// replies that come in several.
struct datagram_reader;

// reply_bytes: of the longest reply. NULL: out of memory.
struct datagram_reader *datagram_reader_new(char *buffer, size_t bytes, size_t reply_bytes);
void datagram_reader_free(struct datagram_reader *reader);

// Encodes a request into the output buffer; returns how many bytes of it that took.
size_t datagram_put(struct client_connection *connection, const struct request *request);

// As connection_flush and connection_receive.
void datagram_flush(struct client_connection *connection);
bool datagram_receive(struct client_connection *connection);

// The connection's timer: gives up the requests that were not answered in time; of one that is not
// open, as connection_retry.
void datagram_timer(evutil_socket_t unused, short what, void *connection);

#endif
