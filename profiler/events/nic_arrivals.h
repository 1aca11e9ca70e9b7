// SPDX-License-Identifier: MIT
//
// When a NIC received what it delivers, by its own clock (PHC): its stamps are turned on while a
// capture lasts, and its clock is read beside the host's, so that what BPF finds in a packet
// (skb_shared_hwtstamps) can be told in CLOCK_REALTIME.
#ifndef PROFILER_EVENTS_NIC_ARRIVALS_H
#define PROFILER_EVENTS_NIC_ARRIVALS_H

#include <stdint.h>

#include "base/clock_knots.h"
#include "base/error.h"
#include "base/nic_stamps.h"

struct nic_arrivals {
    struct nic_stamps stamps;
    int clock; // its device; -1: no NIC is asked for, or it cannot
    struct clock_knot_array knots;
    int64_t next_ns;   // CLOCK_MONOTONIC: when the next knot is due
    uint64_t error_ns; // the worst of all knots so far
    uint64_t unread;   // knots that could not be read
};

// In the network namespace of the caller. ERROR_FAILED with the reason; then all that follows does
// nothing. Ends what it began also when this process is killed.
int nic_arrivals_begin(struct nic_arrivals *nic, const char *interface, struct error *err);
void nic_arrivals_end(struct nic_arrivals *nic);

// Reads both clocks if that is due: ten times a second. Some microseconds.
void nic_arrivals_poll(struct nic_arrivals *nic);
// Reads them now; then stamps up to now lie between knots.
void nic_arrivals_take(struct nic_arrivals *nic);
// Forgets all knots but the latest: for who has converted every stamp up to now.
void nic_arrivals_forget(struct nic_arrivals *nic);

// A stamp of the NIC's in CLOCK_REALTIME, ns.
static inline uint64_t nic_arrivals_convert(const struct nic_arrivals *nic, uint64_t stamp)
{
    return (uint64_t)clock_knots_map(&nic->knots, false, (int64_t)stamp);
}

#endif
