// SPDX-License-Identifier: MIT
#include "analysis/run/run_verdict.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "analysis/diagnosis/remedies.h"
#include "analysis/run/run_culprits.h"
#include "analysis/run/run_judgement.h"
#include "analysis/run/run_limits.h"
#include "base/text.h"
#include "base/units.h"

enum { NAMED_CAUSES = 3 };
#define WORTH_NAMING  0.02 // share of the deviation; the first cause is named in any case
#define CULPRIT_SHARE 0.2  // of head-of-line blocking, that one is named for

enum side { EITHER_SIDE, CLIENT_SIDE, SERVER_SIDE };

static void verdict_append_slice(char *out, const struct diagnosis *diagnosis)
{
    char bound[32], messages[96];
    const struct diagnosis_slice *slice = &diagnosis->slice;
    diagnosis_messages_words(diagnosis, messages, sizeof messages);
    if (slice->one)
        text_append(out, VERDICT_BYTES, "Request %llu (%s)", (unsigned long long)slice->request,
                    units_format_ns(diagnosis->slice_low_ns, bound, sizeof bound));
    else if (slice->min_latency_ns > 0)
        text_append(out, VERDICT_BYTES, "The requests slower than %s (%s)",
                    units_format_ns(slice->min_latency_ns, bound, sizeof bound), messages);
    else if (slice->high >= 1)
        text_append(out, VERDICT_BYTES, "The slowest %.4g %% of requests (>= %s, %s)",
                    100 * (1 - slice->low),
                    units_format_ns(diagnosis->slice_low_ns, bound, sizeof bound), messages);
    else
        text_append(out, VERDICT_BYTES, "The requests between p%.4g and p%.4g (%s)",
                    100 * slice->low, 100 * slice->high, messages);
}

static double median_deviation(const struct diagnosis *diagnosis)
{
    // Messages are ordered by latency, which is nearly the order of deviation: close enough here.
    return diagnosis->messages.items[diagnosis->messages.count / 2].deviation_ns;
}

static void verdict_append_cause(char *out, const struct diagnosis *diagnosis,
                                 const struct cause *cause, double deviation, bool first, bool calm)
{
    char each[32];
    text_append(out, VERDICT_BYTES, "%s%s (%s) ", first ? "" : ", ", cause->name,
                role_name(cause->role));
    if (calm) {
        units_format_ns(cause->total_ns / (double)diagnosis->messages.count, each, sizeof each);
        text_append(out, VERDICT_BYTES, "adds %s", each);
        return;
    }
    text_append(out, VERDICT_BYTES, "%s%d %%",
                !first            ? ""
                : cause->explains ? "explains "
                                  : "(located, not explained) ",
                text_whole_percent(cause->total_ns, deviation));
    if (cause->shape[0])
        text_append(out, VERDICT_BYTES, ", %s", cause->shape);
}

// Names the largest causes of either side, the client's or those that are not.
static void verdict_append_side(char *out, const struct diagnosis *diagnosis, enum side side,
                                const char *before, bool calm)
{
    double deviation = run_diagnosis_extra_ns(diagnosis);
    unsigned named = 0;
    for (size_t i = 0; i < diagnosis->causes.count && named < NAMED_CAUSES; i++) {
        const struct cause *cause = &diagnosis->causes.items[i];
        if (cause->apart ||
            (side != EITHER_SIDE && run_cause_is_client(cause) != (side == CLIENT_SIDE)) ||
            ((named > 0 || before[0]) && cause->total_ns < WORTH_NAMING * deviation))
            continue;
        text_append(out, VERDICT_BYTES, "%s", named ? "" : before);
        verdict_append_cause(out, diagnosis, cause, deviation, named++ == 0, calm);
    }
}

// Where one program is not the culprit: that the machine was busy with others.
static void verdict_append_crowd(char *out, const struct diagnosis *diagnosis, double deviation)
{
    double crowd_ns = run_crowd_ns(diagnosis);
    if (crowd_ns > 0)
        text_append(
            out, VERDICT_BYTES,
            "; in all, other programs had the server's cores for %d %%: the machine was busy",
            text_whole_percent(crowd_ns, deviation));
}

