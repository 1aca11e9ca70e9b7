// SPDX-License-Identifier: MIT
//
// Which of the server's connections each of the client's is, by the mirrored 5-tuple: of the
// kernel's the nearest in time, of the shim's that of the kernel's where both know the socket's
// cookie (SO_COOKIE, socket(7)), else the one that was read after it was sent on.
#ifndef ANALYSIS_LIFETIME_JOIN_CONNECTIONS_H
#define ANALYSIS_LIFETIME_JOIN_CONNECTIONS_H

struct joiner; // joiner.h

// Sets socket_of and calls_of, once all records are piled; the caller frees both, also after an
// error. Returns 0, or -1: no memory.
int join_connections(struct joiner *joiner);

#endif
