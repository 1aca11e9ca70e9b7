// SPDX-License-Identifier: MIT
//
// Hardware stamps of a NIC: turned on for all packets (SIOCSHWTSTAMP, TX_ON and FILTER_ALL; Linux's
// Documentation/networking/timestamping.rst), and restored to what they were however this program
// ends (base/guard.h). And the NIC's clock (PHC), in which those stamps are.
//
// The setting belongs to the interface, not the socket. If it is already on, because of another
// load or a PTP daemon that stamps everything, nothing is changed and nothing restored; when its
// owner turns it off meanwhile, stamps are missing.
#ifndef BASE_NIC_STAMPS_H
#define BASE_NIC_STAMPS_H

#include <net/if.h>
#include <stdbool.h>

#include "base/clock_knots.h"
#include "base/error.h"
#include "base/guard.h"

enum nic_direction { NIC_SENDS = 1, NIC_RECEIVES = 2 };

struct nic_stamps {
    char interface[IF_NAMESIZE];
    int clock_index;    // of /dev/ptpN
    bool tx, rx;        // the directions in which it stamps every packet: one at least
    struct guard guard; // restores the setting; unused when it was on already
};

// Turns on the stamps of these directions (set of enum nic_direction), in the network namespace of
// the caller. ERROR_FAILED with the interface and the reason when it stamps every packet in none of
// them, or may not be configured; of one that does so in one direction, that one is used.
int nic_stamps_begin(const char *interface, unsigned directions, struct nic_stamps *stamps,
                     struct error *err);

// Restores the interface's setting. Harmless on a zeroed struct.
void nic_stamps_end(struct nic_stamps *stamps);

// Opens /dev/ptp<index>, for nic_clock_read. Returns its fd; ERROR_FAILED names the device.
int nic_clock_open(int index, struct error *err);

// The NIC's clock (`from`) and CLOCK_REALTIME (`to`), ns, at one moment: by PTP_SYS_OFFSET_PRECISE,
// else the narrowest of some PTP_SYS_OFFSET_EXTENDED (linux/ptp_clock.h).
clock_read_fn nic_clock_read;

#endif
