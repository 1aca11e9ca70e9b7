// SPDX-License-Identifier: MIT
//
// Whose addresses or ports are translated between two hops (NAT): behind a translation a packet's
// bytes are the same and its flow is another. The kernel's connection tracking has, for each
// connection in a network namespace, how it is known before and behind; it is asked now and then
// while packets are recorded, since what has ended is forgotten there, and once at the end.
//
// What else translates (IPVS, rules without state, a proxy) nobody is asked about.
#ifndef PROFILER_CAPSULE_TRANSLATIONS_H
#define PROFILER_CAPSULE_TRANSLATIONS_H

#include <stddef.h>
#include <stdint.h>

#include "base/array.h"
#include "base/map.h"

struct translation {
    uint64_t behind,
        before; // flows: packet_flow(); before == behind: of several, nobody knows which
};

struct translation_array ARRAY_OF(struct translation);

struct translations {
    struct translation_array all;
    struct map by_behind;
    uint64_t key; // of packet_flow()
};

// Asks the namespace in which it was opened.
struct translation_reader {
    int socket;      // -1: that has no connection tracking, or does not say
    int count;       // a file that says how many connections it tracks; open where the socket is
    int64_t next_ns; // when it is to be asked again (monotonic_ns()); 0: its answer is coming
};

// For the network namespace that the caller is in.
void translation_reader_begin(struct translation_reader *reader);

// Takes in a piece of an answer, if one is there; asks every five seconds, where any connection is
// tracked: the kernel goes through the whole of its table for an answer, which takes it some ten
// milliseconds of the core that asks. Never waits.
void translation_reader_look(struct translation_reader *reader, struct translations *out);

// Asks once more and waits for all of it, for a second at most without an answer; the reader is
// closed.
void translation_reader_end(struct translation_reader *reader, struct translations *out);

void translation_reader_close(struct translation_reader *reader);

// Takes in what a message of ctnetlink says of a connection.
void translations_take(struct translations *translations, const void *message, size_t bytes);

// A flow as it was before all of its translations; itself, if there are none.
uint64_t translations_before(const struct translations *translations, uint64_t flow);

void translations_free(struct translations *translations);

#endif
