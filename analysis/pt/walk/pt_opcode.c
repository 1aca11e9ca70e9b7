// SPDX-License-Identifier: MIT
#include "analysis/pt/walk/pt_opcode.h"

#include <stdbool.h>

static bool is_prefix(uint8_t byte, enum pt_exec_mode mode)
{
    switch (byte) {
    case 0x26: // segments
    case 0x2e:
    case 0x36:
    case 0x3e:
    case 0x64:
    case 0x65:
    case 0x66: // operand and address size
    case 0x67:
    case 0xf0: // lock, repetitions
    case 0xf2:
    case 0xf3:
        return true;
    default:
        return mode == ptem_64bit && (byte & 0xf0) == 0x40; // REX
    }
}

static enum pt_insn_class group_5(uint8_t modrm)
{
    switch (modrm >> 3 & 7) {
    case 2:
        return ptic_call;
    case 3:
        return ptic_far_call;
    case 4:
        return ptic_jump;
    case 5:
        return ptic_far_jump;
    default:
        return ptic_other;
    }
}

static enum pt_insn_class two_bytes(uint8_t opcode)
{
    switch (opcode) {
    case 0x05: // syscall
    case 0x34: // sysenter
        return ptic_far_call;
    case 0x07: // sysret
    case 0x35: // sysexit
        return ptic_far_return;
    default:
        return ptic_other;
    }
}

enum pt_insn_class pt_opcode_class(const uint8_t *code, size_t bytes, enum pt_exec_mode mode)
{
    size_t at = 0;
    while (at < bytes && is_prefix(code[at], mode))
        at++;
    if (at == bytes)
        return ptic_other;
    uint8_t next = at + 1 < bytes ? code[at + 1] : 0;
    switch (code[at]) {
    case 0x0f:
        return two_bytes(next);
    case 0x9a: // with an address
    case 0xcc: // int3, int, int1, into
    case 0xcd:
    case 0xce:
    case 0xf1:
        return ptic_far_call;
    case 0xca: // retf, iret
    case 0xcb:
    case 0xcf:
        return ptic_far_return;
    case 0xe8:
        return ptic_call;
    case 0xc2:
    case 0xc3:
        return ptic_return;
    case 0xe9:
    case 0xeb:
        return ptic_jump;
    case 0xea:
        return ptic_far_jump;
    case 0xff:
        return group_5(next);
    default:
        return ptic_other;
    }
}
