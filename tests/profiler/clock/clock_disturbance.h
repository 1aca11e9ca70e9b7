// SPDX-License-Identifier: MIT
//
// Slews and steps of this machine's clock, for tests of what they do, and the way back: whoever
// disturbs it saves its state first and restores it in a process that does nothing else. Where a
// time daemon keeps the clock, the two would fight.
#ifndef TESTS_PROFILER_CLOCK_CLOCK_DISTURBANCE_H
#define TESTS_PROFILER_CLOCK_CLOCK_DISTURBANCE_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/timex.h>
#include <time.h>

#include "profiler/host/host_facts.h"

struct clock_state {
    long frequency; // adjtimex units
    int64_t raw_ns, real_minus_raw_ns;
};

static inline int64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static inline void sleep_us(long us)
{
    nanosleep(&(struct timespec){.tv_nsec = us * 1000}, NULL);
}

static inline void set_frequency(long scaled_ppm)
{
    struct timex change = {.modes = ADJ_FREQUENCY, .freq = scaled_ppm};
    if (adjtimex(&change) < 0)
        fprintf(stderr, "adjtimex: %s\n", strerror(errno));
}

// In microseconds, for asking for nanoseconds would leave the clock's interface in that mode.
static inline void step_clock(int64_t ns)
{
    int64_t us = ns / 1000;
    struct timex change = {.modes = ADJ_SETOFFSET};
    change.time.tv_sec = us < 0 ? -1 - (-us - 1) / 1000000 : us / 1000000;
    change.time.tv_usec = us - change.time.tv_sec * 1000000;
    if (adjtimex(&change) < 0)
        fprintf(stderr, "adjtimex: %s\n", strerror(errno));
}

// Returns 0, or 77 with the reason printed: the clock cannot or must not be disturbed here.
static inline int clock_state_save(struct clock_state *state)
{
    struct timex now = {0};
    if (!privilege_held(PRIVILEGE_SYS_TIME)) {
        printf("slewing the clock needs CAP_SYS_TIME\n");
        return 77;
    }
    if (adjtimex(&now) < 0 || !(now.status & STA_UNSYNC)) {
        printf("a time daemon keeps this machine's clock; the test would fight it\n");
        return 77;
    }
    state->frequency = now.freq;
    state->raw_ns = clock_ns(CLOCK_MONOTONIC_RAW);
    state->real_minus_raw_ns = clock_ns(CLOCK_REALTIME) - state->raw_ns;
    return 0;
}

// Puts the frequency back, and what the offset to the never-slewed clock is off by.
static inline void clock_state_restore(const struct clock_state *state)
{
    set_frequency(state->frequency);
    sleep_us(20000);
    int64_t raw = clock_ns(CLOCK_MONOTONIC_RAW);
    double own_drift = (double)(raw - state->raw_ns) * (double)state->frequency / 65536e6;
    int64_t off = clock_ns(CLOCK_REALTIME) - raw - state->real_minus_raw_ns - (int64_t)own_drift;
    printf("the clock ended %lld ns from where it would be; put back\n", (long long)off);
    if (off > 1000 || off < -1000)
        step_clock(-off);
}

#endif
