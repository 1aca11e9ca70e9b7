// SPDX-License-Identifier: MIT
//
// The memcached text protocol, client side (memcached's doc/protocol.txt): get and set. Also what
// memcached's three protocols share.
#ifndef WORKLOADS_MEMCACHED_TEXT_H
#define WORKLOADS_MEMCACHED_TEXT_H

#include "workloads/protocol.h"

enum { MEMCACHED_OPERATIONS = 2 }; // get, set
extern const struct protocol_operation memcached_operations[MEMCACHED_OPERATIONS];

bool memcached_answers(unsigned operation, enum reply_kind kind);

#endif
