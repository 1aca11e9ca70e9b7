// SPDX-License-Identifier: MIT
#include "analysis/compare/shift_words.h"

#include <math.h>
#include <stdio.h>

#include "base/text.h"
#include "base/units.h"

enum { NAMED_CAUSES = 3 };

// --- a percentile --------------------------------------------------------------------------------

// "nginx (A) +120 us on 4.1 % of messages", or where the base has it as well "application time (A)
// +9.8 us (100 us -> 110 us on 100 % of messages)".
static void say_cause(const struct cause_shift *cause, char *text, size_t bytes)
{
    char name[100], difference[TEXT_NUMBER_BYTES], before[32], after[32];
    int main_side = cause->difference_ns > 0 ? COMPARE_CANDIDATE : COMPARE_BASE;
    int other = main_side == COMPARE_CANDIDATE ? COMPARE_BASE : COMPARE_CANDIDATE;
    cause_shift_name(cause, name, sizeof name);
    if (cause->mean_ns[other] < cause->mean_ns[main_side] / 20 && cause->share[main_side] > 0) {
        double median = cause->spread_ns[main_side].median;
        text_append(text, bytes, "%s %s on %.3g %% of messages", name,
                    text_signed_ns(main_side == COMPARE_CANDIDATE ? median : -median, difference),
                    100 * cause->share[main_side]);
        return;
    }
    text_append(text, bytes, "%s %s", name, text_signed_ns(cause->difference_ns, difference));
    if (cause->share[COMPARE_BASE] > 0 && cause->share[COMPARE_CANDIDATE] > 0)
        text_append(
            text, bytes, " (median %s -> %s, on %.3g %% -> %.3g %% of messages)",
            units_format_ns(cause->spread_ns[COMPARE_BASE].median, before, sizeof before),
            units_format_ns(cause->spread_ns[COMPARE_CANDIDATE].median, after, sizeof after),
            100 * cause->share[COMPARE_BASE], 100 * cause->share[COMPARE_CANDIDATE]);
}

// "application time (A) usually +198 us (median ...)".
static void say_usual(const struct cause_shift *cause, char *text, size_t bytes)
{
    char name[100], difference[TEXT_NUMBER_BYTES], before[32], after[32];
    text_append(text, bytes, "%s usually %s (median %s -> %s, on %.3g %% -> %.3g %% of messages)",
                cause_shift_name(cause, name, sizeof name),
                text_signed_ns(cause->median_difference_ns, difference),
                units_format_ns(cause->spread_ns[COMPARE_BASE].median, before, sizeof before),
                units_format_ns(cause->spread_ns[COMPARE_CANDIDATE].median, after, sizeof after),
                100 * cause->share[COMPARE_BASE], 100 * cause->share[COMPARE_CANDIDATE]);
}

// The causes that surely moved in the same direction as the percentile.
static void say_causes(const struct slice_shift *around, bool up, char *text, size_t bytes)
{
    struct named_cause named[NAMED_CAUSES];
    if (!around->available) {
        text_append(text, bytes, "; why is not known: %s", around->reason);
        return;
    }
    size_t count = slice_shift_named(around, up, named, NAMED_CAUSES);
    for (size_t i = 0; i < count; i++) {
        text_append(text, bytes, "%s", i ? "; " : ": ");
        (named[i].by_median ? say_usual : say_cause)(named[i].cause, text, bytes);
    }
    if (count == 0)
        text_append(text, bytes, "; no cause changed by more than the runs' own scatter");
}

void percentile_shift_words(const char *name, const struct percentile_shift *shift,
                            const struct slice_shift *around, char text[SHIFT_WORDS_BYTES])
{
    size_t bytes = SHIFT_WORDS_BYTES;
    snprintf(text, bytes, "%s ", name);
    if (!shift->known && shift->never[COMPARE_CANDIDATE] && isfinite(shift->ns[COMPARE_BASE]))
        text_append(text, bytes,
                    "never: unanswered requests reach it in every run of the candidate");
    else if (!shift->known &&
             (isinf(shift->ns[COMPARE_BASE]) || isinf(shift->ns[COMPARE_CANDIDATE])))
        text_append(text, bytes, "N/A: unanswered requests reach it");
    else if (!shift->known)
        text_append(text, bytes,
                    "N/A: too few requests lie beyond it, or in some resamples it is reached "
                    "by unanswered ones");
    else {
        char change[TEXT_NUMBER_BYTES], low[TEXT_NUMBER_BYTES], high[TEXT_NUMBER_BYTES];
        text_append(text, bytes, "%s %% [%s, %s]", text_percent(shift->shift, change),
                    text_percent(shift->interval.low, low),
                    text_percent(shift->interval.high, high));
        if (shift->interval.low > 0 || shift->interval.high < 0)
            say_causes(around, shift->shift > 0, text, bytes);
        else
            text_append(text, bytes, ": no difference that these runs can show");
    }
}

// --- a slice -------------------------------------------------------------------------------------

static void say_changes(const struct slice_shift *slice, char *text, size_t bytes)
{
    char name[100], time[TEXT_NUMBER_BYTES];
    size_t named = 0, changed = 0;
    for (size_t i = 0; i < slice->causes.count; i++) {
        const struct cause_shift *cause = &slice->causes.items[i];
        if (cause->kind == CHANGE_NONE || ++changed > NAMED_CAUSES)
            continue;
        text_append(text, bytes, "%s%s %s: %s a message, on %.3g %% of them (%.3g %%)",
                    named++ ? "; " : " ", cause_shift_name(cause, name, sizeof name),
                    change_kind_name(cause->kind), text_signed_ns(cause->difference_ns, time),
                    100 * cause->longer[COMPARE_CANDIDATE], 100 * cause->longer[COMPARE_BASE]);
    }
    if (changed == 0 && isinf(slice->latency.interval.low) && slice->causes.count)
        text_append(text, bytes, " The largest difference is %s, %s a message",
                    cause_shift_name(&slice->causes.items[0], name, sizeof name),
                    text_signed_ns(slice->causes.items[0].difference_ns, time));
    else if (changed == 0)
        text_append(text, bytes, " No cause changed by more than the runs' own scatter");
    else if (changed > NAMED_CAUSES)
        text_append(text, bytes, "; and %zu smaller changes", changed - NAMED_CAUSES);
    text_append(text, bytes, ".");
}

void slice_shift_words(const struct slice_shift *slice, double confidence,
                       char text[SHIFT_WORDS_BYTES])
{
    char base[32], candidate[32], low[TEXT_NUMBER_BYTES], high[TEXT_NUMBER_BYTES];
    const struct cause_shift *latency = &slice->latency;
    size_t bytes = SHIFT_WORDS_BYTES;
    text[0] = '\0';
    if (!slice->available) {
        text_append(text, bytes, "N/A: %s", slice->reason);
        return;
    }
    text_append(text, bytes, "%s took %s on average, %s before (%+.3g %%)", slice->words,
                units_format_ns(latency->mean_ns[COMPARE_CANDIDATE], candidate, sizeof candidate),
                units_format_ns(latency->mean_ns[COMPARE_BASE], base, sizeof base),
                100 * latency->difference_ns / latency->mean_ns[COMPARE_BASE]);
    if (isinf(latency->interval.low))
        text_append(text, bytes, "; too few messages to say how sure that is.");
    else
        text_append(text, bytes, "; the difference lies between %s and %s (%.0f %%).",
                    text_signed_ns(latency->interval.low, low),
                    text_signed_ns(latency->interval.high, high), 100 * confidence);
    say_changes(slice, text, bytes);
}
