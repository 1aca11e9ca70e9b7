// SPDX-License-Identifier: MIT
#include "analysis/pt/pt_blocks.h"

#include "analysis/pt/pt_walker.h"

enum {
    // A wrong image can send libipt round a loop that no packet ever ends. Straight code between
    // two packets is never this long.
    STALL_INSTRUCTIONS = 1 << 22,
};

// One walk: the state that lives between two blocks.
struct walk {
    struct pt_walker *walker;
    const struct pt_stream *stream;
    struct pt_piece *piece;
    struct error *err;
    uint64_t base;       // offset in the stream of the decoder's first byte
    uint64_t end_offset; // where the next piece begins, for the decoder; UINT64_MAX: to the end
    uint64_t end_ip;     // the address in that PSB's header
    bool enabled;        // tracing, as far as the events say
    bool aborted;        // a transaction: the asynchronous branch that follows is no interrupt
    bool failed;         // out of memory
    bool unusual;        // not to be followed: libipt's block decoder must do it
    bool time_unread;    // the last block was not asked for its time
    uint64_t last_ip;
    uint64_t tsc; // at the last flow
    uint32_t space;
    size_t next_change;
    struct pt_function function; // that holds the instruction pointer; key 0: unknown
    struct pt_flow pending;      // a transfer whose target the next block or event will tell
    uint64_t stall_offset;       // where the trace was read up to ...
    uint64_t stall_begin;        // ... after this many instructions
    uint32_t lost_mtc, lost_cyc;
};

void pt_walk_counts_add(struct pt_walk_counts *to, const struct pt_walk_counts *from)
{
    to->instructions += from->instructions;
    to->blocks += from->blocks;
    to->calls += from->calls;
    to->returns += from->returns;
    to->interrupts += from->interrupts;
    to->syscalls += from->syscalls;
    to->overflows += from->overflows;
    to->walked_bytes += from->walked_bytes;
    to->followed_bytes += from->followed_bytes;
    to->lost_mtc += from->lost_mtc;
    to->lost_cyc += from->lost_cyc;
}

void pt_piece_free(struct pt_piece *piece)
{
    array_free(&piece->errors);
    array_free(&piece->flows);
}

// --- functions -------------------------------------------------------------------------------

static void walk_enter(struct walk *walk, uint64_t ip)
{
    if (walk->walker->symbols)
        walk->function = *pt_walker_function(walk->walker, walk->space, ip);
}

static bool walk_inside(const struct walk *walk, uint64_t ip)
{
    return ip - walk->function.low < walk->function.high - walk->function.low;
}

// --- flows -----------------------------------------------------------------------------------

// Time does not run backwards, though a corrected estimate may lie before an earlier one.
static uint64_t walk_advance(struct walk *walk, uint64_t tsc)
{
    if (tsc > walk->tsc)
        walk->tsc = tsc;
    return walk->tsc;
}

// Asks for the time of the last timing packet before the trace that decided the last branch. While
// an event is taken the decoder has read on, and the event's own time is right.
static void walk_read_time(struct walk *walk)
{
    uint64_t tsc = 0;
    if (pt_walker_time(walk->walker, &tsc, &walk->lost_mtc, &walk->lost_cyc) >= 0)
        walk_advance(walk, tsc);
}

static struct pt_flow walk_flow(struct walk *walk, enum pt_flow_kind kind, uint64_t from,
                                uint64_t to)
{
    return (struct pt_flow){.kind = (uint8_t)kind,
                            .tsc = walk->tsc,
                            .from = from,
                            .to = to,
                            .instruction = (uint32_t)walk->piece->counts.instructions};
}

static void walk_emit(struct walk *walk, const struct pt_flow *flow)
{
    if (array_push(&walk->piece->flows, *flow) < 0 && !walk->failed) {
        walk->failed = true;
        error_set(walk->err, ERROR_FAILED, "out of memory for the flow of control");
    }
}

// Control arrives at `to` by this flow.
static void walk_arrive(struct walk *walk, struct pt_flow *flow, uint64_t to)
{
    flow->to = to;
    if (to) {
        walk_enter(walk, to);
        flow->function = walk->function.key;
        flow->at_start = walk->function.key && walk->function.whole && walk->function.low == to;
    }
    walk_emit(walk, flow);
}

static void walk_settle(struct walk *walk, uint64_t to)
{
    if (walk->pending.kind != PT_FLOW_NONE) {
        walk_arrive(walk, &walk->pending, to);
        walk->pending.kind = PT_FLOW_NONE;
    }
}

