// SPDX-License-Identifier: MIT
//
// What an x86-64 instruction does to the flow, as far as Intel PT cares: which packet it makes.
#ifndef TESTS_LAB_INSTRUCTION_H
#define TESTS_LAB_INSTRUCTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum instruction_kind {
    INSTRUCTION_OTHER,       // goes on behind itself: nothing
    INSTRUCTION_CONDITIONAL, // TNT
    INSTRUCTION_DIRECT,      // nothing
    INSTRUCTION_INDIRECT,    // TIP
    INSTRUCTION_RETURN,      // TIP, or TNT where it is compressed
    INSTRUCTION_FAR,         // syscall, iret and their like: TIP
    INSTRUCTION_INTERRUPT,   // int n, int3, int1: FUP and TIP
    INSTRUCTION_SET_CR3,     // PIP
};

struct instruction {
    uint64_t address, target; // target: of CONDITIONAL and DIRECT
    uint8_t length, kind;     // kind: enum instruction_kind
    bool call;
    uint16_t index; // in its block
};

// address and length are set already; `bytes` are those of the code.
void instruction_classify(struct instruction *instruction, const uint8_t *bytes);

// Whether `next` can come after it without an interrupt.
bool instruction_leads_to(const struct instruction *instruction, uint64_t next);

#endif
