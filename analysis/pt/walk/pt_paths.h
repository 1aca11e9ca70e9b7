// SPDX-License-Identifier: MIT
//
// What several branches in a row come to, so that they are passed in one step. A path begins at a
// stretch (pt_stretches.h) and goes the way that the next few TNT bits say, over calls and the
// returns from them, over one return to where it was called from, and then to the target that the
// trace has, if that is next; how many instructions that is, and which flows of control a walk
// leaves there, is worked out once. Most of a long trace goes ways that it went before.
#ifndef ANALYSIS_PT_WALK_PT_PATHS_H
#define ANALYSIS_PT_WALK_PT_PATHS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "analysis/pt/image/pt_image.h"
#include "analysis/pt/walk/pt_flow.h"
#include "analysis/pt/walk/pt_stretches.h"
#include "base/array.h"

enum {
    PT_PATH_BITS = 24,       // of a short path; a long one has all that are ready
    PT_PATH_RETURNS = 4,     // return addresses that a path may leave
    PT_PATH_SLOTS = 1 << 15, // for short ones, and as many for long ones
    PT_PATH_WAYS = 2, // slots that a path may be in: those of one slot would push each other out
    PT_PATH_MOST = 1 << 14,
    PT_PATH_FLOWS = 1 << 16, // of all paths, and what the last one adds
};

// What a path is asked for: branches, the next one uppermost, with a 1 above them as in a TNT
// packet; and whether the trace has a jump's target right behind them.
#define PT_PATH_THEN_TARGET (1ull << 63)
// Without branches: what comes before the next decision.
enum { PT_PATH_TO_DECISION = 0 };
enum { PT_NO_PATH = 0xffffffff };

// Where a call comes back to.
struct pt_return {
    uint64_t ip;
    uint32_t caller; // the stretch that ended with the call
};

// A flow that a walk leaves on a passage, without what is only known there: when it was. Nothing of
// it is ahead or asynchronous. There are many, so they are kept small.
struct pt_passage_flow {
    uint64_t from, to, function;
    uint32_t instruction; // of the passage's
    uint8_t kind;         // enum pt_flow_kind
    bool at_start, unmarked;
    bool timed; // it has the time of the packet with the branches, not that of before
};
struct pt_passage_flows ARRAY_OF(struct pt_passage_flow);

// What a walk goes over in one step, and what it leaves there.
struct pt_passage {
    uint32_t from;   // the stretch where it begins
    uint32_t to;     // and the one where it leads; PT_NO_STRETCH: not known
    uint32_t blocks; // 0: it cannot be passed
    uint32_t instructions, calls, returned;
    uint64_t last_ip;               // its last instruction
    struct pt_function first, last; // the functions where it begins and ends
    uint32_t flows;                 // the first of them, in a list of many passages'
    uint16_t flow_count;
    bool timed;  // the walk's time becomes that of the packet with the branches
    bool leaves; // the last flow is still without a target
};

// NULL: it leaves none.
static inline const struct pt_passage_flow *pt_passage_flows(const struct pt_passage *passage,
                                                             const struct pt_passage_flows *flows)
{
    return passage->flow_count ? &flows->items[passage->flows] : NULL;
}

// The flow as a walk has it: at that time, behind that many instructions. What both have lies
// alike, so that it is copied as a whole: this is done for nearly each flow of a long trace.
static inline void pt_passage_flow_put(struct pt_flow *to, const struct pt_passage_flow *flow,
                                       uint64_t tsc, uint32_t before)
{
    enum { FIRST = offsetof(struct pt_flow, from) };
    _Static_assert(offsetof(struct pt_flow, ahead) - FIRST ==
                           offsetof(struct pt_passage_flow, timed) &&
                       offsetof(struct pt_flow, instruction) - FIRST ==
                           offsetof(struct pt_passage_flow, instruction) &&
                       offsetof(struct pt_flow, unmarked) - FIRST ==
                           offsetof(struct pt_passage_flow, unmarked),
                   "they lie alike");
    memcpy((char *)to + FIRST, flow, sizeof *flow);
    to->tsc = tsc;
    to->instruction = before + flow->instruction;
    to->ahead = false;
    to->error_tsc = 0;
    to->asynchronous = false;
}

struct pt_path {
    // Until here what it is asked for, beside the stretch where it begins:
    uint64_t asked;
    uint64_t top;  // the return address on top of the stack where it begins, if it `looks` at it
    uint32_t next; // the path that was found after it last; itself when none was
    // What it does:
    uint32_t indirect;         // the stretch whose target the trace has; PT_NO_STRETCH: none
    struct pt_passage passage; // without `to`: see `pops` and `indirect`
    uint8_t bits;              // how many branches it takes
    uint8_t peak;              // the most return addresses it has more than at its beginning
    uint8_t return_count;
    bool looks;  // it returns at least once more often than it calls
    bool popped; // it went on at `top`; what it pushes comes after that
    bool pops;   // it ends with a return to an address from before its beginning, below `top`
    struct pt_return push[PT_PATH_RETURNS]; // return addresses that it leaves
};

