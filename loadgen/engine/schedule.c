// SPDX-License-Identifier: MIT
#include "loadgen/engine/schedule.h"

#include <gsl/gsl_rng.h>
#include <math.h>
#include <string.h>

#include "base/array.h"
#include "base/hash.h"

enum { SCHEDULE_REQUESTS_MAX = INT32_MAX };

enum stream { STREAM_TIMES, STREAM_OPERATIONS, STREAM_KEYS, STREAMS };

static gsl_rng *open_stream(uint64_t seed, enum stream stream)
{
    gsl_rng *random = gsl_rng_alloc(gsl_rng_mt19937);
    // The generator takes 32 bits of seed, and 0 as "the default".
    if (random)
        gsl_rng_set(random, (hash64(hash64(seed) + stream) & 0xfffffffe) + 1);
    return random;
}

static int open_streams(uint64_t seed, gsl_rng *streams[STREAMS], struct error *err)
{
    int result = 0;
    for (unsigned i = 0; i < STREAMS; i++) {
        streams[i] = open_stream(seed, i);
        if (!streams[i])
            result = error_set(err, ERROR_FAILED, "out of memory for the schedule");
    }
    return result;
}

static void close_streams(gsl_rng *streams[STREAMS])
{
    for (unsigned i = 0; i < STREAMS; i++)
        if (streams[i])
            gsl_rng_free(streams[i]);
}

static uint8_t draw_operation(const struct workload *workload, double sum, gsl_rng *random)
{
    double at = gsl_rng_uniform(random) * sum;
    uint8_t last = 0;
    for (uint8_t i = 0; i < WORKLOAD_OPERATIONS; i++) {
        if (workload->mix[i] <= 0)
            continue;
        last = i;
        if (at < workload->mix[i])
            return i;
        at -= workload->mix[i];
    }
    return last; // rounding
}

static double weights_sum(const struct workload *workload)
{
    double sum = 0;
    for (unsigned i = 0; i < WORKLOAD_OPERATIONS; i++)
        sum += workload->mix[i];
    return sum;
}

static int draw_all(const struct workload *workload, const struct distribution *gaps,
                    double ns_per_gap, uint64_t duration_ns, gsl_rng *streams[STREAMS],
                    struct schedule *schedule, struct error *err)
{
    struct rank_sampler keys;
    rank_sampler_init(&keys, &workload->popularity, workload->key_count);
    double sum = weights_sum(workload);
    // Drawn for a constant rate over the pattern's integral, then moved to where the integral
    // reaches it.
    const struct rate_pattern *pattern = &workload->pattern;
    double duration = (double)duration_ns, x = 0;
    double end = rate_pattern_integral(pattern, 1) * duration;
    double at = distribution_sample(gaps, streams[STREAM_TIMES]) * ns_per_gap;
    while (at < end) {
        if (pattern->kind != PATTERN_CONSTANT)
            x = rate_pattern_inverse(pattern, at / duration, x);
        double offset_ns =
            pattern->kind == PATTERN_CONSTANT ? at : fmin(x * duration, duration - 1);
        const struct scheduled_request request = {
            .offset_ns = (uint64_t)offset_ns,
            .key = (uint32_t)rank_sample(&keys, streams[STREAM_KEYS]),
            .operation = draw_operation(workload, sum, streams[STREAM_OPERATIONS]),
        };
        // A shape may have most of its weight near 0: such gaps would never fill the duration.
        if (schedule->count == SCHEDULE_REQUESTS_MAX)
            return error_set(err, ERROR_INPUT,
                             "the arrivals come to more than 2 billion requests in %.3f s",
                             (double)duration_ns / 1e9);
        if (array_push(schedule, request) < 0)
            return error_set(err, ERROR_FAILED, "out of memory for a schedule of %zu requests",
                             schedule->count);
        at += distribution_sample(gaps, streams[STREAM_TIMES]) * ns_per_gap;
    }
    return 0;
}

int schedule_draw(const struct workload *workload, const struct distribution *arrivals, double rate,
                  uint64_t duration_ns, uint64_t seed, struct schedule *schedule, struct error *err)
{
    *schedule = (struct schedule){0};
    double expected =
        rate * (double)duration_ns / 1e9 * rate_pattern_integral(&workload->pattern, 1);
    if (!(rate > 0) || !(expected < SCHEDULE_REQUESTS_MAX))
        return error_set(err, ERROR_INPUT,
                         "%.0f requests/s for %.3f s are %.3g requests; at most 2 billion can be "
                         "scheduled",
                         rate, (double)duration_ns / 1e9, expected);
    gsl_rng *streams[STREAMS];
    int result = open_streams(seed, streams, err);
    size_t likely = (size_t)(expected + 5 * sqrt(expected) + 16);
    if (result == 0 && array_reserve(schedule, likely) < 0)
        result =
            error_set(err, ERROR_FAILED, "out of memory for a schedule of %zu requests", likely);
    double ns_per_gap = 1e9 / rate / distribution_mean(arrivals);
    if (result == 0)
        result = draw_all(workload, arrivals, ns_per_gap, duration_ns, streams, schedule, err);
    close_streams(streams);
    if (result < 0)
        schedule_free(schedule);
    return result;
}

int schedule_draw_requests(const struct workload *workload, uint64_t seed,
                           struct schedule *schedule, struct error *err)
{
    struct rank_sampler keys;
    gsl_rng *streams[STREAMS];
    double sum = weights_sum(workload);
    int result = open_streams(seed, streams, err);
    rank_sampler_init(&keys, &workload->popularity, workload->key_count);
    for (size_t i = 0; result == 0 && i < schedule->count; i++) {
        schedule->items[i].key = (uint32_t)rank_sample(&keys, streams[STREAM_KEYS]);
        schedule->items[i].operation = draw_operation(workload, sum, streams[STREAM_OPERATIONS]);
    }
    close_streams(streams);
    if (result < 0)
        schedule_free(schedule);
    return result;
}

int schedule_draw_order(const struct workload *workload, size_t count, uint64_t seed,
                        struct schedule *schedule, struct error *err)
{
    *schedule = (struct schedule){0};
    if (array_reserve(schedule, count) < 0)
        return error_set(err, ERROR_FAILED, "out of memory for %zu requests", count);
    memset(schedule->items, 0, count * sizeof *schedule->items);
    schedule->count = count;
    return schedule_draw_requests(workload, seed, schedule, err);
}

void schedule_free(struct schedule *schedule)
{
    array_free(schedule);
}
