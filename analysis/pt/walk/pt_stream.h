// SPDX-License-Identifier: MIT
//
// One PT stream, ready to be walked (pt_walk.h): its bytes, where decoding can begin, which address
// space the processor was in at what time, and how it was recorded.
#ifndef ANALYSIS_PT_WALK_PT_STREAM_H
#define ANALYSIS_PT_WALK_PT_STREAM_H

#include <intel-pt.h>
#include <stdint.h>

#include "analysis/pt/packets/pt_packets.h"
#include "analysis/pt/packets/pt_windows.h"
#include "base/array.h"

// How the stream was recorded; what is unknown stays 0.
struct pt_recorder {
    struct pt_cpu cpu;     // for the errata of known processors
    uint32_t tsc_ctc_ebx;  // CPUID 0x15: TSC ticks = crystal ticks * ebx / eax; for MTC
    uint32_t tsc_ctc_eax;  //
    uint8_t mtc_frequency; // IA32_RTIT_CTL.MTCFreq
    uint8_t nominal_ratio; // MSR_PLATFORM_INFO[15:8]; for CYC
};

// From `tsc` until the next entry the processor was in this address space.
struct __attribute__((packed, aligned(4))) pt_space_change { // 12 bytes: there may be millions
    uint64_t tsc;
    uint32_t space;
};
struct pt_space_changes ARRAY_OF(struct pt_space_change);

// One stream: the trace of one CPU, or of one process. Shared by the threads that walk it.
struct pt_stream {
    struct pt_bytes bytes;
    const struct pt_packets *packets;       // what pt_packets_scan found in these bytes
    const struct pt_space_changes *changes; // ascending; NULL: PT_SPACE_ALL throughout
    struct pt_recorder recorder;
    const struct pt_windows *windows; // decode only these, ascending and disjoint; NULL: those of
                                      // the options of pt_decode
};

#endif
