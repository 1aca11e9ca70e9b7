// SPDX-License-Identifier: MIT
//
// Which packet of Intel PT stands at a byte, and how long it is. Both the scan for PSBs
// (pt_packets.h) and the walk (pt_query_packets.h) ask that of each packet, so it is looked up in
// tables. Source: Intel SDM, volume 3, "Trace Packets and Data Types".
#ifndef ANALYSIS_PT_PACKETS_PT_SHAPE_H
#define ANALYSIS_PT_PACKETS_PT_SHAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum pt_kind {
    PT_KIND_PAD,
    PT_KIND_PSB,
    PT_KIND_PSBEND,
    PT_KIND_TNT,
    PT_KIND_TIP,
    PT_KIND_TIP_PGE, // tracing begins
    PT_KIND_TIP_PGD, // tracing ends
    PT_KIND_FUP,
    PT_KIND_MODE,
    PT_KIND_PIP,
    PT_KIND_TSC,
    PT_KIND_TMA,
    PT_KIND_MTC,
    PT_KIND_CYC,
    PT_KIND_CBR,
    PT_KIND_OVF, // the processor lost packets
    PT_KIND_OTHER,
    PT_KINDS
};
const char *pt_kind_name(enum pt_kind kind); // "PSB", "TIP.PGE"

enum { PT_PSB_BYTES = 16, PT_EXTENDED = 0x02 };
extern const uint8_t pt_psb[PT_PSB_BYTES]; // the longest packet

// Most packets of most traces: a TNT packet of one byte.
static inline bool pt_is_short_tnt(uint8_t first)
{
    return !(first & 1) && first > 2;
}

// How many of the eight bytes, from the first (lowest) one on, are such packets in a row.
static inline unsigned pt_short_tnt_run(uint64_t bytes)
{
    const uint64_t ones = 0x0101010101010101u, above_two = 0xfc * ones;
    uint64_t odd = (bytes & ones) << 7;
    uint64_t large = (((bytes & above_two) >> 2) + 0x7f * ones) & 0x80 * ones;
    uint64_t others = odd | (large ^ 0x80 * ones);
    return others ? (unsigned)__builtin_ctzll(others) / 8 : 8;
}

// And most others: the target of a jump, with that many bytes in all; 0: another packet, or none.
static inline size_t pt_tip_bytes(uint8_t first)
{
    static const uint8_t by_compression[8] = {1, 3, 5, 7, 7, 0, 9, 0};
    return (first & 0x1f) == 0x0d ? by_compression[first >> 5] : 0;
}

// The first byte behind padding; some processors fill up each packet to eight bytes.
static inline const uint8_t *pt_behind_padding(const uint8_t *at, const uint8_t *end)
{
    for (uint64_t next; end - at >= 8; at += 8) {
        memcpy(&next, at, sizeof next);
        if (next)
            return at + __builtin_ctzll(next) / 8;
    }
    while (at < end && *at == 0)
        at++;
    return at;
}

// A packet's shape: bytes == 0 when the bytes are no packet; more than there are: it is cut off.
struct pt_shape {
    uint8_t kind; // enum pt_kind; only of packets
    size_t bytes;
};

// Packets whose first byte ends in the bits 01, by the other six; and those behind PT_EXTENDED, by
// their second byte. 0 bytes: none, or pt_odd_shape knows.
extern const struct pt_shape pt_shapes[64], pt_extended_shapes[256];
struct pt_shape pt_odd_shape(const uint8_t *at, size_t left);

// Of the packet at the first of `left` bytes, at least 1. Only a scan knows where BIP packets may
// be; here they are TNT packets or none.
static inline struct pt_shape pt_packet_shape(const uint8_t *at, size_t left)
{
    uint8_t first = at[0];
    if ((first & 3) == 1)
        return pt_shapes[first >> 2];
    if (!(first & 1) && first != PT_EXTENDED)
        return (struct pt_shape){first ? PT_KIND_TNT : PT_KIND_PAD, 1};
    if (first == PT_EXTENDED && left > 1 && pt_extended_shapes[at[1]].bytes)
        return pt_extended_shapes[at[1]];
    return pt_odd_shape(at, left);
}

#endif