// What the tool or a virtual machine's host did is no cause of the server's.
static void verdict_append_apart(char *out, const struct diagnosis *diagnosis, double deviation)
{
    const char *before = "; apart from that, ";
    for (size_t i = 0; i < diagnosis->causes.count; i++) {
        const struct cause *cause = &diagnosis->causes.items[i];
        if (!cause->apart || cause->total_ns < WORTH_NAMING * deviation)
            continue;
        text_append(out, VERDICT_BYTES, "%s%s (%s) %d %%", before, cause->name,
                    role_name(cause->role), text_whole_percent(cause->total_ns, deviation));
        before = ", ";
    }
}

static void verdict_append_causes(char *out, const struct diagnosis *diagnosis)
{
    double deviation = run_diagnosis_extra_ns(diagnosis);
    bool calm = run_is_calm(diagnosis);
    if (diagnosis->causes.count == 0 || deviation <= 0) {
        text_append(out, VERDICT_BYTES, "Nothing explains it");
        return;
    }
    if (calm)
        text_append(out, VERDICT_BYTES, "Nothing stands out: on average ");
    bool client = !calm && run_clients_fault(diagnosis);
    verdict_append_side(out, diagnosis, client ? CLIENT_SIDE : EITHER_SIDE, "", calm);
    if (client)
        verdict_append_side(out, diagnosis, SERVER_SIDE,
                            "; second, what is not the client's: ", calm);
    verdict_append_crowd(out, diagnosis, deviation);
    verdict_append_apart(out, diagnosis, deviation);
}

// Whose requests the others were behind, where that is why they were slow: the one that held them
// up longest, unless none did by itself.
static void verdict_append_culprit(char *out, const struct run_analysis *run,
                                   const struct diagnosis *diagnosis)
{
    const struct diagnosis_views *views = &diagnosis->views;
    char words[240], time[32], other[32], count[32];
    double blocking_ns = run_blocking_ns(diagnosis), deviation = run_diagnosis_extra_ns(diagnosis);
    const struct culprit *first = views->culprits.count ? views->culprits.items : NULL;
    if (!views->available || deviation <= 0 || blocking_ns < STANDS_OUT_SHARE * deviation)
        return;
    if (first && first->total_ns >= CULPRIT_SHARE * blocking_ns)
        text_append(out, VERDICT_BYTES, "%s held up %s of these requests, for %s in all. ",
                    run_culprit_words(run, first, words, sizeof words),
                    text_count(first->messages, count),
                    units_format_ns(first->total_ns, time, sizeof time));
    if (views->blocked_ns < blocking_ns / 2)
        text_append(out, VERDICT_BYTES,
                    "Of %s of head-of-line blocking only %s is known to be whose. ",
                    units_format_ns(blocking_ns, time, sizeof time),
                    units_format_ns(views->blocked_ns, other, sizeof other));
}

// In whose requests the thread slept that the others waited for, where that made up much of their
// time: causes say what it slept for.
static void verdict_append_sleeper(char *out, const struct run_analysis *run,
                                   const struct diagnosis *diagnosis)
{
    const struct diagnosis_views *views = &diagnosis->views;
    char name[240], time[32], count[32];
    const struct culprit *most = NULL;
    for (size_t i = 0; i < views->culprits.count; i++)
        if (!most || views->culprits.items[i].slept_ns > most->slept_ns)
            most = &views->culprits.items[i];
    if (!views->available || !most ||
        most->slept_ns < STANDS_OUT_SHARE * run_diagnosis_extra_ns(diagnosis) ||
        most->slept_ns <= 0)
        return;
    text_append(
        out, VERDICT_BYTES,
        "For %s in all the thread slept in %s%s, for which %s of these requests had to wait. ",
        units_format_ns(most->slept_ns, time, sizeof time),
        most->foreign && !most->command ? "requests of " : "",
        run_culprit_name(run, most, name, sizeof name), text_count(most->messages, count));
}

// What helps against the first cause that stands out, unless that is the client's and was said.
static void verdict_append_remedy(char *out, const struct diagnosis *diagnosis)
{
    for (size_t i = 0; i < diagnosis->causes.count; i++) {
        const struct cause *cause = &diagnosis->causes.items[i];
        if (!cause->explains || !run_cause_stands_out(diagnosis, cause))
            continue;
        const struct remedy *remedy = remedy_of(cause->category);
        if (remedy && !strstr(out, remedy->helps))
            text_append(out, VERDICT_BYTES, "Against %s: %s. ", cause->name, remedy->helps);
        return;
    }
}

