// SPDX-License-Identifier: MIT
#include "loadgen/method/method_levels.h"

#include <math.h>
#include <stdlib.h>

#include "base/quantile.h"

static int judge_level(const double *values, double q, double *work, struct level *level,
                       struct error *err)
{
    size_t warm_up;
    int status = stationarity_warm_up(values, level->count, &warm_up, err);
    if (status < 0)
        return status;
    size_t rest = level->count - warm_up;
    level->median_us = quantile_of(values + warm_up, rest, 0.5, work);
    level->target_us = quantile_of(values + warm_up, rest, q, work);
    return stationarity_judge(values + warm_up, rest, q, &level->stationarity, err);
}

int levels_judge(const struct engine_result *run, const double *values,
                 const struct rate_pattern *pattern, double duration_s, double q,
                 struct levels *levels, struct error *err)
{
    *levels = (struct levels){0};
    if (pattern->kind != PATTERN_STEP || run->sample_count == 0)
        return 0;
    double *work = malloc(run->sample_count * sizeof *work);
    if (!work)
        return error_set(err, ERROR_FAILED, "out of memory for the levels of %zu requests",
                         run->sample_count);
    size_t first = 0;
    int status = 0;
    for (unsigned i = 0; i < pattern->count && status == 0; i++) {
        double end_s = duration_s * (i + 1) / pattern->count;
        size_t end = first;
        while (end < run->sample_count &&
               (double)(run->samples[end].intended_tsc - run->start_tsc) / run->tsc_hz < end_s)
            end++;
        struct level *level = &levels->items[levels->count++];
        *level = (struct level){.factor = pattern->values[i], .count = end - first};
        status = judge_level(values + first, q, work, level, err);
        first = end;
    }
    free(work);
    return status;
}

const struct level *levels_unsteady(const struct levels *levels)
{
    for (unsigned i = 0; i < levels->count; i++)
        if (!levels->items[i].stationarity.stationary)
            return &levels->items[i];
    return NULL;
}
