// SPDX-License-Identifier: MIT
#include "experiments/capture/capture_cores.h"

#include <stdio.h>
#include <time.h>

#include "base/units.h"
#include "experiments/capture/capture_backend.h"
#include "profiler/host/receive_cores.h"

// Cores that are recorded by now though nobody asked for them.
static void add_followed(const struct capture *capture, cpu_set_t *out)
{
    for (size_t i = 0; i < CAPTURE_BACKENDS_COUNT; i++)
        if (capture->states[i])
            capture_backends[i]->add_followed(capture->states[i], out);
}

// Takes `others` away from *cores; returns how many are left.
static int take_away_cores(cpu_set_t *cores, const cpu_set_t *others)
{
    cpu_set_t both;
    CPU_AND(&both, cores, others);
    CPU_XOR(cores, cores, &both);
    return CPU_COUNT(cores);
}

int capture_cores_follow(struct capture *capture, struct error *err)
{
    cpu_set_t found, added;
    CPU_ZERO(&found);
    add_followed(capture, &found);
    if (CPU_COUNT(&capture->cores) == 0 || take_away_cores(&found, &capture->cores) == 0)
        return 0;
    added = found;
    if (take_away_cores(&added, &capture->followed) == 0)
        return 0;
    capture->followed = found;
    for (size_t i = 0; i < CAPTURE_BACKENDS_COUNT; i++) {
        int result =
            capture->states[i] ? capture_backends[i]->follow(capture->states[i], &found, err) : 1;
        if (result < 0)
            return result;
        capture->fixed[i] = result == 0;
    }
    return 0;
}

void capture_cores_warn(struct capture *capture)
{
    char text[1400], cores[1024];
    if (CPU_COUNT(&capture->followed) == 0 || capture->options.trace.pids)
        return;
    units_format_cores(&capture->followed, cores, sizeof cores);
    for (size_t i = 0; i < CAPTURE_BACKENDS_COUNT; i++) {
        if (!capture->fixed[i])
            continue;
        snprintf(
            text, sizeof text,
            "%s of core%s %s, which received or ran the server during the capture: to be named "
            "with --cores",
            capture_backends[i]->lack, CPU_COUNT(&capture->followed) > 1 ? "s" : "", cores);
        capture_warn(capture, text);
    }
}

// Whether a backend is to be started that does not find out which cores deliver.
static bool wants_told_cores(const struct capture *capture)
{
    for (size_t i = 0; i < CAPTURE_BACKENDS_COUNT; i++)
        if (capture->wanted[i] && !capture_backends[i]->is_always)
            return true;
    return false;
}

void capture_cores_widen(struct capture *capture)
{
    enum { LOOK_NS = 50000000, MOST = 8 };
    cpu_set_t seen, told;
    capture->cores = capture->options.cores;
    if (CPU_COUNT(&capture->cores) == 0 || !wants_told_cores(capture))
        return;
    CPU_ZERO(&told);
    receive_cores_find("", &told);
    nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
    CPU_ZERO(&seen);
    add_followed(capture, &seen);
    if (take_away_cores(&told, &capture->cores) <= MOST)
        CPU_OR(&seen, &seen, &told);
    CPU_OR(&capture->cores, &capture->cores, &seen);
}
