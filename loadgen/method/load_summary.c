// SPDX-License-Identifier: MIT
#include "loadgen/method/load_summary.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "loadgen/method/logical_requests.h"

const double summary_quantiles[SUMMARY_QUANTILES] = {0.5, 0.9, 0.99, 0.999, 0.9999, 1};
const char *const summary_quantile_names[SUMMARY_QUANTILES] = {"p50",   "p90",    "p99",
                                                               "p99.9", "p99.99", "max"};

const double summary_confidence = 0.95;
const double summary_rate_tolerance = 0.01;
static double ticks_microseconds(const struct engine_result *result, uint64_t from, uint64_t to)
{
    return (double)(int64_t)(to - from) / result->tsc_hz * 1e6;
}

// found: the values at those quantiles, whether or not so few show them.
static void keep_seen(const double *found, size_t count, struct load_percentiles *out)
{
    for (unsigned i = 0; i < SUMMARY_QUANTILES; i++)
        out->us[i] = quantile_if_seen(found[i], count, summary_quantiles[i]);
    out->count = count;
}

// Uses up the values.
static void take_percentiles(double *values, size_t count, struct load_percentiles *out)
{
    size_t ranks[SUMMARY_QUANTILES] = {0};
    double found[SUMMARY_QUANTILES] = {0};
    for (unsigned i = 0; count && i < SUMMARY_QUANTILES; i++)
        ranks[i] = quantile_rank(count, summary_quantiles[i]);
    if (count)
        quantile_select(values, count, ranks, SUMMARY_QUANTILES, values, found);
    keep_seen(found, count, out);
    for (unsigned i = 0; i < SUMMARY_QUANTILES; i++)
        out->interval[i] = (struct quantile_interval){false, NAN, NAN};
}

// With the intervals: of values in the order in which they were to be sent.
static int take_latency(const double *values, size_t count, struct load_percentiles *out,
                        struct percentile_estimate estimates[SUMMARY_QUANTILES], struct error *err)
{
    double found[SUMMARY_QUANTILES];
    int status = percentile_estimates_take(values, count, summary_quantiles, SUMMARY_QUANTILES,
                                           summary_confidence, estimates, err);
    if (status < 0)
        return status;
    for (unsigned i = 0; i < SUMMARY_QUANTILES; i++) {
        found[i] = estimates[i].value;
        out->interval[i] = estimates[i].interval;
    }
    keep_seen(found, count, out);
    return 0;
}

static struct sample_counts count_statuses(const struct engine_result *result)
{
    struct sample_counts counts = {0};
    for (size_t i = 0; i < result->sample_count; i++)
        sample_counts_note(&counts, &result->samples[i]);
    return counts;
}

static void take_counts(const struct sample_counts *counts, struct load_summary *summary)
{
    summary->logical_scheduled = counts->scheduled;
    summary->logical_answered = counts->answered;
    summary->scheduled = counts->scheduled;
    summary->sent = counts->sent;
    summary->answered = counts->answered;
    summary->misses = counts->misses;
    summary->error_replies = counts->error_replies;
    summary->unsent = counts->unsent;
    summary->timed_out = counts->timed_out;
    summary->lost = counts->lost;
    summary->stamps_hardware = counts->stamps_hardware;
    summary->stamps_one_way = counts->stamps_one_way;
    summary->stamps_software = counts->stamps_software;
    summary->stamps_user = counts->stamps_user;
}

// --- of all samples, when only some of them are kept ---------------------------------------------

// per_us: how many of the values' units.
static double value_at(const struct sample_values *values, double q, double per_us)
{
    double found = histogram_quantile(&values->histogram, q);
    return isfinite(found) ? fmin(found, (double)values->max) / per_us : found;
}

// An interval comes from what is kept, the percentile from all: both are estimates of the same, and
// the interval holds either.
static void take_values(const struct sample_values *values, double per_us,
                        struct load_percentiles *out)
{
    out->count = histogram_count(&values->histogram);
    for (unsigned i = 0; i < SUMMARY_QUANTILES; i++) {
        struct quantile_interval *interval = &out->interval[i];
        const double us = value_at(values, summary_quantiles[i], per_us);
        out->us[i] = quantile_if_seen(us, out->count, summary_quantiles[i]);
        interval->low = interval->known ? fmin(interval->low, us) : NAN;
        interval->high = interval->known ? fmax(interval->high, us) : NAN;
    }
}

