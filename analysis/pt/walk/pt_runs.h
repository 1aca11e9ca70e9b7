// SPDX-License-Identifier: MIT
//
// Code that a walk has seen, so that it need not be decoded again. A run is the straight way from
// an address to the next decision: how many instructions, what the last one is, where it goes.
// Nothing here knows x86: runs are learned by asking libipt's block decoder, once for each, with a
// trace of a few bytes made up for the purpose ("the processor is at this address"; and then, for
// a conditional jump, "it was taken"). What libipt cannot answer plainly is a run that cannot be
// followed, and pt_follow.h leaves it to libipt.
#ifndef ANALYSIS_PT_WALK_PT_RUNS_H
#define ANALYSIS_PT_WALK_PT_RUNS_H

#include <intel-pt.h>
#include <stdint.h>

#include "analysis/pt/image/pt_image.h"
#include "base/error.h"

// What a run leads to.
enum pt_run_aim {
    PT_AIM_DECISION,   // the next decision that only the trace can tell
    PT_AIM_ADDRESS,    // an address: something happens right before its instruction
    PT_AIM_DISABLE,    // where tracing ends without saying where
    PT_AIM_DISABLE_TO, // where tracing ends by a jump to an address
    PT_AIM_PAGING,     // the instruction that changes CR3
};

enum pt_run_end {
    PT_RUN_UNUSUAL, // not to be followed
    PT_RUN_ON,      // goes on at `next`: a direct call, or another section
    PT_RUN_BRANCH,  // conditional: to `next` or `taken`
    PT_RUN_RETURN,
    PT_RUN_CALL,     // through a register or memory
    PT_RUN_TRANSFER, // any other whose target the trace tells
    PT_RUN_AIM,      // is where it was to lead; goes on at `next`
};

struct pt_run {
    uint64_t ip, aim_ip; // it begins at; aim_ip 0 where the aim has no address
    uint64_t end_ip;     // its last instruction
    uint64_t next, taken;
    uint64_t returns_to; // of a call; 0: nothing to remember
    uint32_t space;
    uint32_t next_run, taken_run; // runs to the decision from there, PT_NO_RUN not known yet
    uint16_t instructions;
    uint8_t aim, end; // enum pt_run_aim, enum pt_run_end
    uint8_t class;    // enum pt_insn_class of the last instruction
};
enum { PT_NO_RUN = 0xffffffff };

struct pt_runs {
    struct pt_run *items;
    uint32_t *table;                      // of items; open addressing
    uint32_t count, capacity, generation; // generation: how often all was forgotten
    struct pt_code_view *code;
    struct pt_block_decoder *decoder; // asked about `question`
    uint8_t question[64];
};

// The view must outlive it. The caller calls pt_runs_free, also after a failure.
int pt_runs_init(struct pt_runs *runs, struct pt_code_view *code, struct error *err);
void pt_runs_free(struct pt_runs *runs);

// The run from `ip` in an address space; learns it when it is new. Memory is bounded: when there
// are too many, all are forgotten, and numbers of another generation mean nothing any more.
// PT_NO_RUN: out of memory, or there is no such address space.
uint32_t pt_runs_find(struct pt_runs *runs, uint32_t space, uint64_t ip, enum pt_run_aim aim,
                      uint64_t aim_ip);

#endif
