// SPDX-License-Identifier: MIT
#include "analysis/pt/walk/pt_walk.h"

#include "analysis/pt/walk/pt_walk_once.h"

// --- joining parts -------------------------------------------------------------------------------

static int append_flows(struct pt_piece *piece, const struct pt_piece *part)
{
    const struct pt_flows *flows = &part->flows;
    // of a part that was handed over to it is known how the processor got there
    size_t skipped =
        piece->handed_over && flows->count && flows->items[0].kind == PT_FLOW_BEGIN ? 1 : 0;
    size_t before = piece->flows.count;
    for (size_t i = skipped; i < flows->count; i++) {
        struct pt_flow flow = flows->items[i];
        flow.instruction += (uint32_t)piece->counts.instructions;
        if (room_push(piece->room, &piece->flows, flow) < 0)
            return -1;
    }
    for (size_t i = 0; i < part->ratio_changes.count; i++) {
        struct pt_ratio_change change = part->ratio_changes.items[i];
        change.flow = before + (change.flow > skipped ? change.flow - skipped : 0);
        if (array_push(&piece->ratio_changes, change) < 0)
            return -1;
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

// --- mending -------------------------------------------------------------------------------------

// The last sync in (first, end) at which a walk can end, and that the decoder had read; `first`:
// there is none.
static size_t last_read(const struct pt_stream *stream, size_t first, size_t end, uint64_t offset)
{
    const struct pt_syncs *syncs = &stream->packets->syncs;
    size_t found = first;
    for (size_t i = first + 1; i < end && syncs->items[i].offset <= offset; i++)
        if (syncs->items[i].hands_over)
            found = i;
    return found;
}

static size_t next_end(const struct pt_stream *stream, size_t first, size_t end)
{
    const struct pt_syncs *syncs = &stream->packets->syncs;
    size_t next = first + 1;
    while (next < end && !syncs->items[next].hands_over)
        next++;
    return next;
}

// Walks [first, end) so that only what lies between the two syncs around each unusual place is
// walked by libipt, and appends it all.
static int walk_mending(struct pt_walker *walker, const struct pt_stream *stream, size_t first,
                        size_t end, struct pt_piece *piece, struct error *err)
{
    int result = 0;
    for (size_t next; result == 0 && first < end; first = next) {
        uint64_t unusual;
        next = end;
        result = pt_walk_once(walker, stream, first, end, true, &walker->part, &unusual, err);
        if (result == PT_WALK_UNUSUAL) {
            next = last_read(stream, first, end, unusual);
            if (next > first) {
                result = walk_mending(walker, stream, first, next, piece, err);
                continue;
            }
            next = next_end(stream, first, end);
            result = pt_walk_once(walker, stream, first, next, false, &walker->part, &unusual, err);
        }
        if (result == 0)
            result = piece_append(piece, &walker->part, err);
    }
    return result;
}

// --- time ----------------------------------------------------------------------------------------

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

int pt_walk(struct pt_walker *walker, const struct pt_stream *stream, size_t first_sync,
            size_t end_sync, struct pt_piece *piece, struct error *err)
{
    uint64_t unusual;
    int result =
        pt_walk_once(walker, stream, first_sync, end_sync, !walker->careful, piece, &unusual, err);
    if (result == PT_WALK_UNUSUAL) {
        pt_piece_reset(piece);
        piece->first_sync = first_sync;
        piece->end_sync = end_sync;
        result = walk_mending(walker, stream, first_sync, end_sync, piece, err);
    }
    if (result == 0)
        time_flows(stream, piece);
    return result;
}
