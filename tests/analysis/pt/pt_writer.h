// SPDX-License-Identifier: MIT
//
// Writes the packets of a scenario (pt_scenario.h) through libipt's encoder, as a processor would:
// branches in bunches, addresses compressed, and the time in one of several ways. The crystal's
// clock ticks once in TSC_OF_CRYSTAL ticks of the TSC, the core at a ratio that may change at any
// time.
#ifndef TESTS_ANALYSIS_PT_PT_WRITER_H
#define TESTS_ANALYSIS_PT_PT_WRITER_H

#include "tests/analysis/pt/pt_scenario.h"

enum timing {
    TIMING_TSC_OFTEN,
    TIMING_TSC_SOME,
    TIMING_CYC,
    TIMINGS_PLAIN,
    TIMING_MTC = TIMINGS_PLAIN, // these need a recorder that writes the ratio of the clocks
    TIMING_MTC_CYC,
    TIMINGS
};
enum { NOMINAL_RATIO = 20, TSC_OF_CRYSTAL = 84, MTC_FREQUENCY = 3 };
enum { MTC_TICKS = TSC_OF_CRYSTAL << MTC_FREQUENCY }; // between two MTC packets
enum { LOWEST_RATIO = 10, RATIOS = 30 };

struct writer {
    struct pt_encoder *encoder;
    uint8_t *data;
    size_t capacity;
    enum timing timing;
    bool compress_returns, long_tnt;
    struct random_source random;
    uint64_t now;         // TSC
    uint64_t last_timing; // time of the last timing packet
    uint64_t cycles;      // of the core, times NOMINAL_RATIO
    uint64_t cycles_told;
    uint8_t ratio;   // of the core's clock
    unsigned steady; // one in so many intervals changes it; 0: none
    uint64_t changes;
    bool ticking;    // MTC packets are written
    bool supervisor; // packets that only the kernel's trace has are written
    uint64_t cr3;
    uint64_t last_ip;  // as the decoder reconstructs it
    uint64_t tnt;      // branches not written yet
    int tnt_bits;      //
    uint64_t last_psb; // offset
    bool failed;
};

static inline uint64_t writer_offset(struct writer *writer)
{
    uint64_t offset = 0;
    pt_enc_get_offset(writer->encoder, &offset);
    return offset;
}

static inline void write_packet(struct writer *writer, struct pt_packet packet)
{
    if (pt_enc_next(writer->encoder, &packet) < 0)
        writer->failed = true;
}

static inline bool writer_counts_cycles(const struct writer *writer)
{
    return writer->timing == TIMING_CYC || writer->timing == TIMING_MTC_CYC;
}

static inline void write_ratio(struct writer *writer)
{
    write_packet(writer, (struct pt_packet){.type = ppt_cbr, .payload.cbr.ratio = writer->ratio});
}

static inline void write_cycles(struct writer *writer)
{
    uint64_t cycles = (writer->cycles - writer->cycles_told) / NOMINAL_RATIO;
    if (cycles == 0)
        return;
    write_packet(writer, (struct pt_packet){.type = ppt_cyc, .payload.cyc.value = cycles});
    writer->cycles_told += cycles * NOMINAL_RATIO;
}

static inline void write_tsc(struct writer *writer)
{
    if (writer_counts_cycles(writer) && writer->ticking)
        write_cycles(writer);
    writer->cycles_told = writer->cycles;
    write_packet(writer, (struct pt_packet){.type = ppt_tsc,
                                            .payload.tsc.tsc = writer->now & 0xffffffffffffff});
    writer->last_timing = writer->now;
    if (writer->timing < TIMING_MTC)
        return;
    struct pt_packet tma = {.type = ppt_tma};
    tma.payload.tma.ctc = (uint16_t)(writer->now / TSC_OF_CRYSTAL);
    tma.payload.tma.fc = (uint16_t)(writer->now % TSC_OF_CRYSTAL);
    write_packet(writer, tma);
}

// Time passes, at the core's ratio.
static inline void writer_pass_steadily(struct writer *writer, uint64_t ticks)
{
    uint64_t until = writer->now + ticks;
    bool ticking = writer->ticking && writer->timing >= TIMING_MTC;
    for (uint64_t edge = (writer->now / MTC_TICKS + 1) * MTC_TICKS; ticking && edge <= until;
         edge += MTC_TICKS) {
        writer->cycles += (edge - writer->now) * writer->ratio;
        writer->now = edge;
        if (writer->timing == TIMING_MTC_CYC)
            write_cycles(writer);
        struct pt_packet mtc = {.type = ppt_mtc};
        mtc.payload.mtc.ctc = (uint8_t)(edge / MTC_TICKS);
        write_packet(writer, mtc);
        writer->last_timing = edge;
    }
    writer->cycles += (until - writer->now) * writer->ratio;
    writer->now = until;
}

