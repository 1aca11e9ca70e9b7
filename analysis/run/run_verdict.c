// SPDX-License-Identifier: MIT
#include "analysis/run/run_verdict.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analysis/run/run_culprits.h"
#include "analysis/run/run_groups.h"
#include "analysis/run/run_verdict_causes.h"
#include "analysis/run/run_verdict_evidence.h"
#include "base/json_numbers.h"
#include "base/text.h"
#include "base/units.h"

static void verdict_append_shared(char *out, const struct run_analysis *run)
{
    enum { NAMED_TRAITS = 2 };
    char words[100], share[32], median[32], other[32];
    const struct shared_trait_array *shared = &run->findings.shared;
    for (size_t i = 0; i < shared->count && i < NAMED_TRAITS; i++) {
        const struct shared_trait *trait = &shared->items[i];
        const char *operation = run_operation_name(run, 0, trait->value);
        text_append(out, VERDICT_BYTES, "%s%s (%d %% of them, %s of all; median %s against %s)",
                    i ? ", " : "The slow ones share: ",
                    shared_trait_words(trait, operation, words, sizeof words),
                    text_whole_percent(trait->slow_share, 1), text_share(trait->share, 1, share),
                    units_format_ns(trait->median_ns, median, sizeof median),
                    units_format_ns(trait->other_median_ns, other, sizeof other));
    }
    if (shared->count)
        text_append(out, VERDICT_BYTES, ". ");
}

// What the busiest threads of the servers did, where nothing else is known.
static void verdict_append_budget(char *out, const struct time_budget *budget)
{
    enum { NAMED_PARTS = 3 };
    struct budget_part parts[NAMED_PARTS];
    if (budget->names.count == 0)
        return;
    const struct thread_budget *busiest = &budget->names.items[0];
    size_t count = thread_budget_parts(busiest, WORTH_NAMING, parts, NAMED_PARTS);
    for (size_t i = 0; i < count; i++)
        text_append(out, VERDICT_BYTES, "%s%s %d %%",
                    i ? ", " : "The time of the server's threads: ", parts[i].name,
                    text_whole_percent((double)parts[i].ns, (double)busiest->whole_ns));
    if (count)
        text_append(out, VERDICT_BYTES, " (%s). ", busiest->name);
}

static void verdict_append_window(char *out, const struct run_analysis *run,
                                  const struct diagnosis *diagnosis)
{
    char words[96];
    const struct diagnosis_slice *slice = &diagnosis->slice,
                                 *first = &run->findings.diagnoses.items->slice;
    if (slice->from_ns != slice->to_ns && slice->low == first->low && slice->high == first->high &&
        slice->min_latency_ns == first->min_latency_ns && !slice->one)
        text_append(out, VERDICT_BYTES, "From %s to %s: ",
                    TEXT_INSTANT((double)(slice->from_ns - run->lifetimes.begin_ns)),
                    TEXT_INSTANT((double)(slice->to_ns - run->lifetimes.begin_ns)));
    else // another slice, not only another window
        text_append(out, VERDICT_BYTES,
                    "Of %s: ", diagnosis_slice_words(slice, words, sizeof words));
    if (diagnosis->not_available)
        text_append(out, VERDICT_BYTES, "N/A (%s)", diagnosis->reason);
    else
        verdict_append_causes(out, diagnosis);
    text_append(out, VERDICT_BYTES, ". ");
}

// Why the server's machine threw segments of its connections away, in the kernel's words.
static void verdict_append_drops(char *out, const json_t *dropped)
{
    const char *reason, *before = " Its machine threw segments away: ";
    const json_t *times;
    char count[32];
    json_object_foreach((json_t *)(uintptr_t)dropped, reason, times)
    {
        text_append(out, VERDICT_BYTES, "%s%s (%s)", before,
                    text_count((uint64_t)json_integer_value(times), count), reason);
        before = ", ";
    }
    if (before[0] == ',')
        text_append(out, VERDICT_BYTES, ".");
}

// What TCP had to do again or hold back, and what the server's kernel counted of it.
static void verdict_append_network(char *out, const struct run_analysis *run)
{
    static const struct {
        const char *name, *one, *means;
    } rows[] = {
#define NETWORK_COUNTER(name, GROUP, one, means) {#name, one, means},
#include "profiler/host/network_counters.tbl.h"
    };
    char count[32], other[32];
    const struct join_counts *join = &run->lifetimes.join;
    const json_t *moved = json_object_get(run->evidence.capture, "network");
    const char *before = " The server's network counted: ";
    if (join->resent_to_server)
        text_append(out, VERDICT_BYTES, " %s request%s", text_count(join->resent_to_server, count),
                    text_plural((double)join->resent_to_server));
    if (join->resent_to_client)
        text_append(out, VERDICT_BYTES, "%s %s repl%s", join->resent_to_server ? " and" : "",
                    text_count(join->resent_to_client, other),
                    join->resent_to_client == 1 ? "y" : "ies");
    if (join->resent_to_server || join->resent_to_client)
        text_append(out, VERDICT_BYTES, " waited for bytes that were lost and sent again.");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_int_t times = json_integer_value(json_object_get(moved, rows[i].name));
        if (times <= 0)
            continue;
        text_append(out, VERDICT_BYTES, "%s%s %s", before, text_count((uint64_t)times, count),
                    times == 1 ? rows[i].one : rows[i].means);
        before = "; ";
    }
    if (before[0] == ';')
        text_append(out, VERDICT_BYTES, ".");
    const json_t *events = json_object_get(run->evidence.capture, "events");
    verdict_append_drops(out, json_object_get(events, "segments_dropped"));
}

