// SPDX-License-Identifier: MIT
#include "loadgen/load_curve.h"

#include <math.h>
#include <stdio.h>

#include "base/hash.h"
#include "base/json_numbers.h"
#include "base/progress.h"
#include "base/text.h"
#include "loadgen/load_agents.h"

const char *const curve_finding_names[] = {"met", "missed", "undecided"};

enum { P50 = 0, P99 = 2, P999 = 3, SHOWN = 3 }; // of summary_quantiles
static const unsigned shown[SHOWN] = {P50, P99, P999};

int load_curve_take(struct load_curve *curve, struct load_plan *plan, double rate,
                    uint64_t duration_ns, struct load_outcome *outcome, struct error *err)
{
    const struct load_options *o = &plan->options;
    duration_ns = load_plan_duration_ns(plan, rate, duration_ns);
    size_t number = curve->points.count;
    // The first load has the seed of a plain load, so that it is the same.
    struct curve_point point = {
        .asked = {rate, duration_ns, number ? hash64(o->seed + number) >> 11 : o->seed}};
    load_plan_phase(plan, "loading %s for %s at %s %srequest%s/s on %s connection%s",
                    plan->server.text, TEXT_NS((double)duration_ns), TEXT_COUNT(round(rate)),
                    plan->workload.fanout > 1 ? "logical " : "", text_plural(rate),
                    TEXT_COUNT(o->connections), text_plural((double)o->connections));
    int status = load_run_once(plan, &point.asked, outcome, err);
    progress_end(&plan->progress);
    if (status == 0) {
        point.summary = outcome->summary;
        point.interrupted = outcome->result.end == ENGINE_INTERRUPTED;
        point.broken = outcome->result.end == ENGINE_BROKEN;
        if (outcome->agents)
            load_agents_point(outcome->agents, &point.summary, &point.saturation);
        else
            load_saturation_judge(&outcome->result, &outcome->summary, &point.saturation);
        if (array_push(&curve->points, point) < 0)
            status =
                error_set(err, ERROR_FAILED, "out of memory for %s runs", TEXT_COUNT(number + 1));
    }
    load_outcome_free(outcome);
    return status;
}

void load_curve_free(struct load_curve *curve)
{
    array_free(&curve->points);
}

// --- JSON ----------------------------------------------------------------------------------------

static json_t *percentiles_json(const struct load_percentiles *found)
{
    json_t *object = json_object();
    for (unsigned i = 0; i < SHOWN; i++)
        json_set_percentile(object, summary_quantile_names[shown[i]], found->us[shown[i]]);
    return object;
}

static json_t *intervals_json(const struct load_percentiles *found)
{
    json_t *object = json_object();
    for (unsigned i = 0; i < SHOWN; i++)
        json_object_set_new(object, summary_quantile_names[shown[i]],
                            json_interval_or_null(&found->interval[shown[i]]));
    return object;
}

static json_t *point_json(const struct curve_point *point, bool search)
{
    const struct load_summary *summary = &point->summary;
    json_t *reasons = json_array();
    for (unsigned i = 0; i < summary->reason_count; i++)
        json_array_append_new(reasons, json_string(summary->reasons[i]));
    json_t *json = json_pack(
        "{s:f,s:f,s:I,s:o,s:o,s:I,s:I,s:o,s:o,s:s,s:o,s:o,s:o}", "rate", point->asked.rate,
        "duration_s", summary->duration_s, "seed", (json_int_t)point->asked.seed, "offered_rate",
        json_number_or_null(summary->offered_rate), "achieved_rate",
        json_number_or_null(summary->achieved_rate), "scheduled", (json_int_t)summary->scheduled,
        "answered", (json_int_t)summary->answered, "latency_us",
        percentiles_json(&summary->latency), "ci_us", intervals_json(&summary->latency), "verdict",
        summary->ok ? "ok" : "n/a", "reasons", reasons, "spin_fraction",
        json_number_or_null(summary->spin_fraction), "saturated",
        load_saturation_json(&point->saturation));
    if (json && search) {
        json_object_set_new(json, "target_us", json_number_or_null(point->target_us));
        json_object_set_new(json, "target_ci_us", json_interval_or_null(&point->target));
        json_object_set_new(json, "slo", json_string(curve_finding_names[point->finding]));
        json_object_set_new(json, "slo_why", json_string(point->why));
    }
    return json;
}

json_t *load_curve_json(const struct load_curve *curve, const struct load_plan *plan,
                        const char *kind)
{
    const struct load_options *o = &plan->options;
    json_t *points = json_array(), *agents = o->agents.count ? json_array() : json_null();
    for (size_t i = 0; i < curve->points.count; i++)
        json_array_append_new(points, point_json(&curve->points.items[i], o->slo != NULL));
    for (size_t i = 0; i < o->agents.count; i++)
        json_array_append_new(agents, json_string(o->agents.items[i]));
    return json_pack("{s:s,s:s,s:s,s:s?,s:s,s:s,s:i,s:I,s:I,s:o,s:o,s:o}", "kind", kind, "server",
                     plan->server.text, "protocol", plan->workload.protocol->name, "workload",
                     o->workload, "arrivals", plan->arrivals, "pattern", plan->pattern, "fanout",
                     (int)plan->workload.fanout, "seed", (json_int_t)o->seed, "connections",
                     (json_int_t)o->connections, "depth",
                     o->depth ? json_integer((json_int_t)o->depth) : json_null(), "agents", agents,
                     "points", points);
}

// --- for people ----------------------------------------------------------------------------------

void load_curve_print_head(void)
{
    printf("%10s %10s", "offered/s", "achieved/s");
    for (unsigned i = 0; i < SHOWN; i++)
        printf("  %8s %-20s", summary_quantile_names[shown[i]], "[95 %]");
    printf("  %-9s %s\n", "saturated", "verdict");
}

static void print_us(const struct load_percentiles *found, unsigned i)
{
    char interval[96] = "-";
    const struct quantile_interval *bounds = &found->interval[i];
    if (bounds->known)
        snprintf(interval, sizeof interval, "[%s, %s]", TEXT_US(bounds->low),
                 TEXT_US(bounds->high));
    printf("  %8s %-20s", TEXT_US(found->us[i]), interval);
}

void load_curve_print(const struct curve_point *point)
{
    const struct load_summary *summary = &point->summary;
    printf("%10s %10s", TEXT_RATE(summary->offered_rate), TEXT_RATE(summary->achieved_rate));
    for (unsigned i = 0; i < SHOWN; i++)
        print_us(&summary->latency, shown[i]);
    printf("  %-9s %s\n", point->saturation.who ? saturation_names[point->saturation.who] : "-",
           summary->ok ? "ok" : "n/a");
    if (!summary->ok)
        printf("           - %s\n",
               point->saturation.who ? point->saturation.why : summary->reasons[0]);
    fflush(stdout);
}