static void verdict_append_diagnosis(char *out, const struct run_analysis *run,
                                     const struct diagnosis *diagnosis)
{
    char time[32], count[32];
    const struct cause *client = run_is_calm(diagnosis) ? NULL : run_clients_fault(diagnosis);
    const struct remedy *remedy = client ? remedy_of(client->category) : NULL;
    if (client)
        text_append(out, VERDICT_BYTES, "The client was late, not the server%s%s. ",
                    remedy ? ": " : "", remedy ? remedy->helps : "");
    verdict_append_slice(out, diagnosis);
    double median = median_deviation(diagnosis);
    text_append(out, VERDICT_BYTES, " took %s %s than the median. ",
                units_format_ns(fabs(median), time, sizeof time), median < 0 ? "less" : "longer");
    verdict_append_causes(out, diagnosis);
    if (!isnan(diagnosis->coverage_median))
        text_append(out, VERDICT_BYTES, ". Coverage %d %% (median)",
                    text_whole_percent(diagnosis->coverage_median, 1));
    text_append(out, VERDICT_BYTES, ". ");
    if (diagnosis->earlier)
        text_append(
            out, VERDICT_BYTES,
            "What is ordinary is said by %s requests that were answered before these, too. ",
            text_count(diagnosis->earlier, count));
    verdict_append_remedy(out, diagnosis);
    verdict_append_culprit(out, run, diagnosis);
    verdict_append_sleeper(out, run, diagnosis);
}

// A request that waits for a connection waits for the replies to others: what takes these that long
// is what takes the request itself long once it is sent.
static void verdict_append_once_sent(char *out, const struct diagnosis *diagnosis)
{
    char all[32], time[32];
    const struct ordinary_part *most = NULL;
    double sum = 0;
    for (size_t i = 0; i < diagnosis->ordinary.count; i++) {
        const struct ordinary_part *part = &diagnosis->ordinary.items[i];
        if (part->role == ROLE_CLIENT)
            continue;
        sum += part->mean_ns;
        most = !most || part->mean_ns > most->mean_ns ? part : most;
    }
    if (most)
        text_append(out, VERDICT_BYTES, "Once it is sent, it takes %s, of which %s are %s (%s). ",
                    units_format_ns(sum, all, sizeof all),
                    units_format_ns(most->mean_ns, time, sizeof time), most->name,
                    role_name(most->role));
}

// Where the ordinary request is slow itself: what it has most of that should not be there, and what
// helps.
static void verdict_append_ordinary(char *out, const struct diagnosis *diagnosis)
{
    char latency[32], time[32];
    const struct ordinary_part *first = NULL;
    double sum = 0;
    for (size_t i = 0; i < diagnosis->ordinary.count; i++) {
        const struct ordinary_part *part = &diagnosis->ordinary.items[i];
        if (!first && part->concerns)
            first = part;
        if (first && part->concerns && strcmp(part->category, first->category) == 0)
            sum += part->mean_ns;
    }
    if (!first)
        return;
    bool several = sum > 1.1 * first->mean_ns;
    text_append(out, VERDICT_BYTES, "Slow for everyone: of the %s of an ordinary request, %s",
                units_format_ns(diagnosis->reference_latency_ns, latency, sizeof latency),
                units_format_ns(sum, time, sizeof time));
    if (several)
        text_append(out, VERDICT_BYTES, " are %s, most of it", first->category);
    text_append(out, VERDICT_BYTES, " %s%s (%s)", several ? "" : "are ", first->name,
                role_name(first->role));
    if (!several && first->fast_ns > 0)
        text_append(out, VERDICT_BYTES, ", at its fast end %s",
                    units_format_ns(first->fast_ns, time, sizeof time));
    bool news = first->remedy && !strstr(out, first->remedy);
    text_append(out, VERDICT_BYTES, "%s%s. ", news ? ": " : "", news ? first->remedy : "");
    if (run_awaits_replies(first->category))
        verdict_append_once_sent(out, diagnosis);
}

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
                    i ? ", " : "The time of its threads: ", parts[i].name,
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

