// SPDX-License-Identifier: MIT
//
// "redis://[USER@]HOST[:PORT][/DATABASE]", "redis+cluster://HOST[:PORT]",
// "https://HOST[:PORT][/PATH]": a server and what it speaks, as other tools take it (RFC 3986).
#ifndef LOADGEN_SERVER_URL_H
#define LOADGEN_SERVER_URL_H

#include <stdbool.h>

#include "loadgen/client/server_address.h"
#include "workloads/protocols/login.h"
#include "workloads/protocols/protocol.h"

enum { URL_PATH_BYTES = 2048, URL_AUTHORITY_BYTES = 280 };

// What a URL says besides the address. Zeroed: it was no URL.
struct server_url {
    const struct protocol *protocol; // NULL: it was no URL
    bool tls;
    bool cluster;
    char authority[URL_AUTHORITY_BYTES]; // HOST[:PORT], as it was written
    char path[URL_PATH_BYTES];           // of http: with its query; "": there is none
};

// As server_address_parse, and of a URL the rest, too. The scheme is a protocol's name, with an s
// behind it for TLS, and then +cluster where the server is a node of one; a port that is absent is
// the protocol's usual one. A user and a database go into the login, which otherwise stays as it
// is. What Taillight would not do (a password that everyone can read, a path where the protocol
// knows none) is ERROR_INPUT.
int server_url_parse(const char *text, struct server_address *address, struct server_url *url,
                     struct login *login, struct error *err);

#endif
