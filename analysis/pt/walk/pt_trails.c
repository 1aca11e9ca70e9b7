// SPDX-License-Identifier: MIT
#include "analysis/pt/walk/pt_trails.h"

#include <stdlib.h>

enum { SLOTS_BYTES = PT_TRAIL_SLOTS * sizeof(uint16_t) };

void pt_trails_init(struct pt_trails *trails, const struct pt_stretches *stretches)
{
    *trails =
        (struct pt_trails){.stretches = stretches, .last = PT_NO_TRAIL, .least = PT_TRAIL_LEAST};
}

void pt_trails_free(struct pt_trails *trails)
{
    struct room *room = trails->stretches->room;
    room_free(room, trails->slots, SLOTS_BYTES);
    room_free(room, trails->called, SLOTS_BYTES);
    room_free_array(room, &trails->list);
    room_free_array(room, &trails->flows);
    trails->slots = trails->called = NULL;
}

static int trails_forget(struct pt_trails *trails)
{
    struct room *room = trails->stretches->room;
    if (!trails->slots)
        trails->slots = room_resize(room, NULL, 0, SLOTS_BYTES);
    if (!trails->called)
        trails->called = room_resize(room, NULL, 0, SLOTS_BYTES);
    if (trails->slots && trails->called) {
        memset(trails->slots, 0, SLOTS_BYTES);
        memset(trails->called, 0, SLOTS_BYTES);
    }
    trails->list.count = trails->flows.count = 0;
    trails->last = PT_NO_TRAIL;
    trails->generation = trails->stretches->generation;
    return trails->slots && trails->called ? 0 : -1;
}

// --- finding -------------------------------------------------------------------------------------

static void record_begin(struct pt_trail_record *record, const struct pt_follow *follow,
                         uint16_t *slot)
{
    *record = (struct pt_trail_record){
        .on = true,
        .slot = slot,
        .begin = follow->query.at,
        .trail = {.last_ip = follow->query.ip, .passage.from = follow->stretch}};
    for (unsigned i = 0; i < PT_TRAIL_RETURNS; i++)
        record->trail.takes[i] = follow->returns[(follow->return_top - i) % PT_FOLLOW_RETURNS].ip;
}

const struct pt_trail *pt_trails_learn(struct pt_trails *trails, const struct pt_follow *follow)
{
    if (trails->early < PT_TRAIL_EARLY) {
        trails->early++;
        return NULL;
    }
    if (trails->rest) {
        trails->rest--;
        return NULL;
    }
    if ((!trails->slots || trails->generation != trails->stretches->generation ||
         trails->list.count >= PT_TRAIL_MOST || trails->flows.count >= PT_TRAIL_FLOWS) &&
        trails_forget(trails) < 0)
        return NULL;
    uint64_t mixed = pt_trail_hash(trails, follow);
    size_t place = mixed % PT_TRAIL_SLOTS, way = 0;
    uint16_t *slots = &trails->slots[place - place % PT_TRAIL_WAYS];
    for (; way < PT_TRAIL_WAYS && slots[way]; way++)
        if (pt_trail_is(&trails->list.items[slots[way] - 1], follow))
            return pt_trails_found(trails, slots[way] - 1u);
    trails->last = PT_NO_TRAIL;
    if (++trails->vain == PT_TRAIL_VAIN) {
        trails->vain = 0;
        trails->rest = PT_TRAIL_REST;
        return NULL;
    }
    uint16_t called = (uint16_t)(mixed >> 48);
    if (way == PT_TRAIL_WAYS)
        way = place % PT_TRAIL_WAYS;
    if (trails->called[place] == called)
        record_begin(&trails->record, follow, &slots[way]);
    trails->called[place] = called;
    return NULL;
}

// --- recording -----------------------------------------------------------------------------------

static size_t flows_before_time(const struct pt_path *path, const struct pt_passage_flow *flows)
{
    size_t count = 0;
    while (count < path->passage.flow_count && !flows[count].timed)
        count++;
    return count;
}

void pt_trails_before(struct pt_trails *trails, const struct pt_path *path,
                      const struct pt_passage_flow *flows, const struct pt_piece *piece)
{
    struct pt_trail_record *record = &trails->record;
    struct pt_passage *passage = &record->trail.passage;
    if (!record->begun) {
        record->begun = true;
        record->first_flow = piece->flows.count;
        record->before = piece->counts;
        passage->first = path->passage.first;
    }
    if (!passage->timed)
        record->early_flows =
            piece->flows.count - record->first_flow + flows_before_time(path, flows);
    passage->timed |= path->passage.timed;
}

