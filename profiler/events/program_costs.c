// SPDX-License-Identifier: MIT
#include "profiler/events/program_costs.h"

#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
    FEW_RECORDS = 100, // of which it is not known what each takes
    RECORD_NS = 500,   // where it cannot be measured
};

int program_costs_init(struct program_costs *costs, unsigned cores)
{
    *costs = (struct program_costs){.record_ns = RECORD_NS,
                                    .heads = calloc(cores, sizeof *costs->heads)};
    return costs->heads ? 0 : -1;
}

static void sleep_and_wake(const cpu_set_t *watched)
{
    enum { SLEEPS = 200 };
    const struct timespec pause = {.tv_nsec = 20000};
    cpu_set_t before;
    bool moved = sched_getaffinity(0, sizeof before, &before) == 0 && CPU_COUNT(watched) &&
                 sched_setaffinity(0, sizeof *watched, watched) == 0;
    for (int i = 0; i < SLEEPS; i++)
        nanosleep(&pause, NULL);
    if (moved)
        sched_setaffinity(0, sizeof before, &before);
}

void program_costs_sample(struct program_costs *costs, const struct events_bpf *programs,
                          const struct event_program_state states[EVENT_PROGRAMS],
                          const struct event_drain *drain, const cpu_set_t *watched)
{
    uint64_t records;
    const uint64_t before_ns = events_programs_run_ns(programs, states);
    const int fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
    if (fd < 0)
        return;
    program_costs_begin(costs, drain);
    sleep_and_wake(watched);
    program_costs_so_far(costs, drain, &records);
    if (records >= FEW_RECORDS)
        costs->record_ns =
            (double)(events_programs_run_ns(programs, states) - before_ns) / (double)records;
    close(fd);
}

static uint64_t recorded_on(const struct program_costs *costs, const struct event_drain *drain,
                            unsigned core)
{
    return __atomic_load_n(&drain->rings[core].head, __ATOMIC_RELAXED) - costs->heads[core];
}

void program_costs_begin(struct program_costs *costs, const struct event_drain *drain)
{
    for (unsigned core = 0; core < drain->core_count; core++)
        costs->heads[core] = __atomic_load_n(&drain->rings[core].head, __ATOMIC_RELAXED);
}

double program_costs_so_far(const struct program_costs *costs, const struct event_drain *drain,
                            uint64_t *records)
{
    uint64_t most = 0;
    *records = 0;
    for (unsigned core = 0; core < drain->core_count; core++) {
        const uint64_t here = recorded_on(costs, drain, core);
        *records += here;
        most = here > most ? here : most;
    }
    return costs->record_ns * (double)most;
}

unsigned program_costs_calm_core(const struct program_costs *costs, const struct event_drain *drain,
                                 const cpu_set_t *cores)
{
    unsigned calm = 0;
    uint64_t least = UINT64_MAX;
    for (unsigned core = 0; core < drain->core_count && core < CPU_SETSIZE; core++) {
        const uint64_t here = recorded_on(costs, drain, core);
        if (!CPU_ISSET(core, cores) || here >= least)
            continue;
        calm = core;
        least = here;
    }
    return calm;
}

void program_costs_free(struct program_costs *costs)
{
    free(costs->heads);
    costs->heads = NULL;
}
