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

// From which segment before that one on they are there, and have no more bytes with these.
static unsigned oldest_segment(const struct run_request *request, unsigned before,
                               uint64_t most_bytes)
{
    unsigned oldest = before;
    uint64_t bytes = 0;
    while (oldest > 1 && before - oldest < BACK_SEGMENTS) {
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

// Those since the last time and the one before, as far as they are there.
static void choose_segments(struct interval_analysis *analysis, unsigned last,
                            struct run_request *request)
{
    const unsigned wanted = analysis->looked_at ? analysis->looked_at : 1;
    unsigned oldest = oldest_segment(request, last + 1, run_segments_affordable());
    oldest = oldest > last ? last : oldest;
    request->segments =
        (struct run_segment_range){.first = oldest > wanted ? oldest : wanted, .last = last};
}

// What they have could not be told at all, or of those that are not there any more.
static void note_given_up(struct interval_analysis *analysis, const struct run_request *request,
                          bool failed)
{
    const unsigned first = analysis->looked_at + 1, last = request->segments.last;
    if (failed)
        analysis->given_up += last + 1 - first;
    else if (request->segments.first > first)
        analysis->given_up += request->segments.first - first;
    analysis->looked_at = last;
}

static int analyze_further_back(struct interval_analysis *analysis, struct run_request *request,
                                struct run_analysis *out, struct error *err)
{
    struct progress progress = {.quiet = true};
    const struct run_segment_range usual = request->segments;
    const uint64_t before = without_arrival(out);
    const bool lacks_arrivals = before > 0 && usual.last > analysis->vain_until;
    if (!lacks_arrivals && !lacks_ordinary(out))
        return 0;
    request->segments.first =
        oldest_segment(request, usual.first, lacks_arrivals ? BACK_BYTES : EARLIER_BYTES);
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

int interval_analyze(struct interval_analysis *analysis, unsigned last, struct run_request *request,
                     struct run_analysis *out, struct error *err)
{
    struct progress progress = {.quiet = true};
    choose_segments(analysis, last, request);
    int result = run_analyze(request, &progress, out, err);
    if (result < 0 && err->kind != ERROR_INCONCLUSIVE) { // some may have made room meanwhile
        choose_segments(analysis, last, request);
        result = run_analyze(request, &progress, out, err);
    }
    if (result == 0)
        result = analyze_further_back(analysis, request, out, err);
    note_given_up(analysis, request, result < 0 && err->kind != ERROR_INCONCLUSIVE);
    return result;
}
