// SPDX-License-Identifier: MIT
#include "analysis/pt/walk/pt_walk_once.h"

// --- the state between two blocks ----------------------------------------------------------------
// How flows come from it, and how libipt's events (interrupts, lost packets, tracing switched on
// and off) change it.

struct pt_walk {
    struct pt_walker *walker;
    const struct pt_stream *stream;
    struct pt_piece *piece;
    struct error *err;
    uint64_t base;       // offset in the stream of the decoder's first byte
    uint64_t end_offset; // where the next piece begins, in the decoder's bytes; UINT64_MAX: there
                         // is none
    uint64_t end_ip;     // the address in that PSB's header; 0: tracing is off there
    bool enabled;        // whether tracing is on, as far as the events say
    bool aborted; // a transaction was aborted: the asynchronous branch that follows is no interrupt
    bool failed;  // out of memory
    bool unusual; // cannot be followed: libipt's block decoder must walk the piece
    uint64_t last_ip;
    uint64_t tsc;        // at the last flow
    uint64_t passed_tsc; // time of an event that the decoder has already passed: branches before
                         // and after it have the same time
    uint8_t ratio;       // ratio of the core's clock; 0: not known yet
    uint32_t space;
    size_t next_change;
    struct pt_function function; // the function at the instruction pointer; key 0: unknown
    uint32_t function_space;     // where it was looked up
    struct pt_flow pending;      // a transfer whose target follows from the next block or event
    uint64_t stall_offset;       // how far the trace had been read ...
    uint64_t stall_begin;        // ... after that many instructions
    uint32_t lost_mtc, lost_cyc;
};

// Whether the address is known to lie in the function at the instruction pointer.
static inline bool pt_walk_inside(const struct pt_walk *walk, uint64_t ip)
{
    return ip - walk->function.low < walk->function.high - walk->function.low &&
           walk->function_space == walk->space;
}

// Asks libipt for the time of the last timing packet before the one that decided the last branch.
// While an event is handled the decoder has read further, and the event's own time is used.
// decided: that packet also decided where control goes now.
static inline void pt_walk_read_time(struct pt_walk *walk, bool decided)
{
    uint64_t tsc = 0;
    if (pt_walker_time(walk->walker, &tsc, &walk->lost_mtc, &walk->lost_cyc) >= 0 &&
        (decided || tsc != walk->passed_tsc))
        walk->tsc = tsc;
}

// Whether a flow that gets the walk's time may have happened before that.
static inline bool flow_is_ahead(const struct pt_walk *walk)
{
    return walk->passed_tsc && walk->tsc == walk->passed_tsc;
}

static inline struct pt_flow pt_walk_flow(struct pt_walk *walk, enum pt_flow_kind kind,
                                          uint64_t from, uint64_t to)
{
    return (struct pt_flow){.kind = (uint8_t)kind,
                            .tsc = walk->tsc,
                            .from = from,
                            .to = to,
                            .ahead = flow_is_ahead(walk),
                            .instruction = (uint32_t)walk->piece->counts.instructions};
}

// --- functions -----------------------------------------------------------------------------------

static void walk_enter(struct pt_walk *walk, uint64_t ip)
{
    walk->function_space = walk->space;
    if (walk->walker->symbols)
        walk->function = *pt_walker_function(walk->walker, walk->space, ip);
}

// --- flows ---------------------------------------------------------------------------------------

// Room for some more flows; NULL: no memory.
static inline struct pt_flow *flow_room(struct pt_walk *walk, size_t more)
{
    struct pt_flows *flows = &walk->piece->flows;
    if (room_reserve(walk->piece->room, flows, flows->count + more) == 0) {
        flows->count += more;
        return flows->items + (flows->count - more);
    }
    if (!walk->failed) {
        walk->failed = true;
        error_set(walk->err, ERROR_FAILED, "out of memory for the flow of control");
    }
    return NULL;
}

static void pt_walk_emit(struct pt_walk *walk, const struct pt_flow *flow)
{
    struct pt_flow *room = flow_room(walk, 1);
    if (room)
        *room = *flow;
}

