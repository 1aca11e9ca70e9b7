// SPDX-License-Identifier: MIT
//
// What held control groups back while something was captured, by the kernel's own account: CPU
// quotas that were used up (cpu.stat) and limits of memory that were reached (memory.events,
// memory.failcnt), of version 1 or 2. It stands beside the records of single threads, which have
// but a group's own name.
#ifndef PROFILER_HOST_GROUP_COUNTERS_H
#define PROFILER_HOST_GROUP_COUNTERS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/array.h"

enum group_limit {
    GROUP_QUOTA,       // cpu.max; cpu.cfs_quota_us
    GROUP_MEMORY_MAX,  // memory.max; memory.limit_in_bytes
    GROUP_MEMORY_HIGH, // memory.high
};

struct group_counter {
    char group[256]; // its folder below the hierarchy's, "/web.slice/redis.service"
    enum group_limit limit;
    uint64_t times; // periods in which the quota was used up; attempts to have more memory
    uint64_t throttled_ns;
    uint64_t allowed; // ns of a period, or bytes; UINT64_MAX: no limit any more
    uint64_t period_ns;
};

struct group_counters ARRAY_OF(struct group_counter);

// All groups that were ever held back; of a machine with very many groups the first.
void group_counters_read(struct group_counters *out);
void group_counters_free(struct group_counters *counters);

// What moved since `before`, and the limits as they are now, those hit most often first:
// {"quotas": [{"group": "/web.slice", "times": 3, "throttled_ms": 12.5, "quota_ms": 5,
// "period_ms": 50}], "memory_limits": [{"group": "/web.slice", "times": 12, "limit": "memory.max",
// "bytes": 50331648}]}; a limit that is no longer there is null. The caller frees; NULL: no memory.
json_t *group_counters_moved(const struct group_counters *before);

// The number behind a word at the beginning of a line, as files of control groups have it: "max" of
// "low 0\nmax 17\n" is 17. False: there is none.
bool group_counter_number(const char *text, const char *word, uint64_t *out);

#endif
