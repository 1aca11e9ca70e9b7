// SPDX-License-Identifier: MIT
#include "loadgen/method/method.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>

#include "base/one_wish.h"
#include "base/text.h"
#include "loadgen/method/load_reasons.h"
#include "loadgen/method/logical_requests.h"

static const double vague =
    // an interval's upper end over its lower: beyond this, dependence leaves too little information
    3;
// of the machine's time: above this it is mentioned with a change
static const double stolen_least = 0.002;

__attribute__((format(printf, 3, 4))) static void
add_reason(struct method *method, enum load_doubt doubt, const char *format, ...)
{
    va_list args;
    if (method->reason_count == METHOD_REASONS)
        return;
    va_start(args, format);
    method->doubts[method->reason_count] = doubt;
    vsnprintf(method->reasons[method->reason_count++], sizeof method->reasons[0], format, args);
    va_end(args);
}

char *method_percentile_name(double quantile, char *out, size_t out_bytes)
{
    snprintf(out, out_bytes, "p%.10g", quantile * 100);
    return out;
}

static enum method_finding finding_of(bool judged, bool passed)
{
    return !judged ? METHOD_UNKNOWN : passed ? METHOD_PASSED : METHOD_FAILED;
}

// --- reasons -------------------------------------------------------------------------------------

static void explain_client(struct method *method, const char *percentile)
{
    const struct client_bias *client = &method->client;
    if (client->out_of_cpu && method->settings.closed_loop)
        add_reason(method, DOUBT_SPENT,
                   "client biased: out of CPU, only %s of the time was left: the rate is this "
                   "client's maximum and not the server's; give it more --threads",
                   TEXT_SHARE(client->idle, 1));
    else if (client->out_of_cpu)
        add_reason(method, DOUBT_SPENT,
                   "client biased: out of CPU, only %s of the time was left; lower --rate or "
                   "give it a core of its own",
                   TEXT_SHARE(client->idle, 1));
    else
        add_reason(method, DOUBT_LATE,
                   "client biased: late %s%s%s; without that, %s would be %s, not %s; give "
                   "it a core of its own",
                   client->target_us - client->target_sent_us >
                           client->target_sent_us - client->target_without_us
                       ? "by itself"
                       : "in reading the replies",
                   *client->stood ? ", it " : "", client->stood, percentile,
                   TEXT_US(client->target_without_us), TEXT_US(client->target_us));
}

static void explain_arrivals(struct method *method)
{
    const struct arrivals *arrivals = &method->arrivals;
    const char *stood = method->client.stood;
    add_reason(method, DOUBT_ARRIVALS,
               "arrivals wrong: the gaps between sends are %.3f (Kolmogorov-Smirnov) away from the "
               "process asked for; a send takes %s here, which allows %.3f%s%s",
               arrivals->distance, TEXT_US(arrivals->back_to_back_us), arrivals->best,
               *stood ? "; this client " : "", stood);
}

static void explain_stationarity(struct method *method, const char *percentile)
{
    const struct level *level = levels_unsteady(&method->levels);
    const struct stationarity *found = level ? &level->stationarity : &method->stationarity;
    const struct half_quantile *half = found->target.differs ? &found->target : &found->median;
    char where[60] = "", stolen[100] = "";
    if (level)
        snprintf(where, sizeof where, " at %.4g times the rate", level->factor);
    if (method->settings.stolen > stolen_least)
        snprintf(stolen, sizeof stolen, "; meanwhile the hypervisor took %s of this machine's time",
                 TEXT_SHARE(method->settings.stolen, 1));
    if (half->differs)
        add_reason(method, DOUBT_UNSTEADY,
                   "not stationary%s: %s was %s in the first half and %s in the second%s", where,
                   found->target.differs ? percentile : "p50", TEXT_US(half->first),
                   TEXT_US(half->second), stolen);
    else if (found->trend.matters)
        add_reason(method, DOUBT_UNSTEADY, "not stationary%s: the median drifts from %s to %s%s",
                   where, TEXT_US(found->trend.begin), TEXT_US(found->trend.end), stolen);
    else
        add_reason(method, DOUBT_UNSTEADY,
                   "not stationary%s: the median wanders (augmented Dickey-Fuller p = %.3f), by "
                   "%d %% between quarters%s",
                   where, found->dickey_fuller.p, text_whole_percent(found->quarters_spread, 1),
                   stolen);
}

