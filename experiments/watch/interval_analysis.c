// SPDX-License-Identifier: MIT
#include "experiments/watch/interval_analysis.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "analysis/lifetime/turns.h"
#include "base/text.h"
#include "experiments/common/run_folder.h"

enum {
    BACK_SEGMENTS = 120,   // at most
    BACK_BYTES = 64 << 20, // of their events: some seconds of analysis, and 200 MB of memory
    VAIN_SEGMENTS = 20, // for so long it is not tried again: records are missing, not further back
    // Of messages before the interval, where none of its requests took half as long.
    LEAD_NS = 200000000,
    // For what an ordinary request is: of a window at the interval's beginning, too.
    FEW_EARLIER = 2 * DIAGNOSIS_MIN_CANDIDATES,
    EARLIER_BYTES = 16 << 20,
};

uint64_t interval_segment_bytes(const char *capture_dir, unsigned segment)
{
    char path[RUN_PATH_BYTES + 64];
    struct stat status;
    snprintf(path, sizeof path, "%s/events-%06u.tlog", capture_dir, segment);
    return stat(path, &status) < 0 ? 0 : (uint64_t)status.st_size;
}

// From which segment before that one on they are there, and have no more bytes with these.
static unsigned oldest_segment(const struct run_request *request, unsigned before,
                               uint64_t most_bytes)
{
    unsigned oldest = before;
    uint64_t bytes = 0;
    while (oldest > 1 && before - oldest < BACK_SEGMENTS) {
        const uint64_t more = interval_segment_bytes(request->run_dir, oldest - 1);
        bytes += more;
        if (!more || bytes > most_bytes)
            break;
        oldest--;
    }
    return oldest;
}

// --- what each server lacks ----------------------------------------------------------------------
// One that is asked much must not speak for another that is asked little, nor one whose records are
// missing for one that stood still.

struct server_part {
    uint32_t place;           // application_place(): they have other numbers in each analysis
    size_t answered, earlier; // in the interval; before it, as far as it was looked back
    size_t without_arrival;   // of those in the interval
};
struct server_parts ARRAY_OF(struct server_part);

// -1: no memory. The caller frees.
static int divide(const struct run_analysis *run, struct server_parts *out)
{
    const struct run_lifetimes *lives = &run->lifetimes;
    const size_t applications = lives->applications.items.count;
    for (size_t i = 0; i < applications || i == 0; i++) {
        uint32_t place =
            i < applications ? application_place(&lives->applications.items.items[i]) : 0;
        if (array_push(out, (struct server_part){.place = place}) < 0)
            return -1;
    }
    for (size_t i = 0; i < lives->all.count + lives->beside; i++) {
        const struct lifetime *life = &lives->all.items[i];
        struct server_part *part =
            &out->items[life->application < out->count ? life->application : 0];
        part->answered += i < lives->all.count;
        part->earlier += i >= lives->all.count && life->earlier;
        part->without_arrival += i < lives->all.count && life->state == LIFETIME_NO_NIC;
    }
    return 0;
}

// So few requests that nobody knows from these segments what is ordinary.
static bool any_lacks_ordinary(const struct server_parts *parts)
{
    for (size_t i = 0; i < parts->count; i++) {
        const struct server_part *part = &parts->items[i];
        if (part->answered && part->answered < TURNS_ENOUGH && part->earlier < FEW_EARLIER)
            return true;
    }
    return false;
}

static struct vain_server *vain_server(const struct interval_analysis *analysis, uint32_t place)
{
    for (size_t i = 0; i < analysis->vain.count; i++)
        if (analysis->vain.items[i].place == place)
            return &analysis->vain.items[i];
    return NULL;
}

static bool lacks_arrivals(const struct interval_analysis *analysis, const struct server_part *part,
                           unsigned segment)
{
    const struct vain_server *vain = vain_server(analysis, part->place);
    return part->without_arrival && (!vain || segment > vain->until);
}

static bool any_lacks_arrivals(const struct interval_analysis *analysis,
                               const struct server_parts *parts, unsigned segment)
{
    for (size_t i = 0; i < parts->count; i++)
        if (lacks_arrivals(analysis, &parts->items[i], segment))
            return true;
    return false;
}

// Of whom as many arrivals are missing as before, it is left off for a while. Where there is no
// memory to note that, it is looked back again the next time.
static void note_in_vain(struct interval_analysis *analysis, const struct server_parts *before,
                         const struct server_parts *after, unsigned segment)
{
    for (size_t i = 0; i < before->count; i++) {
        const struct server_part *part = &before->items[i];
        const unsigned until = segment + VAIN_SEGMENTS;
        struct vain_server *known = vain_server(analysis, part->place);
        size_t left = 0;
        for (size_t k = 0; k < after->count; k++)
            left += after->items[k].place == part->place ? after->items[k].without_arrival : 0;
        if (!lacks_arrivals(analysis, part, segment) || left < part->without_arrival)
            continue;
        if (known)
            known->until = until;
        else
            (void)array_push(&analysis->vain, (struct vain_server){part->place, until});
    }
}

// Whether what came more than LEAD_NS before the interval changes nothing that is said of it: each
// server that was asked has enough requests of its own, and all that was answered came since.
static bool lead_suffices(const struct run_analysis *run)
{
    const struct run_lifetimes *lives = &run->lifetimes;
    struct server_parts parts = {0};
    bool suffices = divide(run, &parts) == 0;
    for (size_t i = 0; i < parts.count && suffices; i++)
        suffices = !parts.items[i].without_arrival &&
                   (!parts.items[i].answered || parts.items[i].answered >= TURNS_ENOUGH);
    for (size_t i = 0; i < lives->all.count + lives->beside && suffices; i++)
        suffices = lives->all.items[i].latency_ns < LEAD_NS / 2;
    array_free(&parts);
    return suffices;
}

