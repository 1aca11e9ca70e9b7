// SPDX-License-Identifier: MIT
//
// The method's findings as JSON (docs/load-json.md) and for people.
#include <math.h>

#include "base/json_numbers.h"
#include "loadgen/method/method.h"

static const char *const check_names[METHOD_CHECKS] = {"load",         "client",       "arrivals",
                                                       "stationarity", "independence", "interval"};
static const char *const finding_names[] = {"unknown", "passed", "failed"};

static const char *source_name(enum stamp_source source)
{
    return source == STAMP_HARDWARE ? "hw" : source == STAMP_SOFTWARE ? "sw" : "user";
}

// --- JSON ----------------------------------------------------------------------------------------

static void set_number(json_t *object, const char *key, double value)
{
    json_object_set_new(object, key, json_number_or_null(value));
}

static void set_count(json_t *object, const char *key, size_t count)
{
    json_object_set_new(object, key, json_integer((json_int_t)count));
}

static void add_arrivals(json_t *json, const struct arrivals *arrivals)
{
    const struct exponential_fit *fit = &arrivals->fit;
    bool judged = arrivals->judged;
    json_t *object = json_object();
    if (fit->count) {
        set_number(object, "known_mean", fit->known_statistic);
        set_number(object, "known_mean_p", fit->known_p);
        set_number(object, "estimated_mean", fit->estimated_statistic);
        set_number(object, "estimated_mean_p", fit->estimated_p);
    }
    json_object_set_new(json, "anderson_darling", object);
    json_object_set_new(json, "send_times", json_string(source_name(arrivals->source)));
    set_count(json, "gaps", arrivals->gaps);
    set_count(json, "gaps_tested", arrivals->gaps_tested);
    set_number(json, "mean_gap_us", judged ? arrivals->mean_us : NAN);
    set_number(json, "cv", judged ? arrivals->variation : NAN);
    set_number(json, "ks_distance", judged ? arrivals->distance : NAN);
    set_number(json, "ks_best", judged ? arrivals->best : NAN);
    set_number(json, "ks_tolerance", judged ? arrivals->tolerance : NAN);
    set_count(json, "back_to_back_sends", arrivals->back_to_back);
    set_number(json, "back_to_back_us", arrivals->back_to_back_us);
    set_number(json, "back_to_back_min_us", arrivals->back_to_back_min_us);
}

static void add_client(json_t *json, const struct client_bias *client)
{
    json_t *object = json_object();
    bool judged = client->judged;
    set_number(object, "p50", judged ? client->lateness_p50_us : NAN);
    set_number(object, "p99", judged ? client->lateness_p99_us : NAN);
    set_number(object, "share_of_target", judged ? client->share : NAN);
    set_number(object, "reading_p99", judged ? client->reading_p99_us : NAN);
    json_object_set_new(json, "own_lateness_us", object);
}

static json_t *half_json(const struct half_quantile *half)
{
    return json_number_pair(half->first, half->second);
}

static void add_stationarity(json_t *json, const struct method *method)
{
    const struct stationarity *found = &method->stationarity;
    const struct dickey_fuller *test = &found->dickey_fuller;
    char percentile[32];
    json_t *object = json_object(), *halves = json_object();
    if (test->known) {
        set_number(object, "statistic", test->statistic);
        set_number(object, "p", test->p);
        set_count(object, "lags", test->lags);
        set_count(object, "observations", test->observations);
        set_number(object, "critical_1", test->critical[DICKEY_FULLER_1]);
        set_number(object, "critical_5", test->critical[DICKEY_FULLER_5]);
        set_number(object, "critical_10", test->critical[DICKEY_FULLER_10]);
    }
    set_number(json, "warmup_s", method->warm_up_s);
    set_number(json, "stolen_share", method->settings.stolen);
    json_object_set_new(json, "adf", object);
    set_number(json, "quarters_spread", found->judged ? found->quarters_spread : NAN);
    json_object_set_new(json, "trend_us",
                        found->judged ? json_number_pair(found->trend.begin, found->trend.end)
                                      : json_number_pair(NAN, NAN));
    set_number(json, "trend_p", found->judged ? found->trend.p : NAN);
    if (found->judged) {
        json_object_set_new(halves, "p50", half_json(&found->median));
        json_object_set_new(
            halves,
            method_percentile_name(method->settings.quantile, percentile, sizeof percentile),
            half_json(&found->target));
    }
    json_object_set_new(json, "halves_us", halves);
}

