// SPDX-License-Identifier: MIT
//
// The memcached text protocol, client side (memcached's doc/protocol.txt): get and set.
#ifndef WORKLOADS_MEMCACHED_TEXT_H
#define WORKLOADS_MEMCACHED_TEXT_H

#include "workloads/protocol.h"

extern const struct protocol memcached_text_protocol;

#endif
