// SPDX-License-Identifier: MIT
//
// Hardware stamps of the NIC that leads to the server: turned on for all packets in both directions
// (SIOCSHWTSTAMP, TX_ON + FILTER_ALL; Linux's Documentation/networking/timestamping.rst), and
// restored to what they were however this program ends (base/guard.h).
//
// The stamps are in the NIC's own clock; loadgen/client/nic_clock.h converts them to
// CLOCK_REALTIME.
//
// The setting belongs to the interface, not the socket. If it is already on, because of another
// load or a PTP daemon that stamps everything, nothing is changed and nothing restored; when its
// owner turns it off meanwhile, the missing stamps are counted.
#ifndef LOADGEN_CLIENT_NIC_STAMPS_H
#define LOADGEN_CLIENT_NIC_STAMPS_H

#include <net/if.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/array.h"
#include "base/error.h"
#include "base/guard.h"

// --- the NIC's clock -----------------------------------------------------------------------------
// Relates a NIC's clock (PHC) to CLOCK_REALTIME while a load lasts, so that hardware stamps, which
// are in the NIC's clock, can be converted to CLOCK_REALTIME like all other kernel stamps:
// sample.tx_ns and rx_ns are CLOCK_REALTIME whatever their source.
//
// Both clocks are read together ten times a second (PTP_SYS_OFFSET_PRECISE, else the narrowest of
// some PTP_SYS_OFFSET_EXTENDED, linux/ptp_clock.h); between two such knots the map is a straight
// line. Conversion comes after the load, when every stamp lies between knots.

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

struct nic_stamps {
    char interface[IF_NAMESIZE];
    int clock_index;    // of /dev/ptpN
    struct guard guard; // restores the setting; unused when it was on already
};

// Finds the interface that leads to a server and turns its stamps on. ERROR_FAILED with the
// interface and the reason when it cannot stamp every packet, or may not be configured.
int nic_stamps_begin(const struct sockaddr *server, socklen_t server_bytes,
                     struct nic_stamps *stamps, struct error *err);

// Restores the interface's setting. Harmless on a zeroed struct.
void nic_stamps_end(struct nic_stamps *stamps);

#endif