static void take_totals(const struct engine_result *result, struct load_summary *summary)
{
    const struct sample_totals *totals = result->totals;
    const double per_us = result->tsc_hz / 1e6;
    take_values(&totals->latency, per_us, &summary->latency);
    take_values(&totals->uncorrected, per_us, &summary->uncorrected);
    take_values(&totals->network, 1e3, &summary->network);
    summary->lateness_p50_us = value_at(&totals->lateness, 0.5, per_us);
    summary->lateness_p99_us = value_at(&totals->lateness, 0.99, per_us);
}

// --- of the samples ------------------------------------------------------------------------------

// The values taken from every request, in one pass over memory, since samples are large; and from
// every logical request in another, where there are any.
struct columns {
    double *latency, *uncorrected, *network, *lateness, *each;
    size_t latencies, sends, stamped, calls;
};
enum { COLUMNS = 5 };

// Of requests from before fewer send calls were stamped as many count as of those after that.
static bool counts_for_network(const struct engine_result *result, size_t i)
{
    return result->samples[i].send_tsc >= result->thinned_tsc || i % result->stamps_every == 0;
}

static void take_latency_of(const struct engine_result *result, const struct sample *sample,
                            struct columns *columns)
{
    columns->latency[columns->latencies++] = sample_latency_us(sample, result->tsc_hz);
    if (sample->sent_tsc)
        columns->uncorrected[columns->sends++] =
            sample_is_answered(sample)
                ? ticks_microseconds(result, sample->send_tsc, sample->reply_tsc)
                : INFINITY;
}

static void fill_columns(const struct engine_result *result, const struct engine_result *logical,
                         struct columns *columns, struct sample_counts *counts)
{
    const bool alone = logical->samples == result->samples;
    for (size_t i = 0; i < result->sample_count; i++) {
        const struct sample *sample = &result->samples[i];
        sample_counts_note(counts, sample);
        if (alone)
            take_latency_of(result, sample, columns);
        else
            columns->each[i] = sample_latency_us(sample, result->tsc_hz);
        if (sample->tx_ns && sample->rx_ns && counts_for_network(result, i))
            columns->network[columns->stamped++] =
                (double)(int64_t)(sample->rx_ns - sample->tx_ns) / 1e3;
        if (sample->sent_tsc)
            columns->lateness[columns->calls++] =
                ticks_microseconds(result, sample->intended_tsc, sample->send_tsc);
    }
    for (size_t i = 0; !alone && i < logical->sample_count; i++)
        take_latency_of(logical, &logical->samples[i], columns);
}

static int take_latencies(const struct engine_result *result, const struct engine_result *logical,
                          double *room, struct load_summary *summary, struct sample_counts *counts,
                          struct percentile_estimate estimates[SUMMARY_QUANTILES],
                          struct error *err)
{
    struct percentile_estimate of_each[SUMMARY_QUANTILES];
    const size_t count = result->sample_count;
    struct columns columns = {.latency = room,
                              .uncorrected = room + count,
                              .network = room + 2 * count,
                              .lateness = room + 3 * count,
                              .each = room + 4 * count};
    fill_columns(result, logical, &columns, counts);
    int status =
        take_latency(columns.latency, columns.latencies, &summary->latency, estimates, err);
    if (status == 0 && logical->samples != result->samples)
        status = take_latency(columns.each, count, &summary->each, of_each, err);
    take_percentiles(columns.uncorrected, columns.sends, &summary->uncorrected);
    take_percentiles(columns.network, columns.stamped, &summary->network);
    double lateness[2];
    quantile_pair_of(columns.lateness, columns.calls, (const double[]){0.5, 0.99}, columns.lateness,
                     lateness);
    summary->lateness_p50_us = lateness[0];
    summary->lateness_p99_us = lateness[1];
    return status;
}

