// SPDX-License-Identifier: MIT
#include "experiments/capture/recording_end.h"

#include <stdio.h>
#include <time.h>

#include "base/clock.h"

void recording_end_early(struct recording_end *end, const char *why)
{
    if (end->why[0])
        return;
    end->at_ns = clock_now_ns(CLOCK_MONOTONIC_RAW);
    snprintf(end->why, sizeof end->why, "%.590s", why);
}

void recording_end_broken(struct recording_end *end, const struct error *problem)
{
    end->broken = true;
    recording_end_early(end, problem->text);
}

void recording_end_say(const struct recording_end *end, json_t *document)
{
    if (end->why[0])
        json_object_set_new(document, "ended",
                            json_pack("{s:s, s:I, s:b}", "why", end->why, "at_ns",
                                      (json_int_t)end->at_ns, "broken", end->broken));
}