// What the answered requests that could not be joined lack, and a possible reason.
static void verdict_append_not_joined(char *out, const struct run_analysis *run)
{
    char count[32], of[32];
    const char *before = " (";
    for (int state = 0; state < LIFETIME_STATES; state++) {
        if (state == LIFETIME_WHOLE || state == LIFETIME_UNANSWERED ||
            !run->lifetimes.states[state])
            continue;
        text_append(out, VERDICT_BYTES, "%s%s: %s", before,
                    text_count(run->lifetimes.states[state], count),
                    lifetime_state_name((enum lifetime_state)state));
        before = ", ";
    }
    if (before[0] == ',')
        text_append(out, VERDICT_BYTES, ")");
    if (run_has_server_events(run) && run->lifetimes.join.connections_without_socket)
        text_append(out, VERDICT_BYTES, "; the capture %s %s of %s connections",
                    run->evidence.missing.losses[0] ? "has no record of" : "never saw",
                    text_count(run->lifetimes.join.connections_without_socket, count),
                    text_count(run->lifetimes.join.connections, of));
    if (run->evidence.has_calls && run->lifetimes.join.connections_without_calls)
        text_append(out, VERDICT_BYTES, "; %s never saw %s of %s connections",
                    run->evidence.calls_by_kernel ? "the record of socket calls" : "the shim",
                    text_count(run->lifetimes.join.connections_without_calls, count),
                    text_count(run->lifetimes.join.connections, of));
}

// Which stamps nothing took of requests that were joined, and what is not divided therefore.
static void verdict_append_undivided(char *out, const struct run_analysis *run)
{
    char count[32];
    const struct join_counts *join = &run->lifetimes.join;
    const char *why = run_has_server_events(run)
                          ? "the server's network stack is its own"
                          : "no kernel events were recorded on the server's host";
    if (join->without_arrivals)
        text_append(out, VERDICT_BYTES,
                    "; of %s nothing takes M(n) and M(h) (%s): all between client and M(a) is one "
                    "stage, in which network, stack and waiting cannot be told apart",
                    text_count(join->without_arrivals, count), why);
    if (join->without_handoffs)
        text_append(out, VERDICT_BYTES,
                    "; of %s nothing takes M(h) (%s): the server's thread is "
                    "taken to fetch them itself from M(n) on",
                    text_count(join->without_handoffs, count), why);
    if (join->without_departures)
        text_append(out, VERDICT_BYTES,
                    "; of %s nothing takes server TX, so that the way back begins with the reply",
                    text_count(join->without_departures, count));
}

// What a sparing capture did without.
static void verdict_append_spared(char *out, const struct run_analysis *run)
{
    char count[32];
    const struct join_counts *join = &run->lifetimes.join;
    if (join->spared)
        text_append(out, VERDICT_BYTES,
                    "; of %s no hand-off or departure was recorded, nor softirqs, because there "
                    "were so many: they end with the send call, and a softirq counts as what it "
                    "interrupted",
                    text_count(join->spared, count));
}

// Which cores were not recorded while messages were on them, and for how long it is unknown what
// others did. `first`: nothing else was said to be missing.
static void verdict_append_unseen(char *out, const struct unseen_time *unseen, bool first)
{
    enum { NAMED_CORES = 3 };
    char time[32], count[32];
    const char *but = first ? "; no record was dropped, but " : "; ";
    for (size_t i = 0; i < unseen->cores.count && i < NAMED_CORES; i++) {
        const struct unseen_core *core = &unseen->cores.items[i];
        if (core->unrecorded_ns == 0)
            break;
        text_append(out, VERDICT_BYTES, "%sfor %s core %u, which %s, was not recorded",
                    i ? ", " : but, units_format_ns((double)core->unrecorded_ns, time, sizeof time),
                    (unsigned)core->core, core->received ? "received" : "served");
    }
    if (unseen->unrecorded_ns)
        text_append(out, VERDICT_BYTES, " (%s request%s)", text_count(unseen->unrecorded, count),
                    unseen->unrecorded == 1 ? "" : "s");
    if (unseen->lost_ns)
        text_append(out, VERDICT_BYTES, "%sfor %s nobody knows what their cores did",
                    unseen->unrecorded_ns ? ", and " : but,
                    units_format_ns((double)unseen->lost_ns, time, sizeof time));
}

