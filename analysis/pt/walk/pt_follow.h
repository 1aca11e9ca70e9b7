// SPDX-License-Identifier: MIT
//
// The fast way through a trace. libipt's query decoder reads the packets, makes the events and
// keeps the time; the code between is followed through runs (pt_runs.h) instead of being looked up
// block by block. What comes out is, bit for bit, what libipt's block decoder reports: next and
// event stand for pt_blk_next and pt_blk_event, and behave alike. Whatever is not plain (an error,
// a mode other than 64-bit, an event seldom seen) ends with PT_FOLLOW_UNUSUAL: the caller throws
// away what it has of the piece and walks it with libipt's block decoder, so that errors are always
// libipt's own.
#ifndef ANALYSIS_PT_WALK_PT_FOLLOW_H
#define ANALYSIS_PT_WALK_PT_FOLLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/pt/walk/pt_runs.h"

enum { PT_FOLLOW_UNUSUAL = -4096, PT_FOLLOW_RETURNS = 64 }; // as many as the processor keeps

struct pt_follow {
    struct pt_runs *runs;
    struct pt_query_decoder *query; // of the bytes of the piece
    uint64_t ip;
    uint32_t space;
    uint32_t run; // the run from ip, PT_NO_RUN not looked up yet
    int status;   // of the last query
    bool enabled, long_mode;
    bool has_event; // `event` was taken from the query decoder and not from here
    bool bound;     // ip is behind an instruction that an event bound to
    bool unusual_aborts, unusual_disables; // errata that libipt works around
    uint64_t returns[PT_FOLLOW_RETURNS];   // a ring
    unsigned return_count, return_top;
    struct pt_event event;
};

// Begins with other bytes; frees the decoder of those before. runs must outlive it.
int pt_follow_open(struct pt_follow *follow, struct pt_runs *runs, const struct pt_config *config,
                   struct error *err);
void pt_follow_close(struct pt_follow *follow);

// As pt_blk_sync_set, pt_blk_set_image.
int pt_follow_sync(struct pt_follow *follow, uint64_t offset);
void pt_follow_set_space(struct pt_follow *follow, uint32_t space);

// As pt_blk_next; block->iclass is always known. As pt_blk_event.
int pt_follow_next(struct pt_follow *follow, struct pt_block *block);
int pt_follow_event(struct pt_follow *follow, struct pt_event *event);

struct pt_follow_passed {
    uint64_t blocks, instructions, last_ip;
};

// Goes on while blocks lie within [low, high), end in a conditional jump, and no event comes; at
// most about `most` instructions. The status is that after the last block; 0 when there was none.
int pt_follow_branches(struct pt_follow *follow, uint64_t low, uint64_t high, uint64_t most,
                       struct pt_follow_passed *passed);

#endif
