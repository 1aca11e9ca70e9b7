// SPDX-License-Identifier: MIT
#include "loadgen/method/method_arrivals.h"

#include <math.h>
#include <stdlib.h>
#include <gsl/gsl_statistics_double.h>

#include "base/array.h"
#include "base/quantile.h"
#include "base/text.h"
#include "loadgen/method/logical_requests.h"
#include "loadgen/method/method_independence.h"
#include "loadgen/method/standstill.h"

enum {
    GAPS_LEAST = 200,
    QUEUED_LEAST = 20,    // sends right behind another that are needed to know what a send costs
    TABLE = 2000,         // quantiles that stand for a process
    MOST_TESTED = 100000, // gaps, spread evenly over the run; the distance is then known to 0.002
};

static const double stamps_needed = 0.99; // of the sends, for the gaps to come from stamps
// in addition to what the cost of a send makes unavoidable
static const double distance_slack = 0.01;
static const double distance_tolerance = 0.05; // in addition to both: then the arrivals are wrong
static const double leave = 0.1;           // of the mean gap, where the process is no exponential
static const double pause_gaps = 50;       // mean gaps: an intended gap above this is a pause
static const double bias_tolerance = 0.25; // of the target percentile
static const double bias_least_us = 5;
static const double idle_least = 0.02; // a client that idles less has no CPU to spare
static const double cost_cap = 4;      // median send costs: above this, the send was interrupted

static bool is_stamped(const struct sample *sample)
{
    return sample->tx_ns &&
           (sample->tx_source == STAMP_SOFTWARE || sample->tx_source == STAMP_HARDWARE);
}

// The clock of the sends' times, if all have the same one.
static enum stamp_source choose_source(const struct engine_result *run)
{
    size_t sent = 0, stamped = 0, hardware = 0;
    for (size_t i = 0; i < run->sample_count; i++) {
        sent += run->samples[i].sent_tsc != 0;
        stamped += run->samples[i].sent_tsc && is_stamped(&run->samples[i]);
        hardware += is_stamped(&run->samples[i]) && run->samples[i].tx_source == STAMP_HARDWARE;
    }
    if (sent == 0 || (double)stamped < stamps_needed * (double)sent ||
        (hardware && hardware < stamped))
        return STAMP_USER;
    return hardware ? STAMP_HARDWARE : STAMP_SOFTWARE;
}

struct send_times {
    double *us; // when each request was sent; requests not sent, or without a stamp, are left out
    size_t count;
    double first_us;   // from the run's start to the first of them
    double *queued_us; // gaps of sends that queued behind another one
    size_t queued;
};

// Times count from the first send; pauses between rounds are taken out. A send queues only behind
// sends of its own sender.
static void take_times(const struct engine_result *run, enum stamp_source source,
                       const struct arrivals_asked *asked, struct send_times *times)
{
    const double per_us = run->tsc_hz / 1e6, mean_us = 1e6 / asked->rate;
    const bool constant = asked->process && asked->pattern->kind == PATTERN_CONSTANT;
    // the latest send, overall and of each sender
    const struct sample *before = NULL, *own[SAMPLE_SENDERS] = {0};
    uint64_t origin = 0;
    double paused_us = 0, last_us = 0, own_us[SAMPLE_SENDERS] = {0};
    for (size_t i = 0; i < run->sample_count; i++) {
        const struct sample *sample = &run->samples[i];
        if (!sample->sent_tsc || (source != STAMP_USER && !is_stamped(sample)))
            continue;
        uint64_t at = source == STAMP_USER ? sample->send_tsc : sample->tx_ns;
        if (!before)
            origin = at;
        double us = (double)(int64_t)(at - origin) / (source == STAMP_USER ? per_us : 1e3);
        const unsigned sender = sample_sender(sample);
        const struct sample *queue = own[sender];
        if (before) {
            double intended =
                (double)(int64_t)(sample->intended_tsc - before->intended_tsc) / per_us;
            if (constant && intended > pause_gaps * mean_us)
                paused_us = us - last_us - mean_us;
            else if (queue && sample->intended_tsc <= queue->sent_tsc &&
                     sample->send_tsc > queue->send_tsc && us - paused_us > own_us[sender])
                times->queued_us[times->queued++] = us - paused_us - own_us[sender];
        } else {
            times->first_us = (double)(int64_t)(sample->send_tsc - run->start_tsc) / per_us;
        }
        last_us = own_us[sender] = times->us[times->count++] = us - paused_us;
        before = own[sender] = sample;
    }
}