// What the processor's trace is worth, where there is one.
static void verdict_append_trace(char *out, const struct run_trace *trace)
{
    char words[RUN_TRACE_WORDS], count[32], time[32];
    const char *lack = run_trace_lack(trace, words), *before = " (";
    const struct {
        uint64_t count;
        const char *one, *many;
    } losses[] = {{trace->errors, "decode error", "decode errors"},
                  {trace->overflows, "overflow", "overflows"},
                  {trace->truncated, "cut for want of buffer", "cuts for want of buffer"},
                  {trace->gaps, "piece with gaps", "pieces with gaps"},
                  {trace->perf_errors, "error noted by perf", "errors noted by perf"},
                  {trace->perf_lost, "record lost by perf", "records lost by perf"},
                  {trace->malformed, "malformed record", "malformed records"}};
    if (lack[0]) {
        text_append(out, VERDICT_BYTES, "; functions are N/A: %s", lack);
        return;
    }
    if (!trace->present || trace->slow_ns <= 0)
        return;
    text_append(out, VERDICT_BYTES,
                "; functions are known for %.3g %% of the slow messages' %s on the server's cores",
                floor(1000 * trace->slow_traced_ns / trace->slow_ns) / 10,
                units_format_ns(trace->slow_ns, time, sizeof time));
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i++) {
        if (losses[i].count == 0)
            continue;
        text_append(out, VERDICT_BYTES, "%s%s %s", before, text_count(losses[i].count, count),
                    losses[i].count == 1 ? losses[i].one : losses[i].many);
        before = ", ";
    }
    if (before[0] == ',')
        text_append(out, VERDICT_BYTES, ")");
}

// Over UDP it is known where requests were lost.
static void verdict_append_datagrams(char *out, const struct datagram_losses *lost)
{
    const char *before = " (";
    char count[32];
    for (unsigned i = 0; i < DATAGRAM_LOSSES; i++) {
        if (lost->at[i] == 0)
            continue;
        text_append(out, VERDICT_BYTES, "%s%s %s", before, text_count(lost->at[i], count),
                    datagram_loss_words((enum datagram_loss)i));
        before = "; ";
    }
    if (before[0] == ';')
        text_append(out, VERDICT_BYTES, ")");
}

const char *run_told_apart(const struct run_analysis *run, char *words, size_t bytes)
{
    const json_t *events = json_object_get(run->evidence.capture, "events"),
                 *framing = json_object_get(events, "framing");
    const char *protocol = json_string_value(json_object_get(framing, "protocol"));
    uint64_t framed = run->evidence.turns_framed, turns = run->lifetimes.scheduled - framed;
    char count[32], other[32];
    if (framed == 0)
        snprintf(words, bytes, "by turns%s%s", protocol ? ", none by its framing as " : "",
                 protocol ? protocol : "");
    else if (turns == 0)
        snprintf(words, bytes, "by %s framing", protocol ? protocol : "their");
    else
        snprintf(words, bytes, "by %s framing (%s) and by turns (%s)",
                 protocol ? protocol : "their", text_count(framed, count),
                 text_count(turns, other));
    return words;
}

// What went wrong with the stamps that the client's kernel or NIC takes.
static void verdict_append_client_stamps(char *out, const json_t *load)
{
    static const struct {
        const char *key, *words;
    } rows[] = {{"tx_stamps_missing", "of sends are missing"},
                {"rx_stamps_missing", "of replies are missing"},
                {"tx_stamps_late", "came too late"},
                {"tx_stamps_double", "came twice"},
                {"tx_stamps_unknown", "are of no known send"}};
    const char *before = "; of the client's stamps ";
    char count[32];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_int_t stamps = json_integer_value(json_object_get(load, rows[i].key));
        if (stamps <= 0)
            continue;
        text_append(out, VERDICT_BYTES, "%s%s %s", before, text_count((uint64_t)stamps, count),
                    rows[i].words);
        before = ", ";
    }
}

// How many requests' lives are whole, and what became of the others.
static void verdict_append_requests(char *out, const struct run_analysis *run)
{
    char joined[32], scheduled[32], count[32], words[RUN_TRACE_WORDS];
    if (run->evidence.without_client)
        text_append(out, VERDICT_BYTES,
                    "The clients are not ours: latency is the server's own, from a request's "
                    "arrival to the last byte of its answer; requests are told apart %s. ",
                    run_told_apart(run, words, sizeof words));
    text_append(out, VERDICT_BYTES, "%s of %s requests joined",
                text_count(run->lifetimes.states[LIFETIME_WHOLE], joined),
                text_count(run->lifetimes.scheduled, scheduled));
    if (run->evidence.turns_unanswered)
        text_append(out, VERDICT_BYTES, ", %s more not answered by the end of the capture",
                    text_count(run->evidence.turns_unanswered, count));
    if (run->evidence.turns_unasked)
        text_append(out, VERDICT_BYTES, ", %s send%s that answer%s no request",
                    text_count(run->evidence.turns_unasked, count),
                    text_plural((double)run->evidence.turns_unasked),
                    run->evidence.turns_unasked == 1 ? "s" : "");
    uint64_t unanswered = run->lifetimes.scheduled - run->lifetimes.answered;
    if (unanswered)
        text_append(out, VERDICT_BYTES, ", %s never answered", text_count(unanswered, count));
    verdict_append_datagrams(out, &run->lifetimes.join.datagrams_lost);
    if (run->lifetimes.states[LIFETIME_WHOLE] < run->lifetimes.answered)
        verdict_append_not_joined(out, run);
    verdict_append_undivided(out, run);
    verdict_append_spared(out, run);
}

