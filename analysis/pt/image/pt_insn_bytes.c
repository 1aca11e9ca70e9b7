// SPDX-License-Identifier: MIT
#include "analysis/pt/image/pt_insn_bytes.h"

#include <string.h>

// What follows an opcode.
enum form {
    NONE = 0,
    MODRM = 1,
    BYTE = 2,  // an immediate of one byte
    WORD = 4,  // of two bytes
    WIDE = 8,  // of two or four, by the size of operands
    FULL = 16, // of eight with REX.W, else as WIDE
    ADDRESS = 32,
    TEST = 64, // group 3: an immediate only for TEST
    BAD = 128,
    MB = MODRM | BYTE,
    MW = MODRM | WIDE,
};

// clang-format off
static const uint8_t one_byte[256] = {
    // 0x00
    MODRM, MODRM, MODRM, MODRM, BYTE, WIDE, BAD, BAD,
    MODRM, MODRM, MODRM, MODRM, BYTE, WIDE, BAD, BAD,
    // 0x10
    MODRM, MODRM, MODRM, MODRM, BYTE, WIDE, BAD, BAD,
    MODRM, MODRM, MODRM, MODRM, BYTE, WIDE, BAD, BAD,
    // 0x20
    MODRM, MODRM, MODRM, MODRM, BYTE, WIDE, BAD, BAD,
    MODRM, MODRM, MODRM, MODRM, BYTE, WIDE, BAD, BAD,
    // 0x30
    MODRM, MODRM, MODRM, MODRM, BYTE, WIDE, BAD, BAD,
    MODRM, MODRM, MODRM, MODRM, BYTE, WIDE, BAD, BAD,
    // 0x40: REX
    BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD,
    // 0x50
    NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE,
    // 0x60
    BAD, BAD, BAD, MODRM, BAD, BAD, BAD, BAD, WIDE, MW, BYTE, MB, NONE, NONE, NONE, NONE,
    // 0x70
    BYTE, BYTE, BYTE, BYTE, BYTE, BYTE, BYTE, BYTE, BYTE, BYTE, BYTE, BYTE, BYTE, BYTE, BYTE, BYTE,
    // 0x80
    MB, MW, BAD, MB, MODRM, MODRM, MODRM, MODRM,
    MODRM, MODRM, MODRM, MODRM, MODRM, MODRM, MODRM, MODRM,
    // 0x90
    NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, BAD, NONE, NONE, NONE, NONE, NONE,
    // 0xa0
    ADDRESS, ADDRESS, ADDRESS, ADDRESS, NONE, NONE, NONE, NONE,
    BYTE, WIDE, NONE, NONE, NONE, NONE, NONE, NONE,
    // 0xb0
    BYTE, BYTE, BYTE, BYTE, BYTE, BYTE, BYTE, BYTE, FULL, FULL, FULL, FULL, FULL, FULL, FULL, FULL,
    // 0xc0
    MB, MB, WORD, NONE, BAD, BAD, MB, MW, WORD | BYTE, NONE, WORD, NONE, NONE, BYTE, BAD, NONE,
    // 0xd0
    MODRM, MODRM, MODRM, MODRM, BAD, BAD, BAD, NONE,
    MODRM, MODRM, MODRM, MODRM, MODRM, MODRM, MODRM, MODRM,
    // 0xe0
    BYTE, BYTE, BYTE, BYTE, BYTE, BYTE, BYTE, BYTE, WIDE, WIDE, BAD, BYTE, NONE, NONE, NONE, NONE,
    // 0xf0
    BAD, NONE, BAD, BAD, NONE, NONE, TEST | MODRM, TEST | MODRM,
    NONE, NONE, NONE, NONE, NONE, NONE, MODRM, MODRM,
};

