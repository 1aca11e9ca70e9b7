// SPDX-License-Identifier: MIT
//
// A way to the server for clients that know no TLS, which store the dataset or ask what it speaks:
// they connect to a UNIX socket in a folder that only this user can enter, and a thread carries
// their bytes to the server and back, one connection after the other.
#ifndef LOADGEN_CLIENT_TLS_TUNNEL_H
#define LOADGEN_CLIENT_TLS_TUNNEL_H

#include "loadgen/client/tls_settings.h"

struct tls_tunnel;

// The server is resolved, and outlives the tunnel. alpn: as of tls_context_make.
int tls_tunnel_open(const struct tls_settings *settings, const struct server_address *server,
                    const char *alpn, struct tls_tunnel **tunnel, struct error *err);

// The socket, resolved; its text is the server's. Valid while the tunnel is open.
const struct server_address *tls_tunnel_address(const struct tls_tunnel *tunnel);

// Closes it; NULL: there is none. `status` is how its use ended, with *err. A server that could not
// be reached, or is not believed, is the better reason where that failed, and a failure where only
// nothing came of it. Returns the status.
int tls_tunnel_close(struct tls_tunnel *tunnel, int status, struct error *err);

#endif
