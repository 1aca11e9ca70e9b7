// SPDX-License-Identifier: MIT
#include "analysis/pt/walk/pt_flow.h"

static uint64_t time_add(uint64_t a, uint64_t b)
{
    return a < UINT64_MAX - b ? a + b : UINT64_MAX;
}

static uint64_t time_least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t time_most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

// --- times that were too late --------------------------------------------------------------------

// Cycles counted at too low a ratio give times later than the next packet that carries the time.
static void times_ascend(struct pt_flows *flows, struct pt_ratio_changes *changes, uint64_t end_tsc)
{
    uint64_t next = end_tsc ? end_tsc : UINT64_MAX;
    size_t change = changes->count;
    for (size_t i = flows->count + 1; i-- > 0;) {
        if (i < flows->count)
            next = flows->items[i].tsc = time_least(flows->items[i].tsc, next);
        for (; change > 0 && changes->items[change - 1].flow == i; change--)
            next = changes->items[change - 1].from =
                time_least(changes->items[change - 1].tsc, next);
    }
}

// --- changes of the core's ratio -----------------------------------------------------------------

// The cycles between the packets around the change may have been counted at the wrong ratio: all
// later times are then too early or too late until a packet carries the full time. A time that was
// set back to that packet is off by the interval between the packets at most. The errors of several
// changes add up until the next packet with the full time.
static void changes_doubt(struct pt_ratio_changes *changes, const struct pt_flows *flows,
                          const struct pt_timing *timing)
{
    uint64_t end = timing->end_tsc ? timing->end_tsc : UINT64_MAX;
    size_t next = 0;
    for (size_t i = 0; i < changes->count; i++) {
        struct pt_ratio_change *change = &changes->items[i];
        const struct pt_ratio_change *before = i ? change - 1 : NULL;
        while (next < flows->count && flows->items[next].tsc <= change->tsc)
            next++;
        uint64_t behind =
            next < flows->count ? flows->items[next].tsc : time_most(end, change->tsc);
        uint64_t between = time_least(behind - change->tsc, timing->period);
        uint64_t times = time_most(1, (uint64_t)(change->high / change->low));
        change->error = between < UINT32_MAX ? between * times + timing->cycle_tsc : UINT32_MAX;
        if (before && change->from <= before->until)
            change->error = time_add(change->error, before->error);
        change->until = time_add(time_add(change->tsc, timing->period), change->error);
    }
}

static uint64_t change_error(const struct pt_ratio_changes *changes, uint64_t tsc)
{
    // the first change at or after it
    size_t low = array_bound(0, changes->count, at, changes->items[at].from < tsc);
    return low && tsc <= changes->items[low - 1].until ? changes->items[low - 1].error : 0;
}

// --- times -----------------------------------------------------------------------------------

// The error of libipt's time of a packet.
static uint64_t packet_error(const struct pt_timing *timing, const struct pt_ratio_changes *changes,
                             uint64_t tsc)
{
    if (!timing->cycles || tsc == timing->end_tsc)
        return 0;
    uint64_t since = tsc > timing->begin_tsc ? tsc - timing->begin_tsc : 0;
    if (timing->guessed && !timing->end_tsc)
        return UINT32_MAX;
    if (timing->guessed)
        return time_most(since, timing->end_tsc > tsc ? timing->end_tsc - tsc : 0);
    uint64_t counted = time_least(since, timing->period) / PT_CYCLE_ERROR_PART + timing->cycle_tsc;
    return changes->count ? time_add(counted, change_error(changes, tsc)) : counted;
}

// The time of the flows from `next` on; the end of the piece when there are none.
static uint64_t time_after(const struct pt_flows *flows, size_t next, uint64_t end_tsc)
{
    uint64_t tsc = next < flows->count ? flows->items[next].tsc : 0;
    while (next < flows->count && flows->items[next].tsc == tsc)
        next++;
    if (next < flows->count)
        return flows->items[next].tsc;
    return time_most(end_tsc, tsc);
}

// Flows [first, next), which share a time. They are spread over `gap`; each can be this much before
// or after that time, flows without a packet of their own by another amount.
struct group {
    size_t first, next;
    uint64_t gap, before, after, after_unmarked;
    bool off;   // tracing was off for an unknown part of that time
    bool ahead; // all of them are unmarked
};

