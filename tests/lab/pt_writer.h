// SPDX-License-Identifier: MIT
//
// Writes the packets of one virtual CPU's Intel PT stream (Intel SDM, volume 3, chapter 33.4) into
// a ring that somebody else empties, as a processor writes them into memory. What does not fit is
// lost, and OVF says so, as on a processor. The caller says what ran; here is how that is told:
// compression of addresses and returns, TNT bits gathered, time, PSB.
#ifndef TESTS_LAB_PT_WRITER_H
#define TESTS_LAB_PT_WRITER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct pt_writer_options {
    bool tsc, mtc, cyc, kernel, compress_returns; // kernel: PIP is written
    unsigned mtc_period;                          // log2 of CTC ticks between two MTC
    unsigned cyc_least;   // a CYC is not written for fewer cycles; 0: always
    uint64_t psb_bytes;   // between two PSB
    uint64_t tsc_per_ctc; // what MTC needs
    uint64_t tsc_every;   // without MTC: ticks after which a TSC packet comes, though a processor
                          // waits for the next PSB
    uint8_t bus_ratio;
};

enum { PT_WRITER_RETURNS = 64 };

struct pt_writer {
    struct pt_writer_options options;
    uint8_t *ring;
    uint64_t ring_bytes;      // a power of two
    uint64_t head;            // bytes written, ever
    const uint64_t *taken;    // bytes that were taken out, ever: somebody else's
    const uint64_t *reserved; // bytes that may not be used: somebody else's
    FILE *copy;               // of all that is written, or NULL
    uint64_t last_ip;         // that addresses are compressed against
    uint64_t bits;            // TNT, the oldest highest
    unsigned bit_count;
    uint64_t psb_at;        // head at the last PSB
    uint64_t tsc, last_tsc; // now, and what the stream has said last
    uint64_t last_mtc;      // in MTC periods
    uint64_t cr3;
    uint64_t returns[PT_WRITER_RETURNS];
    unsigned return_top, return_count;
    bool lost; // packets are being lost: the ring is full
    uint64_t overflows;
};

// A new beginning: PSB+ that says nothing of where the processor is.
void pt_writer_begin(struct pt_writer *writer);

// To be called before each step of what ran, which may write several packets. false: the ring is
// full, and nothing may be written until it is true again; then pt_writer_resume() comes first.
bool pt_writer_has_room(struct pt_writer *writer);

// OVF, and where the processor is now; enabled: false where it does not trace just now.
void pt_writer_resume(struct pt_writer *writer, uint64_t ip, bool enabled);

void pt_writer_branch(struct pt_writer *writer, bool taken);
void pt_writer_target(struct pt_writer *writer, uint64_t ip);         // TIP
void pt_writer_from(struct pt_writer *writer, uint64_t ip);           // FUP
void pt_writer_enable(struct pt_writer *writer, uint64_t ip);         // MODE.Exec, TIP.PGE
void pt_writer_disable(struct pt_writer *writer, const uint64_t *ip); // TIP.PGD; NULL: without one
void pt_writer_call(struct pt_writer *writer, uint64_t back);         // for compressed returns
void pt_writer_return(struct pt_writer *writer, uint64_t to);
void pt_writer_set_cr3(struct pt_writer *writer, uint64_t cr3); // PIP, where the kernel is traced
void pt_writer_flush(struct pt_writer *writer);                 // TNT bits
// PSB+ when it is due.
void pt_writer_synchronize(struct pt_writer *writer, uint64_t ip);

#endif
