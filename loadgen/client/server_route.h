// SPDX-License-Identifier: MIT
//
// Which of this host's interfaces leads to the server.
#ifndef LOADGEN_CLIENT_SERVER_ROUTE_H
#define LOADGEN_CLIENT_SERVER_ROUTE_H

#include <net/if.h>
#include <sys/socket.h>

#include "base/error.h"

int server_route(const struct sockaddr *server, socklen_t server_bytes, char interface[IF_NAMESIZE],
                 struct error *err);

#endif