// Converts times to operational time, in which requests come at a constant rate. Returns the
// greatest factor of the rate: where it applies, a send seems to cost that much more.
static double into_operational_time(const struct arrivals_asked *asked, struct send_times *times)
{
    const struct rate_pattern *pattern = asked->pattern;
    const double duration_us = asked->duration_s * 1e6;
    double greatest = 0;
    if (pattern->kind == PATTERN_CONSTANT)
        return 1;
    for (size_t i = 0; i < times->count; i++) {
        double x = (times->us[i] + times->first_us) / duration_us, after = fmax(x - 1, 0);
        times->us[i] = (rate_pattern_integral(pattern, x - after) + after) * duration_us;
    }
    for (unsigned i = 0; i < TABLE; i++)
        greatest = fmax(greatest, TABLE * (rate_pattern_integral(pattern, (i + 1.0) / TABLE) -
                                           rate_pattern_integral(pattern, (double)i / TABLE)));
    return greatest;
}

// Of every so manieth request.
static double median_send_us(const struct engine_result *run, size_t every, double *work)
{
    size_t count = 0;
    for (size_t i = 0; i < run->sample_count; i += every)
        if (run->samples[i].sent_tsc)
            work[count++] =
                (double)(run->samples[i].sent_tsc - run->samples[i].send_tsc) / run->tsc_hz * 1e6;
    return quantile_of(work, count, 0.5, work);
}

// How many of the ascending values are at most (or, strictly, less than) a limit.
static size_t count_up_to(const double *values, size_t count, double limit, bool strictly)
{
    return array_bound(0, count, at, values[at] < limit || (!strictly && values[at] == limit));
}

// The Kolmogorov-Smirnov distance of ascending gaps to a process, given as a table of ascending
// values, when each gap may be off by `off_us`.
static double lenient_distance(const double *gaps, size_t count, const double *table, size_t size,
                               double off_us)
{
    double greatest = 0;
    for (size_t i = 0; i < count; i++) {
        double above = (double)count_up_to(table, size, gaps[i] + off_us, false) / (double)size;
        double below = (double)count_up_to(table, size, gaps[i] - off_us, true) / (double)size;
        greatest = fmax(greatest, fmax((double)(i + 1) / (double)count - above,
                                       below - (double)i / (double)count));
    }
    return greatest;
}

static double distance_to(const struct distribution *process, const double *gaps, size_t count,
                          double mean_us, double off_us)
{
    double table[TABLE], scale = mean_us / distribution_mean(process);
    for (size_t i = 0; i < TABLE; i++)
        table[i] = distribution_quantile(process, ((double)i + 0.5) / TABLE) * scale;
    return lenient_distance(gaps, count, table, TABLE, off_us);
}

// The same distance to the intended gaps of the requests that were sent. work: room for all of
// them.
static double distance_to_intended(const struct engine_result *run, const double *gaps,
                                   size_t count, double off_us, double *work)
{
    const struct sample *before = NULL;
    size_t found = 0;
    for (size_t i = 0; i < run->sample_count; i++) {
        const struct sample *sample = &run->samples[i];
        if (!sample->sent_tsc)
            continue;
        if (before)
            work[found++] =
                (double)(sample->intended_tsc - before->intended_tsc) / run->tsc_hz * 1e6;
        before = sample;
    }
    quantile_sort(work, found);
    return found ? lenient_distance(gaps, count, work, found, off_us) : NAN;
}

// The smallest distance to a Poisson process that the senders allow. One sender cannot send two
// requests closer than a send costs. With several, a request is only delayed by its own sender: the
// distance is at most the share of requests that follow one of the same sender that closely.
static double least_distance(const struct engine_result *run, double mean_us, double cost_us)
{
    const double per_us = run->tsc_hz / 1e6;
    const struct sample *own[SAMPLE_SENDERS] = {0};
    size_t sent = 0, close = 0, senders = 0;
    for (size_t i = 0; i < run->sample_count; i++) {
        const struct sample *sample = &run->samples[i], *queue = own[sample_sender(sample)];
        if (!sample->sent_tsc)
            continue;
        senders += !queue;
        close += queue && (double)(sample->intended_tsc - queue->intended_tsc) / per_us < cost_us;
        own[sample_sender(sample)] = sample;
        sent++;
    }
    return senders > 1 ? (double)close / (double)sent : exponential_function(cost_us, &mean_us);
}

