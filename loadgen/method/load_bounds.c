// SPDX-License-Identifier: MIT
#include "loadgen/method/load_bounds.h"

#include <math.h>

#include "base/json_numbers.h"
#include "base/text.h"
#include "workloads/protocols/protocol.h"

static const double percentile_error = 1.0 / HISTOGRAM_HALF; // of itself, and never too low

static double us_between(const struct engine_result *result, uint64_t from, uint64_t to)
{
    return (double)(int64_t)(to - from) / result->tsc_hz * 1e6;
}

// Above this latency all requests are among the slowest; +infinity: those are all without a reply.
static double slow_over_us(const struct engine_result *result)
{
    const struct sample_totals *totals = result->totals;
    return totals->slow_count < TOTALS_SLOWEST
               ? 0
               : sample_latency_us(&totals->slowest[TOTALS_SLOWEST - 1], result->tsc_hz);
}

static json_t *slow_request_json(const struct engine_result *result,
                                 const struct protocol *protocol, const struct sample *sample)
{
    const bool sent = sample->sent_tsc, stamped = sample->tx_ns && sample->rx_ns;
    const char *operation = protocol->operations[sample->operation].name;
    return json_pack(
        "{s:f,s:o,s:s*,s:I,s:I,s:o,s:o}", "at_s",
        us_between(result, result->start_tsc, sample->intended_tsc) / 1e6, "latency_us",
        json_number_or_null(sample_latency_us(sample, result->tsc_hz)), "operation", operation,
        "key", (json_int_t)sample->key, "connection", (json_int_t)sample->connection,
        "sent_late_us",
        json_number_or_null(sent ? us_between(result, sample->intended_tsc, sample->send_tsc)
                                 : (double)NAN),
        "network_us",
        json_number_or_null(stamped ? (double)(int64_t)(sample->rx_ns - sample->tx_ns) / 1e3
                                    : (double)NAN));
}

static json_t *slow_json(const struct engine_result *result, const struct protocol *protocol)
{
    const struct sample_totals *totals = result->totals;
    json_t *requests = json_array();
    for (size_t i = 0; i < totals->slow_count; i++)
        json_array_append_new(requests, slow_request_json(result, protocol, &totals->slowest[i]));
    return json_pack("{s:o,s:I,s:o}", "over_us", json_number_or_null(slow_over_us(result)),
                     "without_reply_left_out", (json_int_t)totals->slow_left_out, "requests",
                     requests);
}

json_t *load_bounds_json(const struct engine_result *result, const struct protocol *protocol)
{
    const struct sample_totals *totals = result->totals;
    if (!totals)
        return json_null();
    return json_pack(
        "{s:I,s:I,s:I,s:f,s:I,s:I,s:I,s:o,s:o}", "kept", (json_int_t)result->sample_count,
        "kept_of", (json_int_t)totals->every, "stretch", (json_int_t)TOTALS_STRETCH,
        "percentile_error", percentile_error, "waited_for_memory", (json_int_t)totals->late_full,
        "drawn_late", (json_int_t)totals->late_drawn, "undrawn", (json_int_t)totals->undrawn,
        "spooled", totals->spooled ? json_integer((json_int_t)totals->spool_count) : json_null(),
        "slow", slow_json(result, protocol));
}

static void print_slow(const struct engine_result *result, FILE *out)
{
    const struct sample_totals *totals = result->totals;
    const double over_us = slow_over_us(result);
    if (isinf(over_us))
        fprintf(out, "\n             %s without a reply are kept, and %s more are not",
                TEXT_COUNT(totals->slow_count), TEXT_COUNT(totals->slow_left_out));
    else
        fprintf(out, "\n             the %s slowest are kept: all above %s",
                TEXT_COUNT(totals->slow_count), TEXT_US(over_us));
}

void load_bounds_print(const struct engine_result *result, FILE *out)
{
    const struct sample_totals *totals = result->totals;
    if (!totals)
        return;
    fprintf(out,
            "  memory     bounded: percentiles are of all requests, at most %s too high; "
            "intervals and checks\n             of %s request%s, 1 of %s, in stretches of %d",
            TEXT_SHARE(percentile_error, 1), TEXT_COUNT(result->sample_count),
            text_plural((double)result->sample_count), TEXT_COUNT(totals->every), TOTALS_STRETCH);
    print_slow(result, out);
    if (totals->late_full || totals->late_drawn)
        fprintf(out,
                "\n             late because of it: %s request%s waited for room, %s were drawn "
                "late",
                TEXT_COUNT(totals->late_full), text_plural((double)totals->late_full),
                TEXT_COUNT(totals->late_drawn));
    if (totals->undrawn)
        fprintf(out,
                "\n             %s of the unsent were too many to look at, and are only counted",
                TEXT_COUNT(totals->undrawn));
    const uint64_t drawn = totals->counts.scheduled - totals->undrawn;
    if (totals->spooled)
        fprintf(out, "\n             %s of %s samples are in the file%s%s",
                TEXT_COUNT(totals->spool_count), TEXT_COUNT(drawn),
                totals->spool_count < drawn ? ": " : "",
                totals->spool_count < drawn ? totals->spool_why.text : "");
    fputc('\n', out);
}
