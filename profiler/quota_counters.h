// SPDX-License-Identifier: MIT
//
// For how long control groups were throttled while something was captured, by the kernel's own
// account (cpu.stat, version 1 or 2): what stands beside the records of single threads.
#ifndef PROFILER_QUOTA_COUNTERS_H
#define PROFILER_QUOTA_COUNTERS_H

#include <jansson.h>
#include <stdint.h>

#include "base/array.h"

struct quota_counter {
    char group[256]; // its folder below the hierarchy's, "web.slice/redis"
    uint64_t times;  // periods in which its quota was used up
    uint64_t throttled_ns;
};

struct quota_counters ARRAY_OF(struct quota_counter);

// All groups with a quota that was ever used up; of a machine with very many groups the first.
void quota_counters_read(struct quota_counters *out);
void quota_counters_free(struct quota_counters *counters);

// What moved since `before`: [{"group": "web.slice", "times": 3, "throttled_ms": 12.5}]. The caller
// frees; NULL: no memory.
json_t *quota_counters_moved(const struct quota_counters *before);

// Takes the counts from the text of a cpu.stat; what is not there stays as it is.
void quota_counter_parse(const char *text, struct quota_counter *out);

#endif
