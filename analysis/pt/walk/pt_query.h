// SPDX-License-Identifier: MIT
//
// Reads the packets of a trace for whoever follows its code: was the branch taken, where did the
// jump go, what happened meanwhile, and when. Behaves like libipt's query decoder (pt_qry_*), to
// the last detail of its events, their order and times, without a call for each bit. Source: Intel
// SDM, volume 3, "Trace Packets and Data Types", and, for which packets belong together and how far
// is read ahead, libipt 2.0.5. Packets that are rare or wrong end with PT_QUERY_UNUSUAL.
#ifndef ANALYSIS_PT_WALK_PT_QUERY_H
#define ANALYSIS_PT_WALK_PT_QUERY_H

#include <intel-pt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "analysis/pt/packets/pt_packets.h"
#include "analysis/pt/walk/pt_query_state.h"

// Reads config->begin to config->end, which must outlive it.
void pt_query_open(struct pt_query *query, const struct pt_config *config);

// Like the functions of the same names of libipt's query decoder; a status or a negative one:
// -pte_eos, -pte_bad_query, or PT_QUERY_UNUSUAL.
int pt_query_sync(struct pt_query *query, uint64_t *ip, uint64_t offset);
int pt_query_branch(struct pt_query *query, bool *taken);
int pt_query_indirect(struct pt_query *query, uint64_t *ip);
int pt_query_event(struct pt_query *query, struct pt_event *event);

// How many of the TNT packets that were taken together libipt would not have read yet.
static inline unsigned pt_query_tnt_waiting(const struct pt_query *query)
{
    uint64_t rest = (2ull << query->tnt_bits) - 2; // a packet may begin with the next bit
    return (unsigned)__builtin_popcountll(query->tnt_seams & rest);
}

static inline uint64_t pt_query_offset(const struct pt_query *query)
{
    unsigned waiting = query->tnt_bits ? pt_query_tnt_waiting(query) : 0; // each is one byte
    return (uint64_t)((waiting ? query->tnt_end - waiting : query->at) - query->begin);
}

// Whether a jump's target is next, and whole, when the branches that are ready were taken.
static inline bool pt_query_then_target(const struct pt_query *query)
{
    enum { LONGEST_TARGET = 9 };
    return query->next == PT_KIND_TIP && query->tip.count == 0 && query->at[0] >> 5 &&
           query->end - query->at >= LONGEST_TARGET;
}

// Whether what follows, behind padding, is of the two usual kinds and answers a query.
static inline bool pt_query_fetch_usual(struct pt_query *query)
{
    const uint8_t *at = query->at, *end = query->end;
    if (at < end && *at == 0)
        at = pt_behind_padding(at, end);
    query->at = at;
    if (at >= end)
        return false;
    bool branches = pt_is_short_tnt(*at);
    if (!branches && !pt_tip_bytes(*at))
        return false;
    query->next = branches ? PT_KIND_TNT : PT_KIND_TIP;
    return true;
}

// Reads on up to the next packet that answers a query or gives an event; the status, as behind a
// query.
int pt_query_read_on(struct pt_query *query);

// The bits that a target's packet with that first byte keeps of the last address.
static inline uint64_t pt_query_kept(uint8_t first)
{
    static const uint64_t replaced[8] = {[1] = 0xffff,
                                         [2] = 0xffffffff,
                                         [3] = UINT64_MAX, // sign-extended
                                         [4] = 0xffffffffffff,
                                         [6] = UINT64_MAX};
    return ~replaced[first >> 5];
}

// The target that is next (pt_query_then_target): bytes of the last address are replaced, as its
// compression says. The status, as of pt_query_indirect.
static inline int pt_query_take_target(struct pt_query *query, uint64_t *ip)
{
    unsigned compression = *query->at >> 5;
    uint64_t value, kept = pt_query_kept(*query->at);
    memcpy(&value, query->at + 1, sizeof value);
    query->ip = compression == 3 ? (uint64_t)((int64_t)(value << 16) >> 16)
                                 : (query->ip & kept) | (value & ~kept);
    query->ip_known = true;
    query->ip_suppressed = false;
    query->at += pt_tip_bytes(*query->at);
    query->read = query->clock.now;
    *ip = query->ip;
    return pt_query_fetch_usual(query) ? 0 : pt_query_read_on(query);
}

// Makes the branches of the next TNT packets ready when there are none. 0 or a negative status.
int pt_query_fill(struct pt_query *query);
// When the last of them was taken: the status that says what comes next.
int pt_query_status(const struct pt_query *query);

#endif
