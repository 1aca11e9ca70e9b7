// SPDX-License-Identifier: MIT
//
// The fast way through a trace. A query decoder (pt_query.h) reads the packets, makes the events
// and keeps the time; the code between is followed through stretches (pt_stretches.h) instead of
// being looked up block by block. The result is, bit for bit, that of libipt's block decoder:
// pt_follow_next and pt_follow_event behave like pt_blk_next and pt_blk_event. Of errors it finds
// two: code that is nowhere, and a trace that goes on while tracing is off. Anything else out of
// the ordinary (another error, a mode other than 64-bit, a rare event) ends with PT_FOLLOW_UNUSUAL:
// what lies between the PSBs around it is then walked with libipt's block decoder (pt_walk.c).
#ifndef ANALYSIS_PT_WALK_PT_FOLLOW_H
#define ANALYSIS_PT_WALK_PT_FOLLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/pt/walk/pt_paths.h"
#include "analysis/pt/walk/pt_query.h"
#include "analysis/pt/walk/pt_stretches.h"

enum {
    PT_FOLLOW_UNUSUAL = PT_QUERY_UNUSUAL,
    PT_FOLLOW_RETURNS = 64
}; // as many return addresses as the processor keeps

struct pt_follow {
    struct pt_stretches *stretches;
    uint64_t ip;
    uint32_t space;
    uint32_t stretch; // the stretch from ip, PT_NO_STRETCH not looked up yet
    int status;       // status of the last query
    bool enabled, long_mode;
    bool has_event; // `event` came from the query decoder and has not been returned yet
    bool bound;     // ip is after an instruction to which an event belonged
    bool unusual_aborts, unusual_disables; // errata that libipt works around
    unsigned return_count, return_top;
    uint32_t passed; // the stretch that pt_follow_next passed last; PT_NO_STRETCH: none
    struct pt_event event;
    struct pt_return returns[PT_FOLLOW_RETURNS]; // a ring
    struct pt_query query;                       // of the bytes of the piece
};

// Begins with other bytes: the config's. They and the stretches must outlive it.
void pt_follow_open(struct pt_follow *follow, struct pt_stretches *stretches,
                    const struct pt_config *config);

// Like pt_blk_sync_set, pt_blk_set_image.
int pt_follow_sync(struct pt_follow *follow, uint64_t offset);
void pt_follow_set_space(struct pt_follow *follow, uint32_t space);

// Like pt_blk_next, but block->iclass is always known; like pt_blk_event.
int pt_follow_next(struct pt_follow *follow, struct pt_block *block);
int pt_follow_event(struct pt_follow *follow, struct pt_event *event);

// The stretch that was the last block; NULL: none.
static inline const struct pt_stretch *pt_follow_passed_stretch(const struct pt_follow *follow)
{
    return follow->passed == PT_NO_STRETCH ? NULL : &follow->stretches->items[follow->passed];
}

// Which path (pt_paths.h) would be next. False: none, an event or the end is.
bool pt_follow_ask(struct pt_follow *follow, uint32_t *from, uint64_t *asked);

// The address that a return comes back to; 0: it is not known.
static inline uint64_t pt_follow_top(const struct pt_follow *follow)
{
    return follow->return_count ? follow->returns[follow->return_top].ip : 0;
}

// Whether its return addresses are there.
static inline bool pt_follow_may_pass(const struct pt_follow *follow, const struct pt_path *path)
{
    return follow->return_count >= (unsigned)path->pops + path->popped;
}

// Passes that path. The status behind it, as of pt_follow_next.
int pt_follow_pass(struct pt_follow *follow, const struct pt_path *path);

// Whether it is between two packets, at a known stretch, and what follows are branches or a target,
// at the time of what was read last.
static inline bool pt_follow_between(const struct pt_follow *follow)
{
    const struct pt_query *query = &follow->query;
    const struct pt_reading *read = &query->read, *now = &query->clock.now;
    return query->tnt_bits == 0 &&
           (query->next == PT_KIND_TNT || (query->next == PT_KIND_TIP && query->tip.count == 0)) &&
           read->tsc == now->tsc && read->known == now->known && read->lost_mtc == now->lost_mtc &&
           read->lost_cyc == now->lost_cyc && !follow->has_event && follow->enabled &&
           follow->long_mode && follow->stretch != PT_NO_STRETCH;
}

// Takes so many return addresses and leaves others, as if that were done one by one, with `peak`
// more than at the beginning meanwhile.
void pt_follow_change_returns(struct pt_follow *follow, unsigned peak, unsigned taken,
                              const struct pt_return *left, unsigned count);

// Goes on at that stretch, behind so many bytes of such packets. The status, as of pt_follow_next.
int pt_follow_skip(struct pt_follow *follow, size_t bytes, uint32_t stretch, uint64_t ip);

struct pt_follow_passed {
    uint64_t blocks, instructions, last_ip;
};

// Passes a path's length of blocks at the most, while they lie in the function with that key (0: in
// none that is known), end in a conditional jump, and no event comes. The status is that after the
// last block; 0 when there was none.
int pt_follow_branches(struct pt_follow *follow, uint64_t key, struct pt_follow_passed *passed);

#endif