// Whether M(n) and M(h) come from the processor's trace, which cannot have dropped an event.
static bool is_of_trace(const struct run_trace *trace)
{
    return trace->handoffs || trace->handoffs_unknown;
}

// What the capture says it dropped, what is missing though it says nothing of it, or that nothing
// is; and what time of the server's cores was not seen.
static void verdict_append_dropped(char *out, const struct run_analysis *run)
{
    char count[32], other[32], words[RUN_TRACE_WORDS], limits[RUN_LIMITS_WORDS];
    const struct join_counts *join = &run->lifetimes.join;
    const struct run_trace *trace = &run->evidence.trace;
    uint64_t dropped =
        run->evidence.dropped_events + run->evidence.dropped_calls + run->evidence.dropped_samples;
    uint64_t unseen =
        join->segments_unseen + join->handoffs_unseen + join->transmits_unseen + join->calls_unseen;
    uint64_t recovered = join->segments_recovered + join->handoffs_recovered;
    bool any_unseen = run->lifetimes.unseen.unrecorded_ns || run->lifetimes.unseen.lost_ns;
    bool unknown = run->evidence.missing.losses[0] != '\0';
    run_limits_words(run->evidence.capture, limits);
    if (dropped)
        text_append(out, VERDICT_BYTES, "; %s record%s dropped", text_count(dropped, count),
                    dropped == 1 ? " was" : "s were");
    else if (unseen && !is_of_trace(trace))
        text_append(
            out, VERDICT_BYTES,
            "; no drop was reported, yet %s record%s of requests %s missing (%s stamp%s had "
            "otherwise)",
            text_count(unseen, count), text_plural((double)unseen), unseen == 1 ? "is" : "are",
            text_count(recovered, other), recovered == 1 ? " was" : "s were");
    else if (!unknown && !any_unseen && !limits[0] && !run_trace_lack(trace, words)[0])
        text_append(out, VERDICT_BYTES, "; %s was dropped",
                    run_trace_lost_any(trace) ? "no record" : "nothing");
    if (unknown)
        text_append(out, VERDICT_BYTES, "; what %sthe capture lost is not known: %s",
                    dropped || unseen ? "else " : "", run->evidence.missing.losses);
    if (limits[0])
        text_append(out, VERDICT_BYTES, "; %s", limits);
    uint64_t of_client = run->evidence.dropped_client_events;
    if (of_client)
        text_append(out, VERDICT_BYTES, "; %s record%s of the load's cores %s dropped",
                    text_count(of_client, count), text_plural((double)of_client),
                    text_were((double)of_client));
    verdict_append_unseen(out, &run->lifetimes.unseen,
                          !dropped && !unknown && !limits[0] && (!unseen || is_of_trace(trace)));
}

// Stamps that are not what they could be: of another clock, of another source, out of order.
static void verdict_append_stamps(char *out, const struct run_analysis *run)
{
    char count[32], other[32], worst[32];
    const struct join_counts *join = &run->lifetimes.join;
    const struct run_trace *trace = &run->evidence.trace;
    verdict_append_client_stamps(out, run->evidence.load);
    uint64_t not_by_nic = join->without_nic_stamp + join->wrong_nic_stamps;
    if (not_by_nic)
        text_append(out, VERDICT_BYTES, "; %s M(n) stamp%s the kernel's, not the NIC's",
                    text_count(not_by_nic, count), not_by_nic == 1 ? " is" : "s are");
    if (is_of_trace(trace))
        text_append(
            out, VERDICT_BYTES,
            "; M(n) and M(h) are from the processor's trace, which does not show them for %s of %s "
            "receive calls",
            text_count(trace->handoffs_unknown, count),
            text_count(trace->handoffs + trace->handoffs_unknown, other));
    if (join->disorder.violations)
        text_append(out, VERDICT_BYTES, "; %s stamp%s out of order, by up to %s",
                    text_count(join->disorder.violations, count),
                    text_plural((double)join->disorder.violations),
                    units_format_ns(join->disorder.worst_ns, worst, sizeof worst));
}

