// SPDX-License-Identifier: MIT
#include "analysis/pt/walk/pt_walk.h"

#include "analysis/pt/walk/pt_walk_once.h"

// Where the times of the piece come from.
static void time_flows(const struct pt_stream *stream, struct pt_piece *piece)
{
    const struct pt_packets *packets = stream->packets;
    const struct pt_syncs *syncs = &packets->syncs;
    const struct pt_recorder *recorder = &stream->recorder;
    struct pt_timing timing = {.begin_tsc = syncs->items[piece->first_sync].tsc,
                               .none = !packets->count[PT_KIND_TSC],
                               .cycles = packets->count[PT_KIND_CYC] > 0,
                               .guessed = !recorder->nominal_ratio,
                               .cycle_tsc = 2,
                               .period = UINT64_MAX};
    if (piece->end_sync < syncs->count && syncs->items[piece->end_sync].has_tsc)
        timing.end_tsc = syncs->items[piece->end_sync].tsc;
    if (piece->lowest_ratio)
        timing.cycle_tsc += (uint32_t)(recorder->nominal_ratio / piece->lowest_ratio);
    if (packets->count[PT_KIND_MTC] && recorder->tsc_ctc_eax)
        timing.period = ((uint64_t)recorder->tsc_ctc_ebx << recorder->mtc_frequency % 64) /
                        recorder->tsc_ctc_eax;
    timing.guessed &= timing.period == UINT64_MAX; // else MTC packets calibrate the CYC packets
    pt_flows_interpolate(&piece->flows, &timing, &piece->ratio_changes);
}

static int walk_part(struct pt_walker *walker, const struct pt_stream *stream, size_t first_sync,
                     size_t end_sync, bool to_error, struct pt_piece *piece, struct error *err)
{
    struct pt_walk_how how = {.following = !walker->careful, .to_error = to_error};
    int result = pt_walk_once(walker, stream, first_sync, end_sync, how, piece, err);
    if (result == PT_WALK_UNUSUAL) {
        how.following = false;
        result = pt_walk_once(walker, stream, first_sync, end_sync, how, piece, err);
    }
    if (result == 0)
        time_flows(stream, piece);
    return result;
}

// --- joining parts -------------------------------------------------------------------------------

static int append_flows(struct pt_piece *piece, const struct pt_piece *part)
{
    const struct pt_flows *flows = &part->flows;
    struct pt_flows *all = &piece->flows;
    struct pt_flow last = all->count ? all->items[all->count - 1] : (struct pt_flow){0};
    // of a part that was handed over to is known how the processor got there
    size_t at = piece->handed_over && flows->count && flows->items[0].kind == PT_FLOW_BEGIN;
    if (all->count && !piece->handed_over && last.kind != PT_FLOW_LOST &&
        room_push(piece->room, all,
                  (struct pt_flow){.kind = PT_FLOW_LOST,
                                   .tsc = last.tsc,
                                   .error_tsc = last.error_tsc,
                                   .instruction = (uint32_t)piece->counts.instructions}) < 0)
        return -1;
    if (room_reserve(piece->room, all, all->count + flows->count) < 0)
        return -1;
    for (; at < flows->count; at++) {
        struct pt_flow *to = &all->items[all->count++];
        *to = flows->items[at];
        to->instruction += (uint32_t)piece->counts.instructions;
    }
    return 0;
}

// Appends a part that begins where the piece ends.
static int piece_append(struct pt_piece *piece, struct pt_piece *part, struct error *err)
{
    const struct pt_walk_errors *errors = &piece->errors;
    uint64_t told = errors->count ? errors->items[errors->count - 1].offset : PT_NO_ERROR;
    pt_piece_drop_told(part, &told);
    int result = append_flows(piece, part);
    for (size_t i = 0; result == 0 && i < part->errors.count; i++)
        result = array_push(&piece->errors, part->errors.items[i]);
    if (result < 0)
        return error_set(err, ERROR_FAILED, "out of memory for the flow of control");
    if (part->lowest_ratio && (!piece->lowest_ratio || part->lowest_ratio < piece->lowest_ratio))
        piece->lowest_ratio = part->lowest_ratio;
    pt_walk_counts_add(&piece->counts, &part->counts);
    piece->handed_over = part->handed_over;
    return 0;
}