// --- an interval ---------------------------------------------------------------------------------

// Those since the last time and the one before, as far as they are there; of one that stands alone
// none but it.
static void choose_segments(struct interval_analysis *analysis, unsigned last, bool alone,
                            struct run_request *request)
{
    if (alone) {
        request->segments = (struct run_segment_range){.first = last, .last = last};
        return;
    }
    const unsigned wanted = analysis->looked_at ? analysis->looked_at : 1;
    unsigned oldest = oldest_segment(request, last + 1, run_segments_affordable());
    oldest = oldest > last ? last : oldest;
    request->segments =
        (struct run_segment_range){.first = oldest > wanted ? oldest : wanted, .last = last};
    if (analysis->messages_few) {
        request->segments.messages_from = wanted + 1;
        request->segments.messages_lead_ns = LEAD_NS;
    }
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

// What is looked at can be saved afterwards, also where the capture has made room meanwhile.
static int look_at(struct interval_analysis *analysis, const struct run_request *request,
                   struct run_analysis *out, struct error *err)
{
    struct progress progress = {.quiet = true};
    held_segments_take(&analysis->held, request->run_dir, request->segments);
    return run_analyze(request, &progress, out, err);
}

static int analyze_further_back(struct interval_analysis *analysis, struct run_request *request,
                                struct run_analysis *out, struct error *err)
{
    const struct run_segment_range usual = request->segments;
    struct server_parts before = {0}, after = {0};
    int result = 0;
    if (divide(out, &before) < 0)
        goto done; // what is known is shown
    const bool lacks = any_lacks_arrivals(analysis, &before, usual.last);
    if (!lacks && !any_lacks_ordinary(&before))
        goto done;
    request->segments.first =
        oldest_segment(request, usual.first, lacks ? BACK_BYTES : EARLIER_BYTES);
    if (request->segments.first == usual.first)
        goto done;
    run_analysis_free(out);
    result = look_at(analysis, request, out, err);
    if (result < 0) {
        request->segments = usual; // the oldest may have made room meanwhile
        result = look_at(analysis, request, out, err);
    } else if (lacks && divide(out, &after) == 0) {
        note_in_vain(analysis, &before, &after, usual.last);
    }
done:
    array_free(&before);
    array_free(&after);
    return result;
}

// --- an excerpt ----------------------------------------------------------------------------------

static int take_latencies(const struct answer_array *answers, struct run_analysis *out,
                          struct error *err)
{
    double *values = malloc((answers->count + 1) * sizeof *values);
    if (!values)
        return error_set(err, ERROR_FAILED, "no memory for %s latencies",
                         TEXT_COUNT(answers->count));
    for (size_t i = 0; i < answers->count; i++)
        values[i] = (double)(answers->items[i].answered_ns - answers->items[i].arrived_ns);
    int result = latency_summarise(values, answers->count, &out->lifetimes.latency, err);
    free(values);
    return result;
}

// False: the whole interval is to be looked at.
static bool analyze_excerpt(struct interval_analysis *analysis, unsigned last, bool alone,
                            struct run_request *request, struct run_analysis *out)
{
    struct run_request narrowed = *request;
    struct error ignored;
    if (analysis->several)
        return false;
    choose_segments(analysis, last, alone, &narrowed);
    narrowed.segments.messages_from = 0;
    if (!excerpt_take(&analysis->excerpt, alone ? last : analysis->looked_at + 1, &narrowed) ||
        look_at(analysis, &narrowed, out, &ignored) < 0)
        goto whole;
    if (out->lifetimes.applications.items.count == 1 &&
        take_latencies(&analysis->excerpt.answers, out, &ignored) == 0) {
        *request = narrowed;
        return true;
    }
    run_analysis_free(out);
whole:
    analysis->excerpt.answers.count = 0;
    return false;
}

static int analyze_whole(struct interval_analysis *analysis, unsigned last, bool alone,
                         struct run_request *request, struct run_analysis *out, struct error *err)
{
    choose_segments(analysis, last, alone, request);
    int result = look_at(analysis, request, out, err);
    if (result < 0 && err->kind != ERROR_INCONCLUSIVE) { // some may have made room meanwhile
        choose_segments(analysis, last, alone, request);
        result = look_at(analysis, request, out, err);
    }
    if (result == 0 && !alone && analysis->messages_few && !lead_suffices(out)) {
        run_analysis_free(out);
        analysis->messages_few = false;
        choose_segments(analysis, last, alone, request);
        result = look_at(analysis, request, out, err);
    }
    if (result == 0)
        analysis->messages_few = lead_suffices(out);
    if (result == 0 && !alone)
        result = analyze_further_back(analysis, request, out, err);
    if (result == 0) // else nothing was asked, or it is not known
        analysis->several = out->lifetimes.applications.items.count > 1;
    return result;
}

int interval_analyze(struct interval_analysis *analysis, unsigned last, bool alone,
                     struct run_request *request, struct run_analysis *out, struct error *err)
{
    const int result = analyze_excerpt(analysis, last, alone, request, out)
                           ? 0
                           : analyze_whole(analysis, last, alone, request, out, err);
    note_given_up(analysis, request, result < 0 && err->kind != ERROR_INCONCLUSIVE);
    return result;
}

void interval_analysis_free(struct interval_analysis *analysis)
{
    array_free(&analysis->vain);
    excerpt_free(&analysis->excerpt);
}
