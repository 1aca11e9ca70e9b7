// SPDX-License-Identifier: MIT
#include "analysis/run/run_verdict_causes.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "analysis/diagnosis/remedies.h"
#include "analysis/run/run_culprits.h"
#include "analysis/run/run_holders.h"
#include "analysis/run/run_judgement.h"
#include "analysis/run/run_lede.h"
#include "base/text.h"
#include "base/units.h"

enum { NAMED_CAUSES = 3 };
#define CULPRIT_SHARE 0.2 // of head-of-line blocking, that one is named for
#define PART_SHARE    0.1 // of a cause, that a part of it is named for

typedef bool cause_side(const struct cause *cause); // whose causes are named

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

// How much of its name is said: where the wait is in several pieces, not what the first of them is.
static size_t words_of(const struct cause *cause, const struct held_time *held)
{
    return held->several ? run_holder_length(cause->name) : strlen(cause->name);
}

// " (behind yes 40 %, sleeping (timer) 12 %)": what the holder did meanwhile.
static void verdict_append_pieces(char *out, const struct diagnosis *diagnosis,
                                  const struct cause *first, double deviation)
{
    unsigned named = 0;
    for (size_t i = 0; i < diagnosis->causes.count && named < NAMED_CAUSES; i++) {
        const struct cause *piece = &diagnosis->causes.items[i];
        if (run_same_holder(first, piece) && piece->total_ns >= WORTH_NAMING * deviation)
            text_append(out, VERDICT_BYTES, "%s%s %d %%", named++ ? ", " : " (",
                        run_held_piece(piece), text_whole_percent(piece->total_ns, deviation));
    }
    text_append(out, VERDICT_BYTES, "%s", named ? ")" : "");
}

// A part that is much of its cause has a name and a remedy of its own.
static bool is_worth_saying(const struct cause *cause, const struct cause_part *part)
{
    return part->total_ns >= PART_SHARE * cause->total_ns;
}

static void verdict_append_cause(char *out, const struct diagnosis *diagnosis,
                                 const struct held_time *held, double deviation, bool first,
                                 bool calm)
{
    char each[32];
    const struct cause *cause = &diagnosis->causes.items[held->first];
    const double ns = held->several ? held->total_ns : cause->total_ns;
    text_append(out, VERDICT_BYTES, "%s%.*s (%s) ", first ? "" : ", ", (int)words_of(cause, held),
                cause->name, role_name(cause->role));
    if (calm) {
        units_format_ns(ns / (double)diagnosis->messages.count, each, sizeof each);
        text_append(out, VERDICT_BYTES, "adds %s", each);
        return;
    }
    text_append(out, VERDICT_BYTES, "%s%d %%",
                !first            ? ""
                : cause->explains ? "explains "
                                  : "(located, not explained) ",
                text_whole_percent(ns, deviation));
    if (held->several) {
        verdict_append_pieces(out, diagnosis, cause, deviation);
        return;
    }
    if (cause->part_count && is_worth_saying(cause, &cause->parts[0]))
        text_append(out, VERDICT_BYTES, " (of it %s)", cause->parts_words);
    if (cause->shape[0])
        text_append(out, VERDICT_BYTES, ", %s", cause->shape);
}

static bool either_side(const struct cause *cause)
{
    return !cause->apart;
}

static bool one_to_mend(const struct cause *cause)
{
    return !cause->apart && cause->explains;
}

static bool client_side(const struct cause *cause)
{
    return !cause->apart && run_cause_is_client(cause);
}

static bool server_side(const struct cause *cause)
{
    return !cause->apart && !run_cause_is_client(cause);
}

