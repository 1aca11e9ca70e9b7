// SPDX-License-Identifier: MIT
//
// What many packets in a row come to, so that they are passed in one step without being read. A
// trail is several paths (pt_paths.h) behind one another, jumps to the trace's targets among them;
// it is recorded when a walk comes for the second time to the same place with the same bytes of
// branches and targets before it, and passed whenever it comes there again. Much of a long trace is
// what it was before to the byte.
#ifndef ANALYSIS_PT_WALK_PT_TRAILS_H
#define ANALYSIS_PT_WALK_PT_TRAILS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "analysis/pt/walk/pt_flow.h"
#include "analysis/pt/walk/pt_follow.h"
#include "analysis/pt/walk/pt_paths.h"
#include "base/array.h"
#include "base/hash.h"

enum {
    PT_TRAIL_LEAST = 32,  // bytes of trace; a trail ends with the first packet behind them
    PT_TRAIL_BYTES = 64,  // at the most
    PT_TRAIL_RETURNS = 4, // return addresses that it may take ...
    PT_TRAIL_CALLS = 8,   // ... and leave
    PT_TRAIL_PEAK = PT_FOLLOW_RETURNS - PT_TRAIL_RETURNS, // and have more than at its beginning
    PT_TRAIL_SLOTS = 1 << 14,
    PT_TRAIL_WAYS = 4, // slots that a trail may be in: some begin alike
    PT_TRAIL_MOST = 1 << 13,
    PT_TRAIL_FLOWS = 1 << 16, // of all trails, and what the last one adds
    PT_TRAIL_EARLY = 1024,    // a walk that asks no more than that needs no table
    // Where nothing was found so often in a row, as where times come between the packets, nothing
    // is looked for for so long.
    PT_TRAIL_VAIN = 1 << 16,
    PT_TRAIL_REST = 1 << 20,
};
enum { PT_NO_TRAIL = 0xffffffff };

struct pt_trail {
    // What has to be as it was, beside the stretch where it begins:
    uint8_t trace[PT_TRAIL_BYTES]; // what is read
    uint8_t bytes;
    bool jumps;                       // there is a target in it; the last one is `target`
    uint64_t last_ip, kept;           // of the last address those bits that the first target keeps
    uint8_t taken;                    // return addresses that it takes ...
    uint64_t takes[PT_TRAIL_RETURNS]; // ... the top one first
    // What it does:
    uint8_t left;  // return addresses that it leaves
    uint8_t peak;  // the most that it has more than at its beginning
    uint32_t next; // the trail that was found after it last; itself when none was
    struct pt_passage passage;
    uint64_t ip, target; // where it leads
    struct pt_return leaves[PT_TRAIL_CALLS];
};

struct pt_trails {
    const struct pt_stretches *stretches;
    uint16_t *slots;  // the trail that is found there + 1
    uint16_t *called; // what was asked for there last
    struct pt_trail_list ARRAY_OF(struct pt_trail) list;
    struct pt_passage_flows flows;
    uint32_t last;       // the trail that was found last; PT_NO_TRAIL: none
    uint32_t generation; // of the stretches
    uint32_t early;      // how often a trail was asked for before there was a table
    uint32_t vain;       // how often nothing was found since something was
    uint32_t rest;       // for how long nothing is looked for
    uint8_t least;       // PT_TRAIL_LEAST; other multiples of 8 only to test what happens then
    struct pt_trail_record {
        bool on;    // one is being recorded:
        bool begun; // its first path is known
        struct pt_trail trail;
        uint16_t *slot;
        const uint8_t *begin;           // in the trace
        struct pt_walk_counts before;   // of the walk
        size_t first_flow, early_flows; // of the walk's; those before the time of the packets
        int depth, least_depth;         // of return addresses, now and at the least
    } record;
};

// The stretches must outlive it. No memory is taken before trails are asked for.
void pt_trails_init(struct pt_trails *trails, const struct pt_stretches *stretches);
void pt_trails_free(struct pt_trails *trails);

// Looks for the trail in the table. NULL: none is known; if this place was called before, one is
// recorded from here on.
const struct pt_trail *pt_trails_learn(struct pt_trails *trails, const struct pt_follow *follow);

// While one is recorded: the walk is about to pass that path, which has these flows, with what it
// found so far in the piece.
void pt_trails_before(struct pt_trails *trails, const struct pt_path *path,
                      const struct pt_passage_flow *flows, const struct pt_piece *piece);
// It has passed it; what is left pending then is that flow.
void pt_trails_behind(struct pt_trails *trails, const struct pt_path *path,
                      const struct pt_follow *follow, const struct pt_piece *piece,
                      const struct pt_flow *pending);

static inline bool pt_trail_is(const struct pt_trail *trail, const struct pt_follow *follow)
{
    const struct pt_query *query = &follow->query;
    if (trail->passage.from != follow->stretch || ((query->ip ^ trail->last_ip) & trail->kept) ||
        memcmp(query->at, trail->trace, trail->bytes) != 0 || follow->return_count < trail->taken)
        return false;
    for (unsigned i = 0; i < trail->taken; i++)
        if (follow->returns[(follow->return_top - i) % PT_FOLLOW_RETURNS].ip != trail->takes[i])
            return false;
    return true;
}

static inline uint64_t pt_trail_hash(const struct pt_trails *trails, const struct pt_follow *follow)
{
    const uint8_t *at = follow->query.at, *end = at + trails->least;
    uint64_t word,
        mixed = hash_pair(follow->stretch, follow->query.ip >> 16); // most targets keep it
    for (; at < end; at += sizeof word) {
        memcpy(&word, at, sizeof word);
        mixed = hash64(mixed ^ word);
    }
    return mixed;
}

static inline const struct pt_trail *pt_trails_found(struct pt_trails *trails, uint32_t found)
{
    struct pt_trail *items = trails->list.items;
    trails->vain = 0;
    if (trails->last != PT_NO_TRAIL)
        items[trails->last].next = found;
    trails->last = found;
    const char *next = (const char *)&items[items[found].next];
    for (size_t i = 0; i < sizeof *items; i += 64)
        __builtin_prefetch(next + i);
    return &items[found];
}

// The trail that begins here. NULL: none, or one is being recorded.
static inline const struct pt_trail *pt_trails_find(struct pt_trails *trails,
                                                    const struct pt_follow *follow)
{
    if (trails->record.on || !pt_follow_between(follow) ||
        follow->query.end - follow->query.at < PT_TRAIL_BYTES)
        return NULL;
    const struct pt_trail *items = trails->list.items;
    if (trails->generation == trails->stretches->generation && trails->last != PT_NO_TRAIL &&
        pt_trail_is(&items[items[trails->last].next], follow))
        return pt_trails_found(trails, items[trails->last].next);
    return pt_trails_learn(trails, follow);
}

#endif
