// SPDX-License-Identifier: MIT
//
// The memcached text protocol, client side (memcached's doc/protocol.txt): get, also of many keys,
// set and delete. Also what memcached's three protocols share.
#ifndef WORKLOADS_PROTOCOLS_MEMCACHED_TEXT_H
#define WORKLOADS_PROTOCOLS_MEMCACHED_TEXT_H

#include "workloads/protocols/reply_parser.h"

// Behind get and set.
enum { MEMCACHED_MULTIGET = WORKLOAD_SET + 1, MEMCACHED_DELETE, MEMCACHED_OPERATIONS };
// The operations, with what is to be said of the multiget besides.
#define MEMCACHED_OPERATIONS_WITH(...)                                                             \
    {                                                                                              \
        [WORKLOAD_GET] = {.name = "get", .weight = 90, .returns_value = true},                     \
        [WORKLOAD_SET] = {.name = "set", .weight = 10, .carries_value = true},                     \
        [MEMCACHED_MULTIGET] = {.name = "multiget", .many_keys = true, __VA_ARGS__},               \
        [MEMCACHED_DELETE] = {.name = "delete", .removes = true},                                  \
    }
// memcached never accepts items above 1 GiB (-I): a larger length is malformed.
enum { MEMCACHED_VALUE_BYTES_MAX = 1 << 30 };

bool memcached_answers(unsigned operation, enum reply_kind kind);

// memcached -Y: the answer to whoever has not logged in, and the login.
#define MEMCACHED_WANTS_LOGIN PROTOCOL_WANTS_LOGIN("CLIENT_ERROR unauthenticated")

// What one says that has no room for another connection, in whatever protocol it would be asked.
#define MEMCACHED_IS_FULL "ERROR Too many open connections"
int memcached_log_in(const struct login *login, struct login_words *words, struct error *err);

// The user and the password that every login of memcached needs: ERROR_INPUT without.
int memcached_check_login(const struct login *login, struct error *err);

// The kind of an error's line, also of one that is too long or not understood.
enum reply_kind memcached_error_kind(const struct reply_line *line);

#endif