struct pt_paths {
    struct pt_stretches *stretches;
    const struct pt_symbols *symbols;
    uint16_t *slots; // the path that was asked for there last + 1, or how it was called
    struct pt_path_list ARRAY_OF(struct pt_path) list;
    struct pt_passage_flows flows;
    uint32_t last;       // the path that was found last; PT_NO_PATH: none
    uint32_t generation; // of the stretches
    uint32_t early;      // how often a path was asked for before there was a table
    uint32_t most;       // paths; fewer than PT_PATH_MOST only to test what happens then
};

// The stretches and symbols must outlive it; symbols may be NULL. No memory is taken before
// paths are asked for.
void pt_paths_init(struct pt_paths *paths, struct pt_stretches *stretches,
                   const struct pt_symbols *symbols);
void pt_paths_free(struct pt_paths *paths);

// Learns a path when it is asked for the second time at its place in the table, where it is noted
// until something else needs that place: what runs once is not worth it. When there are too many,
// or the stretches were forgotten, all paths are. Valid until the next call. NULL: it is to be
// walked block by block.
const struct pt_path *pt_paths_learn(struct pt_paths *paths, uint32_t from, uint64_t asked,
                                     uint64_t top);

static inline bool pt_path_is(const struct pt_path *path, uint32_t from, uint64_t asked,
                              uint64_t top)
{
    return path->passage.from == from && path->asked == asked && (!path->looks || path->top == top);
}

static inline bool pt_path_is_long(uint64_t asked)
{
    return (asked & ~PT_PATH_THEN_TARGET) >> (PT_PATH_BITS + 1);
}

// The first of a long one's branches.
static inline uint64_t pt_path_shortened(uint64_t asked)
{
    asked &= ~PT_PATH_THEN_TARGET;
    return asked >> (63 - __builtin_clzll(asked) - PT_PATH_BITS);
}

static inline uint32_t pt_path_slot(uint32_t from, uint64_t asked)
{
    uint64_t mixed = (from * 0xd6e8feb86659fd93u ^ asked) * 0x9e3779b97f4a7c15u;
    _Static_assert(PT_PATH_SLOTS == 1 << 15, "the hash fits");
    return (uint32_t)(mixed >> 49) + (pt_path_is_long(asked) ? (uint32_t)PT_PATH_SLOTS : 0u);
}

// The table does not fit the processor's caches; what comes next is mostly what came next before.
// The third line is of return addresses, which most paths do not leave.
static inline void pt_path_prefetch(const struct pt_path *path)
{
    const char *bytes = (const char *)path;
    __builtin_prefetch(bytes);
    __builtin_prefetch(bytes + 64);
    __builtin_prefetch(bytes + sizeof *path - 1);
}

// The path for that in this slot or the one beside it; PT_NO_PATH: none.
static inline uint32_t pt_paths_at(const struct pt_paths *paths, uint32_t slot, uint32_t from,
                                   uint64_t asked, uint64_t top)
{
    const struct pt_path *items = paths->list.items;
    for (uint32_t way = 0; way < PT_PATH_WAYS; way++) {
        uint32_t found = paths->slots[slot ^ way] - 1u;
        if (found < paths->list.count && pt_path_is(&items[found], from, asked, top))
            return found;
    }
    return PT_NO_PATH;
}

// The path that is known for that; PT_NO_PATH: none.
static inline uint32_t pt_paths_known(const struct pt_paths *paths, uint32_t from, uint64_t asked,
                                      uint64_t top)
{
    const struct pt_path *items = paths->list.items;
    uint32_t found = paths->last == PT_NO_PATH ? PT_NO_PATH : items[paths->last].next;
    if (found != PT_NO_PATH && pt_path_is(&items[found], from, asked, top))
        return found;
    return pt_paths_at(paths, pt_path_slot(from, asked), from, asked, top);
}

// It comes after the path that was found last. NULL: it cannot be passed.
static inline const struct pt_path *pt_paths_found(struct pt_paths *paths, uint32_t found)
{
    struct pt_path *items = paths->list.items;
    if (paths->last != PT_NO_PATH && items[paths->last].next != found)
        items[paths->last].next = found;
    paths->last = found;
    pt_path_prefetch(&items[items[found].next]);
    return items[found].passage.blocks ? &items[found] : NULL;
}

static inline const struct pt_path *pt_paths_find_exactly(struct pt_paths *paths, uint32_t from,
                                                          uint64_t asked, uint64_t top)
{
    if (!paths->slots || paths->generation != paths->stretches->generation)
        return pt_paths_learn(paths, from, asked, top);
    uint32_t found = pt_paths_known(paths, from, asked, top);
    return found == PT_NO_PATH ? pt_paths_learn(paths, from, asked, top)
                               : pt_paths_found(paths, found);
}

// top: the return address on top of the stack; 0: none. All branches that are ready are one path
// where they come again together, else the first of them are.
static inline const struct pt_path *pt_paths_find(struct pt_paths *paths, uint32_t from,
                                                  uint64_t asked, uint64_t top)
{
    const struct pt_path *path = pt_paths_find_exactly(paths, from, asked, top);
    return path || !pt_path_is_long(asked)
               ? path
               : pt_paths_find_exactly(paths, from, pt_path_shortened(asked), top);
}

#endif