// Time passes; the ratio may change meanwhile. No CYC packet counts the cycles before that.
static inline void writer_pass(struct writer *writer, uint64_t ticks)
{
    uint64_t before = ticks;
    bool changes = writer->steady && random_below(&writer->random, writer->steady) == 0;
    if (changes)
        before = random_below(&writer->random, (unsigned)ticks + 1);
    writer_pass_steadily(writer, before);
    if (!changes)
        return;
    writer->ratio = (uint8_t)(LOWEST_RATIO + random_below(&writer->random, RATIOS));
    writer->changes++;
    if (writer->ticking)
        write_ratio(writer);
    writer_pass_steadily(writer, ticks - before);
}

// What stands before a packet that moves the flow.
static inline void write_time(struct writer *writer)
{
    if (writer->now == writer->last_timing)
        return;
    if (writer_counts_cycles(writer)) {
        write_cycles(writer);
    } else if (writer->timing == TIMING_TSC_OFTEN ||
               (writer->timing == TIMING_TSC_SOME && random_chance(&writer->random, 20))) {
        write_tsc(writer);
    }
}

static inline void write_tnt(struct writer *writer)
{
    if (writer->tnt_bits == 0)
        return;
    write_time(writer);
    struct pt_packet packet = {.type = writer->tnt_bits > 6 ? ppt_tnt_64 : ppt_tnt_8};
    packet.payload.tnt.bit_size = (uint8_t)writer->tnt_bits;
    packet.payload.tnt.payload = writer->tnt;
    write_packet(writer, packet);
    writer->tnt = 0;
    writer->tnt_bits = 0;
}

static inline void write_branch(struct writer *writer, bool taken)
{
    writer->tnt = writer->tnt << 1 | taken;
    if (++writer->tnt_bits == (writer->long_tnt ? 47 : 6))
        write_tnt(writer);
}

static inline struct pt_packet address_packet(struct writer *writer, enum pt_packet_type type,
                                              uint64_t ip)
{
    struct pt_packet packet = {.type = type, .payload.ip = {pt_ipc_full, ip}};
    if (type == ppt_tip_pgd && random_chance(&writer->random, 50)) {
        packet.payload.ip = (struct pt_packet_ip){pt_ipc_suppressed, 0};
    } else {
        bool canonical = (uint64_t)((int64_t)(ip << 16) >> 16) == ip;
        if ((ip ^ writer->last_ip) >> 16 == 0)
            packet.payload.ip = (struct pt_packet_ip){pt_ipc_update_16, ip & 0xffff};
        else if ((ip ^ writer->last_ip) >> 32 == 0)
            packet.payload.ip = (struct pt_packet_ip){pt_ipc_update_32, ip & 0xffffffff};
        else if (canonical && random_chance(&writer->random, 80))
            packet.payload.ip = (struct pt_packet_ip){pt_ipc_sext_48, ip & 0xffffffffffff};
        writer->last_ip = ip;
    }
    return packet;
}

static inline void write_address(struct writer *writer, enum pt_packet_type type, uint64_t ip)
{
    struct pt_packet packet = address_packet(writer, type, ip);
    write_tnt(writer);
    write_time(writer);
    write_packet(writer, packet);
}

static inline void write_paging(struct writer *writer)
{
    struct pt_packet packet = {.type = ppt_pip, .payload.pip.cr3 = writer->cr3};
    if (writer->supervisor)
        write_packet(writer, packet);
}

// A processor that may run virtual machines names the present one, or none.
static inline void write_machine(struct writer *writer)
{
    if (writer->supervisor)
        write_packet(writer, (struct pt_packet){.type = ppt_vmcs, .payload.vmcs.base = 0x1234000});
}

// ip 0: not tracing.
static inline void write_psb(struct writer *writer, uint64_t ip)
{
    write_tnt(writer);
    if (writer_counts_cycles(writer) && writer->ticking)
        write_cycles(writer);
    writer->last_psb = writer_offset(writer);
    writer->last_ip = 0;
    write_packet(writer, (struct pt_packet){.type = ppt_psb});
    write_tsc(writer);
    write_ratio(writer);
    write_paging(writer);
    write_machine(writer);
    if (ip) {
        struct pt_packet mode = {.type = ppt_mode, .payload.mode.leaf = pt_mol_exec};
        mode.payload.mode.bits.exec = pt_set_exec_mode(ptem_64bit);
        write_packet(writer, mode);
        write_address(writer, ppt_fup, ip);
    }
    write_packet(writer, (struct pt_packet){.type = ppt_psbend});
}

// A transaction begins, ends, or is aborted at `ip`.
static inline void write_transaction(struct writer *writer, bool inside, bool aborted, uint64_t ip)
{
    struct pt_packet mode = {.type = ppt_mode, .payload.mode.leaf = pt_mol_tsx};
    mode.payload.mode.bits.tsx.intx = inside;
    mode.payload.mode.bits.tsx.abrt = aborted;
    write_tnt(writer);
    write_time(writer);
    write_packet(writer, mode);
    write_packet(writer, address_packet(writer, ppt_fup, ip));
}

static inline void write_mode(struct writer *writer)
{
    struct pt_packet mode = {.type = ppt_mode, .payload.mode.leaf = pt_mol_exec};
    mode.payload.mode.bits.exec = pt_set_exec_mode(ptem_64bit);
    write_tnt(writer);
    write_packet(writer, mode);
}

#endif