// bound: no flow of the group was before that time.
static struct group group_at(const struct pt_flows *flows, size_t first, uint64_t bound,
                             const struct pt_timing *timing, const struct pt_ratio_changes *changes)
{
    struct group group = {.first = first, .next = first, .ahead = true};
    uint64_t tsc = flows->items[first].tsc, next_tsc = timing->end_tsc;
    bool unmarked = false;
    for (; group.next < flows->count && flows->items[group.next].tsc == tsc; group.next++) {
        const struct pt_flow *flow = &flows->items[group.next];
        group.off |= flow->kind == PT_FLOW_DISABLE;
        group.ahead &= flow->ahead;
        unmarked |= flow->unmarked;
    }
    if (group.next < flows->count)
        next_tsc = flows->items[group.next].tsc;
    group.gap = next_tsc > tsc ? next_tsc - tsc : 0;
    group.before = time_add(tsc - bound, packet_error(timing, changes, bound));
    group.after = time_add(group.gap, packet_error(timing, changes, tsc + group.gap));
    if (unmarked) {
        uint64_t after = time_after(flows, group.next, timing->end_tsc);
        group.after_unmarked =
            time_add(time_most(after, tsc) - tsc, packet_error(timing, changes, after));
    }
    return group;
}

// The group is a copy: nothing that is written here can be part of it.
static void group_spread(struct group group, struct pt_flows *flows)
{
    struct pt_flow *flow = &flows->items[group.first], *behind = &flows->items[group.next];
    uint32_t begin = flow->instruction;
    uint32_t end = (group.next < flows->count ? behind : behind - 1)->instruction + 1;
    double gap = group.off ? 0 : (double)group.gap, all = (double)(end - begin);
    for (; flow < behind; flow++) {
        double part = (double)(flow->instruction - begin) / all;
        uint64_t into = flow->ahead ? 0 : (uint64_t)(gap * part);
        uint64_t until = flow->unmarked ? group.after_unmarked : group.after;
        flow->tsc += into;
        flow->error_tsc = (uint32_t)time_least(
            time_most(time_add(group.before, into), until - time_least(into, until)), UINT32_MAX);
    }
}

void pt_flows_interpolate(struct pt_flows *flows, const struct pt_timing *timing,
                          struct pt_ratio_changes *changes)
{
    if (timing->none) // all times are 0, and exactly so
        return;
    times_ascend(flows, changes, timing->end_tsc);
    if (timing->cycles)
        changes_doubt(changes, flows, timing);
    uint64_t bound = flows->count ? flows->items[0].tsc : 0;
    for (size_t first = 0; first < flows->count;) {
        uint64_t tsc = flows->items[first].tsc;
        struct group group = group_at(flows, first, bound, timing, changes);
        group_spread(group, flows);
        bound = group.ahead ? bound : tsc;
        first = group.next;
    }
}

// --- pieces --------------------------------------------------------------------------------------

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

void pt_piece_reset(struct pt_piece *piece)
{
    piece->counts = (struct pt_walk_counts){0};
    piece->errors.count = piece->flows.count = piece->ratio_changes.count = 0;
    piece->lowest_ratio = 0;
    piece->handed_over = false;
}

// What was lost before anything was found.
static void piece_drop_loss(struct pt_piece *piece)
{
    struct pt_flows *flows = &piece->flows;
    if (flows->count == 0 || flows->items[0].kind != PT_FLOW_LOST)
        return;
    flows->count--;
    memmove(flows->items, flows->items + 1, flows->count * sizeof *flows->items);
    for (size_t i = 0; i < piece->ratio_changes.count; i++)
        piece->ratio_changes.items[i].flow -= piece->ratio_changes.items[i].flow > 0;
}

void pt_piece_drop_told(struct pt_piece *piece, uint64_t *told)
{
    struct pt_walk_errors *errors = &piece->errors;
    if (errors->count && errors->items[0].offset == *told) {
        errors->count--;
        memmove(errors->items, errors->items + 1, errors->count * sizeof *errors->items);
        piece_drop_loss(piece);
    }
    if (errors->count)
        *told = errors->items[errors->count - 1].offset;
}

void pt_piece_free(struct pt_piece *piece)
{
    array_free(&piece->errors);
    room_free_array(piece->room, &piece->flows);
    array_free(&piece->ratio_changes);
}
