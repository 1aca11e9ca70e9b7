// SPDX-License-Identifier: MIT
#include "profiler/trace/processor_trace.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profiler/host/host_facts.h"

#define DEVICE "/sys/bus/event_source/devices/intel_pt"

static void obstacle_set(struct processor_trace *trace, enum processor_trace_obstacle obstacle,
                         const char *how, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static void obstacle_set(struct processor_trace *trace, enum processor_trace_obstacle obstacle,
                         const char *how, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(trace->reason, sizeof trace->reason, format, args);
    va_end(args);
    snprintf(trace->how, sizeof trace->how, "%s", how);
    trace->obstacle = obstacle;
}

static bool read_device(const char *root, const char *name, char *out, size_t out_bytes)
{
    char path[512];
    snprintf(path, sizeof path, "%s" DEVICE "/%s", root, name);
    return host_read_line(path, out, out_bytes);
}

// A mask of allowed values, printed in hexadecimal. Absent: none.
static uint32_t read_mask(const char *root, const char *name)
{
    char text[32];
    read_device(root, name, text, sizeof text);
    return (uint32_t)strtoul(text, NULL, 16);
}

static void explain_no_device(const char *root, struct processor_trace *trace)
{
    char path[512], vendor[64];
    static const char *const cpu_how =
        "an Intel CPU since Broadwell, not virtualised or with PT passed through";
    snprintf(path, sizeof path, "%s/proc/cpuinfo", root);
    char *flags = calloc(1, 8192);
    if (flags)
        host_read_field(path, "flags", flags, 8192);
    host_read_field(path, "vendor_id", vendor, sizeof vendor);
    bool flagged = flags && host_has_word(flags, "intel_pt");
    free(flags);
    if (flagged)
        obstacle_set(
            trace, PROCESSOR_TRACE_NO_DEVICE,
            "look for \"intel_pt\" in dmesg; enable it in the firmware, or load the kernel's "
            "support",
            "the CPU has Intel PT, but the kernel offers no " DEVICE);
    else if (vendor[0] && strcmp(vendor, "GenuineIntel") != 0)
        obstacle_set(trace, PROCESSOR_TRACE_NO_CPU, cpu_how, "the CPU is %s, which has none",
                     vendor);
    else
        obstacle_set(trace, PROCESSOR_TRACE_NO_CPU, cpu_how,
                     "neither the CPU (no intel_pt among its flags) nor the hypervisor offers it");
}

// What perf_event_open(2) requires to record every core: perf_event_paranoid of at most 0, or
// CAP_PERFMON.
static bool may_record_cores(const char *root, char *paranoid, size_t paranoid_bytes)
{
    char path[512];
    snprintf(path, sizeof path, "%s/proc/sys/kernel/perf_event_paranoid", root);
    host_read_line(path, paranoid, paranoid_bytes);
    return privilege_held(PRIVILEGE_PERFMON) || (paranoid[0] && strtol(paranoid, NULL, 10) <= 0);
}

void processor_trace_find(const char *root, const char *perf, struct processor_trace *out)
{
    char text[32];
    *out = (struct processor_trace){0};
    if (perf)
        snprintf(out->perf, sizeof out->perf, "%s", perf);
    else if (!host_find_program("perf", out->perf, sizeof out->perf))
        out->perf[0] = '\0';
    if (!read_device(root, "type", text, sizeof text)) {
        explain_no_device(root, out);
        return;
    }
    out->pmu_type = (unsigned)strtoul(text, NULL, 10);
    if (read_device(root, "caps/mtc", text, sizeof text) && strcmp(text, "1") == 0)
        out->mtc_periods = read_mask(root, "caps/mtc_periods");
    if (read_device(root, "caps/psb_cyc", text, sizeof text) && strcmp(text, "1") == 0) {
        out->cycle_thresholds = read_mask(root, "caps/cycle_thresholds");
        out->psb_periods = read_mask(root, "caps/psb_periods");
    }
    if (!out->perf[0])
        obstacle_set(out, PROCESSOR_TRACE_NO_PERF, "apt-get install linux-perf",
                     "Intel PT is there; perf, which records it, is not");
    // setcap is not suggested: executing a file with capabilities clears PR_SET_PDEATHSIG
    // (prctl(2)), so such a perf would outlive this process.
    else if (!may_record_cores(root, text, sizeof text))
        obstacle_set(out, PROCESSOR_TRACE_NO_PRIVILEGE,
                     "run as root, or sysctl kernel.perf_event_paranoid=-1",
                     "recording every core takes CAP_PERFMON (perf_event_paranoid is %s)", text);
}

// --- events --------------------------------------------------------------------------------------

static const struct detail {
    const char *name;
    bool cycles;
    unsigned cycle_threshold, mtc_period, psb_period;
} details[] = {
    [PROCESSOR_TRACE_LIGHT] = {"light", false, 0, 6, 5},
    [PROCESSOR_TRACE_NORMAL] = {"normal", true, 5, 3, 3},
    [PROCESSOR_TRACE_FINE] = {"fine", true, 0, 0, 0},
};

const char *processor_trace_detail_name(unsigned index)
{
    return index < sizeof details / sizeof *details ? details[index].name : NULL;
}

bool processor_trace_parse_detail(const char *word, enum processor_trace_detail *out)
{
    for (size_t i = 0; i < sizeof details / sizeof *details; i++)
        if (strcmp(word, details[i].name) == 0) {
            *out = (enum processor_trace_detail)i;
            return true;
        }
    return false;
}

// The largest allowed value up to the wanted one; without any, the smallest allowed.
static unsigned period_nearest(uint32_t allowed, unsigned wanted)
{
    uint32_t finer = allowed & (uint32_t)((UINT64_C(2) << wanted) - 1);
    return finer ? 31 - (unsigned)__builtin_clz(finer) : (unsigned)__builtin_ctz(allowed);
}

char *processor_trace_event(const struct processor_trace *trace, enum processor_trace_detail detail,
                            char *out, size_t out_bytes)
{
    const struct detail *chosen = &details[detail];
    char cycles[48] = "", mtc[48] = "", psb[32] = "";
    if (chosen->cycles && trace->cycle_thresholds)
        snprintf(cycles, sizeof cycles, ",cyc=1,cyc_thresh=%u",
                 period_nearest(trace->cycle_thresholds, chosen->cycle_threshold));
    if (trace->mtc_periods)
        snprintf(mtc, sizeof mtc, ",mtc=1,mtc_period=%u",
                 period_nearest(trace->mtc_periods, chosen->mtc_period));
    if (trace->psb_periods)
        snprintf(psb, sizeof psb, ",psb_period=%u",
                 period_nearest(trace->psb_periods, chosen->psb_period));
    snprintf(out, out_bytes, "intel_pt/tsc=1%s%s%s/", cycles, mtc, psb);
    return out;
}
