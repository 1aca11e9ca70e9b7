// SPDX-License-Identifier: MIT
#include "loadgen/load_search.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/json_numbers.h"
#include "base/text.h"
#include "loadgen/engine/load_signals.h"

enum { RUNS_A_TRIAL = 3 }; // each twice as long as the one before

// --- deciding ------------------------------------------------------------------------------------

static int rate_score(const struct search_rate *rate)
{
    return rate->met - rate->missed;
}

void search_note(struct search *search, double rate, enum curve_finding finding)
{
    size_t i = 0;
    while (i < search->count && search->rates[i].rate < rate)
        i++;
    if (i == search->count || search->rates[i].rate > rate) {
        memmove(&search->rates[i + 1], &search->rates[i],
                (search->count - i) * sizeof *search->rates);
        search->rates[i] = (struct search_rate){.rate = rate};
        search->count++;
    }
    search->rates[i].met += finding == CURVE_MET;
    search->rates[i].missed += finding == CURVE_MISSED;
    search->rates[i].undecided += finding == CURVE_UNDECIDED;
    search->trials++;
}

// Three significant digits, but never out of the gap.
static double rounded_between(double low, double high)
{
    double middle = (low + high) / 2;
    double unit = pow(10, floor(log10(middle)) - 2);
    double rounded = round(middle / unit) * unit;
    return rounded > low && rounded < high ? rounded : middle;
}

// The rate below the gap is not yet known to be good (low), or the one above not to be bad (high).
static bool is_unsure(const struct search_rate *low, const struct search_rate *high)
{
    if (low && rate_score(low) < SEARCH_SURE)
        return true;
    return high && rate_score(high) > -SEARCH_SURE && high->undecided < SEARCH_DOUBTS;
}

enum search_end search_next(const struct search *search, double *next, double *low, double *high)
{
    const struct search_rate *good = NULL, *bad = NULL;
    for (size_t i = search->count; i-- > 0 && !good;) {
        if (rate_score(&search->rates[i]) > 0)
            good = &search->rates[i];
        else
            bad = &search->rates[i];
    }
    *low = good ? good->rate : 0;
    *high = bad ? bad->rate : INFINITY;
    if (!good && bad && (rate_score(bad) <= -SEARCH_SURE || bad->undecided >= SEARCH_DOUBTS))
        return rate_score(bad) <= -SEARCH_SURE ? SEARCH_NONE_MET : SEARCH_UNDECIDED;
    if (search->trials == SEARCH_TRIALS_MAX || search->count == SEARCH_RATES_MAX)
        return SEARCH_UNDECIDED;
    if (!good) {
        *next = search->lowest;
    } else if (!bad && good->rate < search->highest) {
        *next = fmin(2 * good->rate, search->highest);
    } else if (bad && bad->rate > fmax(good->rate + search->near, good->rate * search->ratio)) {
        *next = rounded_between(good->rate, bad->rate);
    } else if (is_unsure(good, NULL)) {
        *next = good->rate;
    } else if (is_unsure(NULL, bad)) {
        *next = bad->rate;
    } else {
        return bad ? SEARCH_FOUND : SEARCH_ALL_MET;
    }
    return SEARCH_GOING_ON;
}

__attribute__((format(printf, 3, 4))) static void
say(struct curve_point *point, enum curve_finding finding, const char *format, ...)
{
    va_list args;
    point->finding = finding;
    va_start(args, format);
    vsnprintf(point->why, sizeof point->why, format, args);
    va_end(args);
}

