// SPDX-License-Identifier: MIT
#include "experiments/watch/interval_analysis.h"

#include <stdio.h>
#include <sys/stat.h>

#include "experiments/common/run_folder.h"

enum {
    BACK_SEGMENTS = 120,    // at most
    BACK_BYTES = 128 << 20, // of their events: a second or two of analysis
    VAIN_SEGMENTS = 20, // for so long it is not tried again: records are missing, not further back
};

// From which segment on they are there, and can be looked at.
static unsigned oldest_segment(const struct run_request *request)
{
    const unsigned first = request->segments.first;
    unsigned oldest = first;
    uint64_t bytes = 0;
    while (oldest > 1 && first - oldest < BACK_SEGMENTS) {
        char path[RUN_PATH_BYTES + 64];
        struct stat status;
        snprintf(path, sizeof path, "%s/events-%06u.tlog", request->run_dir, oldest - 1);
        if (stat(path, &status) < 0 || (bytes += (uint64_t)status.st_size) > BACK_BYTES)
            break;
        oldest--;
    }
    return oldest;
}

static uint64_t without_arrival(const struct run_analysis *run)
{
    return run->lifetimes.states[LIFETIME_NO_NIC];
}

int interval_analyze(struct interval_analysis *analysis, struct run_request *request,
                     struct run_analysis *out, struct error *err)
{
    struct progress progress = {.quiet = true};
    const struct run_segment_range usual = request->segments;
    int result = run_analyze(request, &progress, out, err);
    if (result < 0 || without_arrival(out) == 0 || usual.last <= analysis->vain_until)
        return result;
    request->segments.first = oldest_segment(request);
    if (request->segments.first == usual.first)
        return 0;
    const uint64_t before = without_arrival(out);
    run_analysis_free(out);
    if (run_analyze(request, &progress, out, err) < 0) {
        request->segments = usual; // the oldest may have made room meanwhile
        return run_analyze(request, &progress, out, err);
    }
    if (without_arrival(out) >= before)
        analysis->vain_until = usual.last + VAIN_SEGMENTS;
    return 0;
}
