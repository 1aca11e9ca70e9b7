// SPDX-License-Identifier: MIT
//
// Kernel code that changed while it was traced: static keys, alternatives, ftrace, kprobes and the
// trampolines made for them, BPF programs. The kernel records each patch (TEXT_POKE) with the bytes
// before and after at a moment when no CPU executes either: it has put an INT3 there, and
// synchronises every CPU by an interrupt before the new code runs (arch/x86/kernel/alternative.c,
// text_poke_bp_batch). So the code has a state for each stretch of time between two patches, and
// switching states at the record's time is exact. Where a function is made (KSYMBOL), as of a BPF
// program, there is no code any more, whatever was there before, until some record has it: the
// program's (BPF_EVENT), where its code was fetched, or a patch. So what nobody knows is a hole, in
// which decoding ends with an error, rather than code that was never executed.
#ifndef ANALYSIS_PT_IMAGE_PT_PATCHES_H
#define ANALYSIS_PT_IMAGE_PT_PATCHES_H

#include "analysis/perf/perf_data.h"
#include "analysis/pt/image/pt_image.h"
#include "base/array.h"
#include "base/error.h"

struct pt_patches {
    struct pt_patch_times ARRAY_OF(uint64_t) times; // perf clock; state n + 1 begins at times[n]
    uint64_t left_out; // changes that exceeded the limits and were ignored
    uint64_t unknown;  // functions that came and whose code nobody knows
};

// Adds the code that patches wrote over, in each of its states, to the memory; it hides what the
// memory has there already. To be called when everything else was added. The caller frees *out,
// also after an error.
int pt_patches_add(const struct perf_data *data, struct pt_memory *memory, struct pt_patches *out,
                   struct error *err);
void pt_patches_free(struct pt_patches *patches);

// When the state began; 0: with the recording.
uint64_t pt_patches_begin(const struct pt_patches *patches, uint32_t state);

// The state of the code at a time; *until is when that state ends.
uint32_t pt_patches_state(const struct pt_patches *patches, uint64_t time, uint64_t *until);

#endif
