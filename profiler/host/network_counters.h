// SPDX-License-Identifier: MIT
//
// What went wrong in the kernel's network while something was captured, by its own counters of the
// caller's network namespace (network_counters.tbl.h). Reading them costs the server nothing.
#ifndef PROFILER_HOST_NETWORK_COUNTERS_H
#define PROFILER_HOST_NETWORK_COUNTERS_H

#include <jansson.h>
#include <stdint.h>

enum {
    NETWORK_COUNTERS = 0
#define NETWORK_COUNTER(name, GROUP, one, means) +1
#include "profiler/host/network_counters.tbl.h"
};

struct network_counters {
    uint64_t values[NETWORK_COUNTERS]; // 0 where this kernel does not have it
};

void network_counters_read(struct network_counters *out);

// Those that moved since `before`, by name: {"ListenOverflows": 12}. The caller frees; NULL: no
// memory.
json_t *network_counters_moved(const struct network_counters *before);

// Takes one counter from the text of such a file: a line "GROUP: names" and one "GROUP: values".
// 0 where it is not there.
uint64_t network_counter_in(const char *text, const char *group, const char *name);

#endif