// A jump that nothing announced took control to `ip`. A direct one inside a block hides its target;
// direct jumps between functions go to their start.
static void walk_jump(struct walk *walk, uint64_t ip, bool direct)
{
    uint64_t left = walk->function.key;
    walk_enter(walk, ip);
    if (walk->function.key == left)
        return; // a cold part, or still nothing known
    struct pt_flow flow = walk_flow(walk, PT_FLOW_JUMP, walk->last_ip, ip);
    flow.early = walk->time_unread;
    flow.function = walk->function.key;
    flow.at_start = walk->function.whole && (direct || walk->function.low == ip);
    walk_emit(walk, &flow);
}

// Control is at `ip`: settles how it came there.
static inline void walk_reach(struct walk *walk, uint64_t ip)
{
    if (walk->pending.kind != PT_FLOW_NONE)
        walk_settle(walk, ip);
    else if (!walk_inside(walk, ip))
        walk_jump(walk, ip, false);
}

// --- address spaces --------------------------------------------------------------------------

static void walk_set_space(struct walk *walk, uint32_t space)
{
    if (pt_walker_set_space(walk->walker, space, walk->err) < 0)
        walk->failed = true;
    walk->space = space;
}

static void walk_follow_changes(struct walk *walk, uint64_t tsc)
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

static void walk_find_change(struct walk *walk, uint64_t tsc)
{
    const struct pt_space_changes *changes = walk->stream->changes;
    size_t low = 0, high = changes ? changes->count : 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (changes->items[middle].tsc <= tsc)
            low = middle + 1;
        else
            high = middle;
    }
    walk->next_change = low;
    walk_set_space(walk, low ? changes->items[low - 1].space : PT_SPACE_ALL);
}

// --- events ----------------------------------------------------------------------------------

static void walk_event_disabled(struct walk *walk, uint64_t from, uint64_t target,
                                bool asynchronous)
{
    if (walk->pending.kind == PT_FLOW_FAR_CALL && !asynchronous)
        walk_settle(walk, 0); // what it called is what is not traced
    else if (asynchronous)
        walk_reach(walk, from);
    else
        walk_settle(walk, target);
    struct pt_flow flow = walk_flow(walk, PT_FLOW_DISABLE, from, target);
    flow.asynchronous = asynchronous;
    walk_emit(walk, &flow);
    walk->enabled = false;
}

static void walk_event_branch(struct walk *walk, uint64_t from, uint64_t to)
{
    walk_reach(walk, from);
    struct pt_flow flow =
        walk_flow(walk, walk->aborted ? PT_FLOW_JUMP : PT_FLOW_INTERRUPT, from, to);
    walk->piece->counts.interrupts += !walk->aborted;
    walk->aborted = false;
    walk_arrive(walk, &flow, to);
}

static void walk_event(struct walk *walk, const struct pt_event *event)
{
    uint64_t target;
    struct pt_flow flow;
    if (event->has_tsc)
        walk_follow_changes(walk, walk_advance(walk, event->tsc));
    switch (event->type) {
    case ptev_enabled:
        walk->pending.kind = PT_FLOW_NONE;
        walk->enabled = true;
        flow = walk_flow(walk, PT_FLOW_ENABLE, 0, 0);
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
            walk_settle(walk, 0); // it did return; where to was lost
        walk->pending.kind = PT_FLOW_NONE;
        walk->piece->counts.overflows++;
        walk->enabled = !event->ip_suppressed;
        walk_read_time(walk); // the event's is from before the loss
        flow = walk_flow(walk, PT_FLOW_OVERFLOW, walk->last_ip, 0);
        walk_arrive(walk, &flow, event->ip_suppressed ? 0 : event->variant.overflow.ip);
        break;
    case ptev_paging:
    case ptev_async_paging:
        if (event->status_update)
            break;
        flow = walk_flow(walk, PT_FLOW_PAGING, walk->last_ip,
                         event->type == ptev_paging ? event->variant.paging.cr3
                                                    : event->variant.async_paging.cr3);
        walk_emit(walk, &flow);
        break;
    case ptev_tsx:
        walk->aborted = event->variant.tsx.aborted;
        break;
    default: // power, PTWRITE and the like do not move control
        break;
    }
}

// Whether the decoder has read on to the PSB where the next piece begins.
static bool walk_read_to_end(const struct walk *walk)
{
    uint64_t offset = 0;
    return walk->end_offset != UINT64_MAX && pt_walker_offset(walk->walker, &offset) >= 0 &&
           offset >= walk->end_offset;
}

