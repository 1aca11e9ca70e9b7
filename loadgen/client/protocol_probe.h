// SPDX-License-Identifier: MIT
//
// Whether a server speaks the protocol that it is to be loaded by, asked before the load: a whole
// run of errors says less than "this is Redis".
#ifndef LOADGEN_PROTOCOL_PROBE_H
#define LOADGEN_PROTOCOL_PROBE_H

#include "loadgen/client/server_address.h"
#include "workloads/protocols/protocol.h"

// Sends the protocol's probe, which asks for nothing and changes nothing, on a connection of its
// own, and waits half a second for the answer. ERROR_INPUT when there is another one, which is
// quoted, or none but to another protocol's probe, which is named. ERROR_FAILED: nobody listens. 0
// also when nothing can be said: nobody answers anything (the load itself will say so), UDP, a
// protocol without a probe.
int protocol_probe(const struct server_address *resolved, const struct protocol *protocol,
                   struct error *err);

#endif
