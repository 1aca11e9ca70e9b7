// SPDX-License-Identifier: MIT
//
// Relates a NIC's clock (PHC) to CLOCK_REALTIME while a load lasts, so that hardware stamps, which
// are in the NIC's clock, can be converted to CLOCK_REALTIME like all other kernel stamps:
// sample.tx_ns and rx_ns are CLOCK_REALTIME whatever their source.
//
// Both clocks are read together ten times a second (PTP_SYS_OFFSET_PRECISE, else the narrowest of
// some PTP_SYS_OFFSET_EXTENDED, linux/ptp_clock.h); between two such knots the map is a straight
// line. Conversion comes after the load, when every stamp lies between knots.
#ifndef LOADGEN_NIC_CLOCK_H
#define LOADGEN_NIC_CLOCK_H

#include <pthread.h>
#include <stdint.h>

#include "base/array.h"
#include "base/error.h"

struct nic_clock_knot {
    int64_t phc_ns, real_ns;
    uint64_t error_ns; // how far real_ns may be off
};

struct nic_clock {
    int fd;   // /dev/ptpN
    int wake; // eventfd that ends the thread
    pthread_t thread;
    struct nic_clock_knots ARRAY_OF(struct nic_clock_knot) knots;
};

// Opens /dev/ptp<index>, takes the first knot and starts a thread that takes more: it sleeps but
// for some microseconds every tenth of a second. ERROR_FAILED names the device.
int nic_clock_begin(int index, struct nic_clock *clock, struct error *err);

// Takes the last knot and ends the thread.
void nic_clock_stop(struct nic_clock *clock);

// Converts a stamp of the NIC to CLOCK_REALTIME. Only after nic_clock_stop.
uint64_t nic_clock_real_ns(const struct nic_clock *clock, uint64_t phc_ns);

// How far such a conversion may be off at most, from the width of the readings.
uint64_t nic_clock_error_ns(const struct nic_clock *clock);

void nic_clock_free(struct nic_clock *clock);

#endif
