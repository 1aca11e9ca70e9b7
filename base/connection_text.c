// SPDX-License-Identifier: MIT
#include "base/connection_text.h"

#include <arpa/inet.h>
#include <stdio.h>

static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

static void path_text(const struct connection *connection, char out[CONNECTION_TEXT_BYTES])
{
    char path[CONNECTION_PATH_BYTES + 1] = "";
    memcpy(path, connection->local, sizeof connection->local);
    memcpy(path + sizeof connection->local, connection->peer, sizeof connection->peer);
    for (char *at = path; *at; at++)
        if (*at <= ' ' || *at > '~')
            *at = '?'; // safe to print
    bool cut = path[CONNECTION_PATH_BYTES - 1] && path[0] != '/' && path[0] != '@';
    snprintf(out, CONNECTION_TEXT_BYTES, "%s%s", cut ? "..." : "", path[0] ? path : "unix socket");
}

char *connection_peer_text(const struct connection *connection, char out[CONNECTION_TEXT_BYTES])
{
    char address[INET6_ADDRSTRLEN] = "?";
    bool v4 = memcmp(connection->peer, mapped, sizeof mapped) == 0;
    if (connection->protocol == CONNECTION_UNIX) {
        path_text(connection, out);
        return out;
    }
    inet_ntop(v4 ? AF_INET : AF_INET6, connection->peer + (v4 ? sizeof mapped : 0), address,
              sizeof address);
    snprintf(out, CONNECTION_TEXT_BYTES, v4 ? "%s:%u" : "[%s]:%u", address, connection->peer_port);
    return out;
}
