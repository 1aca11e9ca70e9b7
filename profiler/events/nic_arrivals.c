// SPDX-License-Identifier: MIT
#include "profiler/events/nic_arrivals.h"

#include <unistd.h>

#include "base/clock.h"

enum { PERIOD_NS = 100000000 };

void nic_arrivals_take(struct nic_arrivals *nic)
{
    struct clock_knot knot;
    if (nic->clock < 0)
        return;
    // One that cannot be read is left out: the line between its neighbours spans it.
    if (nic_clock_read(nic->clock, &knot) < 0 || array_push(&nic->knots, knot) < 0)
        nic->unread++;
    else if (knot.error > nic->error_ns)
        nic->error_ns = knot.error;
    nic->next_ns = monotonic_ns() + PERIOD_NS;
}

int nic_arrivals_begin(struct nic_arrivals *nic, const char *interface, struct error *err)
{
    *nic = (struct nic_arrivals){.clock = -1};
    int result = nic_stamps_begin(interface, NIC_RECEIVES, &nic->stamps, err);
    if (result < 0)
        return result;
    nic->clock = result = nic_clock_open(nic->stamps.clock_index, err);
    if (result >= 0) {
        nic_arrivals_take(nic);
        result = nic->knots.count ? 0
                                  : error_set(err, ERROR_FAILED,
                                              "the clock of %s (/dev/ptp%d) cannot be read "
                                              "together with the host's",
                                              interface, nic->stamps.clock_index);
    }
    if (result < 0)
        nic_arrivals_end(nic);
    return result;
}

void nic_arrivals_end(struct nic_arrivals *nic)
{
    nic_stamps_end(&nic->stamps);
    if (nic->clock >= 0)
        close(nic->clock);
    nic->clock = -1;
    array_free(&nic->knots);
}

void nic_arrivals_poll(struct nic_arrivals *nic)
{
    if (nic->clock >= 0 && monotonic_ns() >= nic->next_ns)
        nic_arrivals_take(nic);
}

void nic_arrivals_forget(struct nic_arrivals *nic)
{
    if (nic->knots.count == 0)
        return;
    nic->knots.items[0] = nic->knots.items[nic->knots.count - 1];
    nic->knots.count = 1;
}
