// SPDX-License-Identifier: MIT
//
// The memcached binary protocol, client side (memcached's doc/protocol-binary.txt): get and set.
// The opaque field carries the request's number; a reply with another one is out of order.
#ifndef WORKLOADS_MEMCACHED_BINARY_H
#define WORKLOADS_MEMCACHED_BINARY_H

#include "workloads/protocol.h"

extern const struct protocol memcached_binary_protocol;

#endif
