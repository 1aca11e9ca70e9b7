// SPDX-License-Identifier: MIT
#include "analysis/run/run_statistics.h"

#include <math.h>
#include <stdlib.h>
#include "base/array.h"

#define CONFIDENCE 0.95

static void count_requests(struct run_analysis *run)
{
    run->lifetimes.scheduled = run->lifetimes.all.count;
    for (size_t i = 0; i < run->lifetimes.all.count; i++) {
        const struct lifetime *life = &run->lifetimes.all.items[i];
        run->lifetimes.states[life->state]++;
        run->lifetimes.sent += lifetime_has(life, STAMP_SEND);
        run->lifetimes.answered += life->status <= SAMPLE_ERROR_REPLY;
        run->lifetimes.unsent += life->status == SAMPLE_UNSENT;
        run->lifetimes.timed_out += life->status == SAMPLE_TIMED_OUT;
        run->lifetimes.lost += life->status == SAMPLE_LOST;
    }
}

// Requests per second: what the schedule asked for, and what was answered until the last reply.
static void compute_rates(struct run_analysis *run)
{
    int64_t last_reply = INT64_MIN;
    run->lifetimes.begin_ns = INT64_MAX;
    run->lifetimes.end_ns = INT64_MIN;
    for (size_t i = 0; i < run->lifetimes.all.count; i++) {
        const struct lifetime *life = &run->lifetimes.all.items[i];
        int64_t intended = life->stamp_ns[STAMP_INTENDED];
        if (!lifetime_has(life, STAMP_INTENDED))
            continue;
        run->lifetimes.begin_ns =
            intended < run->lifetimes.begin_ns ? intended : run->lifetimes.begin_ns;
        run->lifetimes.end_ns = intended > run->lifetimes.end_ns ? intended : run->lifetimes.end_ns;
        if (lifetime_has(life, STAMP_REPLY_READ) && life->stamp_ns[STAMP_REPLY_READ] > last_reply)
            last_reply = life->stamp_ns[STAMP_REPLY_READ];
    }
    if (run->lifetimes.begin_ns > run->lifetimes.end_ns) // no usable stamp at all
        run->lifetimes.begin_ns = run->lifetimes.end_ns = 0;
    double scheduled_s = (double)(run->lifetimes.end_ns - run->lifetimes.begin_ns) / 1e9;
    run->lifetimes.offered_rate =
        scheduled_s > 0 ? (double)(run->lifetimes.scheduled - 1) / scheduled_s : (double)NAN;
    int64_t until = last_reply > run->lifetimes.end_ns ? last_reply : run->lifetimes.end_ns;
    double whole_s = (double)(until - run->lifetimes.begin_ns) / 1e9;
    run->lifetimes.achieved_rate =
        whole_s > 0 ? (double)run->lifetimes.answered / whole_s : (double)NAN;
}

static void summarise(double *values, size_t count, struct latency_summary *out)
{
    quantile_sort(values, count);
    for (int i = 0; i < LATENCY_QUANTILES; i++) {
        out->value_ns[i] = quantile_sorted(values, count, latency_quantiles[i]);
        out->interval_ns[i] =
            quantile_interval_sorted(values, count, latency_quantiles[i], CONFIDENCE);
    }
}

static void summarise_latencies(struct run_analysis *run, double *values)
{
    size_t count = 0;
    for (size_t i = 0; i < run->lifetimes.all.count; i++)
        values[count++] = run->lifetimes.all.items[i].latency_ns;
    summarise(values, count, &run->lifetimes.latency);
    count = 0;
    for (size_t i = 0; i < run->lifetimes.all.count; i++)
        if (!isnan(run->lifetimes.all.items[i].uncorrected_latency_ns))
            values[count++] = run->lifetimes.all.items[i].uncorrected_latency_ns;
    summarise(values, count, &run->lifetimes.uncorrected_latency);
    count = 0;
    for (size_t i = 0; i < run->lifetimes.all.count; i++) {
        const struct lifetime *life = &run->lifetimes.all.items[i];
        if (lifetime_has(life, STAMP_SEND) && lifetime_has(life, STAMP_INTENDED))
            values[count++] = (double)(life->stamp_ns[STAMP_SEND] - life->stamp_ns[STAMP_INTENDED]);
    }
    quantile_sort(values, count);
    run->lifetimes.lateness_p50_ns = quantile_sorted(values, count, 0.5);
    run->lifetimes.lateness_p99_ns = quantile_sorted(values, count, 0.99);
}

