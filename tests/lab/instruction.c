// SPDX-License-Identifier: MIT
//
// Opcodes as in the Intel SDM, volume 2, appendix A; 64-bit code only.
#include <string.h>

#include "tests/lab/instruction.h"

static bool is_prefix(uint8_t byte)
{
    return byte == 0x66 || byte == 0x67 || byte == 0xf2 || byte == 0xf3 || byte == 0xf0 ||
           byte == 0x2e || byte == 0x36 || byte == 0x3e || byte == 0x26 || byte == 0x64 ||
           byte == 0x65;
}

static uint64_t relative32(const struct instruction *instruction, const uint8_t *displacement)
{
    int32_t distance;
    memcpy(&distance, displacement, sizeof distance);
    return instruction->address + instruction->length + (uint64_t)(int64_t)distance;
}

static uint64_t relative8(const struct instruction *instruction, uint8_t displacement)
{
    return instruction->address + instruction->length + (uint64_t)(int64_t)(int8_t)displacement;
}

static unsigned middle(uint8_t modrm) // its register field
{
    return modrm >> 3 & 7;
}

static void classify_two_byte(struct instruction *instruction, const uint8_t *code, uint8_t rex)
{
    if ((code[0] & 0xf0) == 0x80) {
        instruction->kind = INSTRUCTION_CONDITIONAL;
        instruction->target = relative32(instruction, code + 1);
    } else if (code[0] == 0x05 || code[0] == 0x07 || code[0] == 0x34 || code[0] == 0x35 ||
               code[0] == 0xaa) { // syscall, sysret, sysenter, sysexit, rsm
        instruction->kind = INSTRUCTION_FAR;
    } else if (code[0] == 0x22 && middle(code[1]) == 3 && !(rex & 4)) {
        instruction->kind = INSTRUCTION_SET_CR3;
    }
}

static void classify_group5(struct instruction *instruction, unsigned operation)
{
    if (operation == 2 || operation == 4) {
        instruction->kind = INSTRUCTION_INDIRECT;
        instruction->call = operation == 2;
    } else if (operation == 3 || operation == 5) {
        instruction->kind = INSTRUCTION_FAR;
    }
}

void instruction_classify(struct instruction *instruction, const uint8_t *bytes)
{
    const uint8_t *code = bytes, *end = bytes + instruction->length;
    uint8_t rex = 0;
    instruction->kind = INSTRUCTION_OTHER;
    instruction->target = 0;
    instruction->call = false;
    while (code < end && is_prefix(*code))
        code++;
    if (code < end && (*code & 0xf0) == 0x40)
        rex = *code++;
    if (code == end)
        return;
    uint8_t opcode = *code++;
    if ((opcode & 0xf0) == 0x70 || (opcode & 0xfc) == 0xe0) { // jcc; loop, jrcxz
        instruction->kind = INSTRUCTION_CONDITIONAL;
        instruction->target = relative8(instruction, *code);
    } else if (opcode == 0xeb) {
        instruction->kind = INSTRUCTION_DIRECT;
        instruction->target = relative8(instruction, *code);
    } else if (opcode == 0xe8 || opcode == 0xe9) {
        instruction->kind = INSTRUCTION_DIRECT;
        instruction->target = relative32(instruction, code);
        instruction->call = opcode == 0xe8;
    } else if (opcode == 0xc2 || opcode == 0xc3) {
        instruction->kind = INSTRUCTION_RETURN;
    } else if (opcode == 0xca || opcode == 0xcb || opcode == 0xcf) {
        instruction->kind = INSTRUCTION_FAR;
    } else if (opcode == 0xcc || opcode == 0xcd || opcode == 0xf1) {
        instruction->kind = INSTRUCTION_INTERRUPT;
    } else if (opcode == 0xff) {
        classify_group5(instruction, middle(*code));
    } else if (opcode == 0x0f) {
        classify_two_byte(instruction, code, rex);
    }
}

bool instruction_leads_to(const struct instruction *instruction, uint64_t next)
{
    uint64_t behind = instruction->address + instruction->length;
    switch (instruction->kind) {
    case INSTRUCTION_CONDITIONAL:
        return next == instruction->target || next == behind;
    case INSTRUCTION_DIRECT:
        return next == instruction->target;
    case INSTRUCTION_OTHER:
    case INSTRUCTION_SET_CR3:
        return next == behind;
    default:
        return true;
    }
}
