// SPDX-License-Identifier: MIT
#include "analysis/run/run_verdict.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"

enum { NAMED_CAUSES = 3 };
#define WORTH_NAMING 0.02 // of the deviation; a first cause is named whatever its share

struct sentence {
    char *text;
    size_t bytes, length;
};

static void say(struct sentence *out, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void say(struct sentence *out, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int written = vsnprintf(out->text + out->length, out->bytes - out->length, format, args);
    va_end(args);
    if (written > 0)
        out->length += (size_t)written;
    if (out->length >= out->bytes) // the text ends where the room does
        out->length = out->bytes - 1;
}

// "199,998"
static const char *grouped(uint64_t count, char out[32])
{
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%llu", (unsigned long long)count);
    char *at = out;
    for (int i = 0; i < length; i++) {
        *at++ = digits[i];
        if ((length - i) % 3 == 1 && i + 1 < length)
            *at++ = ',';
    }
    *at = '\0';
    return out;
}

static void say_slice(struct sentence *out, const struct diagnosis *diagnosis)
{
    char bound[32], count[32];
    const struct diagnosis_slice *slice = &diagnosis->slice;
    if (slice->one)
        say(out, "Request %llu (%s)", (unsigned long long)slice->request,
            units_format_ns(diagnosis->slice_low_ns, bound, sizeof bound));
    else if (slice->min_latency_ns > 0)
        say(out, "The requests slower than %s (%s messages)",
            units_format_ns(slice->min_latency_ns, bound, sizeof bound),
            grouped(diagnosis->messages.count, count));
    else if (slice->high >= 1)
        say(out, "The slowest %.4g %% of requests (>= %s, %s messages)", 100 * (1 - slice->low),
            units_format_ns(diagnosis->slice_low_ns, bound, sizeof bound),
            grouped(diagnosis->messages.count, count));
    else
        say(out, "The requests between p%.4g and p%.4g (%s messages)", 100 * slice->low,
            100 * slice->high, grouped(diagnosis->messages.count, count));
}

static double whole_deviation(const struct diagnosis *diagnosis)
{
    double sum = 0;
    for (size_t i = 0; i < diagnosis->messages.count; i++)
        if (diagnosis->messages.items[i].deviation_ns > 0)
            sum += diagnosis->messages.items[i].deviation_ns;
    return sum;
}

static double median_deviation(const struct diagnosis *diagnosis)
{
    // Messages are ordered by latency, thus nearly by deviation: the middle one will do for words.
    return diagnosis->messages.items[diagnosis->messages.count / 2].deviation_ns;
}

static void say_causes(struct sentence *out, const struct diagnosis *diagnosis)
{
    double deviation = whole_deviation(diagnosis);
    if (diagnosis->causes.count == 0 || deviation <= 0) {
        say(out, "nothing explains it");
        return;
    }
    for (size_t i = 0; i < diagnosis->causes.count && i < NAMED_CAUSES; i++) {
        const struct cause *cause = &diagnosis->causes.items[i];
        double share = cause->total_ns / deviation;
        if (i > 0 && share < WORTH_NAMING)
            break;
        say(out, "%s%s (%s) %s%.0f %%", i ? ", " : "", cause->name, role_name(cause->role),
            i                 ? ""
            : cause->explains ? "explains "
                              : "(located, not explained) ",
            100 * share);
    }
}

static void say_diagnosis(struct sentence *out, const struct diagnosis *diagnosis)
{
    char time[32];
    say_slice(out, diagnosis);
    double median = median_deviation(diagnosis);
    say(out, " took %s %s than the median. ", units_format_ns(fabs(median), time, sizeof time),
        median < 0 ? "less" : "longer");
    say_causes(out, diagnosis);
    if (!isnan(diagnosis->coverage_median))
        say(out, ". Coverage %.0f %% (median)", 100 * diagnosis->coverage_median);
    say(out, ". ");
}

static void say_window(struct sentence *out, const struct run_analysis *run,
                       const struct diagnosis *diagnosis)
{
    char words[96];
    const struct diagnosis_slice *slice = &diagnosis->slice,
                                 *first = &run->findings.diagnoses.items->slice;
    if (slice->from_ns != slice->to_ns && slice->low == first->low && slice->high == first->high &&
        slice->min_latency_ns == first->min_latency_ns && !slice->one)
        say(out,
            "From %.3g s to %.3g s: ", (double)(slice->from_ns - run->lifetimes.begin_ns) / 1e9,
            (double)(slice->to_ns - run->lifetimes.begin_ns) / 1e9);
    else // another slice, not only another window
        say(out, "Of %s: ", diagnosis_slice_words(slice, words, sizeof words));
    if (diagnosis->not_available)
        say(out, "N/A (%s)", diagnosis->reason);
    else
        say_causes(out, diagnosis);
    say(out, ". ");
}

// What those that were answered and yet not joined lack, and why that may be.
static void say_not_joined(struct sentence *out, const struct run_analysis *run)
{
    char count[32], of[32];
    const char *before = " (";
    for (int state = 0; state < LIFETIME_STATES; state++) {
        if (state == LIFETIME_WHOLE || state == LIFETIME_UNANSWERED ||
            !run->lifetimes.states[state])
            continue;
        say(out, "%s%s: %s", before, grouped(run->lifetimes.states[state], count),
            lifetime_state_name((enum lifetime_state)state));
        before = ", ";
    }
    if (before[0] == ',')
        say(out, ")");
    if (run->evidence.has_events && run->lifetimes.join.connections_without_socket)
        say(out, "; the capture never saw %s of %s connections",
            grouped(run->lifetimes.join.connections_without_socket, count),
            grouped(run->lifetimes.join.connections, of));
    if (run->evidence.has_calls && run->lifetimes.join.connections_without_calls)
        say(out, "; the shim never saw %s of %s connections",
            grouped(run->lifetimes.join.connections_without_calls, count),
            grouped(run->lifetimes.join.connections, of));
}

static void say_completeness(struct sentence *out, const struct run_analysis *run)
{
    char joined[32], scheduled[32], count[32], other[32], worst[32];
    say(out, "%s of %s requests joined", grouped(run->lifetimes.states[LIFETIME_WHOLE], joined),
        grouped(run->lifetimes.scheduled, scheduled));
    uint64_t unanswered = run->lifetimes.scheduled - run->lifetimes.answered;
    if (unanswered)
        say(out, ", %s never answered", grouped(unanswered, count));
    if (run->lifetimes.states[LIFETIME_WHOLE] < run->lifetimes.answered)
        say_not_joined(out, run);
    uint64_t dropped =
        run->evidence.dropped_events + run->evidence.dropped_calls + run->evidence.dropped_samples;
    const struct join_counts *join = &run->lifetimes.join;
    uint64_t unseen =
        join->segments_unseen + join->handoffs_unseen + join->transmits_unseen + join->calls_unseen;
    uint64_t recovered = join->segments_recovered + join->handoffs_recovered;
    const struct run_trace *trace = &run->evidence.trace;
    bool of_trace = trace->handoffs || trace->handoffs_unknown;
    if (dropped)
        say(out, "; %s records were dropped", grouped(dropped, count));
    else if (unseen && !of_trace)
        say(out,
            "; no drop was reported, yet %s records of requests are missing (%s stamps were "
            "had otherwise)",
            grouped(unseen, count), grouped(recovered, other));
    else
        say(out, "; nothing was dropped");
    if (of_trace)
        say(out,
            "; M(n) and M(h) are from the processor's trace, which does not tell them for %s of %s "
            "receive calls",
            grouped(trace->handoffs_unknown, count),
            grouped(trace->handoffs + trace->handoffs_unknown, other));
    if (run->lifetimes.join.disorder.violations) {
        say(out, "; %s stamps out of order, by up to %s",
            grouped(run->lifetimes.join.disorder.violations, count),
            units_format_ns(run->lifetimes.join.disorder.worst_ns, worst, sizeof worst));
    }
    say(out, ".");
    if (run->lifetimes.join.hosts.both_ways)
        say(out,
            " Client and server are different machines and their clocks are related within %s "
            "only: what the network took is told both ways together.",
            units_format_ns(run->lifetimes.join.hosts.bound_p99_ns, worst, sizeof worst));
}

void run_verdict(struct run_analysis *run)
{
    struct sentence out = {.text = run->findings.verdict, .bytes = sizeof run->findings.verdict};
    const struct diagnosis *first =
        run->findings.diagnoses.count ? run->findings.diagnoses.items : NULL;
    run->findings.verdict[0] = '\0';
    run->findings.verdict_available = first && !first->not_available;
    if (run->findings.verdict_available)
        say_diagnosis(&out, first);
    else
        say(&out, "N/A: %s. ", first ? first->reason : "nothing was diagnosed");
    for (size_t i = 1; i < run->findings.diagnoses.count; i++)
        say_window(&out, run, &run->findings.diagnoses.items[i]);
    say_completeness(&out, run);
}
