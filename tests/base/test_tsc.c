// SPDX-License-Identifier: MIT
//
// The processor's counter: it does not run backwards, says which core it was read on, and has one
// rate, which is what the processor itself says where it does. Of the C library only, so that
// test_long_arm64.sh can run it for another processor.
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/tsc.h"
#include "base/tsc_rate.h"

static int failures;

static void expect(int holds, const char *what)
{
    if (!holds)
        failures++;
    printf("%s  %s\n", holds ? "ok  " : "FAIL", what);
}

static void runs_forwards(void)
{
    uint64_t backwards = 0, before = tsc_now();
    for (int i = 0; i < 100000; i++) {
        uint16_t core;
        uint64_t now = tsc_now_on_core(&core);
        backwards += now < before;
        before = now;
    }
    expect(backwards == 0, "100,000 readings in order");
}

static void knows_its_core(void)
{
    cpu_set_t allowed, one;
    int cores = 0, right = 0;
    if (sched_getaffinity(0, sizeof allowed, &allowed) < 0)
        abort();
    for (size_t i = 0; i < CPU_SETSIZE && i < 4096; i++) {
        if (!CPU_ISSET(i, &allowed))
            continue;
        CPU_ZERO(&one);
        CPU_SET(i, &one);
        uint16_t core = UINT16_MAX;
        if (sched_setaffinity(0, sizeof one, &one) == 0)
            tsc_now_on_core(&core);
        cores++;
        right += core == i;
    }
    sched_setaffinity(0, sizeof allowed, &allowed);
    expect(cores > 0 && right == cores, "the core, on each core");
}

static void has_one_rate(void)
{
    double first = tsc_measure_hz(50000000), second = tsc_measure_hz(50000000);
    printf("      %.6f and %.6f MHz\n", first / 1e6, second / 1e6);
    expect(first > 1e6 && first / second > 0.99 && first / second < 1.01, "one rate");
#ifdef __aarch64__
    uint64_t told;
    __asm__("mrs %0, cntfrq_el0" : "=r"(told));
    expect(first / (double)told > 0.99 && first / (double)told < 1.01, "the rate of CNTFRQ_EL0");
#endif
}

int main(void)
{
    runs_forwards();
    knows_its_core();
    has_one_rate();
    return failures > 0;
}
