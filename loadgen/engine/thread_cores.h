// SPDX-License-Identifier: MIT
//
// Which cores the load's threads are pinned to: two hardware threads of one physical core slow each
// other down, so every physical core gets one load thread before any gets a second.
#ifndef LOADGEN_ENGINE_THREAD_CORES_H
#define LOADGEN_ENGINE_THREAD_CORES_H

#include <sched.h>

// Chooses up to `wanted` of the allowed cores. `topology` is the folder with cpu0, cpu1, ...
// (thread_cores_topology, or a test's); a core of which it says nothing counts as one by itself.
void thread_cores_choose(const cpu_set_t *allowed, unsigned wanted, const char *topology,
                         cpu_set_t *chosen);

extern const char thread_cores_topology[]; // sysfs's

#endif