// Completes a flow: control arrives at `to`, in that function. What is completed is the copy: a
// struct that was just written in part is slow to copy as a whole.
static inline void walk_arrive_in(struct pt_walk *walk, const struct pt_flow *flow, uint64_t to,
                                  const struct pt_function *function)
{
    struct pt_flow *room = flow_room(walk, 1);
    walk->function_space = walk->space;
    walk->function = *function;
    if (!room)
        return;
    *room = *flow;
    room->to = to;
    room->function = function->key;
    room->at_start = function->key && function->whole && function->low == to;
}

// The same in the function that is there; `to` 0: unknown.
static void walk_arrive(struct pt_walk *walk, const struct pt_flow *flow, uint64_t to)
{
    if (to) {
        walk_enter(walk, to);
        walk_arrive_in(walk, flow, to, &walk->function);
        return;
    }
    struct pt_flow lost = *flow;
    lost.to = 0;
    pt_walk_emit(walk, &lost);
}

// Completes the pending transfer, if any: it went to `to`; 0: unknown.
static void pt_walk_settle(struct pt_walk *walk, uint64_t to)
{
    if (walk->pending.kind != PT_FLOW_NONE) {
        walk_arrive(walk, &walk->pending, to);
        walk->pending.kind = PT_FLOW_NONE;
    }
}

// Adds a flow for a jump to `ip` that no block ended with. libipt reports no target for a direct
// jump inside a block; direct jumps between functions go to a function's start.
static void pt_walk_jump(struct pt_walk *walk, uint64_t ip, bool direct)
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

// Control is at `ip`: finds out how it got there.
static void pt_walk_reach(struct pt_walk *walk, uint64_t ip)
{
    if (walk->pending.kind != PT_FLOW_NONE)
        pt_walk_settle(walk, ip);
    else if (!pt_walk_inside(walk, ip))
        pt_walk_jump(walk, ip, false);
}

// --- address spaces ------------------------------------------------------------------------------

static void walk_set_space(struct pt_walk *walk, uint32_t space)
{
    if (pt_walker_set_space(walk->walker, space, walk->err) < 0)
        walk->failed = true;
    walk->space = space;
}

// Follows the changes of the address space up to that time; returns the current one.
static void pt_walk_follow_changes(struct pt_walk *walk, uint64_t tsc)
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

static void pt_walk_find_change(struct pt_walk *walk, uint64_t tsc)
{
    const struct pt_space_changes *changes = walk->stream->changes;
    size_t low = array_bound(0, changes ? changes->count : 0, at, changes->items[at].tsc <= tsc);
    walk->next_change = low;
    walk_set_space(walk, low ? changes->items[low - 1].space : PT_SPACE_ALL);
}

// A process's code is at `ip`, where the one that ran by the changes' times has none. Their clock
// and the trace's may be off from one another, and the trace's time is that of its last timing
// packet: then the address space is that of a change a little later or earlier. Goes there; false:
// none of them has the code.
static bool walk_find_space(struct pt_walk *walk, uint64_t ip)
{
    enum { NEAR_CHANGES = 8 };
    const struct pt_space_changes *changes = walk->stream->changes;
    struct pt_code_bytes *code = &walk->walker->stretches.bytes;
    bool kernel = ip >> 63; // the same in all spaces, in whichever state
    if (!changes || kernel || !pt_code_bytes_lack(code, walk->space, ip))
        return false;
    for (size_t away = 1; away <= NEAR_CHANGES; away++) {
        const size_t near[] = {walk->next_change + away - 1, walk->next_change - away - 1};
        for (size_t i = 0; i < sizeof near / sizeof *near; i++) {
            if (near[i] >= changes->count || // also where it would be before the first
                !pt_code_bytes_part(code, changes->items[near[i]].space, ip))
                continue;
            walk->next_change = near[i] + 1;
            walk_set_space(walk, changes->items[near[i]].space);
            return true;
        }
    }
    return false;
}

// --- events --------------------------------------------------------------------------------------

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
        if (event->status_update && event->type == ptev_exec_mode) // a walk that begins there
            pt_walk_find_change(walk, event->tsc);                 // knows of no other time
        else
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

// Whether the next piece begins here, with tracing off. Where it begins with tracing on, the event
// that is pending while the decoder has read up to there may be the one that switched it on, and
// code ran between the two.
static bool walk_ends_untraced(const struct pt_walk *walk)
{
    return !walk->enabled && !walk->end_ip && walk_read_to_end(walk);
}

