// SPDX-License-Identifier: MIT
//
// Walks a piece of a PT stream with libipt: counts what was executed and leaves
// the flow of control behind. A piece begins at one PSB and ends exactly where the walk from
// another PSB begins, so pieces walked in parallel add up to what one walk over all would have
// seen: at every PSB the processor says where it is, and libipt reports that as an event there.
//
// The instruction decoder of libipt 2.0.5 is not used: it fails on most real traces
// ("trace stream does not match query") that the block decoder reads cleanly.
#ifndef ANALYSIS_PT_PT_BLOCKS_H
#define ANALYSIS_PT_PT_BLOCKS_H

#include <intel-pt.h>
#include <stdint.h>

#include "analysis/pt/pt_flow.h"
#include "analysis/pt/pt_image.h"
#include "analysis/pt/pt_packets.h"
#include "analysis/pt/pt_symbols.h"
#include "analysis/pt/pt_windows.h"
#include "base/error.h"

// How the stream was recorded; what is unknown stays 0.
struct pt_recorder {
    struct pt_cpu cpu;     // for the errata of known processors
    uint32_t tsc_ctc_ebx;  // CPUID 0x15: TSC ticks = crystal ticks * ebx / eax; for MTC
    uint32_t tsc_ctc_eax;  //
    uint8_t mtc_frequency; // IA32_RTIT_CTL.MTCFreq
    uint8_t nominal_ratio; // MSR_PLATFORM_INFO[15:8]; for CYC
};

// From `tsc` on (until the next entry) the processor ran this address space.
struct __attribute__((packed, aligned(4))) pt_space_change { // 12 bytes: there may be millions
    uint64_t tsc;
    uint32_t space;
};
struct pt_space_changes ARRAY_OF(struct pt_space_change);

// One stream: the trace of one CPU, or of one process. Shared by the threads that walk it.
struct pt_stream {
    struct pt_bytes bytes;
    const struct pt_packets *packets;       // of the same bytes
    const struct pt_space_changes *changes; // ascending, or NULL: PT_SPACE_ALL all along
    struct pt_recorder recorder;
    const struct pt_windows *windows; // decode only these, ascending and disjoint; NULL: as the
                                      // options of pt_decode say
};

struct pt_walk_error {
    uint64_t offset;
    uint64_t ip; // where the decoder was, 0 unknown
    const char *what;
};
struct pt_walk_errors ARRAY_OF(struct pt_walk_error);

struct pt_walk_counts {
    uint64_t instructions, blocks, calls, returns, interrupts, syscalls, overflows, walked_bytes;
    uint64_t followed_bytes;     // of walked_bytes: the fast way (pt_follow.h) was taken
    uint64_t lost_mtc, lost_cyc; // timing packets that libipt could not use
};

void pt_walk_counts_add(struct pt_walk_counts *to, const struct pt_walk_counts *from);

// What the walk over one piece found.
struct pt_piece {
    size_t first_sync, end_sync; // of the stream's packets: [first, end)
    struct pt_walk_counts counts;
    struct pt_walk_errors errors;
    struct pt_flows flows;
    struct pt_ratio_changes ratio_changes; // how they touch the flows' times is in these already
    uint8_t lowest_ratio;                  // of the core's clock; 0: not told
    bool handed_over; // it ended where the next piece begins, with nothing lost between
};

// A walker belongs to one thread and may walk any number of streams, one after another. symbols may
// be NULL. careful: everything by libipt's block decoder; slower, and the result is the same.
struct pt_walker;
struct pt_walker *pt_walker_alloc(const struct pt_memory *memory, const struct pt_symbols *symbols,
                                  bool careful, struct error *err);
void pt_walker_free(struct pt_walker *walker);

// Walks [first_sync, end_sync); end_sync is the number of syncs (to the end of the stream) or a
// sync that hands over. Decode errors are results (piece->errors), not failures: the walk goes on
// at the next PSB of the piece. Fails only for want of memory. *piece is overwritten, its arrays
// are reused.
int pt_walk(struct pt_walker *walker, const struct pt_stream *stream, size_t first_sync,
            size_t end_sync, struct pt_piece *piece, struct error *err);
void pt_piece_free(struct pt_piece *piece);

#endif
