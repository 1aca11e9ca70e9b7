// SPDX-License-Identifier: MIT
#include "analysis/pt/pt_flow.h"

// When the flows after the ones that begin at `next` have their time; end_tsc when there are none.
static uint64_t time_after(const struct pt_flows *flows, size_t next, uint64_t end_tsc)
{
    uint64_t tsc = next < flows->count ? flows->items[next].tsc : 0;
    while (next < flows->count && flows->items[next].tsc == tsc)
        next++;
    if (next < flows->count)
        return flows->items[next].tsc;
    return end_tsc > tsc ? end_tsc : tsc;
}

void pt_flows_interpolate(struct pt_flows *flows, uint64_t end_tsc)
{
    uint64_t before = flows->count ? flows->items[0].tsc : 0;
    for (size_t first = 0; first < flows->count;) {
        uint64_t tsc = flows->items[first].tsc, next_tsc = end_tsc;
        uint32_t begin = flows->items[first].instruction, end;
        size_t next = first;
        bool off = false; // tracing was: how much of the time passed there nobody knows
        while (next < flows->count && flows->items[next].tsc == tsc)
            off |= flows->items[next++].kind == PT_FLOW_DISABLE;
        end = flows->items[next - 1].instruction + 1;
        if (next < flows->count) {
            next_tsc = flows->items[next].tsc;
            end = flows->items[next].instruction + 1;
        }
        uint64_t gap = next_tsc > tsc ? next_tsc - tsc : 0;
        for (size_t i = first; i < next; i++) {
            struct pt_flow *flow = &flows->items[i];
            uint64_t into = off ? 0
                                : (uint64_t)((double)gap * (double)(flow->instruction - begin) /
                                             (double)(end - begin));
            uint64_t since = tsc - before + into, until = gap - into;
            if (flow->unmarked)
                until = time_after(flows, next, end_tsc) - flow->tsc - into;
            uint64_t error = since > until ? since : until;
            flow->tsc += into;
            flow->error_tsc = error < UINT32_MAX ? (uint32_t)error : UINT32_MAX;
        }
        before = tsc;
        first = next;
    }
}

void pt_flows_add_cycle_error(struct pt_flows *flows, uint64_t begin_tsc, uint64_t most_tsc)
{
    enum { ROUNDING = 2 };
    for (size_t i = 0; i < flows->count; i++) {
        struct pt_flow *flow = &flows->items[i];
        uint64_t since = flow->tsc > begin_tsc ? flow->tsc - begin_tsc : 0;
        uint64_t error = (since < most_tsc ? since : most_tsc) / PT_CYCLE_ERROR_PART + ROUNDING;
        flow->error_tsc =
            error < UINT32_MAX - flow->error_tsc ? flow->error_tsc + (uint32_t)error : UINT32_MAX;
    }
}
