// SPDX-License-Identifier: MIT
#include "analysis/run/run_analysis.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// Smaller differences mean nothing even with perfect clocks: a record is taken some time after what
// it records, and that time varies (NSight measured 322 ns).
#define SMALLEST_GRANULARITY_NS 500.0

const double latency_quantiles[LATENCY_QUANTILES] = {0.5, 0.9, 0.99, 0.999, 0.9999, 1};
const char *const latency_quantile_names[LATENCY_QUANTILES] = {"p50",   "p90",    "p99",
                                                               "p99.9", "p99.99", "max"};

const struct diagnosis *run_diagnosis_of(const struct run_analysis *run, size_t number,
                                         enum lifetime_part part)
{
    const struct diagnosis_array *all =
        part ? &run->findings.part_diagnoses : &run->findings.diagnoses;
    size_t at = part ? number * (PARTS - 1) + part - 1 : number;
    return at < all->count ? &all->items[at] : NULL;
}

double run_diagnosis_extra_ns(const struct diagnosis *diagnosis)
{
    double sum = 0;
    for (size_t i = 0; i < diagnosis->messages.count; i++)
        if (isfinite(diagnosis->messages.items[i].deviation_ns))
            sum += fmax(diagnosis->messages.items[i].deviation_ns, 0);
    return sum;
}

void run_diagnosis_input(const struct run_analysis *run, struct diagnosis_input *out)
{
    *out = (struct diagnosis_input){
        .lifetimes = run->lifetimes.all.items,
        .lifetime_count = run->lifetimes.all.count,
        .server = run->evidence.has_events ? &run->evidence.server : NULL,
        .application_threads = run->evidence.application_threads,
        .application_thread_count = run->evidence.application_thread_count,
        .applications = &run->lifetimes.applications,
        .granularity_ns = fmax(SMALLEST_GRANULARITY_NS, run->evidence.clock_error_ns),
        .calls = run->evidence.has_calls ? &run->evidence.calls : NULL,
        .order = &run->lifetimes.order,
        .categories =
            run->findings.categories.table.rules.count ? &run->findings.categories.table : NULL,
        .overhead = overhead_of_capture(run->evidence.capture, run->evidence.has_calls),
    };
}

static const char *name_or(const json_t *name, const char *otherwise)
{
    return json_string_length(name) > 0 ? json_string_value(name) : otherwise;
}

const char *run_stage_machine(const struct run_analysis *run, enum stamp_kind ends_at)
{
    enum core_role role = stage_role(ends_at);
    if (!run->lifetimes.join.hosts.apart || role == ROLE_NETWORK)
        return "";
    const json_t *load = json_object_get(run->evidence.experiment, "load");
    if (role == ROLE_CLIENT)
        return name_or(json_object_get(load, "from"), "client");
    const char *server = json_string_value(json_object_get(load, "to"));
    const json_t *servers = json_object_get(run->evidence.experiment, "servers");
    const json_t *one = server ? json_object_get(servers, server) : NULL;
    return name_or(json_object_get(one, "host"), "server");
}

void run_analysis_free(struct run_analysis *analysis)
{
    run_categories_free(&analysis->findings.categories);
    json_decref(analysis->evidence.experiment);
    json_decref(analysis->evidence.load);
    json_decref(analysis->evidence.capture);
    json_decref(analysis->evidence.facts);
    array_free(&analysis->lifetimes.all);
    host_timeline_free(&analysis->evidence.server);
    run_samples_free(&analysis->evidence.samples);
    array_free(&analysis->evidence.calls);
    service_order_free(&analysis->lifetimes.order);
    applications_free(&analysis->lifetimes.applications);
    free(analysis->evidence.application_threads);
    for (size_t i = 0; i < analysis->findings.diagnoses.count; i++)
        diagnosis_free(&analysis->findings.diagnoses.items[i]);
    for (size_t i = 0; i < analysis->findings.part_diagnoses.count; i++)
        diagnosis_free(&analysis->findings.part_diagnoses.items[i]);
    array_free(&analysis->findings.diagnoses);
    array_free(&analysis->findings.part_diagnoses);
    memset(analysis, 0, sizeof *analysis);
}