// What one load says about the SLO; fills in the point's members for a search.
static void search_judge(const struct load_outcome *outcome, const struct slo *slo,
                         struct curve_point *point)
{
    const struct method *method = &outcome->method;
    const struct half_quantile *halves = &method->stationarity.target;
    char percentile[32];
    method_percentile_name(slo->quantile, percentile, sizeof percentile);
    point->target_us = method->interval.value;
    point->target = method->interval.interval;
    bool low_meets = slo_is_met(slo, point->target.low);
    bool high_meets = slo_is_met(slo, point->target.high);
    if (point->saturation.who == SATURATION_SERVER)
        say(point, CURVE_MISSED, "%s", point->saturation.why);
    else if (point->saturation.who == SATURATION_CLIENT)
        say(point, CURVE_UNDECIDED, "%s", point->saturation.why);
    else if (!point->target.known)
        say(point, CURVE_UNDECIDED, "too few independent samples to bound %s", percentile);
    else if (low_meets != high_meets)
        say(point, CURVE_UNDECIDED, "the interval of %s, [%s, %s], lies on both sides", percentile,
            TEXT_US(point->target.low), TEXT_US(point->target.high));
    else if (!high_meets && method->findings[METHOD_CLIENT] == METHOD_FAILED)
        say(point, CURVE_UNDECIDED, "the client was late by itself, which makes %s worse",
            percentile);
    else if (method->findings[METHOD_LOAD] == METHOD_FAILED ||
             method->findings[METHOD_ARRIVALS] == METHOD_FAILED)
        say(point, CURVE_UNDECIDED, "%s", point->summary.reasons[0]);
    else if (method->stationarity.judged && (slo_is_met(slo, halves->first) != high_meets ||
                                             slo_is_met(slo, halves->second) != high_meets))
        say(point, CURVE_UNDECIDED, "%s was %s in one half of the run and %s in the other",
            percentile, TEXT_US(halves->first), TEXT_US(halves->second));
    else if (high_meets)
        say(point, CURVE_MET, "%s", "");
    else
        say(point, CURVE_MISSED, "%s is in [%s, %s]", percentile, TEXT_US(point->target.low),
            TEXT_US(point->target.high));
}

// --- running -------------------------------------------------------------------------------------

struct course {
    struct load_curve curve;
    struct search search;
    enum search_end end;
    double low, high;
    bool ended_early; // interrupted, or no connection left
};

static void print_run(const struct curve_point *point)
{
    char interval[50] = "-";
    if (point->target.known)
        snprintf(interval, sizeof interval, "[%s, %s]", TEXT_US(point->target.low),
                 TEXT_US(point->target.high));
    printf("%10s %10s %10s %-22s %-10s %s\n", TEXT_RATE(point->summary.offered_rate),
           TEXT_RATE(point->summary.achieved_rate), TEXT_US(point->target_us), interval,
           curve_finding_names[point->finding], point->why);
    fflush(stdout);
}

static bool lies_on_both_sides(const struct curve_point *point)
{
    return point->finding == CURVE_UNDECIDED && point->saturation.who == SATURATION_NONE;
}

// Repeats, for longer each time, while a rate stays undecided.
static int try_rate(struct load_plan *plan, struct course *course, double rate, struct error *err)
{
    uint64_t duration_ns = plan->options.duration_ns;
    struct curve_point *point = NULL;
    for (unsigned run = 0; run < RUNS_A_TRIAL; run++, duration_ns *= 2) {
        struct load_outcome outcome;
        int status = load_check_memory(plan, rate, duration_ns, "--duration", err);
        if (status < 0 && run)
            break; // no further trial would decide more
        if (status == 0)
            status = load_curve_take(&course->curve, plan, rate, duration_ns, &outcome, err);
        if (status < 0)
            return status;
        point = &course->curve.points.items[course->curve.points.count - 1];
        search_judge(&outcome, &plan->slo, point);
        if (!plan->options.json)
            print_run(point);
        course->ended_early = point->interrupted || point->broken;
        if (course->ended_early)
            return 0;
        if (!lies_on_both_sides(point))
            break;
    }
    search_note(&course->search, rate, point->finding);
    return 0;
}

static int run_course(struct load_plan *plan, struct course *course, struct error *err)
{
    double next;
    if (!plan->options.json)
        printf("%10s %10s %10s %-22s %s\n", "offered/s", "achieved/s", "latency", "interval",
               plan->options.slo);
    while (!course->ended_early) {
        course->end = search_next(&course->search, &next, &course->low, &course->high);
        if (course->end != SEARCH_GOING_ON)
            break;
        int status = try_rate(plan, course, next, err);
        if (status < 0)
            return status;
    }
    return 0;
}

