// SPDX-License-Identifier: MIT
//
// A list of requests that wait, first come first. It is linked through the reply_begin of their
// samples, which is otherwise unused before the reply. Zeroed: empty.
#ifndef LOADGEN_ENGINE_REQUEST_LIST_H
#define LOADGEN_ENGINE_REQUEST_LIST_H

#include <stddef.h>
#include <stdint.h>

#include "loadgen/client/sample_log.h"

struct request_list {
    uint64_t first, last; // indices of samples, plus 1; only of use while count is not 0
    uint64_t count;
};

static inline void request_list_push(struct request_list *list, struct sample *samples,
                                     size_t index)
{
    samples[index].reply_begin = 0;
    if (list->count++)
        samples[list->last - 1].reply_begin = index + 1;
    else
        list->first = index + 1;
    list->last = index + 1;
}

// Only of a list that is not empty.
static inline size_t request_list_take(struct request_list *list, struct sample *samples)
{
    size_t index = list->first - 1;
    list->first = samples[index].reply_begin;
    samples[index].reply_begin = 0;
    list->count--;
    return index;
}

// As it was before it was ever put, but that it has waited.
static inline void request_reset(struct sample *sample)
{
    *sample = (struct sample){.intended_tsc = sample->intended_tsc,
                              .operation = sample->operation,
                              .sender_high = sample->sender_high & SAMPLE_WAITED,
                              .key = sample->key,
                              .status = SAMPLE_UNSENT};
}

#endif
