// SPDX-License-Identifier: MIT
#include "analysis/calls/call_comparison.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "analysis/calls/streams.h"
#include "base/array.h"
#include "base/quantile.h"

// One log's record of a call, on a connection that both logs know.
struct compared_call {
    uint32_t connection; // its place in the kernel's table
    uint32_t length;
    uint64_t end; // offset after its last byte
    int64_t time_ns;
    uint8_t kind; // enum call_kind
    bool of_kernel;
};

struct comparer {
    struct ARRAY_OF(struct compared_call) calls;
    const struct time_source *clock;
    double *differences; // of the calls of a kind
};

static int compare_places(const void *left, const void *right)
{
    const struct compared_call *a = left, *b = right;
    return order_of(a->kind, b->kind) ?:
           order_of(a->connection, b->connection) ?:
           order_of(a->end, b->end) ?:
           order_of(a->of_kernel, b->of_kernel);
}

// kernel_of: of each of the log's connections, the kernel's; NULL: they are.
static int gather(struct comparer *comparer, const struct call_log *log, const uint32_t *kernel_of)
{
    struct connection_index index;
    int result = connection_index_init(&index, log->connections, log->connection_count);
    for (size_t i = 0; i < log->call_count && result == 0; i++) {
        const struct call *call = &log->calls[i];
        bool receives = call->kind == CALL_RECEIVE;
        if (!receives && call->kind != CALL_SEND)
            continue;
        uint32_t connection = connection_index_find(&index, call->connection);
        if (connection != NO_CONNECTION && kernel_of)
            connection = kernel_of[connection];
        if (connection >= SEVERAL_CONNECTIONS)
            continue;
        uint64_t time = receives ? call->exit_tsc : call->entry_tsc;
        struct compared_call one = {
            .connection = connection,
            .length = call->length,
            .end = call->offset + call->length,
            .time_ns = time_source_to_host(comparer->clock, log->clock, time),
            .kind = call->kind,
            .of_kernel = !kernel_of,
        };
        result = array_push(&comparer->calls, one);
    }
    connection_index_fini(&index);
    return result;
}

static bool is_pair(const struct compared_call *one, const struct compared_call *next)
{
    return !one->of_kernel && next->of_kernel && one->end == next->end;
}

// The calls of a connection and a direction.
static size_t compare_stream(struct comparer *comparer, const struct compared_call *calls,
                             size_t count, struct call_difference *out)
{
    size_t found = 0, first = 0;
    while (count > 1 && !is_pair(&calls[count - 2], &calls[count - 1]))
        count--;
    while (first + 1 < count && !is_pair(&calls[first], &calls[first + 1]))
        first++;
    for (size_t i = first; i + 1 < count; i++) {
        if (!is_pair(&calls[i], &calls[i + 1])) {
            ++*(calls[i].of_kernel ? &out->kernel_only : &out->shim_only);
            continue;
        }
        comparer->differences[out->both + found++] =
            (double)(calls[i].time_ns - calls[i + 1].time_ns);
        out->other_bytes += calls[i].length != calls[i + 1].length;
        i++;
    }
    return found;
}

static void compare_kind(struct comparer *comparer, uint8_t kind, uint64_t *connections,
                         struct call_difference *out)
{
    const struct compared_call *calls = comparer->calls.items;
    *out =
        (struct call_difference){.median_ns = NAN, .p99_ns = NAN, .least_ns = NAN, .most_ns = NAN};
    for (size_t first = 0, end; first < comparer->calls.count; first = end) {
        for (end = first; end < comparer->calls.count && calls[end].kind == calls[first].kind &&
                          calls[end].connection == calls[first].connection;)
            end++;
        if (calls[first].kind != kind)
            continue;
        size_t found = compare_stream(comparer, calls + first, end - first, out);
        out->both += found;
        *connections += found > 0;
    }
    if (out->both == 0)
        return;
    quantile_sort(comparer->differences, out->both);
    out->median_ns = quantile_sorted(comparer->differences, out->both, 0.5);
    out->p99_ns = quantile_sorted(comparer->differences, out->both, 0.99);
    out->least_ns = comparer->differences[0];
    out->most_ns = comparer->differences[out->both - 1];
}

int call_comparison_build(const struct call_log *shim, const struct call_log *kernel,
                          const struct time_source *clock, struct call_comparison *out)
{
    struct comparer comparer = {.clock = clock};
    uint64_t sending = 0;
    uint32_t *kernel_of = malloc((shim->connection_count + 1) * sizeof *kernel_of);
    *out = (struct call_comparison){0};
    int result = kernel_of
                     ? match_same_ends(shim->connections, shim->connection_count,
                                       kernel->connections, kernel->connection_count, kernel_of)
                     : -1;
    if (result == 0)
        result = gather(&comparer, shim, kernel_of);
    if (result == 0)
        result = gather(&comparer, kernel, NULL);
    comparer.differences = malloc((comparer.calls.count + 1) * sizeof *comparer.differences);
    if (result == 0 && comparer.differences) {
        array_sort(&comparer.calls, compare_places);
        compare_kind(&comparer, CALL_RECEIVE, &out->connections, &out->receives);
        compare_kind(&comparer, CALL_SEND, &sending, &out->sends);
    }
    result = comparer.differences ? result : -1;
    free(kernel_of);
    free(comparer.differences);
    array_free(&comparer.calls);
    return result;
}
