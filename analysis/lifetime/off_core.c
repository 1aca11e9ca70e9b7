// SPDX-License-Identifier: MIT
#include "analysis/lifetime/off_core.h"

#include "analysis/timeline/thread_states.h"

struct visit {
    off_core_visitor *each;
    void *context;
};

static void take_period(const struct thread_period *period, void *context)
{
    const struct visit *visit = context;
    if (period->state != THREAD_RUNS && period->state != THREAD_UNKNOWN)
        visit->each(period->begin_ns, period->end_ns, visit->context);
}

void off_core_visit(const struct host_timeline *host, const struct application_calls *calls,
                    const struct lifetime *life, off_core_visitor *each, void *context)
{
    struct visit visit = {each, context};
    if (life->thread == 0 || !lifetime_has(life, STAMP_APPLICATION) ||
        !lifetime_has(life, STAMP_REPLY) ||
        (life->send_call < calls->count && calls->items[life->send_call].thread != life->thread))
        return;
    thread_periods(host, life->thread, life->stamp_ns[STAMP_APPLICATION],
                   life->stamp_ns[STAMP_REPLY], take_period, &visit);
}

static void add(int64_t begin_ns, int64_t end_ns, void *context)
{
    *(double *)context += (double)(end_ns - begin_ns);
}

double off_core_ns(const struct host_timeline *host, const struct application_calls *calls,
                   const struct lifetime *life)
{
    double sum = 0;
    off_core_visit(host, calls, life, add, &sum);
    return sum;
}
