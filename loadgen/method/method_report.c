// SPDX-License-Identifier: MIT
//
// The method's findings as JSON (docs/load-json.md) and for people.
#include <math.h>

#include "base/json_numbers.h"
#include "base/json_rows.h"
#include "base/text.h"
#include "loadgen/method/method.h"

static const char *const check_names[METHOD_CHECKS] = {"load",         "client",       "arrivals",
                                                       "stationarity", "independence", "interval"};
static const char *const finding_names[] = {"unknown", "passed", "failed"};

static const char *source_name(enum stamp_source source)
{
    return source == STAMP_HARDWARE ? "hw" : source == STAMP_SOFTWARE ? "sw" : "user";
}

// --- JSON ----------------------------------------------------------------------------------------

#define FIT(key, member) JSON_ROW(key, struct exponential_fit, member)
static const struct json_row fit_rows[] = {
    FIT("known_mean", known_statistic),
    FIT("known_mean_p", known_p),
    FIT("estimated_mean", estimated_statistic),
    FIT("estimated_mean_p", estimated_p),
};

#define ARRIVALS(key, member) JSON_ROW(key, struct arrivals, member)
static const struct json_row gap_rows[] = {ARRIVALS("gaps", gaps),
                                           ARRIVALS("gaps_tested", gaps_tested)};
static const struct json_row arrival_rows[] = { // when they are judged
    ARRIVALS("mean_gap_us", mean_us), ARRIVALS("cv", variation), ARRIVALS("ks_distance", distance),
    ARRIVALS("ks_best", best), ARRIVALS("ks_tolerance", tolerance)};
static const struct json_row back_to_back_rows[] = {
    ARRIVALS("back_to_back_sends", back_to_back), ARRIVALS("back_to_back_us", back_to_back_us),
    ARRIVALS("back_to_back_min_us", back_to_back_min_us)};

static void add_arrivals(json_t *json, const struct arrivals *arrivals)
{
    const struct exponential_fit *fit = &arrivals->fit;
    json_object_set_new(json, "anderson_darling",
                        fit->count ? json_rows_set(json_object(), fit_rows, fit) : json_object());
    json_object_set_new(json, "send_times", json_string(source_name(arrivals->source)));
    json_rows_set(json, gap_rows, arrivals);
    json_rows_set(json, arrival_rows, arrivals->judged ? arrivals : NULL);
    json_rows_set(json, back_to_back_rows, arrivals);
}

#define CLIENT(key, member) JSON_ROW(key, struct client_bias, member)
static const struct json_row client_rows[] = {
    CLIENT("p50", lateness_p50_us), CLIENT("p99", lateness_p99_us),
    CLIENT("share_of_target", share), CLIENT("reading_p99", reading_p99_us)};

static json_t *half_json(const struct half_quantile *half)
{
    return json_number_pair(half->first, half->second);
}

#define TEST(key, member) JSON_ROW(key, struct dickey_fuller, member)
static const struct json_row dickey_fuller_rows[] = {
    TEST("statistic", statistic),
    TEST("p", p),
    TEST("lags", lags),
    TEST("observations", observations),
    TEST("critical_1", critical[DICKEY_FULLER_1]),
    TEST("critical_5", critical[DICKEY_FULLER_5]),
    TEST("critical_10", critical[DICKEY_FULLER_10]),
};

static const struct json_row warm_up_rows[] = {
    JSON_ROW("warmup_s", struct method, warm_up_s),
    JSON_ROW("stolen_share", struct method, settings.stolen)};

static void add_stationarity(json_t *json, const struct method *method)
{
    const struct stationarity *found = &method->stationarity;
    const struct dickey_fuller *test = &found->dickey_fuller;
    char percentile[32];
    json_t *halves = json_object();
    json_rows_set(json, warm_up_rows, method);
    json_object_set_new(json, "adf",
                        test->known ? json_rows_set(json_object(), dickey_fuller_rows, test)
                                    : json_object());
    json_object_set_new(json, "quarters_spread",
                        json_number_or_null(found->judged ? found->quarters_spread : NAN));
    json_object_set_new(json, "trend_us",
                        found->judged ? json_number_pair(found->trend.begin, found->trend.end)
                                      : json_number_pair(NAN, NAN));
    json_object_set_new(json, "trend_p", json_number_or_null(found->judged ? found->trend.p : NAN));
    if (found->judged) {
        json_object_set_new(halves, "p50", half_json(&found->median));
        json_object_set_new(
            halves,
            method_percentile_name(method->settings.quantile, percentile, sizeof percentile),
            half_json(&found->target));
    }
    json_object_set_new(json, "halves_us", halves);
}

#define LEVEL(key, member) JSON_ROW(key, struct level, member)
static const struct json_row level_rows[] = {LEVEL("factor", factor), LEVEL("scheduled", count),
                                             LEVEL("p50_us", median_us),
                                             LEVEL("target_us", target_us)};