// Whether this event is what the header of that PSB says about where the processor was. libipt
// reads ahead, so an earlier PSB's header may still be waiting; its address tells them apart, for
// code that returns to an address without a packet does not exist.
static bool walk_hands_over(const struct walk *walk, const struct pt_event *event)
{
    return event->status_update && event->type == ptev_exec_mode &&
           event->variant.exec_mode.ip == walk->end_ip && walk_read_to_end(walk);
}

// Takes what is pending. Returns the decoder's status; *ended when the next piece begins here.
static int walk_events(struct walk *walk, int status, bool *ended)
{
    while (status & pts_event_pending) {
        struct pt_event event;
        *ended = !walk->enabled && walk_read_to_end(walk);
        if (*ended)
            return status;
        status = pt_walker_event(walk->walker, &event);
        if (status < 0)
            return status;
        *ended = walk_hands_over(walk, &event);
        if (*ended) {
            if (walk->pending.kind != PT_FLOW_BEGIN)
                walk_reach(walk, walk->end_ip);
            return status;
        }
        walk_event(walk, &event);
    }
    return status;
}

// --- blocks ----------------------------------------------------------------------------------

static void walk_block(struct walk *walk, const struct pt_block *block)
{
    struct pt_walk_counts *counts = &walk->piece->counts;
    walk_reach(walk, block->ip);
    counts->blocks++;
    counts->instructions += block->ninsn;
    walk->last_ip = block->end_ip;
    if (!walk_inside(walk, block->end_ip))
        walk_jump(walk, block->end_ip, true); // a direct jump does not end a block
    walk->time_unread =
        block->iclass == ptic_cond_jump; // most blocks are such, few leave functions
    if (walk->time_unread)
        return;
    walk_read_time(walk);
    enum pt_flow_kind kind;
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
        return;
    }
    walk->pending = walk_flow(walk, kind, block->end_ip, 0);
    if (kind == PT_FLOW_FAR_RETURN)
        walk_follow_changes(walk, walk->tsc);
}

static bool walk_stalls(struct walk *walk)
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

static int walk_error(struct walk *walk, uint64_t ip, const char *what)
{
    struct pt_walk_error error = {.ip = ip, .what = what};
    if (pt_walker_offset(walk->walker, &error.offset) < 0)
        pt_blk_get_sync_offset(walk->walker->decoder, &error.offset);
    error.offset += walk->base;
    struct pt_flow lost = walk_flow(walk, PT_FLOW_LOST, ip, 0);
    walk->pending.kind = PT_FLOW_NONE;
    walk_emit(walk, &lost);
    if (walk->failed || array_push(&walk->piece->errors, error) < 0)
        return error_set(walk->err, ERROR_FAILED, "out of memory for a list of decode errors");
    return 0;
}

// Most blocks end in a conditional jump inside the function they began in, and nothing is to be
// told of them. Walks such blocks, and the first that is another unless an event comes before it
// (block->ninsn is 0 then). Returns the decoder's status.
static int walk_plain_blocks(struct walk *walk, struct pt_block *block)
{
    const uint64_t low = walk->function.low, high = walk->function.high;
    struct pt_follow_passed passed = {.last_ip = walk->last_ip};
    int status = 0;
    if (walk->pending.kind != PT_FLOW_NONE)
        return pt_walker_next(walk->walker, block);
    block->ninsn = 0;
    if (walk->walker->following)
        status = pt_follow_branches(&walk->walker->follow, low, high, STALL_INSTRUCTIONS, &passed);
    while (status == 0) {
        status = pt_walker_next(walk->walker, block);
        if (walk->walker->following || block->iclass != ptic_cond_jump ||
            block->ip - low >= high - low || block->end_ip - low >= high - low ||
            passed.instructions >= STALL_INSTRUCTIONS)
            break;
        if (status != 0)
            break;
        passed.instructions += block->ninsn;
        passed.last_ip = block->end_ip;
        passed.blocks++;
    }
    if (passed.blocks) {
        walk->time_unread = true;
        walk->enabled = true;
    }
    walk->last_ip = passed.last_ip;
    walk->piece->counts.instructions += passed.instructions;
    walk->piece->counts.blocks += passed.blocks;
    return status;
}

