// SPDX-License-Identifier: MIT
#include "loadgen/method/logical_requests.h"
#include "base/text.h"

#include <stdlib.h>

// Whether a request ended after another: one without a reply after all that have one, and of those
// without the one with the worse status.
static bool is_slower(const struct sample *one, const struct sample *other)
{
    const bool answered = sample_is_answered(one);
    if (answered != sample_is_answered(other))
        return !answered;
    return answered ? one->reply_tsc > other->reply_tsc : one->status > other->status;
}

// As one: requests of which each had been answered have the worst of the answers (an error, else a
// miss), as enum sample_status has them in order.
static struct sample unite(const struct sample *samples, uint32_t count)
{
    const struct sample *slowest = samples, *first = NULL;
    struct sample united;
    uint64_t sent_tsc = 0, tx_ns = 0;
    uint8_t status = 0;
    for (const struct sample *one = samples; one < samples + count; one++) {
        slowest = is_slower(one, slowest) ? one : slowest;
        status = one->status > status ? one->status : status;
        sent_tsc = one->sent_tsc > sent_tsc ? one->sent_tsc : sent_tsc;
        if (one->sent_tsc && (!first || one->send_tsc < first->send_tsc))
            first = one;
        if (one->tx_ns && (!tx_ns || one->tx_ns < tx_ns))
            tx_ns = one->tx_ns;
    }
    united = *slowest;
    united.status = status;
    if (!first)
        return united;
    united.send_tsc = first->send_tsc;
    united.sent_tsc = sent_tsc;
    united.tx_ns = tx_ns;
    united.tx_source = first->tx_source;
    sample_set_sender(&united, sample_sender(first));
    return united;
}

int logical_requests_make(const struct engine_result *result, struct engine_result *logical,
                          struct error *err)
{
    const uint32_t fanout = fanout_of(result);
    *logical = *result;
    if (fanout == 1)
        return 0;
    logical->fanout = 1;
    logical->sample_count = result->sample_count / fanout;
    logical->samples = calloc(logical->sample_count + 1, sizeof *logical->samples);
    if (!logical->samples)
        return error_set(err, ERROR_FAILED, "out of memory for %s logical requests",
                         TEXT_COUNT(logical->sample_count));
    for (size_t i = 0; i < logical->sample_count; i++)
        logical->samples[i] = unite(result->samples + i * fanout, fanout);
    return 0;
}

void logical_requests_free(const struct engine_result *result, struct engine_result *logical)
{
    if (logical->samples != result->samples)
        free(logical->samples);
    logical->samples = NULL;
}