// After 0x0f.
static const uint8_t two_bytes[256] = {
    // 0x00
    MODRM, MODRM, MODRM, MODRM, BAD, NONE, NONE, NONE, NONE, NONE, BAD, NONE, BAD, MODRM, BAD, BAD,
    // 0x10
    MODRM, MODRM, MODRM, MODRM, MODRM, MODRM, MODRM, MODRM,
    MODRM, MODRM, MODRM, MODRM, MODRM, MODRM, MODRM, MODRM,
    // 0x20
    MODRM, MODRM, MODRM, MODRM, BAD, BAD, BAD, BAD,
    MODRM, MODRM, MODRM, MODRM, MODRM, MODRM, MODRM, MODRM,
    // 0x30: 0x38 and 0x3a are further maps
    NONE, NONE, NONE, NONE, NONE, NONE, BAD, BAD, MODRM, BAD, MB, BAD, BAD, BAD, BAD, BAD,
    // 0x40
    MODRM, MODRM, MODRM, MODRM, MODRM, MODRM, MODRM, MODRM,
    MODRM, MODRM, MODRM, MODRM, MODRM, MODRM, MODRM, MODRM,
    // 0x50
    MODRM, MODRM, MODRM, MODRM, MODRM, MODRM, MODRM, MODRM,
    MODRM, MODRM, MODRM, MODRM, MODRM, MODRM, MODRM, MODRM,
    // 0x60
    MODRM, MODRM, MODRM, MODRM, MODRM, MODRM, MODRM, MODRM,
    MODRM, MODRM, MODRM, MODRM, MODRM, MODRM, MODRM, MODRM,
    // 0x70
    MB, MB, MB, MB, MODRM, MODRM, MODRM, NONE, BAD, BAD, BAD, BAD, MODRM, MODRM, MODRM, MODRM,
    // 0x80
    WIDE, WIDE, WIDE, WIDE, WIDE, WIDE, WIDE, WIDE, WIDE, WIDE, WIDE, WIDE, WIDE, WIDE, WIDE, WIDE,
    // 0x90
    MODRM, MODRM, MODRM, MODRM, MODRM, MODRM, MODRM, MODRM,
    MODRM, MODRM, MODRM, MODRM, MODRM, MODRM, MODRM, MODRM,
    // 0xa0
    NONE, NONE, NONE, MODRM, MB, MODRM, BAD, BAD, NONE, NONE, BAD, MODRM, MB, MODRM, MODRM, MODRM,
    // 0xb0
    MODRM, MODRM, MODRM, MODRM, MODRM, MODRM, MODRM, MODRM,
    MODRM, BAD, MB, MODRM, MODRM, MODRM, MODRM, MODRM,
    // 0xc0
    MODRM, MODRM, MB, MODRM, MB, MB, MB, MODRM, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE,
    // 0xd0
    MODRM, MODRM, MODRM, MODRM, MODRM, MODRM, MODRM, MODRM,
    MODRM, MODRM, MODRM, MODRM, MODRM, MODRM, MODRM, MODRM,
    // 0xe0
    MODRM, MODRM, MODRM, MODRM, MODRM, MODRM, MODRM, MODRM,
    MODRM, MODRM, MODRM, MODRM, MODRM, MODRM, MODRM, MODRM,
    // 0xf0
    MODRM, MODRM, MODRM, MODRM, MODRM, MODRM, MODRM, MODRM,
    MODRM, MODRM, MODRM, MODRM, MODRM, MODRM, MODRM, BAD,
};

// clang-format on

enum { MOST_BYTES = 15 };

struct prefixes {
    bool narrow; // operands: 0x66
    bool short_address;
    bool repeated; // 0xf2, 0xf3
    bool rex_w;
    uint8_t bytes;
};

static bool is_legacy_prefix(uint8_t byte)
{
    switch (byte) {
    case 0x26: // segments, hints
    case 0x2e:
    case 0x36:
    case 0x3e:
    case 0x64:
    case 0x65:
    case 0x66:
    case 0x67:
    case 0xf0:
    case 0xf2:
    case 0xf3:
        return true;
    default:
        return false;
    }
}

static struct prefixes read_prefixes(const uint8_t *code, size_t left)
{
    struct prefixes found = {0};
    while (found.bytes < left && is_legacy_prefix(code[found.bytes])) {
        uint8_t byte = code[found.bytes++];
        found.narrow |= byte == 0x66;
        found.short_address |= byte == 0x67;
        found.repeated |= byte == 0xf2 || byte == 0xf3;
    }
    if (found.bytes < left && (code[found.bytes] & 0xf0) == 0x40)
        found.rex_w = code[found.bytes++] >> 3 & 1;
    return found;
}