static void add_levels(json_t *json, const struct method *method)
{
    json_t *array = json_array();
    for (unsigned i = 0; i < method->levels.count; i++) {
        const struct level *level = &method->levels.items[i];
        json_t *object = json_object();
        set_number(object, "factor", level->factor);
        set_count(object, "scheduled", level->count);
        set_number(object, "p50_us", level->median_us);
        set_number(object, "target_us", level->target_us);
        json_object_set_new(object, "stationary",
                            level->stationarity.judged
                                ? json_boolean(level->stationarity.stationary)
                                : json_null());
        json_array_append_new(array, object);
    }
    json_object_set_new(json, "levels", array);
}

static json_t *correlations_json(const struct rank_correlation *lags)
{
    json_t *array = json_array();
    for (unsigned i = 0; i < INDEPENDENCE_LAGS; i++) {
        json_t *object = json_object();
        set_number(object, "rho", lags[i].rho);
        set_number(object, "p", lags[i].p);
        json_array_append_new(array, object);
    }
    return array;
}

static void add_independence(json_t *json, const struct independence *found)
{
    json_t *object = json_object();
    if (found->judged) {
        json_object_set_new(object, "unthinned", correlations_json(found->unthinned));
        json_object_set_new(object, "thinned", correlations_json(found->thinned));
    }
    json_object_set_new(json, "spearman", object);
    set_count(json, "thinning", found->thinning);
}

static void add_interval(json_t *json, const struct method *method)
{
    const struct percentile_interval *found = &method->interval;
    const struct method_settings *settings = &method->settings;
    json_t *object = json_object();
    set_number(object, "value", found->value);
    set_number(object, "low", found->interval.low);
    set_number(object, "high", found->interval.high);
    set_number(object, "width", found->width);
    set_number(object, "wanted", settings->width_us > 0 ? settings->width_us : NAN);
    set_count(object, "samples", found->count);
    set_number(object, "worth", found->worth);
    set_number(object, "needed_s", method->needed_s);
    set_number(object, "tail_index", found->tail_index);
    set_number(object, "shrinking", found->shrinking);
    set_number(object, "excess", found->excess);
    set_number(object, "clustering", found->clustering);
    json_object_set_new(object, "heavy_tail", json_boolean(found->heavy));
    json_object_set_new(json, "ci", object);
}

json_t *method_json(const struct method *method)
{
    char percentile[32];
    json_t *json = json_object(), *checks = json_object();
    if (!json || !checks) {
        json_decref(json);
        json_decref(checks);
        return NULL;
    }
    for (unsigned check = 0; check < METHOD_CHECKS; check++)
        json_object_set_new(checks, check_names[check],
                            json_string(finding_names[method->findings[check]]));
    json_object_set_new(json, "checks", checks);
    json_object_set_new(json, "target",
                        json_string(method_percentile_name(method->settings.quantile, percentile,
                                                           sizeof percentile)));
    set_number(json, "confidence", method->settings.confidence);
    add_arrivals(json, &method->arrivals);
    add_client(json, &method->client);
    add_stationarity(json, method);
    add_levels(json, method);
    add_independence(json, &method->independence);
    add_interval(json, method);
    return json;
}

// --- for people ----------------------------------------------------------------------------------

void method_print(const struct method *method, FILE *out)
{
    const struct percentile_interval *found = &method->interval;
    const struct arrivals *arrivals = &method->arrivals;
    char percentile[32];
    method_percentile_name(method->settings.quantile, percentile, sizeof percentile);
    fprintf(out, "  method    ");
    for (unsigned check = 0; check < METHOD_CHECKS; check++)
        fprintf(out, "%s %s %s", check ? "," : "", check_names[check],
                finding_names[method->findings[check]]);
    fprintf(out, "\n             warm-up %.3g s, one sample in %zu kept", method->warm_up_s,
            method->independence.thinning);
    if (arrivals->judged)
        fprintf(out, "; gaps %.3f from the process (best possible %.3f)", arrivals->distance,
                arrivals->best);
    fputc('\n', out);
    if (method->settings.pattern.kind != PATTERN_CONSTANT)
        fprintf(out,
                "             the rate changes: percentiles are of the whole mix of loads, with "
                "no interval\n");
    for (unsigned i = 0; i < method->levels.count; i++)
        fprintf(out, "             at %.4g times the rate: p50 %.1f us, %s %.1f us\n",
                method->levels.items[i].factor, method->levels.items[i].median_us, percentile,
                method->levels.items[i].target_us);
    if (!isnan(found->value))
        fprintf(out, "             %s %.1f us", percentile, found->value);
    if (found->interval.known)
        fprintf(out, ", %.10g %% interval %.1f to %.1f us of %zu samples, worth %.0f",
                method->settings.confidence * 100, found->interval.low, found->interval.high,
                found->count, found->worth);
    fputc('\n', out);
}
