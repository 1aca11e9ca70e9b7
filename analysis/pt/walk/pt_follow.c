// SPDX-License-Identifier: MIT
#include "analysis/pt/walk/pt_follow.h"

#include <string.h>

int pt_follow_open(struct pt_follow *follow, struct pt_runs *runs, const struct pt_config *config,
                   struct error *err)
{
    pt_follow_close(follow);
    *follow = (struct pt_follow){.runs = runs,
                                 .run = PT_NO_RUN,
                                 .unusual_aborts = config->errata.bdm64,
                                 .unusual_disables = config->errata.skd022,
                                 .query = pt_qry_alloc_decoder(config)};
    if (!follow->query)
        return error_set(err, ERROR_FAILED, "out of memory for a decoder");
    return 0;
}

void pt_follow_close(struct pt_follow *follow)
{
    pt_qry_free_decoder(follow->query);
    follow->query = NULL;
}

// --- where it is -------------------------------------------------------------------------------

static void go(struct pt_follow *follow, uint64_t ip)
{
    follow->ip = ip;
    follow->run = PT_NO_RUN;
}

void pt_follow_set_space(struct pt_follow *follow, uint32_t space)
{
    follow->space = space;
    follow->run = PT_NO_RUN;
}

static struct pt_run *run_to(struct pt_follow *follow, enum pt_run_aim aim, uint64_t aim_ip)
{
    uint32_t run = pt_runs_find(follow->runs, follow->space, follow->ip, aim, aim_ip);
    return run == PT_NO_RUN ? NULL : &follow->runs->items[run];
}

static struct pt_run *run_here(struct pt_follow *follow)
{
    if (follow->run == PT_NO_RUN)
        follow->run = pt_runs_find(follow->runs, follow->space, follow->ip, PT_AIM_DECISION, 0);
    return follow->run == PT_NO_RUN ? NULL : &follow->runs->items[follow->run];
}

// Goes where the conditional jump at the end of the current run went.
static void go_branch(struct pt_follow *follow, struct pt_run *run, bool taken)
{
    uint32_t *link = taken ? &run->taken_run : &run->next_run;
    follow->ip = taken ? run->taken : run->next;
    if (*link != PT_NO_RUN) {
        follow->run = *link;
        return;
    }
    uint32_t from = follow->run, generation = follow->runs->generation;
    follow->run = PT_NO_RUN;
    if (!run_here(follow) || follow->runs->generation != generation)
        return;
    run = &follow->runs->items[from]; // they may have moved
    *(taken ? &run->taken_run : &run->next_run) = follow->run;
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
    go(follow, follow->returns[follow->return_top]);
    follow->return_top = (follow->return_top + PT_FOLLOW_RETURNS - 1) % PT_FOLLOW_RETURNS;
    follow->return_count--;
    return true;
}

// --- events ------------------------------------------------------------------------------------

// The end of the trace is nothing unusual.
static int refused(int status)
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

// The address before which the event happens; 0: it happens where the processor is.
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

// Whether the event is one of those that are followed.
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
        int status = pt_qry_event(follow->query, &follow->event, sizeof follow->event);
        if (status < 0)
            return refused(status);
        follow->status = status;
        follow->has_event = true;
    }
    const struct pt_event *event = &follow->event;
    bool sync = event->type == ptev_disabled || (event->type == ptev_paging && follow->enabled);
    if (!event_usual(follow, event) || (sync && follow->bound)) // it might bind there as well
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
        go(follow, event->variant.enabled.ip);
        break;
    case ptev_disabled:
    case ptev_async_disabled:
        follow->enabled = false;
        break;
    case ptev_async_branch:
        go(follow, event->variant.async_branch.to);
        break;
    case ptev_overflow:
        follow->enabled = !event->ip_suppressed;
        go(follow, event->ip_suppressed ? 0 : event->variant.overflow.ip);
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
    int status = pt_qry_sync_set(follow->query, &ip, offset);
    if (status < 0)
        return refused(status);
    go(follow, ip);
    follow->status = status;
    follow->enabled = !(status & pts_ip_suppressed);
    follow->long_mode = follow->has_event = follow->bound = false;
    follow->return_count = 0;
    return take_event(follow);
}