// ModRM and what it brings. 0: not all there.
static size_t modrm_bytes(const uint8_t *code, size_t left)
{
    if (left < 1)
        return 0;
    unsigned mod = code[0] >> 6, rm = code[0] & 7;
    size_t bytes = 1;
    if (mod == 3)
        return bytes;
    if (rm == 4) {
        if (left < 2)
            return 0;
        bytes++;
        if (mod == 0 && (code[1] & 7) == 5)
            bytes += 4;
    } else if (mod == 0 && rm == 5) {
        bytes += 4;
    }
    return bytes + (mod == 1 ? 1 : mod == 2 ? 4 : 0);
}

static size_t immediate_bytes(unsigned form, const struct prefixes *prefixes, bool byte_operand)
{
    size_t wide = prefixes->narrow && !prefixes->rex_w ? 2 : 4;
    size_t bytes = 0;
    if (form & BYTE)
        bytes += 1;
    if (form & WORD)
        bytes += 2;
    if (form & WIDE)
        bytes += wide;
    if (form & FULL)
        bytes += prefixes->rex_w ? 8 : wide;
    if (form & ADDRESS)
        bytes += prefixes->short_address ? 4 : 8;
    if (form & TEST)
        bytes += byte_operand ? 1 : wide;
    return bytes;
}

static enum pt_insn_kind one_byte_kind(uint8_t opcode, uint8_t next)
{
    switch (opcode) {
    case 0xc2:
    case 0xc3:
        return PT_INSN_RETURN;
    case 0xe8:
        return PT_INSN_CALL;
    case 0xe9:
    case 0xeb:
        return PT_INSN_JUMP;
    case 0xca:
    case 0xcb:
    case 0xcf:
        return PT_INSN_FAR_RETURN;
    case 0xcc:
    case 0xcd:
    case 0xf1:
        return PT_INSN_FAR_CALL;
    case 0xff:
        switch (next >> 3 & 7) {
        case 2:
            return PT_INSN_CALL_INDIRECT;
        case 3:
            return PT_INSN_FAR_CALL;
        case 4:
            return PT_INSN_JUMP_INDIRECT;
        case 5:
            return PT_INSN_FAR_JUMP;
        default:
            return PT_INSN_OTHER;
        }
    default:
        return (opcode & 0xf0) == 0x70 || (opcode & 0xfc) == 0xe0 ? PT_INSN_BRANCH : PT_INSN_OTHER;
    }
}

static enum pt_insn_kind two_byte_kind(uint8_t opcode)
{
    switch (opcode) {
    case 0x05:
    case 0x34:
        return PT_INSN_FAR_CALL;
    case 0x07:
    case 0x35:
        return PT_INSN_FAR_RETURN;
    default:
        return (opcode & 0xf0) == 0x80 ? PT_INSN_BRANCH : PT_INSN_OTHER;
    }
}

// Of the instructions behind 0x0f, what cannot be told from the opcode alone is refused.
static bool two_bytes_are_plain(const uint8_t *code, size_t left, const struct prefixes *prefixes)
{
    uint8_t next = left > 1 ? code[1] : 0;
    if (code[0] >= 0x20 && code[0] <= 0x23) // control and debug registers, whatever the mod
        return next >> 6 == 3;
    if (code[0] == 0x01) // VMCALL, VMLAUNCH, VMRESUME and their neighbours
        return next < 0xc0 || next > 0xc4;
    if (code[0] == 0xb8)
        return prefixes->repeated;
    return true;
}

static bool finish(const struct prefixes *prefixes, const uint8_t *code, size_t left,
                   size_t without_immediate, size_t immediate, struct pt_insn_bytes *out)
{
    size_t bytes = without_immediate + immediate;
    if (bytes > left || bytes > MOST_BYTES)
        return false;
    out->bytes = (uint8_t)bytes;
    out->distance = 0;
    if (out->kind != PT_INSN_JUMP && out->kind != PT_INSN_BRANCH && out->kind != PT_INSN_CALL)
        return true;
    if (prefixes->narrow && !prefixes->rex_w) // processors differ
        return false;
    if (immediate == 1)
        out->distance = code[without_immediate] - (code[without_immediate] < 0x80 ? 0 : 0x100);
    else
        memcpy(&out->distance, code + without_immediate, sizeof out->distance);
    return true;
}

