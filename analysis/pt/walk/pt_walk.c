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

// Whether the piece may hold PSBs where others begin, since the index of a long stream lacks them.
static bool lacks_syncs(const struct pt_packets *packets)
{
    return packets->count[PT_KIND_PSB] > packets->syncs.count;
}

int pt_walk(struct pt_walker *walker, const struct pt_stream *stream, size_t first_sync,
            size_t end_sync, struct pt_piece *piece, struct error *err)
{
    bool fast = !walker->careful;
    int result = pt_walk_once(walker, stream, first_sync, end_sync, fast, piece, err);
    // behind an error both ways go on at a PSB, but how far they had read then is not the same
    bool again = result == PT_WALK_UNUSUAL ||
                 (result == 0 && fast && piece->errors.count && lacks_syncs(stream->packets));
    if (again)
        result = pt_walk_once(walker, stream, first_sync, end_sync, false, piece, err);
    if (result == 0)
        time_flows(stream, piece);
    return result;
}