// Names the largest causes of either side, the client's or those that are not.
static void verdict_append_side(char *out, const struct diagnosis *diagnosis, cause_side *side,
                                const char *before, bool calm)
{
    struct held_time largest[NAMED_CAUSES];
    double deviation = run_diagnosis_extra_ns(diagnosis);
    size_t count = run_held_times(diagnosis, side, largest, NAMED_CAUSES);
    for (size_t i = 0; i < count; i++) {
        if ((i > 0 || before[0]) && largest[i].total_ns < WORTH_NAMING * deviation)
            break;
        text_append(out, VERDICT_BYTES, "%s", i ? "" : before);
        verdict_append_cause(out, diagnosis, &largest[i], deviation, i == 0, calm);
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

void verdict_append_causes(char *out, const struct diagnosis *diagnosis)
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
    verdict_append_side(out, diagnosis, client ? client_side : either_side, "", calm);
    if (client)
        verdict_append_side(out, diagnosis, server_side,
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
static void verdict_append_remedy(char *out, const struct run_analysis *run,
                                  const struct diagnosis *diagnosis)
{
    struct held_time first;
    if (run_held_times(diagnosis, one_to_mend, &first, 1) == 0)
        return;
    const struct cause *cause = &diagnosis->causes.items[first.first];
    const char *helps = run_what_helps(run, cause);
    if (run_cause_stands_out(diagnosis, cause) && helps[0] && !strstr(out, helps))
        text_append(out, VERDICT_BYTES, "Against %.*s: %s. ", (int)words_of(cause, &first),
                    cause->name, helps);
    for (unsigned i = 0; i < cause->part_count; i++) {
        const struct cause_part *part = &cause->parts[i];
        const struct remedy *remedy = remedy_of(part->category);
        if (run_cause_stands_out(diagnosis, cause) && is_worth_saying(cause, part) && remedy &&
            strcmp(part->category, cause->category) != 0 && !strstr(out, remedy->helps))
            text_append(out, VERDICT_BYTES, "Against its %s: %s. ", part->name, remedy->helps);
    }
}

void verdict_append_diagnosis(char *out, const struct run_analysis *run,
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
    verdict_append_remedy(out, run, diagnosis);
    verdict_append_culprit(out, run, diagnosis);
    verdict_append_sleeper(out, run, diagnosis);
}

// ": what helps", unless that was said before.
static void append_advice(char *out, const char *remedy)
{
    if (remedy && !strstr(out, remedy))
        text_append(out, VERDICT_BYTES, ": %s", remedy);
    text_append(out, VERDICT_BYTES, ". ");
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
    if (!most)
        return;
    text_append(out, VERDICT_BYTES, "Once it is sent, it takes %s, of which %s are %s (%s)",
                units_format_ns(sum, all, sizeof all),
                units_format_ns(most->mean_ns, time, sizeof time), most->name,
                role_name(most->role));
    append_advice(out, most->mean_ns > sum / 2 ? most->remedy : NULL);
}

void verdict_append_ordinary(char *out, const struct diagnosis *diagnosis)
{
    char latency[32], time[32];
    const struct ordinary_part *first = NULL;
    double sum = 0, whole = 0;
    for (size_t i = 0; i < diagnosis->ordinary.count; i++) {
        const struct ordinary_part *part = &diagnosis->ordinary.items[i];
        whole += part->mean_ns;
        if (!first && part->concerns)
            first = part;
        if (first && part->concerns && strcmp(part->category, first->category) == 0)
            sum += part->mean_ns;
    }
    if (!first)
        return;
    bool several = sum > 1.1 * first->mean_ns;
    // The parts are means over the messages around the median, which may be more than that one has.
    const bool by_median = sum <= diagnosis->reference_latency_ns;
    text_append(out, VERDICT_BYTES, "Slow for everyone: of the %s of an ordinary request%s, %s",
                units_format_ns(by_median ? diagnosis->reference_latency_ns : whole, latency,
                                sizeof latency),
                by_median ? "" : " in the mean", units_format_ns(sum, time, sizeof time));
    if (several)
        text_append(out, VERDICT_BYTES, " are %s, most of it", first->category);
    text_append(out, VERDICT_BYTES, " %s%s (%s)", several ? "" : "are ", first->name,
                role_name(first->role));
    if (!several && first->fast_ns > 0)
        text_append(out, VERDICT_BYTES, ", at its fast end %s",
                    units_format_ns(first->fast_ns, time, sizeof time));
    append_advice(out, first->remedy);
    if (run_awaits_replies(first->category))
        verdict_append_once_sent(out, diagnosis);
}
