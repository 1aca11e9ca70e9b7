// SPDX-License-Identifier: MIT
#include "analysis/pt/walk/pt_trace_clock.h"

enum {
    CYCLE_SHIFT = 8, // a cycle is in ticks / 256
    MTC_BITS = 8,
    TMA_BITS = 16, // of the crystal's clock
    TMA_MASK = (1 << TMA_BITS) - 1,
    TSC_BITS = 56,
    MOST_FREQUENCY = 15,
    LOW_FREQUENCY = 10,  // MTCs so rare that a missing CYC does not show
    WRAP_CYCLES = 0xf00, // a little less than the counter of cycles holds
};

void pt_trace_clock_init(struct pt_trace_clock *clock, const struct pt_config *config)
{
    *clock = (struct pt_trace_clock){
        .crystal_eax = config->cpuid_0x15_eax,
        .crystal_ebx = config->cpuid_0x15_ebx,
        .mtc_frequency = config->mtc_freq,
        .nominal_ratio = config->nom_freq,
        .skl168 = config->errata.skl168,
    };
    pt_trace_clock_uncalibrate(clock);
}

void pt_trace_clock_restart(struct pt_trace_clock *clock)
{
    clock->now = (struct pt_reading){0};
    clock->base = clock->since = 0;
    clock->ctc = clock->ctc_cyc = 0;
    clock->have_tma = clock->have_mtc = false;
    pt_trace_clock_uncalibrate(clock);
}

// --- how long a cycle is -------------------------------------------------------------------------

void pt_trace_clock_uncalibrate(struct pt_trace_clock *clock)
{
    clock->cycle = clock->longest = 0;
    clock->shortest = UINT64_MAX;
    clock->cycles_of_mtc = clock->cycles_of_tsc = clock->last_tsc = 0;
    clock->last_ctc = 0;
    clock->have_ctc = clock->behind_psb = false;
}

static bool calibrated(const struct pt_trace_clock *clock)
{
    return clock->shortest <= clock->longest;
}

static void calibrate(struct pt_trace_clock *clock, uint64_t cycle)
{
    clock->cycle = cycle;
    if (cycle < clock->shortest)
        clock->shortest = cycle;
    if (cycle > clock->longest)
        clock->longest = cycle;
}

static bool fits(uint64_t ticks)
{
    return ticks <= UINT64_MAX >> CYCLE_SHIFT;
}

// Between two TSCs, the second in a PSB's header. Others may follow a loss of time.
static bool calibrate_by_tsc(struct pt_trace_clock *clock, uint64_t tsc, bool header)
{
    uint64_t before = clock->last_tsc, cycles = clock->cycles_of_tsc;
    clock->last_tsc = tsc;
    clock->cycles_of_tsc = 0;
    if (!header || !before || !cycles)
        return true;
    if (tsc < before)
        tsc += 1ull << TSC_BITS;
    if (tsc < before || !fits(tsc - before))
        return false;
    calibrate(clock, ((tsc - before) << CYCLE_SHIFT) / cycles);
    return true;
}

// --- the crystal's clock -------------------------------------------------------------------------

// How far it went; false: not possible. The packets wrap around.
static bool crystal_passed(const struct pt_trace_clock *clock, uint32_t from, uint32_t to,
                           uint32_t *out)
{
    if (to < from)
        to += 1u << (clock->mtc_frequency + MTC_BITS);
    *out = to - from;
    return to >= from;
}

// In ticks; false: nobody knows how fast it runs.
static bool crystal_ticks(const struct pt_trace_clock *clock, uint64_t crystal, uint64_t *out)
{
    if (!clock->crystal_eax || !clock->crystal_ebx)
        return false;
    *out = crystal * clock->crystal_ebx / clock->crystal_eax;
    return true;
}

// Behind a PSB a CYC may have been dropped, and this period would be measured too short.
static bool looks_dropped(const struct pt_trace_clock *clock, uint32_t crystal, uint64_t ticks,
                          uint64_t cycles)
{
    if (1u << clock->mtc_frequency < crystal) // an MTC is missing
        return true;
    return clock->mtc_frequency < LOW_FREQUENCY && calibrated(clock) &&
           clock->cycle * (cycles + WRAP_CYCLES) >> CYCLE_SHIFT < ticks;
}

// Between two MTCs.
static bool calibrate_by_mtc(struct pt_trace_clock *clock, uint32_t ctc)
{
    uint64_t cycles = clock->cycles_of_mtc, ticks;
    uint32_t before = clock->last_ctc, passed;
    bool behind_psb = clock->behind_psb;
    clock->behind_psb = false;
    if (clock->have_ctc && !cycles)
        return true;
    clock->cycles_of_mtc = 0;
    clock->last_ctc = ctc;
    if (!clock->have_ctc) {
        clock->have_ctc = true;
        return true;
    }
    if (!crystal_passed(clock, before, ctc, &passed))
        return false;
    if (!crystal_ticks(clock, passed, &ticks))
        return true;
    if (!fits(ticks))
        return false;
    if (!behind_psb || !looks_dropped(clock, passed, ticks, cycles))
        calibrate(clock, (ticks << CYCLE_SHIFT) / cycles);
    return true;
}

