// SPDX-License-Identifier: MIT
//
// A multiget asks for several keys in one request (memcached's get of many keys, Redis' MGET) and
// has one reply, of the values that were there. Its first key is the schedule's; the others are
// drawn by the workload's popularity, and follow from the first and from the request's number on
// its connection. So whoever judges the reply draws the same ones again, and nothing is stored for
// a request in flight. A key may be drawn twice: it is then asked for twice. Of a recorded load the
// keys are those that were recorded, known by the request's place in the schedule.
#ifndef WORKLOADS_MULTIGET_H
#define WORKLOADS_MULTIGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "workloads/distribution.h"
#include "workloads/protocols/protocol.h"

struct error;
struct reply_list;
struct workload;

struct multiget {
    const struct workload *workload;
    struct rank_sampler ranks;
    unsigned count; // of keys, at most; 0: there is no multiget
};

// ERROR_INPUT where the workload has multigets that cannot be: of more keys than there are, over
// UDP, or in a cluster, which recorded ones cannot be, either.
int multiget_check(const struct workload *workload, bool cluster, bool over_udp, struct error *err);

// The workload must outlive it.
void multiget_init(struct multiget *multiget, const struct workload *workload);

// The index of one of the keys: place is 0 for the schedule's own, `first`.
uint64_t multiget_key(const struct multiget *multiget, uint64_t first, uint64_t number,
                      unsigned place);

// How many keys the request at that place of the schedule asks for.
unsigned multiget_count(const struct multiget *multiget, uint64_t place);

// Gives a request of the key `first`, at that place of the schedule, the others, written to `room`,
// of multiget_room() bytes.
void multiget_add_keys(const struct multiget *multiget, uint64_t first, uint64_t place,
                       struct request *request, char *room);
size_t multiget_room(const struct multiget *multiget);

// The most bytes that the keys of a request take in any protocol: what request_bytes_max is to be
// asked for.
size_t multiget_key_bytes_max(const struct multiget *multiget);

// Room for the replies of one connection. The caller frees (free); NULL: no memory.
struct reply_list *multiget_list_new(const struct multiget *multiget);

// Whether the reply that was listed has what there is of the keys that were asked for: no other
// keys, no other sizes, in the order they were asked for. *missing: of how many there was nothing.
bool multiget_is_right(const struct multiget *multiget, uint64_t first,
                       const struct reply_list *list, unsigned *missing);

#endif
