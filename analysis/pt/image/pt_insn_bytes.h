// SPDX-License-Identifier: MIT
//
// How long an instruction is, and where it sends the processor: all that following a trace needs to
// know of x86 in 64-bit mode. Source: Intel SDM, volume 2, chapter 2 and appendix A. What is
// undefined, rare or ambiguous is refused, and left to libipt.
#ifndef ANALYSIS_PT_IMAGE_PT_INSN_BYTES_H
#define ANALYSIS_PT_IMAGE_PT_INSN_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum pt_insn_kind {
    PT_INSN_OTHER,  // goes on behind itself
    PT_INSN_JUMP,   // to `distance` behind itself
    PT_INSN_BRANCH, // there or behind itself
    PT_INSN_CALL,   // there
    // Only the trace knows where these go.
    PT_INSN_RETURN,
    PT_INSN_CALL_INDIRECT,
    PT_INSN_JUMP_INDIRECT,
    PT_INSN_FAR_CALL,
    PT_INSN_FAR_RETURN,
    PT_INSN_FAR_JUMP,
};

struct pt_insn_bytes {
    uint8_t bytes;
    uint8_t kind; // enum pt_insn_kind
    int32_t distance;
};

// False: not understood, or it needs more than the `left` bytes that are there.
bool pt_insn_bytes(const uint8_t *code, size_t left, struct pt_insn_bytes *out);

#endif
