// SPDX-License-Identifier: MIT
#include "loadgen/engine/schedule.h"

#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/hash.h"
#include "base/text.h"

enum { SCHEDULE_REQUESTS_MAX = INT32_MAX };

enum stream { STREAM_TIMES, STREAM_OPERATIONS, STREAM_KEYS, STREAMS };

static void seed_streams(uint64_t seed, uint64_t streams[STREAMS])
{
    for (unsigned i = 0; i < STREAMS; i++)
        streams[i] = hash64(hash64(seed) + i);
}

// The only operation that has a weight, for which nothing need be drawn; NULL: there are several.
static const double *only_weight(const struct workload *workload)
{
    const double *only = NULL;
    for (uint8_t i = 0; i < WORKLOAD_OPERATIONS; i++) {
        if (workload->mix[i] > 0 && only)
            return NULL;
        only = workload->mix[i] > 0 ? &workload->mix[i] : only;
    }
    return only;
}

static uint8_t draw_operation(const struct workload *workload, const double *only, double sum,
                              uint64_t *random)
{
    if (only)
        return (uint8_t)(only - workload->mix);
    double at = random_fraction(random) * sum;
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

struct schedule_drawer {
    const struct workload *workload;
    struct distribution gaps;
    struct rank_sampler keys;
    uint64_t streams[STREAMS]; // states of random_fraction
    const double *only;        // weight, of a mix
    double sum, ns_per_gap, duration, end;
    double at, x; // of the next instant: in the pattern's integral, and for the search there
    double offset_ns;
    uint32_t left; // requests of the instant at offset_ns that are still to be drawn
};

int schedule_drawer_open(const struct workload *workload, const struct distribution *arrivals,
                         double rate, uint64_t duration_ns, uint64_t seed,
                         struct schedule_drawer **opened, struct error *err)
{
    struct schedule_drawer *drawer = *opened = calloc(1, sizeof *drawer);
    if (!drawer)
        return error_set(err, ERROR_FAILED, "out of memory for the schedule");
    seed_streams(seed, drawer->streams);
    drawer->workload = workload;
    drawer->gaps = *arrivals;
    rank_sampler_init(&drawer->keys, &workload->popularity, workload->key_count);
    drawer->sum = weights_sum(workload);
    drawer->only = only_weight(workload);
    drawer->ns_per_gap = 1e9 / rate / distribution_mean(arrivals);
    drawer->duration = (double)duration_ns;
    drawer->end = rate_pattern_integral(&workload->pattern, 1) * drawer->duration;
    drawer->at = distribution_sample(arrivals, &drawer->streams[STREAM_TIMES]) * drawer->ns_per_gap;
    return 0;
}

void schedule_drawer_close(struct schedule_drawer *drawer)
{
    free(drawer);
}

// Drawn for a constant rate over the pattern's integral, then moved to where the integral reaches
// it. False: there is none left.
static bool draw_instant(struct schedule_drawer *drawer)
{
    const struct rate_pattern *pattern = &drawer->workload->pattern;
    const double duration = drawer->duration;
    if (!(drawer->at < drawer->end))
        return false;
    drawer->offset_ns = drawer->at;
    if (pattern->kind != PATTERN_CONSTANT) {
        drawer->x = rate_pattern_inverse(pattern, drawer->at / duration, drawer->x);
        drawer->offset_ns = fmin(drawer->x * duration, duration - 1);
    }
    drawer->at +=
        distribution_sample(&drawer->gaps, &drawer->streams[STREAM_TIMES]) * drawer->ns_per_gap;
    drawer->left = drawer->workload->fanout;
    return true;
}

bool schedule_drawer_next(struct schedule_drawer *drawer, struct scheduled_request *request)
{
    if (drawer->left == 0 && !draw_instant(drawer))
        return false;
    drawer->left--;
    *request = (struct scheduled_request){
        .offset_ns = (uint64_t)drawer->offset_ns,
        .key = (uint32_t)rank_sample(&drawer->keys, &drawer->streams[STREAM_KEYS]),
        .operation = draw_operation(drawer->workload, drawer->only, drawer->sum,
                                    &drawer->streams[STREAM_OPERATIONS]),
    };
    return true;
}

uint64_t schedule_drawer_expected(const struct schedule_drawer *drawer, double until_ns)
{
    const double duration = drawer->duration;
    const double end =
        until_ns < duration
            ? rate_pattern_integral(&drawer->workload->pattern, until_ns / duration) * duration
            : drawer->end;
    const double gap = distribution_mean(&drawer->gaps) * drawer->ns_per_gap;
    return drawer->at < end ? 1 + (uint64_t)((end - drawer->at) / gap) : 0;
}

// A shape may have most of its weight near 0: such gaps would never fill the duration.
static int draw_all(struct schedule_drawer *drawer, struct schedule *schedule, struct error *err)
{
    struct scheduled_request request;
    while (schedule_drawer_next(drawer, &request)) {
        if (schedule->count == SCHEDULE_REQUESTS_MAX)
            return error_set(err, ERROR_INPUT,
                             "the arrivals come to more than 2 billion requests in %s",
                             TEXT_NS(drawer->duration));
        if (array_push(schedule, request) < 0)
            return error_set(err, ERROR_FAILED, "out of memory for a schedule of %s requests",
                             TEXT_COUNT(schedule->count));
    }
    return 0;
}

int schedule_draw(const struct workload *workload, const struct distribution *arrivals, double rate,
                  uint64_t duration_ns, uint64_t seed, struct schedule *schedule, struct error *err)
{
    struct schedule_drawer *drawer;
    *schedule = (struct schedule){0};
    double expected = rate * workload->fanout * (double)duration_ns / 1e9 *
                      rate_pattern_integral(&workload->pattern, 1);
    if (!(rate > 0) || !(expected < SCHEDULE_REQUESTS_MAX))
        return error_set(err, ERROR_INPUT,
                         "%s requests/s for %s are %.3g requests; at most 2 billion can be "
                         "scheduled",
                         TEXT_RATE(rate * workload->fanout), TEXT_NS((double)duration_ns),
                         expected);
    size_t likely = (size_t)(expected + 5 * sqrt(expected * workload->fanout) + 16);
    int result = schedule_drawer_open(workload, arrivals, rate, duration_ns, seed, &drawer, err);
    if (result == 0 && array_reserve(schedule, likely) < 0)
        result = error_set(err, ERROR_FAILED, "out of memory for a schedule of %s requests",
                           TEXT_COUNT(likely));
    if (result == 0)
        result = draw_all(drawer, schedule, err);
    schedule_drawer_close(drawer);
    if (result < 0)
        schedule_free(schedule);
    return result;
}

void schedule_draw_requests(const struct workload *workload, uint64_t seed,
                            struct schedule *schedule)
{
    struct rank_sampler keys;
    uint64_t streams[STREAMS];
    const double sum = weights_sum(workload), *only = only_weight(workload);
    seed_streams(seed, streams);
    rank_sampler_init(&keys, &workload->popularity, workload->key_count);
    for (size_t i = 0; i < schedule->count; i++) {
        struct scheduled_request *request = &schedule->items[i];
        request->key = (uint32_t)rank_sample(&keys, &streams[STREAM_KEYS]);
        request->operation = draw_operation(workload, only, sum, &streams[STREAM_OPERATIONS]);
    }
}

int schedule_draw_order(const struct workload *workload, size_t count, uint64_t seed,
                        struct schedule *schedule, struct error *err)
{
    *schedule = (struct schedule){
        .items = calloc(count + 1, sizeof *schedule->items), .count = count, .capacity = count};
    if (!schedule->items)
        return error_set(err, ERROR_FAILED, "out of memory for %s requests", TEXT_COUNT(count));
    schedule_draw_requests(workload, seed, schedule);
    return 0;
}

void schedule_free(struct schedule *schedule)
{
    array_free(schedule);
}
