// SPDX-License-Identifier: MIT
//
// What each packet of a trace does to the state of a query decoder (pt_query.h, its only user): the
// addresses, branches, times and events that it brings, and which events wait for another packet.
#ifndef ANALYSIS_PT_WALK_PT_QUERY_PACKETS_H
#define ANALYSIS_PT_WALK_PT_QUERY_PACKETS_H

#include "analysis/pt/packets/pt_packets.h"
#include "analysis/pt/walk/pt_query_state.h"

// What stands at `at`. Beyond enum pt_kind:
enum {
    PT_NEXT_NONE = PT_KINDS, // nothing more, or no packet
    PT_NEXT_STOP,
    PT_NEXT_VMCS,
    PT_NEXT_BROKEN, // an unusual packet was read: all queries say so from now on
};

// Passes padding and finds out what stands at query->at then. 0, -pte_eos, or PT_QUERY_UNUSUAL.
int pt_query_fetch(struct pt_query *query);

// Whether that packet gives an event.
bool pt_query_will_event(const struct pt_query *query);

// Reads that packet and passes it, unless it has more events to give; what it gave is in has_event,
// or in the TNT bits. 0, -pte_eos when it is cut off, or PT_QUERY_UNUSUAL.
int pt_query_read(struct pt_query *query);
int pt_query_read_tnt(struct pt_query *query);
int pt_query_read_psb(struct pt_query *query); // with the header behind it, up to its end

// The last packet's address; false, and 0, where it had none.
bool pt_query_ip(const struct pt_query *query, uint64_t *ip);

#endif
