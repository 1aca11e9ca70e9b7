// SPDX-License-Identifier: MIT
#include "analysis/pt/walk/pt_follow.h"

#include <string.h>

void pt_follow_open(struct pt_follow *follow, struct pt_stretches *stretches,
                    const struct pt_config *config)
{
    *follow = (struct pt_follow){.stretches = stretches,
                                 .stretch = PT_NO_STRETCH,
                                 .unusual_aborts = config->errata.bdm64,
                                 .unusual_disables = config->errata.skd022};
    pt_query_open(&follow->query, config);
}

// --- where it is -------------------------------------------------------------------------------

static void follow_to(struct pt_follow *follow, uint64_t ip)
{
    follow->ip = ip;
    follow->stretch = PT_NO_STRETCH;
}

void pt_follow_set_space(struct pt_follow *follow, uint32_t space)
{
    follow->space = space;
    follow->stretch = PT_NO_STRETCH;
}

static struct pt_stretch *stretch_to(struct pt_follow *follow, enum pt_stretch_aim aim,
                                     uint64_t aim_ip)
{
    uint32_t stretch = pt_stretches_find(follow->stretches, follow->space, follow->ip, aim, aim_ip);
    return stretch == PT_NO_STRETCH ? NULL : &follow->stretches->items[stretch];
}

static struct pt_stretch *stretch_here(struct pt_follow *follow)
{
    if (follow->stretch == PT_NO_STRETCH)
        follow->stretch =
            pt_stretches_find(follow->stretches, follow->space, follow->ip, PT_AIM_DECISION, 0);
    return follow->stretch == PT_NO_STRETCH ? NULL : &follow->stretches->items[follow->stretch];
}

// Continues where the conditional jump at the end of the current stretch went.
static void follow_branch(struct pt_follow *follow, struct pt_stretch *stretch, bool taken)
{
    uint32_t *link = taken ? &stretch->taken_stretch : &stretch->next_stretch;
    follow->ip = taken ? stretch->taken : stretch->next;
    if (*link != PT_NO_STRETCH) {
        follow->stretch = *link;
        return;
    }
    uint32_t from = follow->stretch, generation = follow->stretches->generation;
    follow->stretch = PT_NO_STRETCH;
    if (!stretch_here(follow) || follow->stretches->generation != generation)
        return;
    stretch = &follow->stretches->items[from]; // the array may have moved
    *(taken ? &stretch->taken_stretch : &stretch->next_stretch) = follow->stretch;
}

static void push_return(struct pt_follow *follow, uint64_t ip)
{
    if (!ip)
        return;
    follow->return_top = (follow->return_top + 1) % PT_FOLLOW_RETURNS;
    follow->returns[follow->return_top] = ip;
    if (follow->return_count < PT_FOLLOW_RETURNS)
        follow->return_count++;
}

static bool pop_return(struct pt_follow *follow)
{
    if (follow->return_count == 0)
        return false;
    follow_to(follow, follow->returns[follow->return_top]);
    follow->return_top = (follow->return_top + PT_FOLLOW_RETURNS - 1) % PT_FOLLOW_RETURNS;
    follow->return_count--;
    return true;
}

// --- events ------------------------------------------------------------------------------------

// Reaching the end of the trace is not unusual.
static int status_when_not_followed(int status)
{
    return status == -pte_eos ? status : PT_FOLLOW_UNUSUAL;
}

static int status_with(const struct pt_follow *follow, int flags)
{
    if (!follow->enabled)
        flags |= pts_ip_suppressed;
    if ((follow->status & pts_eos) && !follow->has_event)
        flags |= pts_eos;
    return flags;
}

// The address right before which the event happens; 0: it happens where the processor is now.
static uint64_t event_address(const struct pt_event *event)
{
    switch (event->type) {
    case ptev_async_disabled:
        return event->variant.async_disabled.at;
    case ptev_async_branch:
        return event->variant.async_branch.from;
    case ptev_async_paging:
        return event->ip_suppressed ? 0 : event->variant.async_paging.ip;
    case ptev_exec_mode:
        return event->ip_suppressed ? 0 : event->variant.exec_mode.ip;
    case ptev_tsx:
        return event->ip_suppressed ? 0 : event->variant.tsx.ip;
    default:
        return 0;
    }
}