// Keeps every n-th of the gaps, in ascending order. Returns how many.
static size_t keep_tested(double *gaps, size_t count)
{
    const size_t every = (count + MOST_TESTED - 1) / MOST_TESTED;
    size_t kept = 0;
    for (size_t i = 0; i < count; i += every)
        gaps[kept++] = gaps[i];
    quantile_sort(gaps, kept);
    return kept;
}

// Written out here, because GSL's recurrence in long double divides for each of millions of values.
static double standard_deviation(const double *values, size_t count, double mean)
{
    double squares = 0;
    for (size_t i = 0; i < count; i++)
        squares += (values[i] - mean) * (values[i] - mean);
    return sqrt(squares / (double)(count - 1));
}

// gaps: in the order of time; overwritten. between_us: their sum. work: room for as many.
static void judge_gaps(const struct engine_result *run, const struct distribution *process,
                       double *gaps, size_t count, double between_us, double mean_us, double cost,
                       double *work, struct arrivals *result)
{
    result->gaps = count;
    result->mean_us = between_us / (double)count;
    result->variation = standard_deviation(gaps, count, result->mean_us) / result->mean_us;
    result->best = distance_slack;
    count = result->gaps_tested = keep_tested(gaps, count);
    if (!process) {
        result->distance = distance_to_intended(run, gaps, count, cost, work);
    } else if (process->kind == DISTRIBUTION_EXPONENTIAL) {
        exponential_fit_sorted(gaps, count, mean_us, &result->fit);
        result->distance = result->fit.distance;
        result->best += least_distance(run, mean_us, cost);
    } else {
        result->distance = distance_to(process, gaps, count, mean_us, leave * mean_us + cost);
    }
    result->tolerance = result->best + distance_tolerance;
    result->right = result->distance <= result->tolerance;
    result->judged = true;
}

// The cost of sending right behind another request.
static void judge_queued(const struct engine_result *run, struct send_times *times,
                         struct arrivals *result)
{
    result->back_to_back = times->queued;
    result->back_to_back_min_us = NAN;
    for (size_t i = 0; i < times->queued; i++)
        result->back_to_back_min_us = fmin(result->back_to_back_min_us, times->queued_us[i]);
    result->back_to_back_us =
        times->queued < QUEUED_LEAST
            ? median_send_us(run, 1, times->queued_us)
            : quantile_of(times->queued_us, times->queued, 0.5, times->queued_us);
}

// Replaces ascending times by the gaps between them, but for pauses, gaps longer than that: where
// requests between two are not kept. Returns how many; *between_us is their sum.
static size_t take_gaps(struct send_times *times, double pause_us, double *between_us)
{
    size_t gaps = 0;
    *between_us = times->count ? times->us[times->count - 1] - times->us[0] : 0;
    for (size_t i = 1; i < times->count; i++) {
        const double gap = times->us[i] - times->us[i - 1];
        if (gap > pause_us)
            *between_us -= gap;
        else
            times->us[gaps++] = gap;
    }
    return gaps;
}

int arrivals_judge(const struct engine_result *run, const struct arrivals_asked *asked,
                   struct arrivals *result, struct error *err)
{
    double mean_us = 1e6 / asked->rate;
    struct send_times times = {.us = calloc(run->sample_count + 1, sizeof(double)),
                               .queued_us = calloc(run->sample_count + 1, sizeof(double))};
    int status = 0;
    *result = (struct arrivals){.source = choose_source(run), .right = true};
    if (!times.us || !times.queued_us) {
        status = error_set(err, ERROR_FAILED, "out of memory for the gaps of %s requests",
                           TEXT_COUNT(run->sample_count));
    } else {
        take_times(run, result->source, asked, &times);
        judge_queued(run, &times, result);
        double stretch = into_operational_time(asked, &times);
        quantile_sort(times.us, times.count);
        double between_us;
        size_t gaps = take_gaps(&times, run->totals ? pause_gaps * mean_us : INFINITY, &between_us);
        if (gaps >= GAPS_LEAST && between_us > 0)
            judge_gaps(run, asked->process, times.us, gaps, between_us, mean_us,
                       (result->back_to_back_us + asked->batch_us) * stretch, times.queued_us,
                       result);
    }
    free(times.us);
    free(times.queued_us);
    return status;
}