// Walks from where the decoder was synchronised to the end of the piece (*ended: exactly there),
// of the trace, or to an error.
static int walk_run(struct walk *walk, int status, bool *ended)
{
    struct pt_block block;
    block.ip = 0;
    while (!walk->failed) {
        status = walk_events(walk, status, ended);
        if (*ended)
            return 0;
        if (status < 0 || (status & pts_eos))
            break;
        status = walk_plain_blocks(walk, &block);
        if (block.ninsn) { // also those before an error were executed
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

static void walk_begin(struct walk *walk, const struct pt_sync *sync)
{
    walk->enabled = sync->ip && !sync->stray;
    walk->aborted = false;
    walk->tsc = 0;
    walk->last_ip = 0;
    walk->time_unread = false;
    walk->function = (struct pt_function){0};
    if (!walk->walker->symbols) // all code is one function: jumps stay inside
        walk->function.high = UINT64_MAX;
    walk->stall_begin = walk->piece->counts.instructions;
    walk->stall_offset = sync->offset;
    walk_find_change(walk, sync->tsc);
    walk->tsc = sync->tsc;
    walk->pending = (struct pt_flow){.kind = PT_FLOW_BEGIN,
                                     .tsc = sync->tsc,
                                     .instruction = (uint32_t)walk->piece->counts.instructions};
}

// Finds the first PSB of the piece behind the place where the decoder gave up. The stream's index
// need not have it, so the piece is scanned for it. Returns 1, 0 when there is none, negative.
static int walk_next_sync(struct walk *walk, uint64_t piece_bytes, struct pt_sync *sync)
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

static void piece_reset(struct pt_piece *piece)
{
    piece->counts = (struct pt_walk_counts){0};
    piece->errors.count = piece->flows.count = 0;
    piece->handed_over = false;
}

// Walks the piece, which is so many bytes; what must be read to see its end reaches to `end`.
static int walk_with(struct walk *walk, uint64_t bytes, uint64_t end, bool following)
{
    struct pt_piece *piece = walk->piece;
    struct pt_sync sync = walk->stream->packets->syncs.items[piece->first_sync];
    walk->unusual = false;
    piece_reset(piece);
    int result = pt_walker_open(walk->walker, walk->stream, walk->base, end, following, walk->err);
    for (bool more = true; more && result == 0;) {
        walk_begin(walk, &sync);
        int status = pt_walker_sync(walk->walker, sync.offset - walk->base);
        walk->unusual = status == PT_FOLLOW_UNUSUAL;
        if (walk->unusual)
            break;
        if (status < 0)
            result = walk_error(walk, 0, pt_errstr(pt_errcode(status)));
        else
            result = walk_run(walk, status, &piece->handed_over);
        piece->counts.lost_mtc += walk->lost_mtc;
        piece->counts.lost_cyc += walk->lost_cyc;
        walk->lost_mtc = walk->lost_cyc = 0;
        if (result < 0 || piece->handed_over || walk->unusual)
            break;
        result = walk_next_sync(walk, bytes, &sync);
        more = result > 0;
        result = result < 0 ? result : 0;
    }
    return result;
}

int pt_walk(struct pt_walker *walker, const struct pt_stream *stream, size_t first_sync,
            size_t end_sync, struct pt_piece *piece, struct error *err)
{
    const struct pt_syncs *syncs = &stream->packets->syncs;
    uint64_t begin = syncs->items[first_sync].offset, end = pt_bytes_until(&stream->bytes, begin);
    struct walk walk = {.walker = walker,
                        .stream = stream,
                        .piece = piece,
                        .err = err,
                        .base = begin,
                        .end_offset = UINT64_MAX};
    uint64_t walked = end - begin;
    if (end_sync < syncs->count && !syncs->items[end_sync].after_break) {
        walk.end_ip = syncs->items[end_sync].ip;
        walk.end_offset = walked = syncs->items[end_sync].offset - begin;
        if (end_sync + 1 < syncs->count && !syncs->items[end_sync + 1].after_break)
            end = syncs->items[end_sync + 1].offset;
    }
    piece->first_sync = first_sync;
    piece->end_sync = end_sync;
    int result = walk_with(&walk, walked, end, !walker->careful);
    if (result == 0 && walk.unusual)
        result = walk_with(&walk, walked, end, false);
    piece->counts.walked_bytes = walked;
    piece->counts.followed_bytes = walker->following ? walked : 0;
    pt_bytes_release(&stream->bytes, begin, walked);
    if (result == 0)
        pt_flows_interpolate(&piece->flows,
                             end_sync < syncs->count ? syncs->items[end_sync].tsc : 0);
    return result;
}