// Which of the opcodes behind 0x0f have a form with VEX or EVEX.
static bool is_vector(uint8_t opcode)
{
    return (opcode >= 0x10 && opcode <= 0x17) || (opcode >= 0x28 && opcode <= 0x2f) ||
           (opcode >= 0x41 && opcode <= 0x4b) || (opcode >= 0x50 && opcode <= 0x7f) ||
           (opcode >= 0x90 && opcode <= 0x99) || opcode == 0xae || opcode == 0xc2 ||
           (opcode >= 0xc4 && opcode <= 0xc6) || (opcode >= 0xd0 && opcode <= 0xfe);
}

// VEX and EVEX: `at` is the opcode; map 1 is that behind 0x0f.
static bool vector_bytes(const uint8_t *code, size_t left, size_t at, unsigned map,
                         struct pt_insn_bytes *out)
{
    if (at >= left || map < 1 || map > 3)
        return false;
    uint8_t opcode = code[at];
    if (map == 1 && !is_vector(opcode))
        return false;
    out->kind = PT_INSN_OTHER;
    out->distance = 0;
    size_t bytes = at + 1;
    if (map != 1 || opcode != 0x77) { // VZEROUPPER has no operands
        size_t operands = modrm_bytes(code + bytes, left - bytes);
        if (operands == 0)
            return false;
        bytes += operands;
    }
    bool immediate = map == 3 || (map == 1 && (two_bytes[opcode] & BYTE));
    bytes += immediate;
    out->bytes = (uint8_t)bytes;
    return bytes <= left && bytes <= MOST_BYTES;
}

static bool vex_bytes(const uint8_t *code, size_t left, const struct prefixes *prefixes,
                      struct pt_insn_bytes *out)
{
    size_t at = prefixes->bytes;
    if (prefixes->narrow || prefixes->repeated || (at && (code[at - 1] & 0xf0) == 0x40))
        return false;
    if (code[at] == 0xc5)
        return at + 2 < left && vector_bytes(code, left, at + 2, 1, out);
    if (code[at] == 0xc4)
        return at + 3 < left && vector_bytes(code, left, at + 3, code[at + 1] & 0x1f, out);
    return at + 4 < left && !(code[at + 1] & 8) && (code[at + 2] & 4) &&
           vector_bytes(code, left, at + 4, code[at + 1] & 7, out);
}

bool pt_insn_bytes(const uint8_t *code, size_t left, struct pt_insn_bytes *out)
{
    struct prefixes prefixes = read_prefixes(code, left);
    size_t at = prefixes.bytes;
    if (at >= left)
        return false;
    uint8_t opcode = code[at];
    if (opcode == 0xc4 || opcode == 0xc5 || opcode == 0x62)
        return vex_bytes(code, left, &prefixes, out);
    unsigned form;
    if (opcode == 0x0f) {
        if (++at >= left || !two_bytes_are_plain(code + at, left - at, &prefixes))
            return false;
        opcode = code[at];
        form = two_bytes[opcode];
        out->kind = (uint8_t)two_byte_kind(opcode);
        at += opcode == 0x38 || opcode == 0x3a;
    } else {
        uint8_t next = at + 1 < left ? code[at + 1] : 0;
        form = one_byte[opcode];
        out->kind = (uint8_t)one_byte_kind(opcode, next);
        if (form & TEST && next >> 3 & 6)
            form &= ~(unsigned)TEST;
        if (opcode == 0x8f && next >> 3 & 7) // XOP
            return false;
        if ((opcode == 0xc6 || opcode == 0xc7) && next >> 3 & 7 && next != 0xf8)
            return false; // neither MOV nor XABORT, XBEGIN
    }
    at++;
    if (form & BAD)
        return false;
    if (form & MODRM) {
        size_t operands = at < left ? modrm_bytes(code + at, left - at) : 0;
        if (operands == 0)
            return false;
        at += operands;
    }
    return finish(&prefixes, code, left, at, immediate_bytes(form, &prefixes, opcode == 0xf6), out);
}