// --- packets -------------------------------------------------------------------------------------

void pt_trace_clock_psb(struct pt_trace_clock *clock)
{
    clock->behind_psb |= clock->skl168;
}

bool pt_trace_clock_tsc(struct pt_trace_clock *clock, uint64_t tsc, bool header)
{
    if (!calibrate_by_tsc(clock, tsc, header))
        return false;
    clock->now = (struct pt_reading){.tsc = tsc, .known = true};
    clock->base = tsc;
    clock->since = 0;
    clock->ctc = 0;
    clock->have_tma = clock->have_mtc = false;
    return true;
}

// Outside a header the ratio has changed.
bool pt_trace_clock_cbr(struct pt_trace_clock *clock, uint8_t ratio, bool header)
{
    if (!header)
        pt_trace_clock_uncalibrate(clock);
    if (ratio == 0) // libipt takes no such packet but in a header, and there not to count by
        return header && !clock->nominal_ratio;
    if (!clock->nominal_ratio)
        return true;
    calibrate(clock, ((uint64_t)clock->nominal_ratio << CYCLE_SHIFT) / ratio);
    return true;
}

bool pt_trace_clock_tma(struct pt_trace_clock *clock, uint16_t ctc, uint16_t fast)
{
    uint32_t bits = clock->mtc_frequency + MTC_BITS;
    if (!clock->now.known || clock->have_tma || clock->have_mtc ||
        clock->mtc_frequency > MOST_FREQUENCY)
        return false;
    clock->have_tma = true;
    clock->base -= fast;
    clock->since += fast;
    clock->have_mtc = bits <= TMA_BITS; // it has all bits that an MTC would have
    clock->ctc = clock->ctc_cyc = ctc & ((1u << bits) - 1);
    return true;
}

// A TMA lacks the upper bits: they are those of the first MTC behind it, which is near.
static uint32_t ctc_of_tma(const struct pt_trace_clock *clock, uint32_t tma, uint32_t ctc)
{
    uint32_t high = ctc & ~(uint32_t)TMA_MASK;
    if ((ctc & TMA_MASK) < tma)
        high = (high - (1u << TMA_BITS)) & (0xffu << clock->mtc_frequency);
    return tma | high;
}

bool pt_trace_clock_mtc(struct pt_trace_clock *clock, uint8_t packet)
{
    uint32_t ctc = (uint32_t)packet << clock->mtc_frequency, before = clock->ctc, passed;
    bool had_mtc = clock->have_mtc;
    uint64_t ticks;
    if (clock->mtc_frequency > MOST_FREQUENCY || !calibrate_by_mtc(clock, ctc))
        return false;
    if (clock->now.known && !clock->have_tma) // between TSC and TMA
        return true;
    if (clock->since || clock->now.lost_cyc || !had_mtc)
        clock->ctc_cyc = ctc;
    clock->have_mtc = true;
    clock->since = 0;
    clock->ctc = ctc;
    clock->now.lost_cyc = 0;
    if (!had_mtc) {
        if (!clock->have_tma)
            return true;
        if (before & ~(uint32_t)TMA_MASK)
            return false;
        before = ctc_of_tma(clock, before, ctc);
    }
    if (!crystal_passed(clock, before, ctc, &passed))
        return false;
    if (crystal_ticks(clock, passed, &ticks))
        clock->now.tsc = clock->base += ticks;
    return true;
}

// Cycles of periods before the last MTC are in the time already. False: cannot be.
static bool cycles_of_period(const struct pt_trace_clock *clock, uint64_t *cycles, bool *unknown)
{
    uint32_t passed;
    uint64_t ticks;
    if (clock->ctc == clock->ctc_cyc)
        return true;
    if (!crystal_passed(clock, clock->ctc_cyc, clock->ctc, &passed))
        return false;
    *unknown = !crystal_ticks(clock, passed, &ticks);
    if (*unknown)
        return true;
    uint64_t old = (ticks << CYCLE_SHIFT) / clock->cycle;
    *cycles -= old < *cycles ? old : *cycles;
    return true;
}

bool pt_trace_clock_cyc(struct pt_trace_clock *clock, uint64_t cycles)
{
    bool unknown = false;
    clock->cycles_of_mtc += cycles;
    clock->cycles_of_tsc += cycles;
    if (!calibrated(clock) || !clock->cycle) {
        clock->now.lost_cyc++;
        return true;
    }
    if (!clock->since && !cycles_of_period(clock, &cycles, &unknown))
        return false;
    if (unknown)
        return true;
    clock->since += cycles * clock->cycle >> CYCLE_SHIFT;
    clock->now.tsc = clock->base + clock->since;
    return true;
}
