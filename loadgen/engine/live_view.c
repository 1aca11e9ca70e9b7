// SPDX-License-Identifier: MIT
#include "loadgen/engine/live_view.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/text.h"
#include "base/units.h"
#include "base/clock.h"

enum { REFRESH_NS = 250000000, TELL_NS = 1000000000, BEHIND_NS = 1000000 };
// As in method_arrivals.c and load_summary.c.
static const double idle_least = 0.02, core_share_least = 0.7;

struct live_view {
    struct progress progress; // a copy: the caller's own line must not be ended
    bool told;                // on stdout, not on the terminal
    uint32_t threads;
    struct live_counters *counters;
    struct histogram *sum;
    pthread_t thread;
    pthread_mutex_t lock; // protects the next two; load threads never take it
    pthread_cond_t change;
    bool stop;
    char goal[300];
    // state of the previous refresh, for the rate and the share of time that the threads idled
    uint64_t answered_before, idle_before, core_before_ns, before_ns;
};

static uint64_t counter_read(const uint64_t *counter)
{
    return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

static const char *percentile_format(const struct live_view *view, double q, uint64_t khz,
                                     char *out, size_t bytes)
{
    double ticks = histogram_quantile(view->sum, q);
    if (!(ticks >= 0) || khz == 0)
        return "-";
    return units_format_ns(ticks / (double)khz * 1e6, out, bytes);
}

// What the client's own cores cannot do, while it happens; in words that say what helps.
void live_view_format_client(const struct live_client *client, char *out, size_t bytes)
{
    static const char helps[] = "more --threads, or agents";
    char late[32], each[32], cost[60] = "";
    *out = '\0';
    if (client->cost_ns > 0)
        snprintf(cost, sizeof cost, ", at %s of CPU a request",
                 units_format_ns(client->cost_ns, each, sizeof each));
    if (client->core >= 0 && client->core < core_share_least)
        snprintf(out, bytes, ", the client has its core for %.0f %% of the time: others are on it",
                 client->core * 100);
    else if (client->behind_ns >= BEHIND_NS)
        snprintf(out, bytes, ", the client is %s behind%s: %s",
                 units_format_ns(client->behind_ns, late, sizeof late), cost, helps);
    else if (client->idle >= 0 && client->idle < idle_least)
        snprintf(out, bytes, ", the client has no time left%s: %s", cost, helps);
}

// *in_load becomes false where it is not.
static uint64_t thread_cpu_ns(const struct live_counters *one, bool *in_load)
{
    const uint64_t clock = counter_read(&one->core_clock);
    struct timespec used = {0};
    *in_load &= clock && clock_gettime((clockid_t)(uint32_t)clock, &used) == 0;
    return (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
}

// goal: NULL at the load's end.
static void view_show(struct live_view *view, const char *goal)
{
    uint64_t answered = 0, errors = 0, in_flight = 0, khz = 0, behind = 0, idle = 0, asleep = 0,
             cpu_ns = 0;
    bool all = true; // threads are in the load
    memset(view->sum, 0, sizeof *view->sum);
    for (uint32_t i = 0; i < view->threads; i++) {
        const struct live_counters *one = &view->counters[i];
        answered += counter_read(&one->answered);
        errors += counter_read(&one->errors);
        in_flight += counter_read(&one->in_flight);
        khz = counter_read(&one->tsc_khz);
        const uint64_t late = counter_read(&one->behind);
        behind = late > behind ? late : behind;
        idle += counter_read(&one->idle);
        asleep += counter_read(&one->asleep);
        cpu_ns += thread_cpu_ns(one, &all);
        histogram_merge(view->sum, &one->latency);
    }
    if (!goal && !answered)
        return; // as of a load that could not be connected
    const uint64_t core_ns =
        all && khz ? cpu_ns + (uint64_t)((double)asleep / (double)khz * 1e6) : 0;
    uint64_t now = (uint64_t)monotonic_ns();
    double rate =
        (double)(answered - view->answered_before) / (double)(now - view->before_ns) * 1e9;
    struct live_client client = {khz ? (double)behind / (double)khz * 1e6 : 0, -1, -1, -1};
    if (core_ns && view->core_before_ns) { // the load has begun, and no thread has ended it
        const double ns = (double)(now - view->before_ns) * view->threads,
                     core = (double)(core_ns - view->core_before_ns),
                     idled = (double)(idle - view->idle_before) / (double)khz * 1e6;
        client.core = core / ns;
        client.idle = idled / ns;
        if (answered > view->answered_before)
            client.cost_ns = (core - idled) / (double)(answered - view->answered_before);
    }
    char p50[32], p99[32], p999[32], errors_text[40] = "", client_text[140], figures[380];
    char per_second[TEXT_NUMBER_BYTES];
    live_view_format_client(&client, client_text, sizeof client_text);
    if (errors)
        snprintf(errors_text, sizeof errors_text, ", %s errors", TEXT_COUNT(errors));
    snprintf(figures, sizeof figures, "%s/s, %s in flight, p50 %s, p99 %s, p99.9 %s%s%s",
             text_rate(rate, per_second), TEXT_COUNT(in_flight),
             percentile_format(view, 0.5, khz, p50, sizeof p50),
             percentile_format(view, 0.99, khz, p99, sizeof p99),
             percentile_format(view, 0.999, khz, p999, sizeof p999), errors_text, client_text);
    if (!view->told) {
        progress_update(&view->progress, "%s; waiting for %s", figures,
                        goal ? goal : "the figures");
    } else if (answered) { // what comes first on stdout is when the load begins
        printf("{\"live\": \"%s\"}\n", figures);
        fflush(stdout);
    }
    view->answered_before = answered;
    view->idle_before = idle;
    view->core_before_ns = core_ns;
    view->before_ns = now;
}

static void *view_main(void *argument)
{
    struct live_view *view = argument;
    const struct sched_param none = {0};
    char goal[sizeof view->goal];
    bool stop = false;
    // lowest priority, so that it never delays the load
    pthread_setschedparam(pthread_self(), SCHED_IDLE, &none);
    while (!stop) {
        uint64_t until_ns = (uint64_t)monotonic_ns() + (view->told ? TELL_NS : REFRESH_NS);
        struct timespec until = {(time_t)(until_ns / 1000000000u), (long)(until_ns % 1000000000u)};
        pthread_mutex_lock(&view->lock);
        while (!view->stop && pthread_cond_timedwait(&view->change, &view->lock, &until) == 0)
            ;
        stop = view->stop;
        memcpy(goal, view->goal, sizeof goal);
        pthread_mutex_unlock(&view->lock);
        if (!stop)
            view_show(view, goal);
    }
    return NULL;
}

static void view_release(struct live_view *view)
{
    free(view->counters);
    free(view->sum);
    free(view);
}

int live_view_start(const struct progress *progress, bool told, uint32_t threads, const char *goal,
                    struct live_view **started, struct error *err)
{
    *started = NULL;
    if (!told && (progress->quiet || !progress->terminal))
        return 0;
    struct live_view *view = calloc(1, sizeof *view);
    size_t bytes = threads * sizeof *view->counters;
    if (view) {
        view->counters = aligned_alloc(64, bytes);
        view->sum = calloc(1, sizeof *view->sum);
    }
    if (!view || !view->counters || !view->sum) {
        if (view)
            view_release(view);
        return error_set(err, ERROR_FAILED, "out of memory for the live view");
    }
    memset(view->counters, 0, bytes); // touches every page before the load begins
    view->progress = *progress;
    view->told = told;
    view->threads = threads;
    view->before_ns = (uint64_t)monotonic_ns();
    snprintf(view->goal, sizeof view->goal, "%s", goal);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&view->change, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&view->lock, NULL);
    sigset_t all, before; // signals are for the load's threads, which wait for them
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int failure = pthread_create(&view->thread, NULL, view_main, view);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failure) {
        view_release(view);
        return error_set(err, ERROR_FAILED, "cannot start the thread of the live view");
    }
    *started = view;
    return 0;
}

struct live_counters *live_view_counters(struct live_view *view)
{
    return view ? view->counters : NULL;
}

void live_view_wait_for(struct live_view *view, const char *goal)
{
    pthread_mutex_lock(&view->lock);
    snprintf(view->goal, sizeof view->goal, "%s", goal);
    pthread_mutex_unlock(&view->lock);
}

void live_view_stop(struct live_view *view)
{
    if (!view)
        return;
    pthread_mutex_lock(&view->lock);
    view->stop = true;
    pthread_cond_signal(&view->change);
    pthread_mutex_unlock(&view->lock);
    pthread_join(view->thread, NULL);
    pthread_cond_destroy(&view->change);
    pthread_mutex_destroy(&view->lock);
    view_show(view, NULL);
    view_release(view);
}
