// SPDX-License-Identifier: MIT
#include "analysis/pt/walk/pt_walk_state.h"

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

// Completes a flow: control arrives at `to`.
static void walk_arrive(struct pt_walk *walk, struct pt_flow *flow, uint64_t to)
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
        walk_arrive(walk, &walk->pending, to);
        walk->pending.kind = PT_FLOW_NONE;
    }
}

void pt_walk_jump(struct pt_walk *walk, uint64_t ip, bool direct)
{
    uint64_t left = walk->function.key;
    walk_enter(walk, ip);
    if (walk->function.key == left)
        return; // a cold part, or no known function
    struct pt_flow flow = pt_walk_flow(walk, PT_FLOW_JUMP, walk->last_ip, ip);
    flow.unmarked = true;
    flow.function = walk->function.key;
    flow.at_start = walk->function.whole && (direct || walk->function.low == ip);
    pt_walk_emit(walk, &flow);
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

// --- events ----------------------------------------------------------------------------------

// Whether libipt may report the event before branches that happened earlier: only a change of the
// frequency (CBR). All other events come after the packets of earlier branches.
static bool event_passes(const struct pt_event *event)
{
    return event->type == ptev_cbr && !event->status_update;
}

// Whether the flow has the event's time only because the decoder had already read the event's
// packet.
static bool flow_read_ahead(const struct pt_flow *flow, const struct pt_event *event)
{
    bool branch = flow->kind >= PT_FLOW_CALL && flow->kind <= PT_FLOW_FAR_RETURN;
    return flow->tsc == event->tsc && (flow->unmarked || (branch && event_passes(event)));
}

// Handles an event that has a time. To find it the decoder read on behind the last branch, possibly
// over timing packets, and gave their time to flows that need no packet of their own. Those get the
// earlier time back; a branch with that time keeps it and is marked as ahead.
static void walk_event_read(struct pt_walk *walk, const struct pt_event *event)
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

static void walk_event_disabled(struct pt_walk *walk, uint64_t from, uint64_t target,
                                bool asynchronous)
{
    if (walk->pending.kind == PT_FLOW_FAR_CALL && !asynchronous)
        pt_walk_settle(walk, 0); // the code that it called is not traced
    else if (asynchronous)
        pt_walk_reach(walk, from);
    else
        pt_walk_settle(walk, target);
    struct pt_flow flow = pt_walk_flow(walk, PT_FLOW_DISABLE, from, target);
    flow.asynchronous = asynchronous;
    pt_walk_emit(walk, &flow);
    walk->enabled = false;
}

static void walk_event_branch(struct pt_walk *walk, uint64_t from, uint64_t to)
{
    pt_walk_reach(walk, from);
    struct pt_flow flow =
        pt_walk_flow(walk, walk->aborted ? PT_FLOW_JUMP : PT_FLOW_INTERRUPT, from, to);
    walk->piece->counts.interrupts += !walk->aborted;
    walk->aborted = false;
    walk_arrive(walk, &flow, to);
}

// The header of each PSB repeats the ratio.
static void walk_event_ratio(struct pt_walk *walk, const struct pt_event *event)
{
    struct pt_piece *piece = walk->piece;
    uint8_t before = walk->ratio, now = (uint8_t)event->variant.cbr.ratio;
    if (now == 0)
        return;
    walk->ratio = now;
    if (!piece->lowest_ratio || now < piece->lowest_ratio)
        piece->lowest_ratio = now;
    if (before == now || !before || !event->has_tsc)
        return;
    struct pt_ratio_change change = {.tsc = event->tsc,
                                     .flow = piece->flows.count,
                                     .low = before < now ? before : now,
                                     .high = before < now ? now : before};
    if (array_push(&piece->ratio_changes, change) < 0 && !walk->failed) {
        walk->failed = true;
        error_set(walk->err, ERROR_FAILED, "out of memory for changes of the clock");
    }
}

// Whether the event moves control. libipt may report the other kinds late, together with a later
// event.
static bool event_moves(const struct pt_event *event)
{
    return !event->status_update &&
           (event->type == ptev_enabled || event->type == ptev_disabled ||
            event->type == ptev_async_disabled || event->type == ptev_async_branch);
}

static void walk_event(struct pt_walk *walk, const struct pt_event *event)
{
    uint64_t target;
    struct pt_flow flow;
    if (event->has_tsc && event_passes(event)) {
        walk->passed_tsc = event->tsc;
    } else if (event->has_tsc) {
        if (event->tsc > walk->tsc || event_moves(event))
            walk->tsc = event->tsc;
        pt_walk_follow_changes(walk, walk->tsc);
    }
    switch (event->type) {
    case ptev_enabled:
        walk->pending.kind = PT_FLOW_NONE;
        walk->enabled = true;
        flow = pt_walk_flow(walk, PT_FLOW_ENABLE, 0, 0);
        walk_arrive(walk, &flow, event->variant.enabled.ip);
        break;
    case ptev_disabled:
        target = event->ip_suppressed ? 0 : event->variant.disabled.ip;
        walk_event_disabled(walk, walk->last_ip, target, false);
        break;
    case ptev_async_disabled:
        target = event->ip_suppressed ? 0 : event->variant.async_disabled.ip;
        walk_event_disabled(walk, event->variant.async_disabled.at, target, true);
        break;
    case ptev_async_branch:
        walk_event_branch(walk, event->variant.async_branch.from, event->variant.async_branch.to);
        break;
    case ptev_overflow:
        if (walk->pending.kind == PT_FLOW_RETURN)
            pt_walk_settle(walk, 0); // it did return, but the return address was lost
        walk->pending.kind = PT_FLOW_NONE;
        walk->piece->counts.overflows++;
        walk->enabled = !event->ip_suppressed;
        walk->passed_tsc = 0;
        pt_walk_read_time(walk, false); // the event's time is from before the loss
        flow = pt_walk_flow(walk, PT_FLOW_OVERFLOW, walk->last_ip, 0);
        walk_arrive(walk, &flow, event->ip_suppressed ? 0 : event->variant.overflow.ip);
        break;
    case ptev_paging:
    case ptev_async_paging:
        if (event->status_update)
            break;
        flow = pt_walk_flow(walk, PT_FLOW_PAGING, walk->last_ip,
                            event->type == ptev_paging ? event->variant.paging.cr3
                                                       : event->variant.async_paging.cr3);
        pt_walk_emit(walk, &flow);
        break;
    case ptev_tsx:
        walk->aborted = event->variant.tsx.aborted;
        break;
    case ptev_cbr:
        walk_event_ratio(walk, event);
        break;
    default: // power events, PTWRITE and the like do not move control
        break;
    }
}

// Whether the decoder has read up to the PSB where the next piece begins.
static bool walk_read_to_end(const struct pt_walk *walk)
{
    uint64_t offset = 0;
    return walk->end_offset != UINT64_MAX && pt_walker_offset(walk->walker, &offset) >= 0 &&
           offset >= walk->end_offset;
}

// Whether this event comes from that PSB's header and says where the processor was. libipt reads
// ahead, so the event of an earlier PSB's header may still be pending; their addresses differ,
// since no code returns to the same address without writing a packet.
static bool walk_hands_over(const struct pt_walk *walk, const struct pt_event *event)
{
    return event->status_update && event->type == ptev_exec_mode &&
           event->variant.exec_mode.ip == walk->end_ip && walk_read_to_end(walk);
}

int pt_walk_events(struct pt_walk *walk, int status, bool *ended)
{
    while (status & pts_event_pending) {
        struct pt_event event;
        *ended = !walk->enabled && walk_read_to_end(walk);
        if (*ended)
            return status;
        status = pt_walker_event(walk->walker, &event);
        if (status < 0)
            return status;
        if (event.has_tsc)
            walk_event_read(walk, &event);
        *ended = walk_hands_over(walk, &event);
        if (*ended) {
            if (walk->pending.kind != PT_FLOW_BEGIN)
                pt_walk_reach(walk, walk->end_ip);
            return status;
        }
        walk_event(walk, &event);
    }
    return status;
}
