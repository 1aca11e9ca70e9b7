// SPDX-License-Identifier: MIT
#include "analysis/pt/pt_walk.h"
#include "base/array.h"

// --- functions -------------------------------------------------------------------------------

static void walk_enter(struct pt_walk *walk, uint64_t ip)
{
    if (walk->walker->symbols)
        walk->function = *pt_walker_function(walk->walker, walk->space, ip);
}

// --- flows -----------------------------------------------------------------------------------

void pt_walk_emit(struct pt_walk *walk, const struct pt_flow *flow)
{
    if (array_push(&walk->piece->flows, *flow) < 0 && !walk->failed) {
        walk->failed = true;
        error_set(walk->err, ERROR_FAILED, "out of memory for the flow of control");
    }
}

void pt_walk_arrive(struct pt_walk *walk, struct pt_flow *flow, uint64_t to)
{
    flow->to = to;
    if (to) {
        walk_enter(walk, to);
        flow->function = walk->function.key;
        flow->at_start = walk->function.key && walk->function.whole && walk->function.low == to;
    }
    pt_walk_emit(walk, flow);
}

void pt_walk_settle(struct pt_walk *walk, uint64_t to)
{
    if (walk->pending.kind != PT_FLOW_NONE) {
        pt_walk_arrive(walk, &walk->pending, to);
        walk->pending.kind = PT_FLOW_NONE;
    }
}

void pt_walk_jump(struct pt_walk *walk, uint64_t ip, bool direct)
{
    uint64_t left = walk->function.key;
    walk_enter(walk, ip);
    if (walk->function.key == left)
        return; // a cold part, or still nothing known
    struct pt_flow flow = pt_walk_flow(walk, PT_FLOW_JUMP, walk->last_ip, ip);
    flow.unmarked = true;
    flow.function = walk->function.key;
    flow.at_start = walk->function.whole && (direct || walk->function.low == ip);
    pt_walk_emit(walk, &flow);
}

// Whether that flow has the event's time only because the decoder had read on to it.
static bool flow_read_ahead(const struct pt_flow *flow, const struct pt_event *event)
{
    bool branch = flow->kind >= PT_FLOW_CALL && flow->kind <= PT_FLOW_FAR_RETURN;
    return flow->tsc == event->tsc && (flow->unmarked || (branch && pt_walk_passes(event)));
}

void pt_walk_event_read(struct pt_walk *walk, const struct pt_event *event)
{
    struct pt_flows *flows = &walk->piece->flows;
    struct pt_flow *pending = walk->pending.kind != PT_FLOW_NONE ? &walk->pending : NULL;
    if (pending && !flow_read_ahead(pending, event))
        return;
    size_t first = flows->count;
    while (first > 0 && flow_read_ahead(&flows->items[first - 1], event))
        first--;
    if (first == 0)
        return;
    uint64_t before = flows->items[first - 1].tsc;
    bool ahead = false;
    for (size_t i = first; i < flows->count + (pending != NULL); i++) {
        struct pt_flow *flow = i < flows->count ? &flows->items[i] : pending;
        ahead |= !flow->unmarked;
        flow->ahead = ahead;
        if (!ahead)
            flow->tsc = before;
    }
}

// --- address spaces --------------------------------------------------------------------------

static void walk_set_space(struct pt_walk *walk, uint32_t space)
{
    if (pt_walker_set_space(walk->walker, space, walk->err) < 0)
        walk->failed = true;
    walk->space = space;
}

void pt_walk_follow_changes(struct pt_walk *walk, uint64_t tsc)
{
    const struct pt_space_changes *changes = walk->stream->changes;
    if (!changes)
        return;
    uint32_t space = walk->space;
    while (walk->next_change < changes->count && changes->items[walk->next_change].tsc <= tsc)
        space = changes->items[walk->next_change++].space;
    if (space != walk->space)
        walk_set_space(walk, space);
}

void pt_walk_find_change(struct pt_walk *walk, uint64_t tsc)
{
    const struct pt_space_changes *changes = walk->stream->changes;
    size_t low = array_bound(0, changes ? changes->count : 0, at, changes->items[at].tsc <= tsc);
    walk->next_change = low;
    walk_set_space(walk, low ? changes->items[low - 1].space : PT_SPACE_ALL);
}