// Whether the fast way handles this kind of event.
static bool event_usual(const struct pt_follow *follow, const struct pt_event *event)
{
    switch (event->type) {
    case ptev_enabled:
    case ptev_disabled:
        return !event->status_update;
    case ptev_async_disabled:
        return !follow->unusual_disables;
    case ptev_tsx:
        return !(follow->unusual_aborts && event->variant.tsx.aborted);
    case ptev_async_branch:
    case ptev_overflow:
    case ptev_exec_mode:
    case ptev_paging:
    case ptev_async_paging:
    case ptev_stop:
    case ptev_cbr:
        return true;
    default:
        return false;
    }
}

// The next event, and whether it happens right here.
static int take_event(struct pt_follow *follow)
{
    if (!follow->has_event) {
        if (!(follow->status & pts_event_pending)) {
            follow->bound = false;
            return status_with(follow, 0);
        }
        int status = pt_query_event(&follow->query, &follow->event);
        if (status < 0)
            return status_when_not_followed(status);
        follow->status = status;
        follow->has_event = true;
    }
    const struct pt_event *event = &follow->event;
    bool sync = event->type == ptev_disabled || (event->type == ptev_paging && follow->enabled);
    if (!event_usual(follow, event) ||
        (sync && follow->bound)) // the event might belong to that instruction, too
        return PT_FOLLOW_UNUSUAL;
    follow->bound = false;
    uint64_t address = event_address(event);
    bool here = !sync && (address == 0 || address == follow->ip);
    return status_with(follow, here ? pts_event_pending : 0);
}

static int apply_event(struct pt_follow *follow, const struct pt_event *event)
{
    bool must_trace = event->type == ptev_disabled || event->type == ptev_async_disabled ||
                      event->type == ptev_async_branch;
    uint64_t address = event_address(event);
    if ((must_trace && !follow->enabled) || (address && address != follow->ip))
        return PT_FOLLOW_UNUSUAL;
    switch (event->type) {
    case ptev_enabled:
        if (follow->enabled || event->ip_suppressed)
            return PT_FOLLOW_UNUSUAL;
        follow->enabled = true;
        follow_to(follow, event->variant.enabled.ip);
        break;
    case ptev_disabled:
    case ptev_async_disabled:
        follow->enabled = false;
        break;
    case ptev_async_branch:
        follow_to(follow, event->variant.async_branch.to);
        break;
    case ptev_overflow:
        follow->enabled = !event->ip_suppressed;
        follow_to(follow, event->ip_suppressed ? 0 : event->variant.overflow.ip);
        break;
    case ptev_exec_mode:
        if (event->variant.exec_mode.mode != ptem_64bit)
            return PT_FOLLOW_UNUSUAL;
        follow->long_mode = true;
        break;
    default:
        break;
    }
    return 0;
}

int pt_follow_event(struct pt_follow *follow, struct pt_event *event)
{
    if (!follow->has_event || apply_event(follow, &follow->event) < 0)
        return PT_FOLLOW_UNUSUAL;
    *event = follow->event;
    follow->has_event = false;
    return take_event(follow);
}

int pt_follow_sync(struct pt_follow *follow, uint64_t offset)
{
    uint64_t ip = 0;
    int status = pt_query_sync(&follow->query, &ip, offset);
    if (status < 0)
        return status_when_not_followed(status);
    follow_to(follow, ip);
    follow->status = status;
    follow->enabled = !(status & pts_ip_suppressed);
    follow->long_mode = follow->has_event = follow->bound = false;
    follow->return_count = 0;
    return take_event(follow);
}

// --- blocks ------------------------------------------------------------------------------------

static void fill_block(const struct pt_stretch *stretch, struct pt_block *block)
{
    block->end_ip = stretch->end_ip;
    block->ninsn = stretch->instructions;
    block->iclass = (enum pt_insn_class)stretch->class;
}