static void take_rates(const struct engine_result *result, uint64_t last_reply,
                       uint64_t duration_ns, struct load_summary *summary)
{
    uint64_t loaded_from = result->start_tsc + result->paused_tsc;
    double until_last =
        last_reply > loaded_from ? (double)(last_reply - loaded_from) / result->tsc_hz : 0;
    double run_s = (double)(result->end_tsc - loaded_from) / result->tsc_hz;
    summary->duration_s = (double)duration_ns / 1e9;
    if (result->end == ENGINE_INTERRUPTED && run_s < summary->duration_s)
        summary->duration_s = run_s;
    double answered_over = until_last > summary->duration_s ? until_last : summary->duration_s;
    summary->offered_rate = (double)summary->logical_scheduled / summary->duration_s;
    summary->achieved_rate = (double)summary->logical_answered / answered_over;
    const double of_threads = run_s * result->tsc_hz * result->thread_count;
    summary->spin_fraction = run_s > 0 ? (double)result->spin_tsc / of_threads : NAN;
    summary->asleep_fraction = run_s > 0 ? (double)result->asleep_tsc / of_threads : NAN;
    summary->core_share =
        run_s > 0 ? (double)result->cpu_ns / (run_s * 1e9 * result->thread_count) : NAN;
    double busy_us = (double)result->cpu_ns / 1e3 - (double)result->spin_tsc / result->tsc_hz * 1e6;
    // Where others had the core while it spun, more time passed so than it had.
    summary->cpu_us_per_request =
        summary->answered && busy_us > 0 ? busy_us / (double)summary->answered : NAN;
}

void load_summary_add_reason(struct load_summary *summary, enum load_doubt doubt,
                             const char *format, ...)
{
    va_list args;
    unsigned at = summary->reason_count, last;
    summary->ok = false;
    while (at > 0 && summary->doubts[at - 1] > doubt)
        at--;
    if (at == SUMMARY_REASONS)
        return;
    last = summary->reason_count < SUMMARY_REASONS ? summary->reason_count++ : SUMMARY_REASONS - 1;
    memmove(&summary->doubts[at + 1], &summary->doubts[at], (last - at) * sizeof *summary->doubts);
    memmove(&summary->reasons[at + 1], &summary->reasons[at],
            (last - at) * sizeof *summary->reasons);
    summary->doubts[at] = doubt;
    va_start(args, format);
    vsnprintf(summary->reasons[at], sizeof summary->reasons[at], format, args);
    va_end(args);
}

void load_summary_take_reasons(struct load_summary *summary, const json_t *document,
                               const char *whose)
{
    const json_t *doubts = json_object_get(document, "doubts");
    size_t i;
    json_t *reason;
    json_array_foreach(json_object_get(document, "reasons"), i, reason)
    {
        const char *key = json_string_value(json_array_get(doubts, i));
        load_summary_add_reason(summary, load_doubt_named(key), "%s: %s", whose,
                                json_string_value(reason));
    }
}

// Of logical requests where there are any. The latencies are the first column.
static int take_figures(const struct engine_result *result, struct load_summary *summary,
                        struct sample_counts *counts, struct load_latencies *kept,
                        struct error *err)
{
    struct engine_result logical;
    int status = logical_requests_make(result, &logical, err);
    if (status < 0)
        return status;
    double *room = malloc((result->sample_count + 1) * COLUMNS * sizeof *room);
    if (room)
        status = take_latencies(result, &logical, room, summary, counts, kept->estimates, err);
    else
        status = error_set(err, ERROR_FAILED, "out of memory for the percentiles of %s requests",
                           TEXT_COUNT(result->sample_count));
    if (result->totals)
        *counts = result->totals->counts;
    take_counts(counts, summary);
    if (logical.samples != result->samples) {
        const struct sample_counts united = count_statuses(&logical);
        summary->logical_scheduled = united.scheduled;
        summary->logical_answered = united.answered;
    }
    double *fewer = status == 0 ? realloc(room, (logical.sample_count + 1) * sizeof *room) : NULL;
    kept->us = fewer ? fewer : room;
    if (status < 0)
        free(room);
    logical_requests_free(result, &logical);
    return status;
}

int load_summary_take(const struct engine_result *result, uint64_t duration_ns,
                      struct load_summary *summary, struct load_latencies *kept, struct error *err)
{
    *summary = (struct load_summary){.ok = true};
    struct sample_counts counts = {0};
    int status = take_figures(result, summary, &counts, kept, err);
    if (result->totals)
        take_totals(result, summary);
    take_rates(result, counts.last_reply_tsc, duration_ns, summary);
    return status;
}
