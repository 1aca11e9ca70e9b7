// SPDX-License-Identifier: MIT
//
// Hardware stamps of the NIC that leads to the server: turned on for all packets, in both
// directions where it can (SIOCSHWTSTAMP, TX_ON + FILTER_ALL; Linux's
// Documentation/networking/timestamping.rst), and restored to what they were however this program
// ends (base/guard.h).
//
// The stamps are in the NIC's own clock; loadgen/client/clock_follower.h converts them to
// CLOCK_REALTIME.
//
// The setting belongs to the interface, not the socket. If it is already on, because of another
// load or a PTP daemon that stamps everything, nothing is changed and nothing restored; when its
// owner turns it off meanwhile, the missing stamps are counted.
#ifndef LOADGEN_CLIENT_NIC_STAMPS_H
#define LOADGEN_CLIENT_NIC_STAMPS_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/error.h"
#include "base/guard.h"
#include "loadgen/client/clock_follower.h"

// --- the NIC's clock -----------------------------------------------------------------------------
// Relates a NIC's clock (PHC) to CLOCK_REALTIME while a load lasts, so that hardware stamps, which
// are in the NIC's clock, can be converted to CLOCK_REALTIME like all other kernel stamps:
// sample.tx_ns and rx_ns are CLOCK_REALTIME whatever their source.
//
// Both clocks are read by PTP_SYS_OFFSET_PRECISE, else the narrowest of some
// PTP_SYS_OFFSET_EXTENDED (linux/ptp_clock.h).

// Opens /dev/ptp<index> and begins to follow it: knots from the NIC's clock to CLOCK_REALTIME.
// ERROR_FAILED names the device.
int nic_clock_begin(int index, struct clock_follower *clock, struct error *err);

struct nic_stamps {
    char interface[IF_NAMESIZE];
    int clock_index;    // of /dev/ptpN
    bool tx, rx;        // the directions in which it stamps every packet: one at least
    struct guard guard; // restores the setting; unused when it was on already
};

// Finds the interface that leads to a server and turns its stamps on. ERROR_FAILED with the
// interface and the reason when it stamps every packet in neither direction, or may not be
// configured; of one that does so in one direction, that one is used.
int nic_stamps_begin(const struct sockaddr *server, socklen_t server_bytes,
                     struct nic_stamps *stamps, struct error *err);

// Restores the interface's setting. Harmless on a zeroed struct.
void nic_stamps_end(struct nic_stamps *stamps);

#endif
