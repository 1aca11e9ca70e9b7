// SPDX-License-Identifier: MIT
//
// The protocols, one row each: PROTOCOL(symbol, name) stands for `symbol`_protocol, defined in a
// file of its own, which says what else there is to know of it (struct protocol). From the rows
// come the names that --protocol and `protocol:` take, --help, the man page and docs/workloads.md.
// The first is the default.
PROTOCOL(memcached_text, "memcached")
PROTOCOL(memcached_binary, "memcached-binary")
PROTOCOL(memcached_meta, "memcached-meta")
PROTOCOL(redis, "redis")
PROTOCOL(redis_resp3, "redis-resp3")
PROTOCOL(http, "http")
PROTOCOL(http2, "http2")
PROTOCOL(grpc, "grpc")
PROTOCOL(custom, "custom")
PROTOCOL(lab, "lab")
#undef PROTOCOL