// Continues to where the event happens, or to a decision before it.
static int next_to_event(struct pt_follow *follow, struct pt_block *block)
{
    const struct pt_event *event = &follow->event;
    uint64_t address = event_address(event);
    struct pt_stretch *stretch;
    if (event->type == ptev_disabled)
        stretch = event->ip_suppressed
                      ? stretch_to(follow, PT_AIM_DISABLE, 0)
                      : stretch_to(follow, PT_AIM_DISABLE_TO, event->variant.disabled.ip);
    else if (event->type == ptev_paging && follow->enabled)
        stretch = stretch_to(follow, PT_AIM_PAGING, 0);
    else if (address && address != follow->ip)
        stretch = stretch_to(follow, PT_AIM_ADDRESS, address);
    else
        return status_with(follow, pts_event_pending);
    if (!follow->enabled || !follow->long_mode || !stretch || stretch->end == PT_STRETCH_UNUSUAL)
        return PT_FOLLOW_UNUSUAL;
    fill_block(stretch, block);
    push_return(follow, stretch->returns_to);
    follow_to(follow, stretch->next);
    if (stretch->end != PT_STRETCH_AIM)
        return 0;
    follow->bound = event->type == ptev_paging;
    return status_with(follow, pts_event_pending);
}

static int go_indirect(struct pt_follow *follow)
{
    uint64_t ip;
    int status = pt_query_indirect(&follow->query, &ip);
    if (status < 0)
        return status_when_not_followed(status);
    if (status & pts_ip_suppressed)
        return PT_FOLLOW_UNUSUAL;
    follow->status = status;
    follow_to(follow, ip);
    return 0;
}

static int go_return(struct pt_follow *follow)
{
    bool taken;
    int status = pt_query_branch(&follow->query, &taken);
    if (status == -pte_bad_query) // a return that was not compressed
        return go_indirect(follow);
    if (status < 0)
        return status_when_not_followed(status);
    follow->status = status;
    return taken && pop_return(follow) ? 0 : PT_FOLLOW_UNUSUAL;
}

static int follow_stretch(struct pt_follow *follow, struct pt_stretch *stretch)
{
    bool taken;
    int status;
    switch ((enum pt_stretch_end)stretch->end) {
    case PT_STRETCH_BRANCH:
        status = pt_query_branch(&follow->query, &taken);
        if (status < 0)
            return status_when_not_followed(status);
        follow->status = status;
        follow_branch(follow, stretch, taken);
        return 0;
    case PT_STRETCH_RETURN:
        return go_return(follow);
    case PT_STRETCH_CALL:
        push_return(follow, stretch->returns_to);
        return go_indirect(follow);
    case PT_STRETCH_TRANSFER:
        return go_indirect(follow);
    case PT_STRETCH_ON:
        push_return(follow, stretch->returns_to);
        follow_to(follow, stretch->next);
        return 0;
    default:
        return PT_FOLLOW_UNUSUAL;
    }
}

int pt_follow_next(struct pt_follow *follow, struct pt_block *block)
{
    *block = (struct pt_block){.ip = follow->ip, .mode = ptem_64bit};
    if (follow->has_event)
        return next_to_event(follow, block);
    if (!follow->enabled)
        return status_when_not_followed(follow->status & pts_eos ? -pte_eos : PT_FOLLOW_UNUSUAL);
    struct pt_stretch *stretch = follow->long_mode ? stretch_here(follow) : NULL;
    if (!stretch || stretch->end == PT_STRETCH_UNUSUAL)
        return PT_FOLLOW_UNUSUAL;
    fill_block(stretch, block);
    int result = follow_stretch(follow, stretch);
    return result < 0 ? result : take_event(follow);
}

int pt_follow_branches(struct pt_follow *follow, uint64_t low, uint64_t high, uint64_t most,
                       struct pt_follow_passed *passed)
{
    if (follow->has_event || !follow->enabled || !follow->long_mode)
        return 0;
    while (passed->instructions < most) {
        struct pt_stretch *stretch = stretch_here(follow);
        bool taken;
        if (!stretch || stretch->end != PT_STRETCH_BRANCH || stretch->ip - low >= high - low ||
            stretch->end_ip - low >= high - low)
            return 0;
        int status = pt_query_branch(&follow->query, &taken);
        if (status < 0)
            return 0; // the next query reports the same status
        passed->blocks++;
        passed->instructions += stretch->instructions;
        passed->last_ip = stretch->end_ip;
        follow->status = status;
        follow_branch(follow, stretch, taken);
        if (status & (pts_event_pending | pts_eos))
            return take_event(follow);
    }
    return 0;
}
