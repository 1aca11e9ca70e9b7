// SPDX-License-Identifier: MIT
//
// On which TCP ports somebody listens in the caller's network namespace, as /proc says it.
#ifndef PROFILER_HOST_LISTENING_PORTS_H
#define PROFILER_HOST_LISTENING_PORTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct port_set {
    uint64_t bits[65536 / 64];
};

static inline bool port_set_has(const struct port_set *set, uint16_t port)
{
    return set->bits[port / 64] >> port % 64 & 1;
}

// Empty where /proc does not say.
void listening_ports_here(struct port_set *out);

// Says of those TCP ports of a list ("11211,6379"; what is none is passed over) on which nobody
// listens here that it is so, and on which ports somebody does. False, and nothing is said: there
// is no such port.
bool listening_ports_lack(const char *list, char *out, size_t out_bytes);

#endif
