// SPDX-License-Identifier: MIT
#include "analysis/pt/walk/pt_walk.h"

#include "analysis/pt/walk/pt_walk_state.h"

enum {
    // A wrong image can send libipt round a loop that no packet ever ends. Straight code between
    // two packets is never this long.
    STALL_INSTRUCTIONS = 1 << 22,
};

static void walk_block(struct pt_walk *walk, const struct pt_block *block)
{
    struct pt_walk_counts *counts = &walk->piece->counts;
    pt_walk_reach(walk, block->ip);
    counts->blocks++;
    counts->instructions += block->ninsn;
    walk->last_ip = block->end_ip;
    if (!pt_walk_inside(walk, block->end_ip))
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
    walk->pending = pt_walk_flow(walk, kind, block->end_ip, 0);
    walk->pending.unmarked = !marked;
    walk->pending.ahead &= !marked;
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

// Most blocks end in a conditional jump inside the function they began in, and leave no flow. Walks
// such blocks, and then the first other one, unless an event comes before it (block->ninsn is 0
// then). Returns the decoder's status.
static int walk_plain_blocks(struct pt_walk *walk, struct pt_block *block)
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

static void piece_reset(struct pt_piece *piece)
{
    piece->counts = (struct pt_walk_counts){0};
    piece->errors.count = piece->flows.count = piece->ratio_changes.count = 0;
    piece->lowest_ratio = 0;
    piece->handed_over = false;
}

// Walks the piece, which has that many bytes; to recognise its end, the decoder reads up to `end`.
static int walk_with(struct pt_walk *walk, uint64_t bytes, uint64_t end, bool following)
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
            result = walk_from_sync(walk, status, &piece->handed_over);
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

// Where the times of the piece come from.
static void time_flows(const struct pt_stream *stream, struct pt_piece *piece)
{
    const struct pt_packets *packets = stream->packets;
    const struct pt_syncs *syncs = &packets->syncs;
    const struct pt_recorder *recorder = &stream->recorder;
    struct pt_timing timing = {.begin_tsc = syncs->items[piece->first_sync].tsc,
                               .cycles = packets->count[PT_KIND_CYC] > 0,
                               .cycle_tsc = 2,
                               .period = UINT64_MAX};
    if (piece->end_sync < syncs->count && syncs->items[piece->end_sync].has_tsc)
        timing.end_tsc = syncs->items[piece->end_sync].tsc;
    if (piece->lowest_ratio)
        timing.cycle_tsc += recorder->nominal_ratio / piece->lowest_ratio;
    if (packets->count[PT_KIND_MTC] && recorder->tsc_ctc_eax)
        timing.period = ((uint64_t)recorder->tsc_ctc_ebx << recorder->mtc_frequency % 64) /
                        recorder->tsc_ctc_eax;
    pt_flows_interpolate(&piece->flows, &timing, &piece->ratio_changes);
}

int pt_walk(struct pt_walker *walker, const struct pt_stream *stream, size_t first_sync,
            size_t end_sync, struct pt_piece *piece, struct error *err)
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
        time_flows(stream, piece);
    return result;
}
