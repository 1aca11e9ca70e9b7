// SPDX-License-Identifier: MIT
//
// "redis://[USER@]HOST[:PORT][/DATABASE]": a server and what it speaks, as other tools take it (RFC
// 3986).
#ifndef LOADGEN_SERVER_URL_H
#define LOADGEN_SERVER_URL_H

#include "loadgen/client/server_address.h"
#include "workloads/login.h"
#include "workloads/protocol.h"

// As server_address_parse, and of a URL its protocol, too; *protocol is NULL for an address. The
// scheme is a protocol's name; a port that is absent is the protocol's usual one. A user and a
// database go into the login, which otherwise stays as it is. What Taillight would not do (a
// password that everyone can read, a path: requests come of the workload) is ERROR_INPUT.
int server_url_parse(const char *text, struct server_address *address,
                     const struct protocol **protocol, struct login *login, struct error *err);

#endif