static void verdict_append_completeness(char *out, const struct run_analysis *run)
{
    char count[32], other[32], bound[32], lack[RUN_HOPS_WORDS];
    verdict_append_requests(out, run);
    verdict_append_dropped(out, run);
    verdict_append_stamps(out, run);
    if (run->evidence.doubts.sockets)
        text_append(
            out, VERDICT_BYTES,
            "; on %s connections the kernel's events contradict the record of socket calls, "
            "of which %s were left out",
            text_count(run->evidence.doubts.sockets, count),
            text_count(run->evidence.doubts.calls, other));
    verdict_append_trace(out, &run->evidence.trace);
    if (run_hops_lack(&run->lifetimes.hops, lack)[0])
        text_append(out, VERDICT_BYTES, "; %s", lack);
    text_append(out, VERDICT_BYTES, ".");
    if (run->evidence.ends[0])
        text_append(out, VERDICT_BYTES, " %s", run->evidence.ends);
    if (run->lifetimes.join.hosts.both_ways)
        text_append(
            out, VERDICT_BYTES,
            " Client and server are different machines and their clocks are related within %s "
            "only: the network's time is given for both ways together.",
            units_format_ns(run->lifetimes.join.hosts.bound_p99_ns, bound, sizeof bound));
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
#include "profiler/network_counters.tbl.h"
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
    char count[32], time[32];
    if (requests <= 1)
        return;
    text_append(
        out, VERDICT_BYTES,
        " All of this is of single requests: %s of them, due together, make a logical request, "
        "which lasts as long as the slowest (they may wait for one another): %s logical requests",
        TEXT_COUNT(requests),
        text_count((uint64_t)json_integer_value(json_object_get(fanout, "scheduled")), count));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const json_t *us = json_object_get(latency, names[i]);
        if (!us) // too few for it
            continue;
        text_append(out, VERDICT_BYTES, "%s %s %s", before, names[i],
                    json_is_null(us)
                        ? "never"
                        : units_format_ns(json_number_value(us) * 1e3, time, sizeof time));
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
        const json_t *rate = json_object_get(others->items[i].summary, "achieved_rate");
        char number[TEXT_NUMBER_BYTES];
        text_append(out, VERDICT_BYTES, "%s `%s`", i ? "," : "", others->items[i].name);
        if (json_is_number(rate))
            text_append(out, VERDICT_BYTES, " (%s/s)", text_rate(json_number_value(rate), number));
        else
            text_append(out, VERDICT_BYTES,
                        " (%s/load.json is missing, cannot be read, or says nothing of it)",
                        others->items[i].folder);
    }
    text_append(out, VERDICT_BYTES, ".");
}

// Which control groups the kernel throttled on the server's machine, by its own account.
static void verdict_append_quotas(char *out, const struct run_analysis *run)
{
    const json_t *group, *groups = json_object_get(run->evidence.capture, "quotas");
    const char *before = " Its machine held control groups back, their CPU quota used up: ";
    char lasted[32];
    size_t i;
    json_array_foreach((json_t *)(uintptr_t)groups, i, group)
    {
        const char *name = json_string_value(json_object_get(group, "group"));
        double ns = json_number_value(json_object_get(group, "throttled_ms")) * 1e6;
        text_append(out, VERDICT_BYTES, "%s%s for %s", before, name ? name : "?",
                    units_format_ns(ns, lasted, sizeof lasted));
        before = ", ";
    }
    if (before[0] == ',')
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
        verdict_append_budget(out, &run->findings.budget);
    }
    verdict_append_shared(out, run);
    for (size_t i = 1; i < run->findings.diagnoses.count; i++)
        verdict_append_window(out, run, &run->findings.diagnoses.items[i]);
    verdict_append_completeness(out, run);
    verdict_append_loads(out, run);
    verdict_append_fanout(out, run->evidence.load);
    verdict_append_network(out, run);
    verdict_append_quotas(out, run);
}
