// SPDX-License-Identifier: MIT
//
// memcached's meta commands, client side (memcached's doc/protocol.txt, "Meta Commands"): mg and
// ms. The opaque token carries the request's number; where a reply brings another one back it is
// out of order (a miss, EN, brings none).
#ifndef WORKLOADS_MEMCACHED_META_H
#define WORKLOADS_MEMCACHED_META_H

#include "workloads/protocol.h"

extern const struct protocol memcached_meta_protocol;

#endif
