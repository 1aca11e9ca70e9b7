// SPDX-License-Identifier: MIT
#include "analysis/pt/packets/pt_shape.h"

#include <string.h>

const uint8_t pt_psb[PT_PSB_BYTES] = {0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82,
                                      0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82};

const char *pt_kind_name(enum pt_kind kind)
{
    static const char *const names[PT_KINDS] = {
        "PAD", "PSB", "PSBEND", "TNT", "TIP", "TIP.PGE", "TIP.PGD", "FUP",   "MODE",
        "PIP", "TSC", "TMA",    "MTC", "CYC", "CBR",     "OVF",     "other",
    };
    return (unsigned)kind < PT_KINDS ? names[kind] : "?";
}

// The packets with an address; the uppermost three bits say how it is compressed.
#define ADDRESSES(compression, size)                                                               \
    [8 * compression + 0] = {PT_KIND_TIP_PGD, size}, [8 * compression + 3] = {PT_KIND_TIP, size},  \
                       [8 * compression + 4] = {PT_KIND_TIP_PGE, size},                            \
                       [8 * compression + 7] = {PT_KIND_FUP, size}

const struct pt_shape pt_shapes[64] = {
    ADDRESSES(0, 1),
    ADDRESSES(1, 3),
    ADDRESSES(2, 5),
    ADDRESSES(3, 7),
    ADDRESSES(4, 7),
    ADDRESSES(6, 9), // 5 and 7 are reserved
    [0x19 >> 2] = {PT_KIND_TSC, 8},
    [0x59 >> 2] = {PT_KIND_MTC, 2},
    [0x99 >> 2] = {PT_KIND_MODE, 2},
};

const struct pt_shape pt_extended_shapes[256] = {
    [0x23] = {PT_KIND_PSBEND, 2}, [0xa3] = {PT_KIND_TNT, 8}, [0x43] = {PT_KIND_PIP, 8},
    [0x73] = {PT_KIND_TMA, 7},    [0x03] = {PT_KIND_CBR, 4}, [0xf3] = {PT_KIND_OVF, 2},
    [0x83] = {PT_KIND_OTHER, 2},  // trace stop
    [0x62] = {PT_KIND_OTHER, 2},  // EXSTOP, without and with address
    [0xe2] = {PT_KIND_OTHER, 2},  //
    [0x33] = {PT_KIND_OTHER, 2},  // BEP, without and with address
    [0xb3] = {PT_KIND_OTHER, 2},  //
    [0x63] = {PT_KIND_OTHER, 3},  // BBP
    [0x22] = {PT_KIND_OTHER, 4},  // PWRE
    [0x13] = {PT_KIND_OTHER, 4},  // CFE
    [0xc8] = {PT_KIND_OTHER, 7},  // VMCS
    [0xa2] = {PT_KIND_OTHER, 7},  // PWRX
    [0xc2] = {PT_KIND_OTHER, 10}, // MWAIT
    [0x53] = {PT_KIND_OTHER, 11}, // EVD
    [0x12] = {PT_KIND_OTHER, 6},  // PTWRITE of 4 and 8 bytes, without and with address
    [0x92] = {PT_KIND_OTHER, 6},  //
    [0x32] = {PT_KIND_OTHER, 10}, //
    [0xb2] = {PT_KIND_OTHER, 10}, //
};

static bool is_psb(const uint8_t *at, size_t left)
{
    return left < PT_PSB_BYTES ? memcmp(at, pt_psb, left) == 0
                               : memcmp(at, pt_psb, PT_PSB_BYTES) == 0;
}

struct pt_shape pt_odd_shape(const uint8_t *at, size_t left)
{
    size_t bytes = 1;
    if ((at[0] & 3) == 3) { // CYC, as long as its bytes say that another follows
        if (at[0] & 4)
            do
                bytes++;
            while (bytes <= left && (at[bytes - 1] & 1));
        return (struct pt_shape){PT_KIND_CYC, bytes};
    }
    if (left < 2)
        return (struct pt_shape){PT_KIND_OTHER, 2};
    if (at[1] == 0x82)
        return (struct pt_shape){PT_KIND_PSB, is_psb(at, left) ? PT_PSB_BYTES : 0};
    if (at[1] == 0xc3 && (left == 2 || at[2] == 0x88)) // MNT has a third opcode byte
        return (struct pt_shape){PT_KIND_OTHER, 11};
    return (struct pt_shape){PT_KIND_OTHER, 0};
}
