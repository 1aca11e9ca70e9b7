// SPDX-License-Identifier: MIT
//
// Hardware stamps of the NIC that leads to the server: turned on for all packets both ways
// (SIOCSHWTSTAMP, TX_ON + FILTER_ALL; Linux's Documentation/networking/timestamping.rst), and put
// back as they were on any end of this program (base/guard.h).
//
// The stamps are in the NIC's own clock; loadgen/client/nic_clock.h tells what they are in
// CLOCK_REALTIME.
//
// The setting is the interface's, not the socket's. Where it was on already, by another load or by
// a PTP daemon that stamps everything, nothing is changed and nothing put back; when its owner
// turns it off meanwhile, the stamps that do not come are counted.
#ifndef LOADGEN_NIC_STAMPS_H
#define LOADGEN_NIC_STAMPS_H

#include <net/if.h>
#include <sys/socket.h>

#include "base/error.h"
#include "base/guard.h"

struct nic_stamps {
    char interface[IF_NAMESIZE];
    int clock_index;    // of /dev/ptpN
    struct guard guard; // puts the setting back; none when it was so before
};

// Finds the interface that leads to a server and turns its stamps on. ERROR_FAILED with the
// interface and the reason when it has none for every packet, or may not be set.
int nic_stamps_begin(const struct sockaddr *server, socklen_t server_bytes,
                     struct nic_stamps *stamps, struct error *err);

// Puts the interface's setting back. Harmless on a zeroed struct.
void nic_stamps_end(struct nic_stamps *stamps);

#endif