// --- the client's own lateness -------------------------------------------------------------------

static bool has_both_stamps(const struct sample *sample)
{
    return sample_is_answered(sample) && sample->rx_ns && is_stamped(sample) &&
           sample->rx_source == sample->tx_source;
}

// Fills late[i] with request i's own lateness in us; 0 for those never sent, or kept back by the
// other end. Returns how many requests have both stamps.
static size_t take_lateness(const struct engine_result *run, double median_us, double *late)
{
    size_t stamped = 0;
    const double per_us = run->tsc_hz / 1e6;
    const uint64_t most = (uint64_t)(cost_cap * median_us * per_us);
    // For each sender: when an ideal one would be done; and its previous send call.
    uint64_t free_at[SAMPLE_SENDERS] = {0}, call[SAMPLE_SENDERS] = {0};
    for (size_t i = 0; i < run->sample_count; i++) {
        const struct sample *sample = &run->samples[i];
        late[i] = 0;
        if (!sample->sent_tsc)
            continue;
        const unsigned own = sample_sender(sample);
        uint64_t ideal = sample->intended_tsc > free_at[own] ? sample->intended_tsc : free_at[own];
        uint64_t cost = sample->sent_tsc - sample->send_tsc;
        if (sample->send_tsc > ideal && !(sample->sender_high & SAMPLE_KEPT_BACK))
            late[i] = (double)(sample->send_tsc - ideal) / per_us;
        // Requests of one send call share its cost.
        free_at[own] = sample->send_tsc == call[own] ? ideal : ideal + (cost < most ? cost : most);
        call[own] = sample->send_tsc;
        stamped += has_both_stamps(sample);
    }
    return stamped;
}

// From the beginnings of send calls to their TX stamps.
struct leaving {
    const struct sample *first; // with stamps; times count from its own
    double *shortest_us;        // of each LEAVING_BLOCK requests, and of those beside them
};
enum { LEAVING_BLOCK = 64 };

// How long that took, but for what the two clocks are apart, which hardly changes within a block.
static double leaving_us(const struct leaving *leaving, double per_us, const struct sample *sample)
{
    return (double)(int64_t)(sample->tx_ns - leaving->first->tx_ns) / 1e3 -
           (double)(int64_t)(sample->send_tsc - leaving->first->send_tsc) / per_us;
}

static void take_leaving(const struct engine_result *run, struct leaving *leaving)
{
    const size_t blocks = run->sample_count / LEAVING_BLOCK + 1;
    double before = INFINITY, *shortest = leaving->shortest_us;
    for (size_t block = 0; block < blocks; block++)
        shortest[block] = INFINITY;
    for (size_t i = 0; i < run->sample_count; i++) {
        const struct sample *sample = &run->samples[i];
        if (!has_both_stamps(sample))
            continue;
        if (!leaving->first)
            leaving->first = sample;
        shortest[i / LEAVING_BLOCK] =
            fmin(shortest[i / LEAVING_BLOCK], leaving_us(leaving, run->tsc_hz / 1e6, sample));
    }
    for (size_t block = 0; block < blocks; block++) {
        double own = shortest[block], after = block + 1 < blocks ? shortest[block + 1] : INFINITY;
        shortest[block] = fmin(own, fmin(before, after));
        before = own;
    }
}

// How long a reply waited in the kernel, from its RX stamp until it was read. Stamps and readings
// are of two clocks, so differences within one request are compared: the result is too small by
// what the send call did after its TX stamp. Where the bytes lay in the socket when the call had
// returned, as they do while the server's window is closed, it would be too large by that, which
// the shortest way to the stamp tells. NaN: there are no such stamps.
static double reading_us(const struct engine_result *run, size_t i, const struct leaving *leaving)
{
    const double per_us = run->tsc_hz / 1e6;
    const struct sample *sample = &run->samples[i];
    if (!has_both_stamps(sample))
        return NAN;
    double in_socket = leaving_us(leaving, per_us, sample) -
                       leaving->shortest_us[i / LEAVING_BLOCK] -
                       (double)(sample->sent_tsc - sample->send_tsc) / per_us;
    return (double)(int64_t)(sample->reply_tsc - sample->sent_tsc) / per_us -
           (double)(int64_t)(sample->rx_ns - sample->tx_ns) / 1e3 - fmax(in_socket, 0);
}