// Handles the pending events. Returns the decoder's status; sets *ended when the next piece begins
// here.
static int pt_walk_events(struct pt_walk *walk, int status, bool *ended)
{
    while (status & pts_event_pending) {
        struct pt_event event;
        *ended = walk_ends_untraced(walk);
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

// --- the blocks ----------------------------------------------------------------------------------

enum {
    // A wrong image can send libipt round a loop that no packet ever ends. Straight code between
    // two packets is never this long.
    STALL_INSTRUCTIONS = 1 << 22,
};

// Whether the block is known to begin in the function where the walk is. The range of that may
// enclose others.
static bool walk_stays(const struct pt_walk *walk, const struct pt_block *block,
                       const struct pt_stretch *stretch)
{
    return (stretch && stretch->key == walk->function.key) || pt_walk_inside(walk, block->ip);
}

// Whether it ends there, too.
static bool walk_stays_on(const struct pt_walk *walk, const struct pt_block *block,
                          const struct pt_stretch *stretch)
{
    return (stretch && stretch->key == walk->function.key && stretch->one_function) ||
           pt_walk_inside(walk, block->end_ip);
}

static void walk_block(struct pt_walk *walk, const struct pt_block *block)
{
    struct pt_walk_counts *counts = &walk->piece->counts;
    const struct pt_stretch *stretch =
        walk->walker->following ? pt_follow_passed_stretch(&walk->walker->follow) : NULL;
    if (walk->pending.kind != PT_FLOW_NONE)
        pt_walk_settle(walk, block->ip);
    else if (!walk_stays(walk, block, stretch))
        pt_walk_jump(walk, block->ip, false);
    counts->blocks++;
    counts->instructions += block->ninsn;
    walk->last_ip = block->end_ip;
    if (!walk_stays_on(walk, block, stretch))
        pt_walk_jump(walk, block->end_ip, true); // a direct jump does not end a block
    if (block->iclass == ptic_cond_jump) // most blocks are such: not worth asking for the time
        return;
    enum pt_flow_kind kind = PT_FLOW_NONE;
    switch (block->iclass == ptic_error ? pt_walker_class(walk->walker, block) : block->iclass) {
    case ptic_call:
        counts->calls++;
        kind = PT_FLOW_CALL;
        break;
    case ptic_return:
        counts->returns++;
        kind = PT_FLOW_RETURN;
        break;
    case ptic_far_call:
        counts->syscalls++;
        kind = PT_FLOW_FAR_CALL;
        break;
    case ptic_far_return:
        kind = PT_FLOW_FAR_RETURN;
        break;
    default:
        break;
    }
    bool marked = kind != PT_FLOW_NONE && kind != PT_FLOW_CALL;
    pt_walk_read_time(walk, marked);
    if (kind == PT_FLOW_NONE)
        return;
    walk->pending = (struct pt_flow){.kind = (uint8_t)kind,
                                     .tsc = walk->tsc,
                                     .from = block->end_ip,
                                     .unmarked = !marked,
                                     .ahead = marked && flow_is_ahead(walk),
                                     .instruction = (uint32_t)counts->instructions};
    if (kind == PT_FLOW_FAR_RETURN)
        pt_walk_follow_changes(walk, walk->tsc);
}

static bool walk_stalls(struct pt_walk *walk)
{
    uint64_t offset = 0, executed = walk->piece->counts.instructions;
    if (executed - walk->stall_begin < STALL_INSTRUCTIONS)
        return false;
    pt_walker_offset(walk->walker, &offset);
    bool stalls = offset == walk->stall_offset || executed > UINT32_MAX / 2;
    walk->stall_offset = offset;
    walk->stall_begin = executed;
    return stalls;
}

static int walk_error(struct pt_walk *walk, uint64_t ip, const char *what)
{
    struct pt_walk_error error = {.ip = ip, .what = what};
    if (pt_walker_offset(walk->walker, &error.offset) < 0)
        pt_blk_get_sync_offset(walk->walker->decoder, &error.offset);
    error.offset += walk->base;
    struct pt_flow lost = pt_walk_flow(walk, PT_FLOW_LOST, ip, 0);
    walk->pending.kind = PT_FLOW_NONE;
    pt_walk_emit(walk, &lost);
    if (walk->failed || array_push(&walk->piece->errors, error) < 0)
        return error_set(walk->err, ERROR_FAILED, "out of memory for a list of decode errors");
    return 0;
}

// --- many blocks at once -------------------------------------------------------------------------

// Arrives where the passage begins, as at a block's begin. False: it is not known to be the same
// for the passage as for the walk.
static bool walk_enter_passage(struct pt_walk *walk, const struct pt_passage *passage)
{
    const struct pt_follow *follow = &walk->walker->follow;
    const struct pt_reading *read = &follow->query.read;
    const struct pt_function *here = &walk->function, *first = &passage->first;
    uint64_t ip = follow->ip;
    if ((read->known && read->tsc == walk->passed_tsc) || flow_is_ahead(walk))
        return false;
    if (walk->pending.kind != PT_FLOW_NONE) {
        walk_arrive_in(walk, &walk->pending, ip, first);
        walk->pending.kind = PT_FLOW_NONE;
        return true;
    }
    if (here->low == first->low && here->high == first->high && here->key == first->key &&
        walk->function_space == walk->space)
        return true;
    if (here->key == follow->stretches->items[passage->from].key || pt_walk_inside(walk, ip))
        return false;
    pt_walk_jump(walk, ip, false);
    return true;
}

// What was executed on it; flows: of all passages.
static inline void walk_emit_passage(struct pt_walk *walk, const struct pt_passage *passage,
                                     const struct pt_passage_flows *flows)
{
    struct pt_walk_counts *counts = &walk->piece->counts;
    uint32_t before = (uint32_t)counts->instructions;
    uint64_t times[2] = {walk->tsc, walk->tsc};
    const struct pt_passage_flow *from = pt_passage_flows(passage, flows);
    size_t whole = passage->flow_count - (size_t)passage->leaves;
    struct pt_flow *to = whole ? flow_room(walk, whole) : NULL;
    if (passage->timed) {
        pt_walk_read_time(walk, false);
        times[1] = walk->tsc;
    }
    for (size_t i = 0; to && i < whole; i++)
        pt_passage_flow_put(&to[i], &from[i], times[from[i].timed], before);
    if (passage->leaves)
        pt_passage_flow_put(&walk->pending, &from[whole], walk->tsc, before);
    counts->instructions += passage->instructions;
    counts->blocks += passage->blocks;
    counts->calls += passage->calls;
    counts->returns += passage->returned;
    walk->last_ip = passage->last_ip;
    walk->enabled = true;
    walk->function = passage->last;
}

// Returns the decoder's status.
static int walk_pass_path(struct pt_walk *walk, const struct pt_path *path)
{
    bool leaves = path->passage.leaves, indirect = path->indirect != PT_NO_STRETCH;
    walk_emit_passage(walk, &path->passage, &walk->walker->paths.flows);
    int status = pt_follow_pass(&walk->walker->follow, path);
    if (leaves || indirect) { // the decoder may have read on since
        bool marked = leaves && walk->pending.kind == PT_FLOW_RETURN;
        pt_walk_read_time(walk, marked);
        walk->pending.tsc = walk->tsc;
        walk->pending.ahead = marked && flow_is_ahead(walk);
    }
    return status;
}

static int walk_pass_trail(struct pt_walk *walk, const struct pt_trail *trail)
{
    struct pt_follow *follow = &walk->walker->follow;
    walk_emit_passage(walk, &trail->passage, &walk->walker->trails.flows);
    pt_follow_change_returns(follow, trail->peak, trail->taken, trail->leaves, trail->left);
    if (trail->jumps) {
        follow->query.ip = trail->target;
        follow->query.ip_known = true;
        follow->query.ip_suppressed = false;
    }
    return pt_follow_skip(follow, trail->bytes, trail->passage.to, trail->ip);
}

// Passes the next path, if that is known. Returns the decoder's status.
static int walk_path(struct pt_walk *walk, bool *passed)
{
    struct pt_walker *walker = walk->walker;
    struct pt_trails *trails = &walker->trails;
    uint32_t from;
    uint64_t asked;
    *passed = false;
    if (!pt_follow_ask(&walker->follow, &from, &asked))
        return 0;
    const struct pt_path *path =
        pt_paths_find(&walker->paths, from, asked, pt_follow_top(&walker->follow));
    if (!path || !pt_follow_may_pass(&walker->follow, path) ||
        !walk_enter_passage(walk, &path->passage))
        return 0;
    *passed = true;
    if (trails->record.on)
        pt_trails_before(trails, path, pt_passage_flows(&path->passage, &walker->paths.flows),
                         walk->piece);
    int status = walk_pass_path(walk, path);
    if (trails->record.on)
        pt_trails_behind(trails, path, &walker->follow, walk->piece, &walk->pending);
    return status;
}

// Passes trails and paths while they are known. Returns the decoder's status.
static int walk_paths(struct pt_walk *walk)
{
    struct pt_walker *walker = walk->walker;
    uint64_t most = walk->piece->counts.instructions + STALL_INSTRUCTIONS;
    int status = 0;
    bool passed = true;
    walker->trails.record.on = false;
    while (passed && status == 0 && !walk->failed && walk->piece->counts.instructions < most) {
        const struct pt_trail *trail = pt_trails_find(&walker->trails, &walker->follow);
        if (!trail)
            status = walk_path(walk, &passed);
        else if ((passed = walk_enter_passage(walk, &trail->passage)))
            status = walk_pass_trail(walk, trail);
    }
    return status;
}

// --- from a PSB ----------------------------------------------------------------------------------

// Most blocks end in a conditional jump inside the function they began in, and leave no flow. Walks
// such blocks, and then the first other one, unless an event comes before it (block->ninsn is 0
// then). Returns the decoder's status.
static int walk_plain_blocks(struct pt_walk *walk, struct pt_block *block)
{
    struct pt_follow_passed passed = {.last_ip = walk->last_ip};
    int status = 0;
    block->ninsn = 0;
    if (walk->walker->following)
        status = walk_paths(walk);
    if (status != 0)
        return status;
    if (walk->pending.kind != PT_FLOW_NONE)
        return pt_walker_next(walk->walker, block);
    passed.last_ip = walk->last_ip;
    if (walk->walker->following)
        status = pt_follow_branches(&walk->walker->follow, walk->function.key, &passed);
    while (status == 0 && !(walk->walker->following && passed.blocks)) {
        status = pt_walker_next(walk->walker, block);
        if (walk->walker->following || block->iclass != ptic_cond_jump ||
            !pt_walk_inside(walk, block->ip) || !pt_walk_inside(walk, block->end_ip) ||
            passed.instructions >= STALL_INSTRUCTIONS)
            break;
        if (status != 0)
            break;
        passed.instructions += block->ninsn;
        passed.last_ip = block->end_ip;
        passed.blocks++;
    }
    if (passed.blocks)
        walk->enabled = true;
    walk->last_ip = passed.last_ip;
    walk->piece->counts.instructions += passed.instructions;
    walk->piece->counts.blocks += passed.blocks;
    return status;
}

// Walks from where the decoder was synchronised to the end of the piece (*ended is set only then),
// the end of the trace, or an error.
static int walk_from_sync(struct pt_walk *walk, int status, bool *ended)
{
    struct pt_block block;
    block.ip = 0;
    while (!walk->failed) {
        status = pt_walk_events(walk, status, ended);
        if (*ended)
            return 0;
        if (status < 0 || (status & pts_eos))
            break;
        status = walk_plain_blocks(walk, &block);
        if (status == -pte_nomap && !block.ninsn && walk_find_space(walk, block.ip)) {
            status = 0;
            continue;
        }
        if (block.ninsn) { // instructions before an error were executed, too
            walk->enabled = true;
            walk_block(walk, &block);
        }
        if (status < 0)
            break;
        if (walk_stalls(walk)) {
            walk->unusual = walk->walker->following;
            return walk_error(walk, block.ip, "no end of the code without branches");
        }
    }
    if (walk->failed)
        return -ERROR_FAILED;
    walk->unusual = status == PT_FOLLOW_UNUSUAL;
    if (walk->unusual)
        return 0;
    if (status < 0 && status != -pte_eos)
        return walk_error(walk, block.ip, pt_errstr(pt_errcode(status)));
    return 0;
}

static void walk_begin(struct pt_walk *walk, const struct pt_sync *sync)
{
    walk->enabled = sync->ip && !sync->stray;
    walk->aborted = false;
    walk->tsc = walk->passed_tsc = 0;
    walk->last_ip = 0;
    walk->ratio = 0;
    walk->function = (struct pt_function){0};
    if (!walk->walker->symbols) // all code is one function: jumps stay inside
        walk->function.high = UINT64_MAX;
    walk->stall_begin = walk->piece->counts.instructions;
    walk->stall_offset = sync->offset;
    pt_walk_find_change(walk, sync->tsc);
    walk->function_space = walk->space;
    walk->tsc = sync->tsc;
    walk->pending = (struct pt_flow){.kind = PT_FLOW_BEGIN,
                                     .tsc = sync->tsc,
                                     .instruction = (uint32_t)walk->piece->counts.instructions};
}

// Finds the first PSB of the piece after the place where the decoder gave up. The stream's index
// may lack it, so the piece is scanned for it. Returns 1, 0 when there is none, or a negative
// error.
static int walk_next_sync(struct pt_walk *walk, uint64_t piece_bytes, struct pt_sync *sync)
{
    uint64_t offset = 0, from = sync->offset - walk->base;
    struct pt_bytes rest = {.bytes = piece_bytes - from, .data = walk->walker->data + from};
    struct pt_packets packets;
    pt_walker_offset(walk->walker, &offset);
    if (offset >= piece_bytes)
        return 0;
    int result = pt_packets_scan(&rest, &packets, walk->err);
    if (result < 0)
        return result;
    for (size_t i = 1; i < packets.syncs.count && result == 0; i++) {
        struct pt_sync next = packets.syncs.items[i];
        if (from + next.offset <= offset)
            continue;
        next.offset += sync->offset;
        next.tsc = next.tsc ? next.tsc : sync->tsc;
        *sync = next;
        result = 1;
    }
    pt_packets_free(&packets);
    return result;
}

// Walks the piece, which has that many bytes; to recognise its end, the decoder reads up to `end`.
static int walk_with(struct pt_walk *walk, uint64_t bytes, uint64_t end, struct pt_walk_how how)
{
    struct pt_piece *piece = walk->piece;
    struct pt_sync sync = walk->stream->packets->syncs.items[piece->first_sync];
    walk->unusual = false;
    pt_piece_reset(piece);
    int result =
        pt_walker_open(walk->walker, walk->stream, walk->base, end, how.following, walk->err);
    for (bool more = true; more && result == 0;) {
        walk_begin(walk, &sync);
        int status = pt_walker_sync(walk->walker, sync.offset - walk->base);
        walk->unusual = status == PT_FOLLOW_UNUSUAL;
        if (walk->unusual)
            break;
        if (status < 0)
            result = walk_error(walk, 0, pt_errstr(pt_errcode(status)));
        else
            result = walk_from_sync(walk, status, &piece->handed_over);
        piece->counts.lost_mtc += walk->lost_mtc;
        piece->counts.lost_cyc += walk->lost_cyc;
        walk->lost_mtc = walk->lost_cyc = 0;
        if (result < 0 || piece->handed_over || walk->unusual ||
            (how.to_error && piece->errors.count))
            break;
        result = walk_next_sync(walk, bytes, &sync);
        more = result > 0;
        result = result < 0 ? result : 0;
    }
    return result;
}

int pt_walk_once(struct pt_walker *walker, const struct pt_stream *stream, size_t first_sync,
                 size_t end_sync, struct pt_walk_how how, struct pt_piece *piece, struct error *err)
{
    const struct pt_syncs *syncs = &stream->packets->syncs;
    uint64_t begin = syncs->items[first_sync].offset, end = pt_bytes_until(&stream->bytes, begin);
    struct pt_walk walk = {.walker = walker,
                           .stream = stream,
                           .piece = piece,
                           .err = err,
                           .base = begin,
                           .end_offset = UINT64_MAX};
    uint64_t walked = end - begin;
    if (end_sync < syncs->count && !syncs->items[end_sync].after_break) {
        if (!syncs->items[end_sync].stray)
            walk.end_ip = syncs->items[end_sync].ip;
        walk.end_offset = walked = syncs->items[end_sync].offset - begin;
        if (end_sync + 1 < syncs->count && !syncs->items[end_sync + 1].after_break)
            end = syncs->items[end_sync + 1].offset;
    }
    piece->first_sync = first_sync;
    piece->end_sync = end_sync;
    int result = walk_with(&walk, walked, end, how);
    if (result == 0 && walk.unusual)
        return PT_WALK_UNUSUAL;
    piece->counts.walked_bytes = walked;
    piece->counts.followed_bytes = how.following ? walked : 0;
    return result;
}
