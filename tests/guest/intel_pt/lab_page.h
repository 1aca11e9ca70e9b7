// SPDX-License-Identifier: MIT
//
// The memory that the guest's module intel_pt (intel_pt.c) and the emulator's plugin
// (tests/lab/pt_plugin.c) share: an ivshmem-plain device's. It stands for a processor's trace
// registers. A channel belongs to one virtual CPU, and only that CPU touches it: the guest writes
// registers and a command, then executes LAB_DOORBELL, an instruction that does nothing but tell
// the plugin; when it has been executed the command is done.
#ifndef TESTS_GUEST_INTEL_PT_LAB_PAGE_H
#define TESTS_GUEST_INTEL_PT_LAB_PAGE_H

#ifdef __KERNEL__
#include <linux/types.h>
typedef u64 lab_u64;
#else
#include <stdint.h>
typedef uint64_t lab_u64;
#endif

#define LAB_MAGIC      0x3130424154504c54ULL
#define LAB_CHANNELS   8
#define LAB_RANGES     4
#define LAB_HEADER     (16 * 4096) // the rings lie behind it, one for each channel
#define LAB_MARK       0x4c54414c  // the displacement that makes a nopl a doorbell
#define LAB_DOORBELL() asm volatile(".byte 0x0f, 0x1f, 0x80, 0x4c, 0x41, 0x54, 0x4c" ::: "memory")

// Commands. START: traces from the next block of code on. STOP: ends with FUP and TIP.PGD; the
// ring then holds all.
enum { LAB_START = 1, LAB_STOP = 2 };

// Bits of `control`, at their places in IA32_RTIT_CTL.
#define LAB_CYC                    (1ULL << 1)
#define LAB_OS                     (1ULL << 2)
#define LAB_USER                   (1ULL << 3)
#define LAB_CR3_FILTER             (1ULL << 7)
#define LAB_MTC                    (1ULL << 9)
#define LAB_TSC                    (1ULL << 10)
#define LAB_NO_RETCOMP             (1ULL << 11)
#define LAB_BRANCH                 (1ULL << 13)
#define LAB_MTC_PERIOD(control)    ((control) >> 14 & 15)
#define LAB_CYC_THRESHOLD(control) ((control) >> 19 & 15)
#define LAB_PSB_PERIOD(control)    ((control) >> 24 & 15)

struct lab_range {
    lab_u64 begin, end; // addresses, `end` is not in it
    lab_u64 stops;      // 1: leaving is not tracing inside it; 0: only inside is traced
};

struct lab_channel {
    // Of the guest.
    lab_u64 command, control;
    lab_u64 cr3;    // with LAB_CR3_FILTER
    lab_u64 ranges; // how many of `range` count
    struct lab_range range[LAB_RANGES];
    lab_u64 tail;     // bytes that were taken out of the ring, ever
    lab_u64 reserved; // bytes of the ring that may not be used
    // Of the plugin.
    lab_u64 answered; // commands done, ever
    lab_u64 head;     // bytes that were put into the ring, ever
    lab_u64 overflows;
    lab_u64 tracing; // 1 between START and STOP
};

struct lab_page {
    // Of the plugin.
    lab_u64 magic, ring_bytes; // the latter is a power of two
    lab_u64 tsc_per_ctc;       // 0: no MTC
    lab_u64 tsc_offset;        // the guest's TSC is the host's plus this
    // Of the guest, before the first START.
    lab_u64 bus_ratio;    // what CBR says
    lab_u64 handler[256]; // of the interrupt descriptor table
    struct lab_channel channel[LAB_CHANNELS];
};

_Static_assert(sizeof(struct lab_page) <= LAB_HEADER, "the rings begin behind the page");

#endif