static int by_latency(const void *left, const void *right)
{
    const struct lifetime *a = *(const struct lifetime *const *)left;
    const struct lifetime *b = *(const struct lifetime *const *)right;
    if (a->latency_ns < b->latency_ns || a->latency_ns > b->latency_ns)
        return a->latency_ns < b->latency_ns ? -1 : 1;
    return order_of(a->request, b->request);
}

// How many messages on either side of the quantile to average: a tenth of those beyond it, but at
// least five, because fewer would show chance rather than the quantile. The maximum is one message.
static void band_around(double quantile, size_t count, size_t *low, size_t *high)
{
    double rank = quantile * (double)count;
    double beyond = fmin(quantile, 1 - quantile) * (double)count;
    double half = quantile < 1 ? fmax(5, beyond / 10) : 1;
    *low = rank - half > 0 ? (size_t)(rank - half) : 0;
    *high = rank + half < (double)count ? (size_t)(rank + half) : count;
}

// The requests whose stages count: those with every stamp, or all that were answered.
static size_t select_lifetimes(const struct run_analysis *run, bool whole,
                               const struct lifetime **out)
{
    size_t count = 0;
    for (size_t i = 0; i < run->lifetimes.all.count; i++) {
        const struct lifetime *life = &run->lifetimes.all.items[i];
        if (life->state == LIFETIME_WHOLE || (!whole && isfinite(life->latency_ns)))
            out[count++] = life;
    }
    return count;
}

// Means, because they add up: a quantile's stages together are the mean latency of its band.
static int compute_stages(struct run_analysis *run)
{
    const struct lifetime **lives = malloc((run->lifetimes.all.count + 1) * sizeof *lives);
    if (!lives)
        return -1;
    size_t count = select_lifetimes(run, true, lives);
    if (count == 0) // a source was not captured at all: use the stages that are known, merged
        count = select_lifetimes(run, false, lives);
    qsort(lives, count, sizeof *lives, by_latency);
    for (int q = 0; q < LATENCY_QUANTILES; q++) {
        size_t low, high;
        band_around(latency_quantiles[q], count, &low, &high);
        for (int stage = 0; stage < STAGES; stage++) {
            double sum = 0;
            for (size_t i = low; i < high; i++)
                sum += lives[i]->stage_ns[stage];
            run->lifetimes.stage_at_quantile_ns[q][stage] =
                high > low ? sum / (double)(high - low) : NAN;
        }
    }
    free(lives);
    return 0;
}

static void check_stage_sums(struct run_analysis *run)
{
    for (size_t i = 0; i < run->lifetimes.all.count; i++) {
        const struct lifetime *life = &run->lifetimes.all.items[i];
        if (!isfinite(life->latency_ns))
            continue;
        double sum = 0;
        for (int stage = 0; stage < STAGES; stage++)
            sum += life->stage_ns[stage];
        double error = fabs(sum - life->latency_ns);
        if (error > run->lifetimes.worst_stage_sum_error_ns)
            run->lifetimes.worst_stage_sum_error_ns = error;
    }
}

int run_statistics(struct run_analysis *run)
{
    double *values = malloc((run->lifetimes.all.count + 1) * sizeof *values);
    if (!values)
        return -1;
    count_requests(run);
    compute_rates(run);
    summarise_latencies(run, values);
    check_stage_sums(run);
    int result = compute_stages(run);
    free(values);
    return result;
}
