// SPDX-License-Identifier: MIT
//
// The Redis protocol, client side: RESP2, and RESP3 for those who ask for it ("redis-resp3": HELLO
// 3 goes in front of a connection's first request, and its answer belongs to that one's). Redis's
// RESP and RESP3 specifications.
//
// The replies are parsed here, in place, without the allocation per reply of hiredis' reader,
// which in Debian 12 knows no RESP3 either; the tests hold this parser against that reader.
//
// In a cluster (workloads/protocols/redis_cluster.h) all nodes speak the same.
//
// A key serves several types, so all but strings prefix it: "list:", "hash:", "zset:", "counter:",
// "stream:".
#ifndef WORKLOADS_PROTOCOLS_REDIS_H
#define WORKLOADS_PROTOCOLS_REDIS_H

#include "workloads/protocols/protocol.h"

enum redis_operation {
    REDIS_GET,         // GET key
    REDIS_SET,         // SET key value
    REDIS_INCR,        // INCR counter:key
    REDIS_LPUSH,       // LPUSH list:key value
    REDIS_LPOP,        // LPOP list:key
    REDIS_LRANGE,      // LRANGE list:key 0 9
    REDIS_HSET,        // HSET hash:key field value
    REDIS_HGET,        // HGET hash:key field
    REDIS_ZADD,        // ZADD zset:key score member, both number % 100
    REDIS_ZRANGE,      // ZRANGE zset:key 0 9
    REDIS_XADD,        // XADD stream:key MAXLEN ~ 1000 * field value
    REDIS_XRANGE,      // XRANGE stream:key - + COUNT 10
    REDIS_SCRIPT,      // EVALSHA of the script below, with key and value
    REDIS_TRANSACTION, // MULTI, GET key, SET key value (or what was recorded), EXEC, in one piece
    REDIS_MULTIGET,    // MGET key ...
    REDIS_DELETE,      // DEL key
    REDIS_OPERATIONS,
    REDIS_ASKING = REDIS_OPERATIONS, // ASKING: in no mix; goes before what a node was asked for
};
_Static_assert((int)REDIS_OPERATIONS <= (int)PROTOCOL_OPERATIONS_MAX, "they fit in a mix");

enum { REDIS_RANGE = 10 }; // elements of a list, sorted set or stream that a range asks for

// Puts another value in a key's place and returns the one that was there. Servers know it by its
// SHA-1 once it was loaded (--prepare), or sent as it is (EVAL), until they are started again.
#define REDIS_SCRIPT_TEXT                                                                          \
    "local old = redis.call('GET', KEYS[1]) redis.call('SET', KEYS[1], ARGV[1]) return old"
#define REDIS_SCRIPT_SHA "8fd28eae7b66ec43e16e171725052a59ab66be92"

#endif
