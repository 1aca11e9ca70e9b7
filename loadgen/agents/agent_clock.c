// SPDX-License-Identifier: MIT
#include "loadgen/agents/agent_clock.h"
#include "base/clock.h"

#include <math.h>
#include <time.h>

int64_t agent_clock_now_ns(void)
{
    return monotonic_ns();
}

void agent_clock_asked(struct agent_clock *clock)
{
    clock->asked = true;
    clock->asked_ns = agent_clock_now_ns();
}

void agent_clock_answered(struct agent_clock *clock, int64_t at_ns)
{
    int64_t trip_ns = agent_clock_now_ns() - clock->asked_ns;
    if (!clock->asked)
        return; // an answer that nobody asked for relates to nothing
    clock->asked = false;
    if (clock->trips++ && (uint64_t)trip_ns >= clock->trip_ns)
        return;
    clock->trip_ns = (uint64_t)trip_ns;
    clock->offset_ns = at_ns - (clock->asked_ns + trip_ns / 2);
}

uint64_t agent_clock_bound_ns(const struct agent_clock *clock)
{
    return clock->trip_ns / 2;
}

// --- one time axis -------------------------------------------------------------------------------

struct axis {
    uint64_t from, to; // the agreed instant on both axes
    double scale;
};

static void stamp_rebase(uint64_t *tsc, const struct axis *axis)
{
    if (*tsc) // 0: the event did not happen
        *tsc = axis->to + (uint64_t)llround((double)(int64_t)(*tsc - axis->from) * axis->scale);
}

void agent_clock_rebase(struct engine_result *result, uint64_t begin_tsc, double tsc_hz)
{
    const struct axis axis = {
        .from = result->start_tsc, .to = begin_tsc, .scale = tsc_hz / result->tsc_hz};
    for (size_t i = 0; i < result->sample_count; i++) {
        struct sample *sample = &result->samples[i];
        stamp_rebase(&sample->intended_tsc, &axis);
        stamp_rebase(&sample->send_tsc, &axis);
        stamp_rebase(&sample->sent_tsc, &axis);
        stamp_rebase(&sample->reply_tsc, &axis);
        result->stamps_missing += sample->tx_ns != 0;
        sample->tx_ns = sample->rx_ns = 0;
        sample->tx_source = sample->rx_source = STAMP_NONE;
    }
    for (uint32_t i = 0; i < result->connection_count; i++)
        stamp_rebase(&result->connections[i].opened_time, &axis);
    result->late_tsc = (uint64_t)llround((double)result->late_tsc * axis.scale);
    stamp_rebase(&result->start_tsc, &axis);
    stamp_rebase(&result->end_tsc, &axis);
    if (result->kernel_stamps)
        error_set(&result->stamps_why, ERROR_INPUT,
                  "of agents on other machines the kernel's stamps are in clocks of their own, and "
                  "left out");
    result->kernel_stamps = result->hardware_stamps = false;
    result->spin_tsc = (uint64_t)llround((double)result->spin_tsc * axis.scale);
    result->tsc_hz = tsc_hz;
}