// --- blocks ------------------------------------------------------------------------------------

static void fill_block(const struct pt_run *run, struct pt_block *block)
{
    block->end_ip = run->end_ip;
    block->ninsn = run->instructions;
    block->iclass = (enum pt_insn_class)run->class;
}

// Goes to where the event happens, or to where something comes before it.
static int next_to_event(struct pt_follow *follow, struct pt_block *block)
{
    const struct pt_event *event = &follow->event;
    uint64_t address = event_address(event);
    struct pt_run *run;
    if (event->type == ptev_disabled)
        run = event->ip_suppressed ? run_to(follow, PT_AIM_DISABLE, 0)
                                   : run_to(follow, PT_AIM_DISABLE_TO, event->variant.disabled.ip);
    else if (event->type == ptev_paging && follow->enabled)
        run = run_to(follow, PT_AIM_PAGING, 0);
    else if (address && address != follow->ip)
        run = run_to(follow, PT_AIM_ADDRESS, address);
    else
        return status_with(follow, pts_event_pending);
    if (!follow->enabled || !follow->long_mode || !run || run->end == PT_RUN_UNUSUAL)
        return PT_FOLLOW_UNUSUAL;
    fill_block(run, block);
    push_return(follow, run->returns_to);
    go(follow, run->next);
    if (run->end != PT_RUN_AIM)
        return 0;
    follow->bound = event->type == ptev_paging;
    return status_with(follow, pts_event_pending);
}

static int go_indirect(struct pt_follow *follow)
{
    uint64_t ip;
    int status = pt_qry_indirect_branch(follow->query, &ip);
    if (status < 0)
        return refused(status);
    if (status & pts_ip_suppressed)
        return PT_FOLLOW_UNUSUAL;
    follow->status = status;
    go(follow, ip);
    return 0;
}

static int go_return(struct pt_follow *follow)
{
    int taken, status = pt_qry_cond_branch(follow->query, &taken);
    if (status == -pte_bad_query) // not compressed
        return go_indirect(follow);
    if (status < 0)
        return refused(status);
    follow->status = status;
    return taken && pop_return(follow) ? 0 : PT_FOLLOW_UNUSUAL;
}

static int go_on(struct pt_follow *follow, struct pt_run *run)
{
    int taken, status;
    switch ((enum pt_run_end)run->end) {
    case PT_RUN_BRANCH:
        status = pt_qry_cond_branch(follow->query, &taken);
        if (status < 0)
            return refused(status);
        follow->status = status;
        go_branch(follow, run, taken != 0);
        return 0;
    case PT_RUN_RETURN:
        return go_return(follow);
    case PT_RUN_CALL:
        push_return(follow, run->returns_to);
        return go_indirect(follow);
    case PT_RUN_TRANSFER:
        return go_indirect(follow);
    case PT_RUN_ON:
        push_return(follow, run->returns_to);
        go(follow, run->next);
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
        return refused(follow->status & pts_eos ? -pte_eos : PT_FOLLOW_UNUSUAL);
    struct pt_run *run = follow->long_mode ? run_here(follow) : NULL;
    if (!run || run->end == PT_RUN_UNUSUAL)
        return PT_FOLLOW_UNUSUAL;
    fill_block(run, block);
    int result = go_on(follow, run);
    return result < 0 ? result : take_event(follow);
}

int pt_follow_branches(struct pt_follow *follow, uint64_t low, uint64_t high, uint64_t most,
                       struct pt_follow_passed *passed)
{
    if (follow->has_event || !follow->enabled || !follow->long_mode)
        return 0;
    while (passed->instructions < most) {
        struct pt_run *run = run_here(follow);
        int taken;
        if (!run || run->end != PT_RUN_BRANCH || run->ip - low >= high - low ||
            run->end_ip - low >= high - low)
            return 0;
        int status = pt_qry_cond_branch(follow->query, &taken);
        if (status < 0)
            return 0; // asked again it says the same
        passed->blocks++;
        passed->instructions += run->instructions;
        passed->last_ip = run->end_ip;
        follow->status = status;
        go_branch(follow, run, taken != 0);
        if (status & (pts_event_pending | pts_eos))
            return take_event(follow);
    }
    return 0;
}