// --- errors where the index lacks PSBs -----------------------------------------------------------

// Whether a piece may hold PSBs where others begin, since the index of a long stream lacks them.
static bool lacks_syncs(const struct pt_packets *packets)
{
    return packets->count[PT_KIND_PSB] > packets->syncs.count;
}

// The PSBs of the piece that was just walked, *count, and behind them those of the index at which
// it ends and of which the last part has to see where it is.
static int find_syncs(const struct pt_walker *walker, const struct pt_syncs *index,
                      const struct pt_piece *piece, struct pt_syncs *out, size_t *count,
                      struct error *err)
{
    const struct pt_sync *first = &index->items[piece->first_sync];
    struct pt_bytes bytes = {.bytes = piece->counts.walked_bytes, .data = walker->data};
    struct pt_packets packets;
    int result = pt_packets_scan(&bytes, &packets, err);
    if (result < 0)
        return result;
    *out = packets.syncs;
    packets.syncs = (struct pt_syncs){0};
    pt_packets_free(&packets);
    *count = out->count;
    for (size_t i = 0; i < out->count; i++) {
        out->items[i].offset += first->offset;
        if (!out->items[i].tsc) // no timing packet since the piece began
            out->items[i].tsc = first->tsc;
    }
    if (out->count)
        out->items[0] = *first;
    for (size_t i = piece->end_sync; i < index->count && i < piece->end_sync + 2; i++)
        if (array_push(out, index->items[i]) < 0)
            return error_set(err, ERROR_FAILED, "out of memory for an index of PSBs");
    return 0;
}

// Walks [0, count) of the stream part by part, as if each were a piece, and joins them.
static int walk_parts(struct pt_walker *walker, const struct pt_stream *stream, size_t count,
                      struct pt_piece *piece, struct error *err)
{
    const struct pt_syncs *syncs = &stream->packets->syncs;
    int result = 0;
    pt_piece_reset(piece);
    for (size_t first = 0, end; result == 0 && first < count; first = end) {
        for (end = first + 1; end < count && !syncs->items[end].hands_over;)
            end++;
        result = walk_part(walker, stream, first, end, false, &walker->part, err);
        if (result == 0)
            result = piece_append(piece, &walker->part, err);
    }
    return result;
}

// Where a walk goes on behind an error depends on how far it had read, which is not the same in
// both ways. So what lies between two PSBs is then walked by itself, as where the index has both;
// only there the fast way may have to be left.
static int walk_again(struct pt_walker *walker, const struct pt_stream *stream,
                      struct pt_piece *piece, struct error *err)
{
    const size_t first_sync = piece->first_sync, end_sync = piece->end_sync;
    struct pt_packets packets = *stream->packets;
    struct pt_stream fine = *stream;
    size_t count = 0;
    packets.syncs = (struct pt_syncs){0};
    fine.packets = &packets;
    int result = find_syncs(walker, &stream->packets->syncs, piece, &packets.syncs, &count, err);
    if (result == 0 && count > 1)
        result = walk_parts(walker, &fine, count, piece, err);
    piece->first_sync = first_sync;
    piece->end_sync = end_sync;
    array_free(&packets.syncs);
    return result;
}

int pt_walk(struct pt_walker *walker, const struct pt_stream *stream, size_t first_sync,
            size_t end_sync, struct pt_piece *piece, struct error *err)
{
    bool lacks = lacks_syncs(stream->packets);
    int result = walk_part(walker, stream, first_sync, end_sync, lacks, piece, err);
    return result == 0 && lacks && piece->errors.count ? walk_again(walker, stream, piece, err)
                                                       : result;
}
