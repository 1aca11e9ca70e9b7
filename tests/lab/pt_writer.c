// SPDX-License-Identifier: MIT
#include "tests/lab/pt_writer.h"

enum {
    TNT_BITS = 47, // of the long packet
    SHORT_BITS = 6,
    // More than any step writes, and room to end what came before in order.
    LEAST_ROOM = 8192,
    // Longer silences are told by a TSC packet, not by that many MTC.
    MOST_MTC = 64,
};

static void put(struct pt_writer *writer, uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++) {
        uint8_t byte = (uint8_t)(value >> (8 * i));
        writer->ring[writer->head++ & (writer->ring_bytes - 1)] = byte;
        if (writer->copy)
            putc_unlocked(byte, writer->copy);
    }
}

// A packet of two bytes of opcode.
static void put_extended(struct pt_writer *writer, uint8_t opcode)
{
    put(writer, 0x02 | (uint64_t)opcode << 8, 2);
}

static void put_tsc(struct pt_writer *writer)
{
    const struct pt_writer_options *options = &writer->options;
    put(writer, 0x19, 1);
    put(writer, writer->tsc, 7);
    writer->last_tsc = writer->tsc;
    if (options->mtc) {
        uint64_t ctc = writer->tsc / options->tsc_per_ctc;
        put_extended(writer, 0x73); // TMA
        put(writer, ctc, 2);
        put(writer, 0, 1);
        put(writer, writer->tsc % options->tsc_per_ctc, 2);
        writer->last_mtc = ctc >> options->mtc_period;
    }
}

// CYC up to `tsc`.
static void put_cyc(struct pt_writer *writer, uint64_t tsc)
{
    uint64_t cycles = tsc - writer->last_tsc;
    if (!writer->options.cyc || cycles < writer->options.cyc_least)
        return;
    put(writer, 0x03 | (cycles & 31) << 3 | (cycles >> 5 ? 4 : 0), 1);
    for (cycles >>= 5; cycles; cycles >>= 7)
        put(writer, (cycles & 127) << 1 | (cycles >> 7 ? 1 : 0), 1);
    writer->last_tsc = tsc;
}

// What comes before every packet that tells of the flow.
static void put_time(struct pt_writer *writer)
{
    const struct pt_writer_options *options = &writer->options;
    if (!options->tsc)
        return;
    if (options->mtc) {
        uint64_t now = writer->tsc / options->tsc_per_ctc >> options->mtc_period;
        if (now - writer->last_mtc > MOST_MTC) {
            put_tsc(writer);
        } else {
            while (writer->last_mtc < now) {
                writer->last_mtc++;
                put_cyc(writer, (writer->last_mtc << options->mtc_period) * options->tsc_per_ctc);
                put(writer, 0x59 | (writer->last_mtc & 0xff) << 8, 2);
                if (!options->cyc)
                    writer->last_tsc = writer->tsc;
            }
        }
    } else if (writer->tsc - writer->last_tsc > options->tsc_every) {
        put_tsc(writer);
    }
    put_cyc(writer, writer->tsc);
}

void pt_writer_flush(struct pt_writer *writer)
{
    if (!writer->bit_count)
        return;
    uint64_t bits = 1ULL << writer->bit_count | writer->bits;
    put_time(writer);
    if (writer->bit_count <= SHORT_BITS) {
        put(writer, bits << 1, 1);
    } else {
        put_extended(writer, 0xa3);
        put(writer, bits, 6);
    }
    writer->bits = 0;
    writer->bit_count = 0;
}

static void put_ip(struct pt_writer *writer, uint8_t opcode, uint64_t ip)
{
    uint64_t change = ip ^ writer->last_ip;
    unsigned form, bytes;
    if (!(change >> 16))
        form = 1, bytes = 2;
    else if (!(change >> 32))
        form = 2, bytes = 4;
    else if ((uint64_t)((int64_t)(ip << 16) >> 16) == ip)
        form = 3, bytes = 6;
    else
        form = 6, bytes = 8;
    put(writer, opcode | form << 5, 1);
    put(writer, ip, bytes);
    writer->last_ip = ip;
}

static void put_pip(struct pt_writer *writer)
{
    put_extended(writer, 0x43);
    put(writer, (writer->cr3 & 0xfffffffffffe0ULL) >> 5 << 1, 6);
}