static void explain_independence(struct method *method, const char *percentile)
{
    const struct independence *found = &method->independence;
    unsigned worst = 0;
    for (unsigned i = 1; i < INDEPENDENCE_LAGS; i++)
        if (fabs(found->thinned[i].rho) > fabs(found->thinned[worst].rho))
            worst = i;
    const struct quantile_interval *interval = &method->interval.interval;
    char known[80] = "has no interval";
    if (isfinite(interval->low) && isfinite(interval->high))
        snprintf(known, sizeof known, "is known only to lie between %s and %s",
                 TEXT_US(interval->low), TEXT_US(interval->high));
    char kept[60] = "";
    if (found->thinning > 1)
        snprintf(kept, sizeof kept, "of every %s samples one was kept, and ",
                 TEXT_COUNT(found->thinning));
    // How dependent those beyond the percentile are, too little may be there to tell.
    const double worth = round(method->interval.worth), all = (double)method->interval.count;
    char tell[100] = "";
    if (worth < all)
        snprintf(tell, sizeof tell, ": all %s together tell as much of %s as %s independent ones",
                 TEXT_COUNT(all), percentile, TEXT_COUNT(worth));
    add_reason(method, DOUBT_DEPENDENT,
               "not independent: %sthese %s still depend on one another (Spearman's rho %.2f at "
               "lag %u)%s, and %s %s; a longer run brings more",
               kept, TEXT_COUNT(found->kept), found->thinned[worst].rho, worst + 1, tell,
               percentile, known);
}

static void explain_interval(struct method *method, const char *percentile)
{
    const struct percentile_interval *found = &method->interval;
    const struct method_settings *settings = &method->settings;
    char index[40] = "", wide[40] = "not bounded";
    if (isfinite(found->tail_index))
        snprintf(index, sizeof index, ", tail index %.2g", found->tail_index);
    if (!isnan(found->width))
        snprintf(wide, sizeof wide, "%s wide", TEXT_US(found->width));
    if (settings->width_us == 0)
        add_reason(method, DOUBT_UNSURE, "heavy tail: the interval of %s is %s after %s samples%s",
                   percentile, wide, TEXT_COUNT(found->count), index);
    else if (found->heavy || isinf(method->needed_s))
        add_reason(
            method, DOUBT_UNSURE,
            "heavy tail: the interval of %s is %s after %s samples and will not converge to %s%s",
            percentile, wide, TEXT_COUNT(found->count), TEXT_US(settings->width_us), index);
    else
        add_reason(method, DOUBT_UNSURE,
                   "budget spent: the interval of %s is %s after %s samples, not %s; that takes "
                   "about %s of load, and %s were allowed",
                   percentile, wide, TEXT_COUNT(found->count), TEXT_US(settings->width_us),
                   TEXT_NS(1e9 * method->needed_s), TEXT_NS(1e9 * settings->budget_s));
}

// The reasons of the first step that failed; if the load itself failed, its summary has them.
static void method_explain(struct method *method)
{
    char percentile[32];
    method_percentile_name(method->settings.quantile, percentile, sizeof percentile);
    const enum method_finding *findings = method->findings;
    if (findings[METHOD_LOAD] == METHOD_FAILED)
        return;
    if (findings[METHOD_CLIENT] == METHOD_FAILED)
        explain_client(method, percentile);
    if (findings[METHOD_ARRIVALS] == METHOD_FAILED)
        explain_arrivals(method);
    if (method->reason_count)
        return;
    if (findings[METHOD_STATIONARITY] == METHOD_FAILED) {
        explain_stationarity(method, percentile);
        return;
    }
    // Dependent samples make an interval look narrower than it is. One that is too wide
    // nevertheless is a reason of its own.
    if (findings[METHOD_INTERVAL] == METHOD_FAILED)
        explain_interval(method, percentile);
    if (findings[METHOD_INDEPENDENCE] == METHOD_FAILED)
        explain_independence(method, percentile);
}

// --- judging -------------------------------------------------------------------------------------

static double *latencies_collect(const struct engine_result *run)
{
    double *values = malloc((run->sample_count + 1) * sizeof *values);
    for (size_t i = 0; values && i < run->sample_count; i++)
        values[i] = sample_latency_us(&run->samples[i], run->tsc_hz);
    return values;
}

// The target percentile's, where the summary has it.
static const struct percentile_estimate *known_estimate(const struct load_latencies *kept,
                                                        const struct method_settings *settings)
{
    for (unsigned i = 0; kept && i < SUMMARY_QUANTILES; i++)
        if (!islessgreater(summary_quantiles[i], settings->quantile) &&
            !islessgreater(summary_confidence, settings->confidence))
            return &kept->estimates[i];
    return NULL;
}

