// SPDX-License-Identifier: MIT
#include "experiments/watch/interval_analysis.h"

#include <stdio.h>
#include <sys/stat.h>

#include "analysis/lifetime/turns.h"
#include "experiments/common/run_folder.h"

enum {
    BACK_SEGMENTS = 120,    // at most
    BACK_BYTES = 128 << 20, // of their events: a second or two of analysis
    VAIN_SEGMENTS = 20, // for so long it is not tried again: records are missing, not further back
    // For what an ordinary request is: of a window at the interval's beginning, too.
    FEW_EARLIER = 2 * DIAGNOSIS_MIN_CANDIDATES,
    EARLIER_BYTES = 16 << 20,
};

// From which segment on they are there, and can be looked at.
static unsigned oldest_segment(const struct run_request *request, uint64_t most_bytes)
{
    const unsigned first = request->segments.first;
    unsigned oldest = first;
    uint64_t bytes = 0;
    while (oldest > 1 && first - oldest < BACK_SEGMENTS) {
        char path[RUN_PATH_BYTES + 64];
        struct stat status;
        snprintf(path, sizeof path, "%s/events-%06u.tlog", request->run_dir, oldest - 1);
        if (stat(path, &status) < 0 || (bytes += (uint64_t)status.st_size) > most_bytes)
            break;
        oldest--;
    }
    return oldest;
}

static uint64_t without_arrival(const struct run_analysis *run)
{
    return run->lifetimes.states[LIFETIME_NO_NIC];
}

// A server with so few requests that nobody knows from these segments what is ordinary.
static bool lacks_ordinary(const struct run_analysis *run)
{
    return run->lifetimes.all.count < TURNS_ENOUGH && run->lifetimes.beside < FEW_EARLIER;
}

int interval_analyze(struct interval_analysis *analysis, struct run_request *request,
                     struct run_analysis *out, struct error *err)
{
    struct progress progress = {.quiet = true};
    const struct run_segment_range usual = request->segments;
    int result = run_analyze(request, &progress, out, err);
    if (result < 0)
        return result;
    const uint64_t before = without_arrival(out);
    const bool lacks_arrivals = before > 0 && usual.last > analysis->vain_until;
    if (!lacks_arrivals && !lacks_ordinary(out))
        return 0;
    request->segments.first = oldest_segment(request, lacks_arrivals ? BACK_BYTES : EARLIER_BYTES);
    if (request->segments.first == usual.first)
        return 0;
    run_analysis_free(out);
    if (run_analyze(request, &progress, out, err) < 0) {
        request->segments = usual; // the oldest may have made room meanwhile
        return run_analyze(request, &progress, out, err);
    }
    if (lacks_arrivals && without_arrival(out) >= before)
        analysis->vain_until = usual.last + VAIN_SEGMENTS;
    return 0;
}