static void put_mode(struct pt_writer *writer)
{
    put(writer, 0x0199, 2); // MODE.Exec: 64 bits
}

static void put_psb(struct pt_writer *writer, uint64_t ip, bool enabled)
{
    pt_writer_flush(writer);
    writer->psb_at = writer->head;
    for (int i = 0; i < 8; i++)
        put_extended(writer, 0x82);
    writer->last_ip = 0;
    writer->return_count = 0;
    if (writer->options.tsc)
        put_tsc(writer);
    put_extended(writer, 0x03); // CBR
    put(writer, writer->options.bus_ratio, 2);
    if (writer->options.kernel)
        put_pip(writer);
    put_mode(writer);
    if (enabled)
        put_ip(writer, 0x1d, ip);
    put_extended(writer, 0x23); // PSBEND
}

void pt_writer_begin(struct pt_writer *writer)
{
    writer->bits = 0;
    writer->bit_count = 0;
    put_psb(writer, 0, false);
}

bool pt_writer_has_room(struct pt_writer *writer)
{
    uint64_t used =
        writer->head - __atomic_load_n(writer->taken, __ATOMIC_ACQUIRE) + *writer->reserved;
    uint64_t free = used < writer->ring_bytes ? writer->ring_bytes - used : 0;
    if (!writer->lost && free < LEAST_ROOM) {
        pt_writer_flush(writer);
        writer->lost = true;
        writer->overflows++;
    }
    return !writer->lost || free >= 2 * LEAST_ROOM;
}

void pt_writer_resume(struct pt_writer *writer, uint64_t ip, bool enabled)
{
    writer->lost = false;
    writer->bits = 0;
    writer->bit_count = 0;
    put_extended(writer, 0xf3); // OVF
    writer->last_ip = 0;
    if (writer->options.tsc)
        put_tsc(writer);
    if (!enabled) {
        put_psb(writer, 0, false);
        return;
    }
    put_ip(writer, 0x1d, ip);
    put_psb(writer, ip, true); // tells CR3 anew
}

void pt_writer_branch(struct pt_writer *writer, bool taken)
{
    writer->bits = writer->bits << 1 | taken;
    if (++writer->bit_count == TNT_BITS)
        pt_writer_flush(writer);
}

static void put_flow(struct pt_writer *writer, uint8_t opcode, uint64_t ip)
{
    pt_writer_flush(writer);
    put_time(writer);
    put_ip(writer, opcode, ip);
}

void pt_writer_target(struct pt_writer *writer, uint64_t ip)
{
    put_flow(writer, 0x0d, ip);
}

void pt_writer_from(struct pt_writer *writer, uint64_t ip)
{
    put_flow(writer, 0x1d, ip);
}

void pt_writer_enable(struct pt_writer *writer, uint64_t ip)
{
    writer->return_count = 0;
    pt_writer_flush(writer);
    put_time(writer);
    put_mode(writer);
    put_ip(writer, 0x11, ip);
}

void pt_writer_disable(struct pt_writer *writer, const uint64_t *ip)
{
    if (ip) {
        put_flow(writer, 0x01, *ip);
        return;
    }
    pt_writer_flush(writer);
    put_time(writer);
    put(writer, 0x01, 1);
}

void pt_writer_call(struct pt_writer *writer, uint64_t back)
{
    writer->returns[writer->return_top++ % PT_WRITER_RETURNS] = back;
    if (writer->return_count < PT_WRITER_RETURNS)
        writer->return_count++;
}

void pt_writer_return(struct pt_writer *writer, uint64_t to)
{
    if (writer->options.compress_returns && writer->return_count &&
        writer->returns[(writer->return_top - 1) % PT_WRITER_RETURNS] == to) {
        writer->return_top--;
        writer->return_count--;
        pt_writer_branch(writer, true);
    } else {
        pt_writer_target(writer, to);
    }
}

void pt_writer_set_cr3(struct pt_writer *writer, uint64_t cr3)
{
    writer->cr3 = cr3;
    if (!writer->options.kernel)
        return;
    pt_writer_flush(writer);
    put_time(writer);
    put_pip(writer);
}

void pt_writer_synchronize(struct pt_writer *writer, uint64_t ip)
{
    if (writer->head - writer->psb_at >= writer->options.psb_bytes)
        put_psb(writer, ip, true);
}
