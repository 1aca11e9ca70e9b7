// SPDX-License-Identifier: MIT
#include "loadgen/agents/agent_findings.h"

#include <math.h>

int agents_measured_add(struct agents_measured *measured, const struct fleet_outcome *fleet,
                        bool first, struct error *err)
{
    for (size_t i = 0; i < fleet->count; i++) {
        const struct engine_result *result = &fleet->agents[i].result;
        struct agent_latencies *latencies = &measured->agents[i];
        if (first)
            latencies->count = 0;
        if (fleet->agents[i].lost[0] || !agent_kind_measures(fleet->agents[i].spec->kind))
            continue;
        if (array_reserve(latencies, latencies->count + result->sample_count) < 0)
            return error_set(err, ERROR_FAILED, "out of memory for the latencies of agent %s",
                             fleet->agents[i].spec->name);
        for (size_t k = 0; k < result->sample_count; k++)
            latencies->items[latencies->count++] =
                sample_latency_us(&result->samples[k], result->tsc_hz);
    }
    return 0;
}

void agents_measured_free(struct agents_measured *measured)
{
    for (size_t i = 0; i < AGENTS_MAX; i++)
        array_free(&measured->agents[i]);
}

int agents_measured_judge(const struct agents_measured *measured, const struct fleet_outcome *fleet,
                          const struct method_settings *settings, struct agent_finding *findings,
                          size_t *count, struct error *err)
{
    *count = 0;
    if (settings->pattern.kind != PATTERN_CONSTANT || settings->recorded)
        return 0;
    for (size_t i = 0; i < fleet->count; i++) {
        const struct agent_latencies *latencies = &measured->agents[i];
        struct percentile_interval found;
        size_t warm_up;
        if (latencies->count == 0)
            continue;
        int status = stationarity_warm_up(latencies->items, latencies->count, &warm_up, err);
        if (status == 0)
            status =
                percentile_interval_take(latencies->items + warm_up, latencies->count - warm_up, 1,
                                         settings->quantile, settings->confidence, &found, err);
        if (status < 0)
            return status;
        findings[(*count)++] = (struct agent_finding){fleet->agents[i].spec->name, found.value,
                                                      found.interval.low, found.interval.high};
    }
    return 0;
}

size_t agent_disagreements(const struct agent_finding *findings, size_t count,
                           struct agent_disagreement *pairs, size_t room)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < count; j++)
            if (findings[i].high < findings[j].low) { // false for NaN
                if (found < room)
                    pairs[found] = (struct agent_disagreement){i, j};
                found++;
            }
    return found;
}
