// SPDX-License-Identifier: MIT
//
// The log of BPF code: what the kernel made of the programs that came while a processor's trace was
// recorded. File in a run folder: server/bpf-code.tlog (LOG_BPF_CODE), beside perf.data; there is
// none where no program came. The kernel's BPF_EVENT and KSYMBOL records in perf.data say when a
// program was there; perf itself fetches the code of those only that were loaded on a core it
// records.
//
// A function's code is in one or more records, in ascending order.
#ifndef PROFILER_TRACE_BPF_CODE_LOG_H
#define PROFILER_TRACE_BPF_CODE_LOG_H

#include <stdint.h>

enum { BPF_CODE_LOG_VERSION = 1, BPF_CODE_BYTES = 240 };
#define BPF_CODE_LOG_NAME "bpf-code.tlog"

struct bpf_code {
    uint64_t address; // in the kernel
    uint32_t program; // its id
    uint32_t bytes;   // of code, at most BPF_CODE_BYTES
    uint8_t code[BPF_CODE_BYTES];
};
_Static_assert(sizeof(struct bpf_code) == 256, "the log format is fixed");

#endif
