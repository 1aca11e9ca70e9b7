// SPDX-License-Identifier: MIT
#include "analysis/diagnosis/overhead.h"

#include <string.h>

// Of docs/performance.md, "The shim, call by call".
#define SHIM_CALL_NS 35.0

static double add_program(const json_t *programs, const char *name, double *runs)
{
    const json_t *program = json_object_get(programs, name);
    double count = json_number_value(json_object_get(program, "runs"));
    double mean = json_number_value(json_object_get(program, "mean_ns"));
    if (!(count > 0) || !(mean > 0))
        return 0;
    *runs += count;
    return count * mean;
}

static double mean_of(const json_t *programs, const char *const *names, size_t count)
{
    double ns = 0, runs = 0;
    for (size_t i = 0; i < count; i++)
        ns += add_program(programs, names[i], &runs);
    return runs > 0 ? ns / runs : 0;
}

struct overhead overhead_of_capture(const json_t *capture, bool shim)
{
    static const char *const records[] = {"sched_switch",
                                          "irq_handler_entry",
                                          "irq_handler_exit",
                                          "softirq_entry",
                                          "softirq_exit",
                                          "local_timer_entry",
                                          "local_timer_exit",
                                          "reschedule_entry",
                                          "reschedule_exit",
                                          "call_function_single_entry",
                                          "call_function_single_exit"};
    static const char *const packet[] = {"tcp_probe", "sk_data_ready", "sched_waking"};
    const json_t *programs = json_object_get(json_object_get(capture, "events"), "programs");
    struct overhead overhead = {.record_ns =
                                    mean_of(programs, records, sizeof records / sizeof *records),
                                .call_ns = shim ? SHIM_CALL_NS : 0};
    for (size_t i = 0; i < sizeof packet / sizeof *packet; i++)
        overhead.packet_ns += mean_of(programs, &packet[i], 1);
    return overhead;
}
