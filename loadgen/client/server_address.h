// SPDX-License-Identifier: MIT
//
// "HOST:PORT", "udp:HOST:PORT" or "unix:/path/to/socket" as people write it, and what it resolves
// to.
#ifndef LOADGEN_SERVER_ADDRESS_H
#define LOADGEN_SERVER_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/error.h"

struct addrinfo;

enum server_transport { SERVER_TCP, SERVER_UDP, SERVER_UNIX };

struct server_address {
    char text[300]; // as given, for messages
    enum server_transport transport;
    char host[256];                         // without brackets; of a UNIX socket its path
    uint16_t port;                          // of a UNIX socket 0
    struct sockaddr_storage socket_address; // filled in by server_address_resolve
    socklen_t socket_address_bytes;
};

// Splits "name:port", "1.2.3.4:port" or "[::1]:port", "udp:" in front of any of them, or
// "unix:/path". Does no I/O. ERROR_INPUT names what is wrong.
int server_address_parse(const char *text, struct server_address *address, struct error *err);

// Looks the host up and keeps the first address. A name that does not resolve is ERROR_INPUT.
int server_address_resolve(struct server_address *address, struct error *err);

// The same of a server that is to be connected to: of several addresses over TCP it keeps the first
// that accepts a connection ("localhost" may be ::1 where the server has 127.0.0.1 alone); if none
// does, the first.
int server_address_reach(struct server_address *address, struct error *err);

// Keeps one of what getaddrinfo found, at least one: the first, or with `reach` as above.
void server_address_choose(struct server_address *address, const struct addrinfo *found,
                           bool reach);

// The 16 bytes of an address in struct connection (IPv6, or IPv4 mapped), and the port in host byte
// order. All 0 for a UNIX socket.
void server_address_bytes(const struct sockaddr_storage *socket_address, uint8_t bytes[16],
                          uint16_t *port);

#endif