// The last trial at a rate; NULL: none.
static const struct curve_point *last_at(const struct course *course, double rate)
{
    for (size_t i = course->curve.points.count; i-- > 0;)
        if (course->curve.points.items[i].asked.rate == rate)
            return &course->curve.points.items[i];
    return NULL;
}

// True when the load above the result says nothing about the server, so that the result is only a
// lower bound.
static bool client_is_the_bound(const struct course *course)
{
    const struct curve_point *above = last_at(course, course->high);
    return above && above->saturation.who == SATURATION_CLIENT;
}

static void end_describe(const struct course *course, const struct load_plan *plan, char *out,
                         size_t bytes)
{
    const char *slo = plan->options.slo;
    const struct curve_point *above = last_at(course, course->high);
    const char *why = above ? above->why : "";
    char lowest[TEXT_NUMBER_BYTES], low[TEXT_NUMBER_BYTES], high[TEXT_NUMBER_BYTES];
    text_rate(course->search.lowest, lowest);
    text_rate(course->low, low);
    text_rate(course->high, high);
    if (course->ended_early)
        snprintf(out, bytes, "the search ended early after %s runs",
                 TEXT_COUNT(course->curve.points.count));
    else if (course->end == SEARCH_NONE_MET)
        snprintf(out, bytes, "%s is missed even at %s requests/s: %s", slo, lowest, why);
    else if (course->end == SEARCH_ALL_MET)
        snprintf(out, bytes, "%s is met up to %s requests/s, the highest rate asked for", slo, low);
    else if (course->end == SEARCH_FOUND)
        snprintf(out, bytes, "%s is met up to %s requests/s; at %s: %s", slo, low, high, why);
    else if (course->low > 0)
        snprintf(out, bytes,
                 "%s is met at %s requests/s; what is above is undecided after %u trials: %s", slo,
                 low, course->search.trials, why);
    else
        snprintf(out, bytes, "whether %s is met at %s requests/s could not be decided: %s", slo,
                 lowest, why);
}

static json_t *course_json(const struct course *course, const struct load_plan *plan,
                           const char *verdict, const char *text)
{
    json_t *json = load_curve_json(&course->curve, plan, "search");
    if (!json)
        return NULL;
    json_object_set_new(json, "slo",
                        json_pack("{s:s,s:f,s:f,s:s,s:s,s:o,s:o,s:i}", "text", plan->options.slo,
                                  "quantile", plan->slo.quantile, "limit_us", plan->slo.limit_us,
                                  "verdict", verdict, "why", text, "met_up_to",
                                  course->low > 0 ? json_real(course->low) : json_null(),
                                  "not_met_from", json_number_or_null(course->high), "trials",
                                  (int)course->search.trials));
    return json;
}

static int course_finish(const struct course *course, const struct load_plan *plan,
                         struct error *err)
{
    char text[500];
    end_describe(course, plan, text, sizeof text);
    bool found = !course->ended_early && !client_is_the_bound(course) &&
                 (course->end == SEARCH_FOUND || course->end == SEARCH_ALL_MET);
    bool missed = !course->ended_early && course->end == SEARCH_NONE_MET;
    if (!plan->options.json)
        printf("%s\n", text);
    const char *outcome = found ? "met" : missed ? "missed" : "n/a";
    int status = load_document_finish(&plan->options, course_json(course, plan, outcome, text),
                                      "sweep.json", err);
    if (status < 0 || found)
        return status;
    return missed ? error_set(err, ERROR_GATE, "%s", text)
                  : error_set(err, ERROR_INCONCLUSIVE, "inconclusive: %s", text);
}

int load_search(struct load_plan *plan, struct error *err)
{
    const struct sweep_range *range = &plan->sweep;
    struct course course = {.search = {.lowest = range->from,
                                       .highest = range->to,
                                       .near = range->geometric ? 0 : range->step,
                                       .ratio = range->geometric ? range->step : 1}};
    struct load_signals signals;
    load_signals_hold(&signals);
    int status = run_course(plan, &course, err);
    load_signals_release(&signals);
    if (status == 0)
        status = course_finish(&course, plan, err);
    load_curve_free(&course.curve);
    return status;
}
