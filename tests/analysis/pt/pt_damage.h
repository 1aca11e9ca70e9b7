// SPDX-License-Identifier: MIT
//
// Damages the bytes of a trace as transport, lost pages and bad memory do: bits flip, bytes are
// missing, come twice or are zeroed, packets stand where they do not belong. By a seed: the same
// again.
#ifndef TESTS_ANALYSIS_PT_PT_DAMAGE_H
#define TESTS_ANALYSIS_PT_PT_DAMAGE_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/analysis/pt/pt_scenario.h"

enum { DAMAGE_ROOM = 2048, DAMAGE_RUN = 64 };

struct damage {
    struct random_source random;
    uint8_t *data;
    size_t bytes, room;
};

static inline size_t damage_below(struct damage *damage, size_t limit)
{
    return random_below(&damage->random, (unsigned)limit);
}

// As many of `bytes` as there are from that offset on.
static inline size_t damage_fit(const struct damage *damage, size_t at, size_t bytes)
{
    return at + bytes < damage->bytes ? bytes : damage->bytes - at;
}

static inline void damage_insert(struct damage *damage, size_t at, const uint8_t *from,
                                 size_t bytes)
{
    if (damage->bytes + bytes > damage->room)
        return;
    memmove(damage->data + at + bytes, damage->data + at, damage->bytes - at);
    memcpy(damage->data + at, from, bytes);
    damage->bytes += bytes;
}

// A packet that may stand anywhere; its payload is anything.
static inline size_t damage_packet(struct damage *damage, uint8_t out[DAMAGE_RUN])
{
    static const struct {
        uint8_t head[18], head_bytes, bytes;
    } packets[] = {
        {{0x02, 0xf3}, 2, 2},       // OVF
        {{0x02, 0x23}, 2, 2},       // PSBEND
        {{0x02, 0x83}, 2, 2},       // TraceStop
        {{0x19}, 1, 8},             // TSC
        {{0x02, 0x03, 0x21}, 4, 4}, // CBR
        {{0x02, 0x03, 0x00}, 4, 4}, // that no processor writes
        {{0x99, 0x01}, 2, 2},       // MODE: 64 bits,
        {{0x99, 0x02}, 2, 2},       // 32,
        {{0x99, 0x00}, 2, 2},       // 16
        {{0x99, 0x21}, 2, 2},       // a transaction begins,
        {{0x99, 0x22}, 2, 2},       // is aborted
        {{0x02, 0x43}, 2, 8},       // PIP
        {{0x02, 0xa3}, 2, 8},       // TNT of eight bytes
        {{0x02, 0xc8}, 2, 7},       // VMCS
        {{0x01}, 1, 1},             // TIP.PGD without an address
        {{0x21}, 1, 3},             // and with one
        {{0x31}, 1, 3},             // TIP.PGE
        {{0x71}, 1, 7},             //
        {{0x0d}, 1, 1},             // TIP
        {{0x1d}, 1, 1},             // FUP
        {{0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02,
          0x82, 0x02, 0x23},
         18,
         18}, // PSB, PSBEND
        {{0}, 1, 1},
    };
    size_t kind = damage_below(damage, sizeof packets / sizeof *packets);
    memcpy(out, packets[kind].head, packets[kind].head_bytes);
    for (size_t i = packets[kind].head_bytes; i < packets[kind].bytes; i++)
        out[i] = (uint8_t)random_next(&damage->random);
    return packets[kind].bytes;
}

static inline void damage_once(struct damage *damage)
{
    uint8_t packet[DAMAGE_RUN], copy[DAMAGE_ROOM];
    size_t at = damage_below(damage, damage->bytes), from, bytes;
    switch (damage_below(damage, 7)) {
    case 0:
        damage->data[at] ^= (uint8_t)(1u << damage_below(damage, 8));
        break;
    case 1:
        bytes = damage_fit(damage, at, 1 + damage_below(damage, DAMAGE_RUN));
        memmove(damage->data + at, damage->data + at + bytes, damage->bytes - at - bytes);
        damage->bytes -= bytes;
        break;
    case 2:
        memset(damage->data + at, 0, damage_fit(damage, at, 1 + damage_below(damage, DAMAGE_RUN)));
        break;
    case 3:
        from = damage_below(damage, damage->bytes);
        bytes = damage_fit(damage, from, 1 + damage_below(damage, DAMAGE_ROOM));
        memcpy(copy, damage->data + from, bytes);
        damage_insert(damage, at, copy, bytes);
        break;
    default:
        bytes = damage_packet(damage, packet);
        damage_insert(damage, at, packet, bytes);
        break;
    }
}

// A copy of the bytes, damaged in one to three places. The caller frees data; NULL: no memory.
static inline struct damage damage_make(const uint8_t *data, size_t bytes, uint64_t seed)
{
    struct damage damage = {.random = {seed}, .bytes = bytes, .room = bytes + 3 * DAMAGE_ROOM};
    damage.data = malloc(damage.room);
    if (!damage.data)
        return damage;
    memcpy(damage.data, data, bytes);
    for (size_t places = 1 + damage_below(&damage, 3); places > 0 && damage.bytes > 1; places--)
        damage_once(&damage);
    return damage;
}

#endif
