// SPDX-License-Identifier: MIT
#include "analysis/compare/gate_judge.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"

const char *gate_outcome_name(enum gate_outcome outcome)
{
    static const char *const names[] = {"passed", "failed", "inconclusive"};
    return names[outcome];
}

double gate_confidence(size_t gates)
{
    return 1 - 0.01 / (double)(gates ? gates : 1);
}

enum gate_outcome gate_judge_increase(double value, double low, double high, double limit)
{
    if (low > 0 && value > limit)
        return GATE_FAILED;
    return high <= limit || high - value <= limit ? GATE_PASSED : GATE_INCONCLUSIVE;
}

enum gate_outcome gate_judge_absolute(double low, double high, double limit)
{
    return low > limit ? GATE_FAILED : high <= limit ? GATE_PASSED : GATE_INCONCLUSIVE;
}

#define say(result, ...) text_append((result)->words, sizeof(result)->words, __VA_ARGS__)

static const char *format_duration(double ns, char out[32])
{
    if (isnan(ns))
        return "?";
    if (ns > 1e12)
        return "over 1000 s"; // the end of an interval from too few runs may be infinite
    out[0] = '-';
    units_format_ns(fabs(ns), out + 1, 31);
    return ns < 0 ? out : out + 1;
}

static void say_ns(struct gate_result *result)
{
    char value[32], low[32], high[32];
    say(result, "%s [%s, %s]", format_duration(result->value, value),
        format_duration(result->low, low), format_duration(result->high, high));
}

// --- percentiles ---------------------------------------------------------------------------------

static void judge_unknown(const struct percentile_shift *shift, struct gate_result *result)
{
    bool never = shift->never[COMPARE_CANDIDATE];
    bool news = result->gate.limit == GATE_MAX || isfinite(shift->ns[COMPARE_BASE]);
    result->value = result->low = result->high = NAN;
    result->outcome = never && news ? GATE_FAILED : GATE_INCONCLUSIVE;
    if (never)
        say(result, "unanswered requests reach it in every run of the candidate%s",
            news ? "" : ", and the base's");
    else
        say(result, "not known: too few requests lie beyond it, or unanswered ones reach it");
}

static void judge_percentile_max(const struct percentile_shift *shift, struct gate_result *result)
{
    const struct resample_spread *spread = &shift->spread[COMPARE_CANDIDATE];
    double value = shift->ns[COMPARE_CANDIDATE];
    struct resample_interval interval =
        resample_single(log(fmax(value, 1)), spread, GATE_ABSOLUTE_CONFIDENCE);
    result->value = value;
    result->low = exp(interval.low);
    result->high = exp(interval.high);
    result->outcome = gate_judge_absolute(result->low, result->high, result->gate.value);
    say_ns(result);
    if (!interval.between_runs)
        say(result, ", from one run: how runs differ is not in it");
}

static void judge_shift(const struct compared_percentile *percentile, double confidence,
                        struct gate_result *result)
{
    struct resample_interval interval = percentile_shift_interval(&percentile->shift, confidence);
    result->value = percentile->shift.shift;
    result->low = interval.low;
    result->high = interval.high;
    result->outcome = interval.between_runs ? gate_judge_increase(result->value, result->low,
                                                                  result->high, result->gate.value)
                                            : GATE_INCONCLUSIVE;
    char value[TEXT_NUMBER_BYTES], low[TEXT_NUMBER_BYTES], high[TEXT_NUMBER_BYTES];
    say(result, "%s %% [%s, %s]", text_percent(result->value, value),
        text_percent(result->low, low), text_percent(result->high, high));
    if (!interval.between_runs)
        say(result, "; how runs differ by themselves takes at least two a side, better five");
    else if (result->outcome == GATE_INCONCLUSIVE)
        say(result, "; too few repetitions to see an increase of %s", result->gate.text);
    else if (result->outcome == GATE_FAILED) {
        const char *causes = strchr(percentile->verdict, ']'); // what follows the interval
        say(result, "%s", causes ? causes + 1 : "");
    }
}

