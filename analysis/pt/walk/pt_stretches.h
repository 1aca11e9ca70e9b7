// SPDX-License-Identifier: MIT
//
// Code that a walk has seen, so that it need not be decoded again. A stretch is the straight code
// from an address to the next decision: how many instructions, what the last one is, where it goes.
// Each is learned once, from the bytes of the code (pt_insn_bytes.h); where an event decides how
// far it goes, mostly by asking libipt (pt_ask.h). Where neither gives a clear answer the stretch
// is marked, and pt_follow.h leaves it to libipt.
#ifndef ANALYSIS_PT_WALK_PT_STRETCHES_H
#define ANALYSIS_PT_WALK_PT_STRETCHES_H

#include <intel-pt.h>
#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

#include "analysis/pt/image/pt_code_bytes.h"
#include "analysis/pt/image/pt_image.h"
#include "analysis/pt/walk/pt_ask.h"
#include "base/error.h"
#include "base/room.h"

// What a stretch leads to.
enum pt_stretch_aim {
    PT_AIM_DECISION,   // the next decision that only the trace can tell
    PT_AIM_ADDRESS,    // an address: an event happens right before its instruction
    PT_AIM_DISABLE,    // where tracing ends, without an address
    PT_AIM_DISABLE_TO, // where tracing ends with a jump to an address
    PT_AIM_PAGING,     // the instruction that changes CR3
};

enum pt_stretch_end {
    PT_STRETCH_UNUSUAL, // cannot be followed: left to libipt
    PT_STRETCH_ON,      // goes on at `next`: a direct call, or another section
    PT_STRETCH_BRANCH,  // conditional: to `next` or `taken`
    PT_STRETCH_RETURN,
    PT_STRETCH_CALL,     // through a register or memory
    PT_STRETCH_TRANSFER, // any other whose target the trace has
    PT_STRETCH_AIM,      // it has reached its aim and goes on at `next`
    PT_STRETCH_UNMAPPED, // no code is known at its address
};

struct pt_stretch {
    // What passing a branch needs:
    uint64_t ip;     // its first instruction
    uint64_t key;    // of the function there, 0 unknown
    uint64_t end_ip; // its last instruction
    // Stretches to the decision from `next`, `taken` and `returns_to`; PT_NO_STRETCH: not known
    // yet.
    uint32_t next_stretch, taken_stretch, return_stretch;
    uint16_t instructions;
    uint8_t end;       // enum pt_stretch_end
    bool inner_branch; // it ends in a conditional jump, in the function where it begins
    // And the rest:
    uint64_t next, taken; // taken: of a branch; else where the trace last sent the processor
    uint64_t returns_to;  // return address of a call; 0: none to remember
    uint64_t aim_ip;      // 0 where the aim has no address
    uint32_t space;       // as of pt_code_bytes_space
    uint8_t aim;          // enum pt_stretch_aim
    uint8_t class;        // enum pt_insn_class of the last instruction
    bool one_function;    // its last instruction is in the function of its first, too
};
enum { PT_NO_STRETCH = 0xffffffff };

struct pt_stretches {
    struct pt_stretch *items;
    uint32_t *table;                      // of items; open addressing
    uint32_t count, capacity, generation; // generation: how often the table was emptied
    struct pt_code_bytes bytes;
    struct pt_code_view *code; // for libipt
    struct room *room;         // where this and what is made of it (pt_paths.h, pt_trails.h) lie
    struct pt_ask ask;
    const struct pt_symbols *symbols;
    struct pt_function function; // what was found last, in this space
    uint32_t function_space;
};

// Memory, code view, symbols and room must outlive it, and it must not move. symbols and room may
// be NULL. The caller calls pt_stretches_free, also after a failure.
int pt_stretches_init(struct pt_stretches *stretches, const struct pt_memory *memory,
                      struct pt_code_view *code, const struct pt_symbols *symbols,
                      struct room *room, struct error *err);
void pt_stretches_free(struct pt_stretches *stretches);

// The stretch from `ip` in an address space; learns it when it is new. Memory is bounded: when
// there are too many, all are forgotten, the generation increases, and earlier numbers are invalid.
// PT_NO_STRETCH: out of memory, or there is no such address space.
uint32_t pt_stretches_find(struct pt_stretches *stretches, uint32_t space, uint64_t ip,
                           enum pt_stretch_aim aim, uint64_t aim_ip);

// Where a stretch leads, which it remembers.
enum pt_stretch_link { PT_LINK_NEXT, PT_LINK_TAKEN, PT_LINK_RETURN };

static inline uint32_t *pt_stretch_link(struct pt_stretch *stretch, enum pt_stretch_link link)
{
    return link == PT_LINK_NEXT    ? &stretch->next_stretch
           : link == PT_LINK_TAKEN ? &stretch->taken_stretch
                                   : &stretch->return_stretch;
}

// Whether it remembers where `ip` is: from the kernel's code every process's is reached.
static inline bool pt_stretches_link(const struct pt_stretches *stretches, uint32_t from,
                                     uint64_t ip)
{
    return pt_code_same_half(stretches->items[from].ip, ip);
}

// The stretch to the decision from `ip`, which is where that link of the stretch `from` leads.
static inline uint32_t pt_stretches_follow(struct pt_stretches *stretches, uint32_t from,
                                           enum pt_stretch_link link, uint64_t ip)
{
    struct pt_stretch *stretch = &stretches->items[from];
    uint32_t found = *pt_stretch_link(stretch, link), generation = stretches->generation;
    if (found != PT_NO_STRETCH)
        return found;
    found = pt_stretches_find(stretches, stretch->space, ip, PT_AIM_DECISION, 0);
    if (stretches->generation == generation) // the array may have moved
        *pt_stretch_link(&stretches->items[from], link) = found;
    return found;
}

// Whether the instruction at that address is understood: then it is none that enters a virtual
// machine, for instance.
bool pt_stretches_plain(struct pt_stretches *stretches, uint32_t space, uint64_t ip);

// --- what kind of branch an instruction is -------------------------------------------------------
// What kind of branch an instruction is. libipt's block decoder reports ptic_error instead wherever
// its cache only knows that the instruction needs a target.

// Looks at the instruction's first bytes (prefixes, opcode, ModRM; Intel SDM volume 2, appendix A).
// Only for instructions that need a target: anything else is ptic_other.
enum pt_insn_class pt_opcode_class(const uint8_t *code, size_t bytes, enum pt_exec_mode mode);

#endif
