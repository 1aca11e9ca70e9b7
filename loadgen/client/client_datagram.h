// SPDX-License-Identifier: MIT
//
// A connection over UDP (memcached; workloads/protocols/memcached_udp.h). Requests are datagrams,
// so the samples' offsets count datagrams instead of bytes: the request is the n-th one sent, [n, n
// + 1); its reply arrived in datagrams [first, last + 1) of those received, counted in the order
// they arrived; datagrams of other replies may lie between. Kernel stamps name the datagram, too
// (OPT_ID).
//
// UDP keeps no order: replies find their request by its id, the low 16 bits of its number. A
// request that is not answered within the time allowed is lost, and a later answer to it is
// surplus.
#ifndef LOADGEN_CLIENT_DATAGRAM_H
#define LOADGEN_CLIENT_DATAGRAM_H

#include "loadgen/client/client_state.h"

// What the output buffer stores for each request: its length, and its frame.
enum { DATAGRAM_OVERHEAD = 4 + 8 };

// What the UDP connections of one thread share: room to read a batch of datagrams at once, and for
// replies that consist of several.
struct datagram_reader;

// reply_bytes: size of the longest reply. NULL: out of memory.
struct datagram_reader *datagram_reader_new(char *buffer, size_t bytes, size_t reply_bytes);
void datagram_reader_free(struct datagram_reader *reader);

// Encodes a request into the output buffer; returns how many bytes of the buffer that took.
size_t datagram_put(struct client_connection *connection, const struct request *request);

// As connection_flush; and reads what has arrived: true when there was anything.
void datagram_flush(struct client_connection *connection);
bool datagram_receive(struct client_connection *connection);

// Behind the load's end: reads what came and nobody has read. It answers no request any more.
void datagram_take_rest(struct client_connection *connection);

// The connection's timer: gives up requests that were not answered in time. For a connection that
// is not open it acts as connection_retry.
void datagram_timer(evutil_socket_t unused, short what, void *connection);

#endif
