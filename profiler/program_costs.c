// SPDX-License-Identifier: MIT
#include "profiler/program_costs.h"

#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

enum {
    MEASURE_NS = 20000000,
    FEW_RECORDS = 100,   // of which it is not known what each takes
    STATISTICS_EACH = 7, // not a divisor of the ten segments of which nine are sparing
    RECORD_NS = 500,     // where it cannot be measured
};

int program_costs_init(struct program_costs *costs, unsigned cores)
{
    *costs = (struct program_costs){.fd = -1, .heads = calloc(cores, sizeof *costs->heads)};
    return costs->heads ? 0 : -1;
}

static void turn_on(struct program_costs *costs)
{
    if (costs->fd < 0)
        costs->fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
}

void program_costs_sample(struct program_costs *costs, const cpu_set_t *watched)
{
    enum { SLEEPS = 200 };
    const struct timespec pause = {.tv_nsec = 20000};
    cpu_set_t before;
    bool moved = sched_getaffinity(0, sizeof before, &before) == 0 && CPU_COUNT(watched) &&
                 sched_setaffinity(0, sizeof *watched, watched) == 0;
    turn_on(costs);
    for (int i = 0; i < SLEEPS && costs->fd >= 0; i++)
        nanosleep(&pause, NULL);
    program_costs_end(costs);
    if (moved)
        sched_setaffinity(0, sizeof before, &before);
}

void program_costs_begin(struct program_costs *costs, const struct events_bpf *programs,
                         const struct event_program_state states[EVENT_PROGRAMS],
                         const struct event_drain *drain)
{
    for (unsigned core = 0; core < drain->core_count; core++)
        costs->heads[core] = __atomic_load_n(&drain->rings[core].head, __ATOMIC_RELAXED);
    if (costs->measured++ % STATISTICS_EACH == 0) {
        costs->run_ns = events_programs_run_ns(programs, states);
        turn_on(costs);
    }
    costs->since_ns = (uint64_t)monotonic_ns();
}

double program_costs_so_far(struct program_costs *costs, const struct events_bpf *programs,
                            const struct event_program_state states[EVENT_PROGRAMS],
                            const struct event_drain *drain, uint64_t *records)
{
    uint64_t most = 0, all = 0;
    for (unsigned core = 0; core < drain->core_count; core++) {
        const uint64_t here =
            __atomic_load_n(&drain->rings[core].head, __ATOMIC_RELAXED) - costs->heads[core];
        all += here;
        most = here > most ? here : most;
    }
    if (costs->fd >= 0 && (uint64_t)monotonic_ns() >= costs->since_ns + MEASURE_NS) {
        const uint64_t ran_ns = events_programs_run_ns(programs, states) - costs->run_ns;
        if (all >= FEW_RECORDS)
            costs->record_ns = (double)ran_ns / (double)all;
        program_costs_end(costs);
    }
    *records = all;
    return (costs->record_ns > 0 ? costs->record_ns : RECORD_NS) * (double)most;
}

void program_costs_end(struct program_costs *costs)
{
    if (costs->fd >= 0)
        close(costs->fd);
    costs->fd = -1;
}

void program_costs_free(struct program_costs *costs)
{
    program_costs_end(costs);
    free(costs->heads);
    costs->heads = NULL;
}