static int judge_interval(const double *values, size_t count, size_t warm_up,
                          const struct load_latencies *kept, struct method *method,
                          struct error *err)
{
    const struct method_settings *settings = &method->settings;
    struct percentile_interval *found = &method->interval;
    size_t thinning = method->independence.thinning;
    int status =
        percentile_interval_judge(values, count, thinning, settings->quantile, settings->confidence,
                                  known_estimate(kept, settings), found, err);
    method->needed_s = NAN;
    if (status < 0)
        return status;
    if (settings->width_us == 0) { // no width was asked for: it is only reported
        method->findings[METHOD_INTERVAL] = finding_of(!isnan(found->width), true);
        return 0;
    }
    double needed = percentile_interval_needed(found, settings->quantile, settings->confidence,
                                               settings->width_us);
    method->needed_s = ((double)warm_up + needed) / settings->rate;
    method->findings[METHOD_INTERVAL] = finding_of(true, found->width <= settings->width_us);
    return 0;
}

// Whether the level stays, by as many of the values as that takes.
static int judge_steadiness(const double *values, size_t count, size_t *warm_up,
                            struct method *method, struct error *err)
{
    const double q = method->settings.quantile;
    const size_t every = independence_evidence(count, q);
    double *thinned = every > 1 ? malloc((count / every + 1) * sizeof *thinned) : NULL;
    if (every > 1 && !thinned)
        return error_set(err, ERROR_FAILED, "out of memory for the level of %s requests",
                         TEXT_COUNT(count));
    if (thinned) {
        count = independence_thin(values, count, every, thinned);
        values = thinned;
    }
    int status = stationarity_warm_up(values, count, warm_up, err);
    if (status == 0)
        status =
            stationarity_judge(values + *warm_up, count - *warm_up, q, &method->stationarity, err);
    *warm_up *= every;
    free(thinned);
    return status;
}

static int judge_latencies(const struct engine_result *run, const double *values,
                           const struct load_latencies *kept, struct method *method,
                           struct error *err)
{
    const struct method_settings *settings = &method->settings;
    size_t warm_up;
    int status = judge_steadiness(values, run->sample_count, &warm_up, method, err);
    if (status < 0)
        return status;
    const double *rest = values + warm_up;
    size_t count = run->sample_count - warm_up;
    if (warm_up)
        method->warm_up_s =
            (double)(run->samples[warm_up].intended_tsc - run->samples[0].intended_tsc) /
            run->tsc_hz;
    status = independence_judge(rest, count,
                                percentile_interval_least(settings->quantile, settings->confidence),
                                settings->turn, &method->independence, err);
    method->findings[METHOD_STATIONARITY] =
        finding_of(method->stationarity.judged, method->stationarity.stationary);
    if (status == 0)
        status = judge_interval(values, run->sample_count, warm_up, kept, method, err);
    // If no thinning makes neighbours independent, because the level wanders slowly, the interval
    // is widened (method_interval.h) and then includes that uncertainty, unless it becomes too wide
    // to say anything.
    const struct quantile_interval *interval = &method->interval.interval;
    bool accounted = interval->known && interval->high <= vague * interval->low;
    method->findings[METHOD_INDEPENDENCE] =
        finding_of(method->independence.judged, method->independence.independent || accounted);
    return status;
}

// When the rate changes, nothing is claimed of the whole but the percentile itself.
static int judge_pattern(const struct engine_result *run, const double *values,
                         const struct load_latencies *kept, struct method *method,
                         struct error *err)
{
    const struct method_settings *settings = &method->settings;
    int status = levels_judge(run, values, &settings->pattern, settings->duration_s,
                              settings->quantile, &method->levels, err);
    if (status < 0)
        return status;
    bool judged = method->levels.count > 0;
    for (unsigned i = 0; i < method->levels.count; i++)
        judged = judged && method->levels.items[i].stationarity.judged;
    const struct level *unsteady = levels_unsteady(&method->levels);
    method->findings[METHOD_STATIONARITY] = finding_of(judged || unsteady, !unsteady);
    method->needed_s = NAN;
    status = percentile_interval_judge(values, run->sample_count, 1, settings->quantile,
                                       settings->confidence, known_estimate(kept, settings),
                                       &method->interval, err);
    method->interval.interval.known = false;
    return status;
}