static void note_returns(struct pt_trail_record *record, const struct pt_path *path)
{
    int peak = record->depth + path->peak;
    if (peak > PT_TRAIL_PEAK)
        record->on = false;
    else if (peak > record->trail.peak)
        record->trail.peak = (uint8_t)peak;
    // what it pushes comes after the one that it took, and before the one that it takes at its end
    int least = record->depth - path->popped;
    record->depth = least + path->return_count - path->pops;
    least = record->depth < least ? record->depth : least;
    record->least_depth = least < record->least_depth ? least : record->least_depth;
}

// False: more were taken or left than a trail has.
static bool keep_returns(struct pt_trail_record *record, const struct pt_follow *follow)
{
    int taken = -record->least_depth, left = record->depth - record->least_depth;
    if (taken > PT_TRAIL_RETURNS || left > PT_TRAIL_CALLS)
        return false;
    record->trail.taken = (uint8_t)taken;
    record->trail.left = (uint8_t)left;
    for (unsigned i = 0, below = (unsigned)left; below-- > 0; i++)
        record->trail.leaves[i] = follow->returns[(follow->return_top - below) % PT_FOLLOW_RETURNS];
    return true;
}

// False: something in the trace is neither branches nor a target.
static bool keep_trace(struct pt_trail_record *record, const struct pt_query *query)
{
    struct pt_trail *trail = &record->trail;
    for (const uint8_t *at = record->begin; at < query->at;) {
        size_t target = pt_tip_bytes(*at);
        if (!target && *at && !pt_is_short_tnt(*at))
            return false;
        if (target && !trail->jumps) {
            trail->jumps = true;
            trail->kept = pt_query_kept(*at);
        }
        at += target ? target : 1;
    }
    trail->bytes = (uint8_t)(query->at - record->begin);
    memcpy(trail->trace, record->begin, trail->bytes);
    trail->target = query->ip;
    return true;
}

static int keep_flows(struct pt_trails *trails, const struct pt_piece *piece,
                      const struct pt_flow *pending)
{
    struct pt_trail_record *record = &trails->record;
    struct pt_passage *passage = &record->trail.passage;
    struct pt_passage_flows *flows = &trails->flows;
    size_t whole = piece->flows.count - record->first_flow, all = whole + passage->leaves;
    passage->flows = (uint32_t)flows->count;
    passage->flow_count = (uint16_t)all;
    if (all > UINT16_MAX || room_reserve(trails->stretches->room, flows, flows->count + all) < 0)
        return -1;
    for (size_t i = 0; i < all; i++) {
        const struct pt_flow *flow =
            i < whole ? &piece->flows.items[record->first_flow + i] : pending;
        flows->items[flows->count++] = (struct pt_passage_flow){
            .from = flow->from,
            .to = flow->to,
            .function = flow->function,
            .instruction = flow->instruction - (uint32_t)record->before.instructions,
            .kind = flow->kind,
            .at_start = flow->at_start,
            .unmarked = flow->unmarked,
            .timed = i >= record->early_flows,
        };
    }
    return 0;
}

static void keep(struct pt_trails *trails, const struct pt_piece *piece)
{
    struct pt_trail *trail = &trails->record.trail;
    struct pt_passage *passage = &trail->passage;
    const struct pt_walk_counts *now = &piece->counts, *before = &trails->record.before;
    passage->blocks = (uint32_t)(now->blocks - before->blocks);
    passage->instructions = (uint32_t)(now->instructions - before->instructions);
    passage->calls = (uint32_t)(now->calls - before->calls);
    passage->returned = (uint32_t)(now->returns - before->returns);
    trail->next = (uint32_t)trails->list.count;
    if (room_push(trails->stretches->room, &trails->list, *trail) == 0)
        *trails->record.slot = (uint16_t)trails->list.count;
}

void pt_trails_behind(struct pt_trails *trails, const struct pt_path *path,
                      const struct pt_follow *follow, const struct pt_piece *piece,
                      const struct pt_flow *pending)
{
    struct pt_trail_record *record = &trails->record;
    struct pt_passage *passage = &record->trail.passage;
    ptrdiff_t bytes = follow->query.at - record->begin;
    // it went no further than what it read says
    bool exact =
        path->indirect != PT_NO_STRETCH || (path->bits && !(path->asked & PT_PATH_THEN_TARGET));
    note_returns(record, path);
    record->on &= bytes <= PT_TRAIL_BYTES && trails->stretches->generation == trails->generation;
    // where it leads is the same from every space
    record->on =
        record->on && pt_stretches_link(trails->stretches, record->trail.passage.from, follow->ip);
    if (!record->on || bytes < trails->least || !exact || !pt_follow_between(follow))
        return;
    record->on = false;
    passage->leaves = path->passage.leaves;
    passage->last = path->passage.last;
    passage->last_ip = path->passage.last_ip;
    passage->to = follow->stretch;
    record->trail.ip = follow->ip;
    if (keep_trace(record, &follow->query) && keep_returns(record, follow) &&
        keep_flows(trails, piece, pending) == 0)
        keep(trails, piece);
}