static void judge_percentile(const struct comparison *comparison, double confidence,
                             struct gate_result *result)
{
    for (size_t i = 0; i < comparison->percentiles.count; i++) {
        const struct compared_percentile *percentile = &comparison->percentiles.items[i];
        if (fabs(percentile->shift.quantile - result->gate.quantile) > 1e-9)
            continue;
        if (!percentile->shift.known)
            judge_unknown(&percentile->shift, result);
        else if (result->gate.limit == GATE_MAX)
            judge_percentile_max(&percentile->shift, result);
        else
            judge_shift(percentile, confidence, result);
    }
}

// --- causes --------------------------------------------------------------------------------------

static const struct cause_shift *find_cause(const struct slice_shift *slice, const char *name)
{
    char text[100];
    for (size_t i = 0; i < slice->causes.count; i++)
        if (strcmp(cause_shift_name(&slice->causes.items[i], text, sizeof text), name) == 0)
            return &slice->causes.items[i];
    return NULL;
}

static void judge_cause_increase(const struct cause_shift *cause, double confidence,
                                 struct gate_result *result)
{
    struct resample_interval interval =
        resample_difference(cause->difference_ns, &cause->spread[COMPARE_BASE],
                            &cause->spread[COMPARE_CANDIDATE], confidence);
    result->value = cause->difference_ns;
    result->low = interval.low;
    result->high = interval.high;
    result->outcome = interval.between_runs ? gate_judge_increase(result->value, result->low,
                                                                  result->high, result->gate.value)
                                            : GATE_INCONCLUSIVE;
    say(result, "%s", result->value > 0 ? "+" : "");
    say_ns(result);
    say(result, " per message");
    if (!interval.between_runs)
        say(result, "; how runs differ by themselves takes at least two a side, better five");
}

static void judge_cause(const struct comparison *comparison, double confidence,
                        struct gate_result *result)
{
    const struct slice_shift *slice = &comparison->shifts.items[comparison->gate_slice].shift;
    if (!slice->available || slice->runs[COMPARE_CANDIDATE] == 0) {
        result->value = result->low = result->high = NAN;
        result->outcome = GATE_INCONCLUSIVE;
        say(result, "not known: %s",
            slice->reason[0] ? slice->reason : "no run of the candidate tells its causes");
        return;
    }
    const struct cause_shift *cause = find_cause(slice, result->gate.name);
    if (!cause) {
        result->outcome = GATE_PASSED;
        say(result, "no message of %s has any of it, in no run; is that its name?", slice->words);
        return;
    }
    if (result->gate.limit == GATE_MAX_INCREASE) {
        judge_cause_increase(cause, confidence, result);
        return;
    }
    struct resample_interval interval =
        resample_single(cause->mean_ns[COMPARE_CANDIDATE], &cause->spread[COMPARE_CANDIDATE],
                        GATE_ABSOLUTE_CONFIDENCE);
    result->value = cause->mean_ns[COMPARE_CANDIDATE];
    result->low = fmax(interval.low, 0);
    result->high = interval.high;
    result->outcome = gate_judge_absolute(result->low, result->high, result->gate.value);
    say_ns(result);
    say(result, " per message of %s%s", slice->words,
        interval.between_runs ? "" : ", from one run: how runs differ is not in it");
}

int gates_judge(const struct gate_array *gates, const struct comparison *comparison,
                struct gate_result_array *out, struct error *err)
{
    double confidence = gate_confidence(gates->count);
    for (size_t i = 0; i < gates->count; i++) {
        struct gate_result result = {.gate = gates->items[i]};
        if (result.gate.limit == GATE_MAX_INCREASE && !comparison->has_base)
            continue;
        if (result.gate.subject == GATE_PERCENTILE)
            judge_percentile(comparison, confidence, &result);
        else
            judge_cause(comparison, confidence, &result);
        if (array_push(out, result) < 0)
            return error_set(err, ERROR_FAILED, "out of memory for the gates' results");
    }
    return 0;
}