// The client by each request, the rest by logical requests.
static int judge_run(const struct engine_result *run, const struct engine_result *logical,
                     double idle, const struct load_latencies *kept, struct method *method,
                     struct error *err)
{
    const struct method_settings *settings = &method->settings;
    const struct arrivals_asked asked = {settings->recorded ? NULL : &settings->arrivals,
                                         settings->rate, &settings->pattern, settings->duration_s,
                                         settings->batch_us};
    const bool alone = logical->samples == run->samples;
    double *own = kept ? NULL : latencies_collect(logical);
    const double *values = kept ? kept->us : own;
    double *apart = alone ? NULL : latencies_collect(run);
    const double *each = alone ? values : apart;
    int status = 0;
    if (!values || !each)
        status = error_set(err, ERROR_FAILED, "out of memory for the latencies of %s requests",
                           TEXT_COUNT(run->sample_count));
    if (status == 0 && !settings->pooled && !settings->closed_loop)
        status = arrivals_judge(logical, &asked, &method->arrivals, err);
    if (status == 0 && !settings->pooled)
        status = client_bias_judge(run, each, settings->quantile, idle, &method->client, err);
    if (status == 0)
        status = settings->pattern.kind == PATTERN_CONSTANT && !settings->recorded
                     ? judge_latencies(logical, values, kept, method, err)
                     : judge_pattern(logical, values, kept, method, err);
    free(apart);
    free(own);
    return status;
}

// The same connections take logical requests again after turn / this many.
static size_t common_divisor(size_t a, size_t b)
{
    return b ? common_divisor(b, a % b) : a;
}

int method_judge(const struct engine_result *run, const struct method_settings *settings,
                 bool load_ok, double idle, struct method *method, struct error *err)
{
    return method_judge_kept(run, settings, load_ok, idle, NULL, method, err);
}

int method_judge_kept(const struct engine_result *run, const struct method_settings *settings,
                      bool load_ok, double idle, const struct load_latencies *kept,
                      struct method *method, struct error *err)
{
    struct engine_result logical;
    *method = (struct method){.settings = *settings};
    if (settings->turn)
        method->settings.turn /= common_divisor(settings->turn, fanout_of(run));
    int status = logical_requests_make(run, &logical, err);
    if (status == 0)
        status = judge_run(run, &logical, idle, kept, method, err);
    if (status < 0)
        return status;
    logical_requests_free(run, &logical);
    // Within the percentile's interval a client's stall is chance like any other.
    const struct quantile_interval *interval = &method->interval.interval;
    if (settings->closed_loop ||
        (interval->known && method->client.target_without_us >= interval->low))
        method->client.biased = method->client.out_of_cpu;
    method->findings[METHOD_LOAD] = finding_of(true, load_ok);
    method->findings[METHOD_CLIENT] =
        finding_of(method->client.judged || method->client.out_of_cpu, !method->client.biased);
    method->findings[METHOD_ARRIVALS] = finding_of(method->arrivals.judged, method->arrivals.right);
    method_explain(method);
    return 0;
}

// Who interrupts does not wait for what takes seconds of so many requests, but is told what was
// measured; and requests of which only some were looked at are not judged.
static bool is_hurried(const struct engine_result *run)
{
    enum { JUDGED_AT_ONCE = 300000 };
    if (run->end == ENGINE_INTERRUPTED && run->totals && run->totals->undrawn)
        return true;
    return run->sample_count > JUDGED_AT_ONCE &&
           (run->end == ENGINE_INTERRUPTED || one_wish_is_noted());
}

int load_judge(const struct engine_result *run, uint64_t duration_ns,
               const struct method_settings *settings, struct load_summary *summary,
               struct method *method, struct error *err)
{
    struct method_settings taken = *settings;
    struct load_latencies kept;
    int status = load_summarise_keeping(run, duration_ns, summary, &kept, err);
    if (status < 0)
        return status;
    taken.closed_loop = run->closed_loop;
    if (run->closed_loop)
        taken.rate = summary->offered_rate;
    *method = (struct method){.settings = taken};
    if (is_hurried(run)) // nothing was found out
        load_summary_add_reason(summary, DOUBT_INTERRUPTED,
                                "interrupted: how the load was made was not judged");
    else
        status =
            method_judge_kept(run, &taken, summary->ok, summary->spin_fraction, &kept, method, err);
    free(kept.us);
    for (unsigned i = 0; status == 0 && i < method->reason_count; i++)
        load_summary_add_reason(summary, method->doubts[i], "%s", method->reasons[i]);
    if (settings->pattern.kind != PATTERN_CONSTANT || settings->recorded) // as of the target
        for (unsigned i = 0; i < SUMMARY_QUANTILES; i++)
            summary->latency.interval[i] = (struct quantile_interval){false, NAN, NAN};
    return status;
}

bool method_is_satisfied(const struct method *method)
{
    for (unsigned check = 0; check < METHOD_CHECKS; check++)
        if (method->findings[check] != METHOD_PASSED)
            return false;
    return true;
}
