// SPDX-License-Identifier: MIT
//
// Packets of every shape, byte for byte, from 10.0.0.1 port 40000 to 10.0.0.2 port 11211, or
// likewise over IPv6. Header-only: each test binary stands alone.
#ifndef TESTS_PROFILER_CAPSULE_FRAMES_H
#define TESTS_PROFILER_CAPSULE_FRAMES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { LINK_BYTES = 14 };

struct frame {
    uint8_t bytes[2048];
    size_t count;
};

static inline void add(struct frame *frame, const void *bytes, size_t count)
{
    memcpy(frame->bytes + frame->count, bytes, count);
    frame->count += count;
}

static inline void add16(struct frame *frame, unsigned value)
{
    uint8_t bytes[2] = {(uint8_t)(value >> 8), (uint8_t)value};
    add(frame, bytes, 2);
}

static inline void link_layer(struct frame *frame, unsigned type)
{
    frame->count = 0;
    add(frame, "\2\0\0\0\0\1\2\0\0\0\0\2", 12);
    add16(frame, type);
}

// With a VLAN's tag in the frame.
static inline struct frame tagged(const struct frame *frame, unsigned type)
{
    struct frame out = {.count = 0};
    add(&out, frame->bytes, 12);
    add16(&out, type);
    add16(&out, 7);
    add(&out, frame->bytes + 12, frame->count - 12);
    return out;
}

static inline void ipv4(struct frame *frame, unsigned protocol, unsigned options, unsigned id,
                        unsigned fragment, size_t after)
{
    uint8_t none[40] = {1, 1, 1, 1}; // options that say nothing
    link_layer(frame, 0x0800);
    uint8_t begins[] = {(uint8_t)(0x45 + options / 4), 0};
    add(frame, begins, 2);
    add16(frame, (unsigned)(20 + options + after));
    add16(frame, id);
    add16(frame, fragment);
    uint8_t rest[] = {64, (uint8_t)protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2};
    add(frame, rest, sizeof rest);
    add(frame, none, options);
}

static const uint8_t six_source[16] = {0xfd, [15] = 1}, six_destination[16] = {0xfd, [15] = 2};

static inline void ipv6(struct frame *frame, unsigned next, size_t after)
{
    link_layer(frame, 0x86dd);
    add(frame, "\x60\0\0\0", 4);
    add16(frame, (unsigned)after);
    uint8_t rest[] = {(uint8_t)next, 64};
    add(frame, rest, 2);
    add(frame, six_source, 16);
    add(frame, six_destination, 16);
}

static inline void udp(struct frame *frame, size_t payload)
{
    add16(frame, 40000);
    add16(frame, 11211);
    add16(frame, (unsigned)(8 + payload));
    add16(frame, 0xbeef); // no part of a packet's identity
}

static inline void payload(struct frame *frame, size_t count, uint8_t first)
{
    for (size_t i = 0; i < count; i++)
        frame->bytes[frame->count++] = (uint8_t)(first + i);
}

static inline void tcp_flagged(struct frame *frame, uint32_t sequence, unsigned options,
                               unsigned flags)
{
    uint8_t none[40] = {1, 1, 1, 1};
    add16(frame, 40000);
    add16(frame, 11211);
    add16(frame, sequence >> 16);
    add16(frame, sequence & 0xffff);
    add(frame, "\0\0\0\1", 4);
    add16(frame, (5 + options / 4) << 12 | flags);
    add(frame, "\xff\xff\xbe\xef\0\0", 6);
    add(frame, none, options);
}

static inline void tcp(struct frame *frame, uint32_t sequence, unsigned options)
{
    tcp_flagged(frame, sequence, options, 0x18);
}

#endif
