// SPDX-License-Identifier: MIT
//
// Requests without a client of ours. Where the capture says where messages end, by their protocol's
// own framing (EVENT_FRAMED), a message is a request and the reply of the same number. Elsewhere,
// on a connection that a server accepted, it is what arrives until the server answers, and its
// answer what the server sends until more arrives: the turns that the two directions take, without
// a look at any byte; requests that are answered together are one message then. Requests whose
// replies' ends were not seen take turns, too. A turn ends with the
// first segment of those that the last receive call returned: a server that stood still while a
// client went on sending kept the first of these requests waiting, and not only the last. What is
// known of them is what the server's host recorded: they live from M(n) to server TX, and that, not
// what the client saw, is their latency.
#ifndef ANALYSIS_LIFETIME_TURNS_H
#define ANALYSIS_LIFETIME_TURNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/calls/calls.h"
#include "analysis/lifetime/holdups.h"
#include "analysis/lifetime/lifetime.h"
#include "base/array.h"
#include "base/connection.h"
#include "loadgen/client/sample_log.h"
#include "profiler/bpf/event_log.h"

struct turn_times ARRAY_OF(int64_t);

struct turns {
    // As a load would have recorded them, but with host time for TSC, and the call that received a
    // request for its sending (join_input.sample_clock, without_client).
    struct ARRAY_OF(struct sample) samples;
    struct ARRAY_OF(struct sample) earlier; // answered before what is kept of these (turns_keep)
    struct ARRAY_OF(struct connection) connections; // as the clients see them
    struct ARRAY_OF(uint32_t) places; // of each connection: its server's port and network namespace
    struct turn_times framed;         // when each message was answered that is so by its framing
    // The same of those that had asked to be kept waiting (FRAMED_WAITS), which are no samples:
    // whether they waited for the server or for another client nobody knows.
    struct turn_times kept_waiting;
    // The same of turns in which the client wrote again before all was answered, as the segments
    // show: it may have asked several times (pipelining), or once piece by piece.
    struct turn_times piecewise;
    uint64_t
        unanswered; // messages that were not answered before the capture or the connection ended
    uint64_t
        unasked; // send calls on a connection on which nothing had been asked since it was seen
};

struct turns_input {
    const struct application_calls *calls;
    const struct connection *connections;
    size_t connection_count;
    const struct event
        *events; // those that are EVENT_FRAMED or EVENT_SEGMENT count; ids as of `calls`
    size_t event_count;
};

// Finds the messages of TCP connections that were accepted; in order of when they were received.
// The caller frees with turns_free either way. -1: no memory.
int turns_find(const struct turns_input *in, struct turns *out);
void turns_free(struct turns *turns);

// Keeps only what was answered after one moment and up to another (host time). Of a server (a port
// of a network namespace) that answered fewer than TURNS_ENOUGH meanwhile, as many as lack of those
// it answered before become `earlier`, the latest ones: what is ordinary there cannot be told by so
// few. -1: no memory.
enum { TURNS_ENOUGH = 1000 };
int turns_keep(struct turns *turns, int64_t after_ns, int64_t until_ns);

// Brings the joined lives of turns, the samples and what refers to them into the order of arrival.
// -1: no memory; nothing is moved then.
int turns_order(struct turns *turns, struct lifetime_array *lives, struct holdup_array *holdups);

#endif
