// SPDX-License-Identifier: MIT
#include "profiler/clock/clock_recorder.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log_file.h"
#include "base/text.h"
#include "base/tsc.h"

enum { READINGS_PER_KNOT = HOST_CLOCKS - 1, TRIES = 8, NEAR_NS = 1000000 };

static const clockid_t posix_clocks[HOST_CLOCKS] = {
    [HOST_CLOCK_RAW] = CLOCK_MONOTONIC_RAW,
    [HOST_CLOCK_MONOTONIC] = CLOCK_MONOTONIC,
    [HOST_CLOCK_REALTIME] = CLOCK_REALTIME,
};

// The fences keep the clock's own reading of the TSC between ours.
static uint64_t tsc_fenced(void)
{
    _mm_lfence();
    uint64_t cycles = tsc_now();
    _mm_lfence();
    return cycles;
}

// Takes one knot: the narrowest of `tries` sandwiches of each clock. Fills HOST_CLOCKS - 1
// readings. No allocation; about 0.1 us per try.
static void clock_take_knot(struct clock_reading readings[HOST_CLOCKS - 1], unsigned tries)
{
    for (uint32_t clock = HOST_CLOCK_RAW; clock < HOST_CLOCKS; clock++) {
        struct clock_reading *best = &readings[clock - 1];
        *best = (struct clock_reading){.clock = clock, .width = UINT32_MAX};
        for (unsigned i = 0; i < (tries ? tries : 1); i++) {
            struct timespec now;
            uint64_t before = tsc_fenced();
            clock_gettime(posix_clocks[clock], &now);
            uint64_t width = tsc_fenced() - before;
            if (width >= best->width && best->tsc)
                continue;
            best->width = width < UINT32_MAX ? (uint32_t)width : UINT32_MAX;
            best->tsc = before + width / 2;
            best->ns = now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
        }
    }
}

// Drops every other knot; the first stays.
static void thin_out(struct clock_recorder *recorder)
{
    size_t kept = 0;
    for (size_t i = 0; i < recorder->knots; i += 2, kept++)
        memmove(&recorder->readings[kept * READINGS_PER_KNOT],
                &recorder->readings[i * READINGS_PER_KNOT],
                READINGS_PER_KNOT * sizeof *recorder->readings);
    recorder->knots = kept;
    recorder->interval_ns *= 2;
}

void clock_recorder_take(struct clock_recorder *recorder)
{
    if (recorder->knots == recorder->capacity)
        thin_out(recorder);
    clock_take_knot(&recorder->readings[recorder->knots * READINGS_PER_KNOT], TRIES);
    recorder->knots++;
}

int clock_recorder_start(struct clock_recorder *recorder, uint64_t interval_ns, size_t capacity,
                         struct error *err)
{
    memset(recorder, 0, sizeof *recorder);
    recorder->capacity = capacity < 4 ? 4 : capacity;
    recorder->interval_ns = interval_ns;
    recorder->readings = calloc(recorder->capacity * READINGS_PER_KNOT, sizeof *recorder->readings);
    if (!recorder->readings)
        return error_set(err, ERROR_FAILED, "no memory for a clock log of %s knots",
                         TEXT_COUNT(capacity));
    // Touched now, so that taking a knot never waits for a page.
    memset(recorder->readings, 1,
           recorder->capacity * READINGS_PER_KNOT * sizeof *recorder->readings);
    clock_recorder_take(recorder);
    recorder->next_ns = (uint64_t)monotonic_ns() + interval_ns;
    return 0;
}

uint64_t clock_recorder_poll(struct clock_recorder *recorder)
{
    uint64_t now = (uint64_t)monotonic_ns();
    if (now >= recorder->next_ns) {
        clock_recorder_take(recorder);
        recorder->next_ns = now + recorder->interval_ns;
    }
    return recorder->next_ns - now;
}

void clock_recorder_settle(struct clock_recorder *recorder)
{
    const struct timespec apart = {.tv_nsec = CLOCK_RECORDER_SETTLE_MS * 1000000L};
    for (int i = 0; i < 2; i++) {
        nanosleep(&apart, NULL);
        clock_recorder_take(recorder);
    }
}

int clock_recorder_write(struct clock_recorder *recorder, const char *path, struct error *err)
{
    const struct clock_reading *latest =
        &recorder->readings[(recorder->knots - 1) * READINGS_PER_KNOT];
    if ((uint64_t)monotonic_ns() - (uint64_t)latest[HOST_CLOCK_MONOTONIC - 1].ns > NEAR_NS)
        clock_recorder_take(recorder);
    return log_write(path, LOG_CLOCK, CLOCK_LOG_VERSION, sizeof *recorder->readings,
                     recorder->readings, recorder->knots * READINGS_PER_KNOT, 0, err);
}

void clock_recorder_free(struct clock_recorder *recorder)
{
    free(recorder->readings);
    memset(recorder, 0, sizeof *recorder);
}
