// SPDX-License-Identifier: MIT
#include "analysis/calls/calls.h"
#include "base/array.h"
#include "base/text.h"

#include <stdlib.h>

static int compare_calls(const void *left, const void *right)
{
    const struct application_call *a = left, *b = right;
    return order_of(a->thread, b->thread) ?:
           order_of(a->entry_ns, b->entry_ns) ?:
           order_of(a->exit_ns, b->exit_ns);
}

int application_calls_build(const struct call *calls, size_t count, const struct time_source *clock,
                            struct application_calls *out, uint64_t *damaged, struct error *err)
{
    return application_calls_build_mixed(calls, count, 0, clock, out, damaged, err);
}

int application_calls_build_mixed(const struct call *calls, size_t count, size_t by_kernel,
                                  const struct time_source *clock, struct application_calls *out,
                                  uint64_t *damaged, struct error *err)
{
    *out = (struct application_calls){0};
    *damaged = 0;
    if (array_reserve(out, count) < 0 || count >= UINT32_MAX)
        return error_set(err, ERROR_FAILED, "no memory for %s socket calls: analyze a shorter run",
                         TEXT_COUNT(count));
    bool ordered = true;
    for (size_t i = 0; i < count; i++) {
        const struct call *call = &calls[i];
        enum host_clock by = i < count - by_kernel ? HOST_CLOCK_TSC : HOST_CLOCK_MONOTONIC;
        if (call->kind < CALL_RECEIVE || call->kind > CALL_CONNECT ||
            call->exit_tsc < call->entry_tsc || call->offset + call->length < call->offset) {
            ++*damaged;
            continue;
        }
        out->items[out->count] = (struct application_call){
            .entry_ns = time_source_to_host(clock, by, call->entry_tsc),
            .exit_ns = time_source_to_host(clock, by, call->exit_tsc),
            .offset = call->offset,
            .length = call->length,
            .connection = call->connection,
            .thread = call->thread,
            .batch = call->batch,
            .batch_position = call->batch_position,
            .entry_core = call->entry_core,
            .exit_core = call->exit_core,
            .kind = call->kind,
            .command = call->command,
        };
        if (out->count && compare_calls(&out->items[out->count - 1], &out->items[out->count]) > 0)
            ordered = false;
        out->count++;
    }
    if (!ordered)
        array_sort(out, compare_calls);
    return 0;
}

// The number of calls by threads below `thread`.
static size_t calls_below(const struct application_calls *calls, uint64_t thread)
{
    return array_bound(0, calls->count, at, calls->items[at].thread < thread);
}

const struct application_call *application_calls_of(const struct application_calls *calls,
                                                    uint32_t thread, size_t *count)
{
    size_t first = calls_below(calls, thread);
    *count = calls_below(calls, (uint64_t)thread + 1) - first;
    return *count ? calls->items + first : NULL;
}

size_t application_calls_after(const struct application_call *calls, size_t count, int64_t time_ns)
{
    return array_bound(0, count, at, calls[at].entry_ns <= time_ns);
}
