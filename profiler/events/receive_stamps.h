// SPDX-License-Identifier: MIT
//
// The kernel stamps arriving packets (skb->tstamp, CLOCK_REALTIME) only while some socket on the
// host has asked for it. Holding one such socket open is how a capture gets M(n) without touching
// the server's own sockets (design §4; net/core/dev.c, netstamp_needed_key).
#ifndef PROFILER_EVENTS_RECEIVE_STAMPS_H
#define PROFILER_EVENTS_RECEIVE_STAMPS_H

#include "base/error.h"

enum receive_stamps_state {
    RECEIVE_STAMPS_ON,        // a packet to ourselves came back with its stamp
    RECEIVE_STAMPS_UNCHECKED, // requested; loopback is down here, so it could not be tested
    RECEIVE_STAMPS_OFF,       // not requested, or no stamp came
};

// Opens the socket and waits (50 ms at most) until stamps are seen to be taken. Returns its fd, to
// be closed when stamps are no longer needed, or a negative error.
int receive_stamps_hold(enum receive_stamps_state *state, struct error *err);

const char *receive_stamps_name(enum receive_stamps_state state); // "on", "unchecked", "off"

#endif