static const double p50_p99[2] = {0.5, 0.99};

// Adds to late[i] of every so manieth request how much longer its reply waited than the median one,
// whose time is the way through the network stack.
static void add_reading(const struct engine_result *run, size_t every, double *work,
                        const struct leaving *leaving, double *late, struct client_bias *result)
{
    size_t count = 0;
    for (size_t i = 0; i < run->sample_count; i += every) {
        double us = reading_us(run, i, leaving);
        if (!isnan(us))
            work[count++] = us;
    }
    double found[2];
    quantile_pair_of(work, count, p50_p99, work, found);
    const double typical = found[0];
    result->reading_p99_us = found[1] - typical;
    for (size_t i = 0; i < run->sample_count; i += every)
        late[i] += fmax(reading_us(run, i, leaving) - typical, 0); // of NaN: 0
}

// The percentile of every so manieth latency minus late[i]; of logical requests, of which all are
// looked at then, the slowest one's counts. late: NULL: they are left as they are.
static double target_without(const struct engine_result *run, const double *latencies,
                             const double *late, double q, size_t every, double *work)
{
    const uint32_t fanout = fanout_of(run);
    size_t count = run->sample_count / fanout, found = 0;
    if (fanout == 1 && !late && every == 1)
        return quantile_of(latencies, count, q, work);
    for (size_t i = 0; i < count; i += every) {
        double slowest = -(double)INFINITY;
        for (size_t k = i * fanout; k < (i + 1) * fanout; k++) { // infinite if never answered
            const double without = latencies[k] - (late ? late[k] : 0);
            slowest = without > slowest ? without : slowest;
        }
        work[found++] = slowest;
    }
    return quantile_of(work, found, q, work);
}

int client_bias_judge(const struct engine_result *run, const double *latencies, double q,
                      double idle, struct client_bias *result, struct error *err)
{
    size_t count = run->sample_count;
    const size_t every = fanout_of(run) == 1 ? independence_evidence(count, q) : 1;
    double *late = malloc((count + 1) * sizeof *late), *work = malloc((count + 1) * sizeof *work);
    struct leaving leaving = {.shortest_us =
                                  calloc(count / LEAVING_BLOCK + 1, sizeof *leaving.shortest_us)};
    int status = 0;
    *result =
        (struct client_bias){.idle = idle, .out_of_cpu = idle < idle_least, .reading_p99_us = NAN};
    standstill_words(run, result->stood, sizeof result->stood);
    if (!late || !work || !leaving.shortest_us) {
        status = error_set(err, ERROR_FAILED, "out of memory for the lateness of %s requests",
                           TEXT_COUNT(count));
    } else if (count >= GAPS_LEAST) {
        double lateness[2];
        const size_t stamped = take_lateness(run, median_send_us(run, every, work), late);
        quantile_pair_of(work, independence_thin(late, count, every, work), p50_p99, work,
                         lateness);
        result->lateness_p50_us = lateness[0];
        result->lateness_p99_us = lateness[1];
        result->target_us = target_without(run, latencies, NULL, q, every, work);
        result->target_sent_us = target_without(run, latencies, late, q, every, work);
        if (stamped >= GAPS_LEAST) {
            take_leaving(run, &leaving);
            add_reading(run, every, work, &leaving, late, result);
        }
        result->target_without_us = isnan(result->reading_p99_us)
                                        ? result->target_sent_us
                                        : target_without(run, latencies, late, q, every, work);
        double own = result->target_us - result->target_without_us;
        result->judged = isfinite(own) && result->target_us > 0;
        result->share = result->judged ? own / result->target_us : NAN;
        result->biased = result->out_of_cpu ||
                         (result->judged && own > bias_least_us && result->share > bias_tolerance);
    }
    free(late);
    free(work);
    free(leaving.shortest_us);
    return status;
}
