// SPDX-License-Identifier: MIT
//
// What queueing theory says of a single server with Poisson arrivals that serves in the order of
// arrival: the exact distribution of the sojourn (waiting and service) of M/M/1, and of M/G/1 with
// a service time of up to two values (M/D/1 has one).
//
// M/M/1: exponential with rate mu - lambda (Kleinrock, "Queueing Systems" vol. 1, 1975, §5.12).
// M/G/1: the waiting time's distribution F solves Takacs' equation (L. Takacs, "Introduction to the
// Theory of Queues", 1962; Kleinrock §5.11) in the steady state
//     F'(t) = lambda [F(t) - E F(t - S)],   F(0) = 1 - rho
// which for discrete S is a delay differential equation: it is integrated from 0 on by the
// trapezoidal rule on a grid on which every service time lies. For one service time the solution is
// Erlang's series (1909), against which tests/bench/test_queueing.c checks it.
#ifndef BENCH_QUEUEING_H
#define BENCH_QUEUEING_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

enum { QUEUE_STEPS = 400 }; // grid points in the shortest service time

struct queue {
    double rate;       // arrivals per unit of time
    bool exponential;  // M/M/1 with a mean service time of `service[0]`; else discrete
    double service[2]; // values of the service time, ascending, the second a multiple of the first
    double probability[2];
    double *waiting; // P(waiting <= i * step)
    double step;
    size_t count;
};

static inline double queue_mean_service(const struct queue *queue)
{
    return queue->exponential ? queue->service[0]
                              : queue->service[0] * queue->probability[0] +
                                    queue->service[1] * queue->probability[1];
}

// E F(t - S) at grid point n. From the right (F jumps from 0 to 1 - rho at 0), or from the left.
static inline double queue_delayed(const struct queue *queue, size_t n, bool right)
{
    double sum = 0;
    for (int i = 0; i < 2; i++) {
        size_t delay = (size_t)llround(queue->service[i] / queue->step);
        if (queue->probability[i] > 0 && (n > delay || (right && n == delay)))
            sum += queue->probability[i] * queue->waiting[n - delay];
    }
    return sum;
}

static inline void queue_solve(struct queue *queue)
{
    double half = queue->rate * queue->step / 2;
    queue->waiting[0] = 1 - queue->rate * queue_mean_service(queue);
    for (size_t n = 0; n + 1 < queue->count; n++) {
        double begin = queue->waiting[n] - queue_delayed(queue, n, true);
        double end_delayed = queue_delayed(queue, n + 1, false);
        queue->waiting[n + 1] = (queue->waiting[n] + half * (begin - end_delayed)) / (1 - half);
    }
}

// M/M/1. Needs no queue_close.
static inline struct queue queue_exponential(double rate, double mean_service)
{
    return (struct queue){.rate = rate, .exponential = true, .service = {mean_service}};
}

// M/G/1 with a service of `longer` (a multiple of `shorter`) with that probability, else `shorter`;
// of interest are sojourns up to `most`. The caller frees with queue_close.
static inline struct queue queue_discrete(double rate, double shorter, double longer,
                                          double probability, double most)
{
    struct queue queue = {.rate = rate,
                          .service = {shorter, longer},
                          .probability = {1 - probability, probability},
                          .step = shorter / QUEUE_STEPS};
    queue.count = (size_t)(most / queue.step) + 2;
    queue.waiting = calloc(queue.count, sizeof *queue.waiting);
    if (queue.waiting)
        queue_solve(&queue);
    return queue;
}

static inline void queue_close(struct queue *queue)
{
    free(queue->waiting);
    queue->waiting = NULL;
}

// P(waiting <= t) of a discrete queue; beyond its grid: the grid's end.
static inline double queue_waiting(const struct queue *queue, double t)
{
    if (t < 0)
        return 0;
    double at = t / queue->step;
    size_t n = (size_t)at;
    if (n + 1 >= queue->count)
        return queue->waiting[queue->count - 1];
    return queue->waiting[n] + (at - (double)n) * (queue->waiting[n + 1] - queue->waiting[n]);
}

// P(sojourn <= t).
static inline double queue_sojourn(const struct queue *queue, double t)
{
    if (queue->exponential)
        return t <= 0 ? 0 : -expm1(-(1 / queue->service[0] - queue->rate) * t);
    double sum = 0;
    for (int i = 0; i < 2; i++)
        if (queue->probability[i] > 0)
            sum += queue->probability[i] * queue_waiting(queue, t - queue->service[i]);
    return sum;
}

// The q-quantile of the sojourn plus an overhead that is independent of it and has the distribution
// of these samples (one sample of 0: of the sojourn alone).
static inline double queue_quantile(const struct queue *queue, const double *overheads,
                                    size_t count, double q)
{
    double low = 0, high = 1e9;
    for (int i = 0; i < 200 && high - low > 1e-6; i++) {
        double middle = (low + high) / 2, sum = 0;
        for (size_t k = 0; k < count; k++)
            sum += queue_sojourn(queue, middle - overheads[k]);
        if (sum / (double)count < q)
            low = middle;
        else
            high = middle;
    }
    return high;
}

#endif