static void add_levels(json_t *json, const struct method *method)
{
    json_t *array = json_array();
    for (unsigned i = 0; i < method->levels.count; i++) {
        const struct level *level = &method->levels.items[i];
        json_t *object = json_rows_set(json_object(), level_rows, level);
        json_object_set_new(object, "stationary",
                            level->stationarity.judged
                                ? json_boolean(level->stationarity.stationary)
                                : json_null());
        json_array_append_new(array, object);
    }
    json_object_set_new(json, "levels", array);
}

static const struct json_row correlation_rows[] = {JSON_ROW("rho", struct rank_correlation, rho),
                                                   JSON_ROW("p", struct rank_correlation, p)};

static json_t *correlations_json(const struct rank_correlation *lags)
{
    json_t *array = json_array();
    for (unsigned i = 0; i < INDEPENDENCE_LAGS; i++)
        json_array_append_new(array, json_rows_set(json_object(), correlation_rows, &lags[i]));
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
    json_object_set_new(json, "thinning", json_integer((json_int_t)found->thinning));
}

#define INTERVAL(key, member) JSON_ROW(key, struct method, interval.member)
static const struct json_row bound_rows[] = {
    INTERVAL("value", value), INTERVAL("low", interval.low), INTERVAL("high", interval.high),
    INTERVAL("width", width)};
static const struct json_row interval_rows[] = {
    INTERVAL("samples", count),
    INTERVAL("worth", worth),
    JSON_ROW("needed_s", struct method, needed_s),
    INTERVAL("tail_index", tail_index),
    INTERVAL("shrinking", shrinking),
    INTERVAL("excess", excess),
    INTERVAL("clustering", clustering),
    INTERVAL("heavy_tail", heavy),
};

static json_t *interval_json(const struct method *method)
{
    const double wanted = method->settings.width_us;
    json_t *object = json_rows_set(json_object(), bound_rows, method);
    json_object_set_new(object, "wanted", wanted > 0 ? json_real(wanted) : json_null());
    json_rows_set(object, interval_rows, method);
    return object;
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
    json_object_set_new(json, "confidence", json_real(method->settings.confidence));
    add_arrivals(json, &method->arrivals);
    json_object_set_new(
        json, "own_lateness_us",
        json_rows_set(json_object(), client_rows, method->client.judged ? &method->client : NULL));
    add_stationarity(json, method);
    add_levels(json, method);
    add_independence(json, &method->independence);
    json_object_set_new(json, "ci", interval_json(method));
    return json;
}

// --- for people ----------------------------------------------------------------------------------

// Whether the table of percentiles has the target with the same interval.
static bool target_is_in_table(const struct method_settings *settings)
{
    for (unsigned i = 0; i < SUMMARY_QUANTILES; i++)
        if (settings->confidence == summary_confidence &&
            fabs(settings->quantile - summary_quantiles[i]) < 1e-12)
            return true;
    return false;
}

static void print_target(const struct method *method, const char *percentile, FILE *out)
{
    const struct percentile_interval *found = &method->interval;
    const struct method_settings *settings = &method->settings;
    if (!quantile_is_seen(found->count, settings->quantile))
        return;
    if (!target_is_in_table(settings)) {
        fprintf(out, "             %s %s", percentile, TEXT_US(found->value));
        if (found->interval.known)
            fprintf(out, ", %.10g %% interval %s to %s", settings->confidence * 100,
                    TEXT_US(found->interval.low), TEXT_US(found->interval.high));
        fputc('\n', out);
    }
    const double worth = round(found->worth), all = (double)found->count;
    if (found->interval.known && worth < all)
        fprintf(out,
                "             %s requests tell as much of %s as %s independent ones: its interval "
                "is as wide\n",
                TEXT_COUNT(all), percentile, TEXT_COUNT(worth));
    else if (found->interval.known)
        fprintf(out, "             %s requests, for %s as good as independent of one another\n",
                TEXT_COUNT(all), percentile);
}

void method_print(const struct method *method, FILE *out)
{
    const struct arrivals *arrivals = &method->arrivals;
    char percentile[32];
    method_percentile_name(method->settings.quantile, percentile, sizeof percentile);
    fprintf(out, "  method    ");
    for (unsigned check = 0; check < METHOD_CHECKS; check++)
        fprintf(out, "%s %s %s", check ? "," : "", check_names[check],
                finding_names[method->findings[check]]);
    fprintf(out, "\n             warm-up %s", TEXT_NS(1e9 * method->warm_up_s));
    if (method->independence.thinning) // 0: nobody asked how they depend on one another
        fprintf(out, ", one sample in %s kept", TEXT_COUNT(method->independence.thinning));
    if (arrivals->judged)
        fprintf(out, "; gaps %.3f from the process (best possible %.3f)", arrivals->distance,
                arrivals->best);
    fputc('\n', out);
    if (method->settings.pattern.kind != PATTERN_CONSTANT)
        fprintf(out,
                "             the rate changes: percentiles are of the whole mix of loads, with "
                "no interval\n");
    for (unsigned i = 0; i < method->levels.count; i++)
        fprintf(out, "             at %.4g times the rate: p50 %s, %s %s\n",
                method->levels.items[i].factor, TEXT_US(method->levels.items[i].median_us),
                percentile, TEXT_US(method->levels.items[i].target_us));
    print_target(method, percentile, out);
}
