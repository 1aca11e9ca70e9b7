// SPDX-License-Identifier: MIT
//
// The schedule: when each request is to be sent and what it asks, drawn ahead of time and
// independent of any reply (open loop, design §7). The same arguments draw the same schedule.
#ifndef LOADGEN_ENGINE_SCHEDULE_H
#define LOADGEN_ENGINE_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "workloads/distribution.h"
#include "workloads/workload.h"

struct scheduled_request {
    uint64_t offset_ns; // since the run's start; ascending
    uint32_t key;
    uint8_t operation;
};

struct schedule {
    struct scheduled_request *items;
    size_t count;
    size_t capacity;
};

// Draws gaps of the shape of `arrivals` (exponential: a Poisson process; fixed: evenly), whose mean
// must be finite and more than 0, scaled to `rate` per second times the workload's pattern, for
// duration_ns. With a fan-out each instant is that of so many requests, one after the other in the
// schedule, and `rate` is of instants. Times, operations and keys come from separate generators,
// all seeded from `seed`: another mix does not change the times. The caller frees.
int schedule_draw(const struct workload *workload, const struct distribution *arrivals, double rate,
                  uint64_t duration_ns, uint64_t seed, struct schedule *schedule,
                  struct error *err);

// The same schedule, one request after the other: what is drawn is not kept, so there is no limit
// to its length. workload must outlive it. ERROR_FAILED: out of memory.
struct schedule_drawer;
int schedule_drawer_open(const struct workload *workload, const struct distribution *arrivals,
                         double rate, uint64_t duration_ns, uint64_t seed,
                         struct schedule_drawer **drawer, struct error *err);
// False: that was all.
bool schedule_drawer_next(struct schedule_drawer *drawer, struct scheduled_request *request);
// How many it would still draw that are due before until_ns (INFINITY: all), by the rate.
uint64_t schedule_drawer_expected(const struct schedule_drawer *drawer, double until_ns);
void schedule_drawer_close(struct schedule_drawer *drawer); // NULL is allowed

// For a load without a schedule: `count` operations and keys, without times, to be used in that
// order over and over. The same seed draws the same ones as schedule_draw does.
int schedule_draw_order(const struct workload *workload, size_t count, uint64_t seed,
                        struct schedule *schedule, struct error *err);

void schedule_free(struct schedule *schedule);

// Draws operations and keys for a schedule that already has its times: the ones that schedule_draw
// would draw.
void schedule_draw_requests(const struct workload *workload, uint64_t seed,
                            struct schedule *schedule);

#endif