// With a fan-out what stands above is of requests, and whoever asked waited for several.
static void verdict_append_fanout(char *out, const json_t *load)
{
    const json_t *fanout = json_object_get(load, "fanout"),
                 *latency = json_object_get(load, "latency_us");
    const json_int_t requests = json_integer_value(json_object_get(fanout, "requests"));
    static const char *const names[] = {"p50", "p99"};
    const char *before = "; of these the load says";
    char count[32];
    if (requests <= 1)
        return;
    text_append(
        out, VERDICT_BYTES,
        " All of this is of single requests: %s of them, due together, make a logical request, "
        "which lasts as long as the slowest (they may wait for one another): %s logical requests",
        TEXT_COUNT(requests),
        text_count((uint64_t)json_integer_value(json_object_get(fanout, "scheduled")), count));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const double us = json_percentile(latency, names[i]);
        if (isnan(us)) // too few for it
            continue;
        text_append(out, VERDICT_BYTES, "%s %s %s", before, names[i], TEXT_US(us));
        before = ",";
    }
    text_append(out, VERDICT_BYTES, ".");
}

// Which load all of this is about, and which were beside it.
static void verdict_append_loads(char *out, const struct run_analysis *run)
{
    const struct run_load_array *others = &run->evidence.other_loads;
    const char *name = run_load_name(run);
    if (!name)
        return;
    text_append(out, VERDICT_BYTES, " All of this is of the load `%s`; beside it:", name);
    for (size_t i = 0; i < others->count; i++) {
        const struct run_load *one = &others->items[i];
        const json_t *rate = json_object_get(one->summary, "achieved_rate");
        char number[TEXT_NUMBER_BYTES];
        text_append(out, VERDICT_BYTES, "%s `%s`", i ? "," : "", one->name);
        if (json_is_number(rate))
            text_append(out, VERDICT_BYTES, " (%s/s)", text_rate(json_number_value(rate), number));
        else
            text_append(out, VERDICT_BYTES,
                        " (%s/load.json is missing, cannot be read, or says nothing of it)",
                        one->folder);
        if (one->missing)
            text_append(out, VERDICT_BYTES,
                        " (%s/%s is missing, so that its requests are told as another client's: "
                        "copy it from where it was)",
                        one->folder, one->missing);
    }
    text_append(out, VERDICT_BYTES, ".");
}

#define DOUBT_FORMAT "Inconclusive: %.400s. "

const char *run_verdict_details(const struct run_analysis *run)
{
    const char *verdict = run->findings.verdict, *doubt = run_load_doubt(run);
    size_t begin = doubt ? (size_t)snprintf(NULL, 0, DOUBT_FORMAT, doubt) : 0;
    return verdict + (begin <= strlen(verdict) ? begin : 0);
}

void run_verdict(struct run_analysis *run)
{
    char *out = run->findings.verdict;
    const struct diagnosis *first =
        run->findings.diagnoses.count ? run->findings.diagnoses.items : NULL;
    const char *doubt = run_load_doubt(run);
    out[0] = '\0';
    if (doubt)
        text_append(out, VERDICT_BYTES, DOUBT_FORMAT, doubt);
    run->findings.verdict_available = first && !first->not_available;
    if (run->findings.verdict_available) {
        verdict_append_diagnosis(out, run, first);
        verdict_append_ordinary(out, first);
    } else {
        text_append(out, VERDICT_BYTES, "N/A: %s. ",
                    first ? first->reason : "nothing was diagnosed");
        if (first)
            verdict_append_ordinary(out, first);
        verdict_append_budget(out, &run->findings.budget);
    }
    verdict_append_shared(out, run);
    for (size_t i = 1; i < run->findings.diagnoses.count; i++)
        verdict_append_window(out, run, &run->findings.diagnoses.items[i]);
    verdict_append_evidence(out, run);
    verdict_append_loads(out, run);
    verdict_append_fanout(out, run->evidence.load);
    verdict_append_network(out, run);
    verdict_append_groups(out, run);
}
