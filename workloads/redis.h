// SPDX-License-Identifier: MIT
//
// The Redis protocol, client side: RESP2, and RESP3 for those who ask for it ("redis-resp3": HELLO
// 3 goes in front of a connection's first request, and its answer belongs to that one's). Redis's
// RESP and RESP3 specifications.
//
// The replies are parsed here, in place, without the allocation per reply of hiredis' reader,
// which in Debian 12 knows no RESP3 either; the tests hold this parser against that reader.
//
// In a cluster (workloads/redis_cluster.h) all nodes speak the same.
//
// A key serves several types, so all but strings prefix it: "list:", "hash:", "zset:", "counter:".
#ifndef WORKLOADS_REDIS_H
#define WORKLOADS_REDIS_H

#include "workloads/protocol.h"

enum redis_operation {
    REDIS_GET,    // GET key
    REDIS_SET,    // SET key value
    REDIS_INCR,   // INCR counter:key
    REDIS_LPUSH,  // LPUSH list:key value
    REDIS_LPOP,   // LPOP list:key
    REDIS_LRANGE, // LRANGE list:key 0 9
    REDIS_HSET,   // HSET hash:key field value
    REDIS_HGET,   // HGET hash:key field
    REDIS_ZADD,   // ZADD zset:key score member, both number % 100
    REDIS_ZRANGE, // ZRANGE zset:key 0 9
    REDIS_OPERATIONS,
    REDIS_ASKING = REDIS_OPERATIONS, // ASKING: in no mix; goes before what a node was asked for
};
_Static_assert((int)REDIS_OPERATIONS <= (int)PROTOCOL_OPERATIONS_MAX, "they fit in a mix");

enum { REDIS_RANGE = 10 }; // elements of a list or sorted set that a range asks for

#endif
