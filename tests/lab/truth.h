// SPDX-License-Identifier: MIT
//
// The truth log of one virtual CPU: what ran while it was traced, as the emulator knows it, in
// order. A file is a struct truth_header and records; each is followed by `bytes` bytes and padding
// to a multiple of 8.
#ifndef TESTS_LAB_TRUTH_H
#define TESTS_LAB_TRUTH_H

#include <stdint.h>

#define TRUTH_MAGIC 0x3130485455525454ULL // "TTRUTH01"

enum truth_kind {
    TRUTH_CODE = 1, // code at `a` that will run next for the first time here, or has changed; in
                    // the address space `b` (CR3's bits 51:5; 0: kernel, everywhere). Bytes follow
    TRUTH_CALL,     // the call at `a` was executed and went to `b`
    TRUTH_ON,       // tracing is on (again); the next instruction is at `a`
    TRUTH_OFF,      // off at `a`; `b`: instructions traced since the log began
    TRUTH_LOST,     // from here on packets were lost: the ring was full
    TRUTH_FOUND,    // told again, from `a` on
    TRUTH_CR3,      // the address space is now `a`
    TRUTH_BEGIN,    // tracing was started; `a`: the control register (lab_page.h)
    TRUTH_DOUBT, // `a`: where the emulator did something the plugin does not know; told as a loss
    TRUTH_RING,  // from here on, `a`, the kernel runs, or a program (`a` says which)
    TRUTH_WENT,  // on to `b`: by the return or far branch at `a`, or by an interrupt before `a`
};

struct truth_header {
    uint64_t magic;
    uint64_t cpu;
    uint64_t unused[6];
};

struct truth_record {
    uint64_t tsc; // the guest's, when it was written: at the end of a block of code
    uint64_t a, b;
    uint32_t kind, bytes;
};

#endif
