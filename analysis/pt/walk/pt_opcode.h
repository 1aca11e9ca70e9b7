// SPDX-License-Identifier: MIT
//
// What kind of branch an instruction is. libipt's block decoder reports ptic_error instead wherever
// its cache only knows that the instruction needs a target.
#ifndef ANALYSIS_PT_WALK_PT_OPCODE_H
#define ANALYSIS_PT_WALK_PT_OPCODE_H

#include <intel-pt.h>
#include <stddef.h>
#include <stdint.h>

// Looks at the instruction's first bytes (prefixes, opcode, ModRM; Intel SDM volume 2, appendix A).
// Only for instructions that need a target: anything else is ptic_other.
enum pt_insn_class pt_opcode_class(const uint8_t *code, size_t bytes, enum pt_exec_mode mode);

#endif
