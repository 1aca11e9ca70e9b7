// SPDX-License-Identifier: MIT
#include "analysis/samples/sample_instants.h"

#include <string.h>

static void find_interrupt(const struct span *const *open, unsigned depth, int64_t begin_ns,
                           int64_t end_ns, void *context)
{
    const struct span **found = context;
    (void)begin_ns;
    (void)end_ns;
    for (unsigned at = depth; at-- > 0 && !*found;)
        if (open[at]->kind == SPAN_VECTOR)
            *found = open[at];
}

void sample_instants_settle(struct sample_profile *profile, const struct host_timeline *host)
{
    if (strncmp(profile->event, "cpu-clock", 9) != 0 &&
        strncmp(profile->event, "task-clock", 10) != 0)
        return; // perf may have added a modifier, as in "cpu-clock:ppp"
    for (size_t i = 0; i < profile->samples.count; i++) {
        struct named_sample *sample = &profile->samples.items[i];
        const struct core_timeline *core =
            sample->core < NO_CORE ? host_timeline_core(host, (uint16_t)sample->core) : NULL;
        const struct span *interrupt = NULL;
        if (core)
            core_timeline_stacks(core, sample->time_ns, sample->time_ns + 1, find_interrupt,
                                 &interrupt);
        if (interrupt)
            sample->time_ns = interrupt->begin_ns - 1;
    }
}
