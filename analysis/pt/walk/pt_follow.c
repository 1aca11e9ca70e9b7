// SPDX-License-Identifier: MIT
#include "analysis/pt/walk/pt_follow.h"

#include <string.h>

void pt_follow_open(struct pt_follow *follow, struct pt_stretches *stretches,
                    const struct pt_config *config)
{
    // What is read only behind what was written there since is left as it is: that is most of it.
    memset(follow, 0, offsetof(struct pt_follow, event));
    follow->stretches = stretches;
    follow->stretch = PT_NO_STRETCH;
    follow->unusual_aborts = config->errata.bdm64;
    follow->unusual_disables = config->errata.skd022;
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

static uint32_t stretch_to(struct pt_follow *follow, enum pt_stretch_aim aim, uint64_t aim_ip)
{
    return pt_stretches_find(follow->stretches, follow->space, follow->ip, aim, aim_ip);
}

static inline struct pt_stretch *stretch_here(struct pt_follow *follow)
{
    if (follow->stretch == PT_NO_STRETCH)
        follow->stretch =
            pt_stretches_find(follow->stretches, follow->space, follow->ip, PT_AIM_DECISION, 0);
    return follow->stretch == PT_NO_STRETCH ? NULL : &follow->stretches->items[follow->stretch];
}

// Continues at `ip`, which is where that link of the stretch `from` leads.
static inline void follow_link(struct pt_follow *follow, uint32_t from, enum pt_stretch_link link,
                               uint64_t ip)
{
    follow->ip = ip;
    follow->stretch = pt_stretches_link(follow->stretches, from, ip)
                          ? pt_stretches_follow(follow->stretches, from, link, ip)
                          : PT_NO_STRETCH;
}

// Continues where the trace sent the processor from the end of the stretch.
static void follow_target(struct pt_follow *follow, uint32_t from, uint64_t ip)
{
    struct pt_stretch *stretch = &follow->stretches->items[from];
    if (stretch->taken != ip) {
        stretch->taken = ip;
        stretch->taken_stretch = PT_NO_STRETCH;
    }
    follow_link(follow, from, PT_LINK_TAKEN, ip);
}

static void push_return(struct pt_follow *follow, uint64_t ip, uint32_t caller)
{
    if (!ip)
        return;
    follow->return_top = (follow->return_top + 1) % PT_FOLLOW_RETURNS;
    follow->returns[follow->return_top] = (struct pt_return){ip, caller};
    if (follow->return_count < PT_FOLLOW_RETURNS)
        follow->return_count++;
}

static bool pop_return(struct pt_follow *follow)
{
    if (follow->return_count == 0)
        return false;
    struct pt_return to = follow->returns[follow->return_top];
    follow->return_top = (follow->return_top + PT_FOLLOW_RETURNS - 1) % PT_FOLLOW_RETURNS;
    follow->return_count--;
    // the stretches may have been forgotten meanwhile, and the number be another's
    const struct pt_stretches *stretches = follow->stretches;
    if (to.caller < stretches->count && stretches->items[to.caller].returns_to == to.ip &&
        stretches->items[to.caller].space ==
            pt_code_bytes_space(&stretches->bytes, follow->space, stretches->items[to.caller].ip))
        follow_link(follow, to.caller, PT_LINK_RETURN, to.ip);
    else
        follow_to(follow, to.ip);
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
    case ptev_async_vmcs:
        return event->ip_suppressed ? 0 : event->variant.async_vmcs.ip;
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
    case ptev_async_disabled: // erratum SKD022: not, where a virtual machine was entered
        return !follow->unusual_disables || pt_stretches_plain(follow->stretches, follow->space,
                                                               event->variant.async_disabled.at);
    case ptev_tsx:
        return !(follow->unusual_aborts && event->variant.tsx.aborted);
    case ptev_async_branch:
    case ptev_overflow:
    case ptev_exec_mode:
    case ptev_paging:
    case ptev_async_paging:
    case ptev_cbr:
    case ptev_async_vmcs:
        return true;
    case ptev_stop: // tracing is always switched off before
    case ptev_vmcs: // while tracing it belongs to an instruction
        return !follow->enabled;
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

static void fill_block(struct pt_follow *follow, uint32_t passed, struct pt_block *block)
{
    const struct pt_stretch *stretch = &follow->stretches->items[passed];
    follow->passed = passed;
    block->end_ip = stretch->end_ip;
    block->ninsn = stretch->instructions;
    block->iclass = (enum pt_insn_class)stretch->class;
}

// Continues to where the event happens, or to a decision before it.
static int next_to_event(struct pt_follow *follow, struct pt_block *block)
{
    const struct pt_event *event = &follow->event;
    uint64_t address = event_address(event);
    uint32_t found;
    if (event->type == ptev_disabled)
        found = event->ip_suppressed
                    ? stretch_to(follow, PT_AIM_DISABLE, 0)
                    : stretch_to(follow, PT_AIM_DISABLE_TO, event->variant.disabled.ip);
    else if (event->type == ptev_paging && follow->enabled)
        found = stretch_to(follow, PT_AIM_PAGING, 0);
    else if (address && address != follow->ip)
        found = stretch_to(follow, PT_AIM_ADDRESS, address);
    else
        return status_with(follow, pts_event_pending);
    const struct pt_stretch *stretch =
        found == PT_NO_STRETCH ? NULL : &follow->stretches->items[found];
    if (!follow->enabled || !follow->long_mode || !stretch || stretch->end == PT_STRETCH_UNUSUAL)
        return PT_FOLLOW_UNUSUAL;
    fill_block(follow, found, block);
    push_return(follow, stretch->returns_to, found);
    follow_to(follow, stretch->next);
    if (stretch->end != PT_STRETCH_AIM)
        return 0;
    follow->bound = event->type == ptev_paging;
    return status_with(follow, pts_event_pending);
}

static int go_indirect(struct pt_follow *follow, uint32_t from)
{
    uint64_t ip;
    int status = pt_query_indirect(&follow->query, &ip);
    if (status < 0)
        return status_when_not_followed(status);
    if (status & pts_ip_suppressed)
        return PT_FOLLOW_UNUSUAL;
    follow->status = status;
    follow_target(follow, from, ip);
    return 0;
}

static int go_return(struct pt_follow *follow, uint32_t from)
{
    bool taken;
    int status = pt_query_branch(&follow->query, &taken);
    if (status == -pte_bad_query) // a return that was not compressed
        return go_indirect(follow, from);
    if (status < 0)
        return status_when_not_followed(status);
    follow->status = status;
    return taken && pop_return(follow) ? 0 : PT_FOLLOW_UNUSUAL;
}

static int follow_stretch(struct pt_follow *follow, uint32_t from)
{
    const struct pt_stretch *stretch = &follow->stretches->items[from];
    bool taken;
    int status;
    switch ((enum pt_stretch_end)stretch->end) {
    case PT_STRETCH_BRANCH:
        status = pt_query_branch(&follow->query, &taken);
        if (status < 0)
            return status_when_not_followed(status);
        follow->status = status;
        follow_link(follow, from, taken ? PT_LINK_TAKEN : PT_LINK_NEXT,
                    taken ? stretch->taken : stretch->next);
        return 0;
    case PT_STRETCH_RETURN:
        return go_return(follow, from);
    case PT_STRETCH_CALL:
        push_return(follow, stretch->returns_to, from);
        return go_indirect(follow, from);
    case PT_STRETCH_TRANSFER:
        return go_indirect(follow, from);
    case PT_STRETCH_ON:
        push_return(follow, stretch->returns_to, from);
        follow_link(follow, from, PT_LINK_NEXT, stretch->next);
        return 0;
    default:
        return PT_FOLLOW_UNUSUAL;
    }
}

int pt_follow_next(struct pt_follow *follow, struct pt_block *block)
{
    // what nobody reads of a block is not set: this is the most frequent call of all
    block->ip = follow->ip;
    block->end_ip = 0;
    block->iclass = ptic_error;
    block->mode = ptem_64bit;
    block->ninsn = 0;
    block->truncated = 0;
    follow->passed = PT_NO_STRETCH;
    if (follow->has_event)
        return next_to_event(follow, block);
    if (!follow->enabled)
        return follow->status & pts_eos ? -pte_eos : -pte_no_enable;
    struct pt_stretch *stretch = follow->long_mode ? stretch_here(follow) : NULL;
    if (!stretch || stretch->end == PT_STRETCH_UNUSUAL)
        return PT_FOLLOW_UNUSUAL;
    if (stretch->end == PT_STRETCH_UNMAPPED)
        return -pte_nomap;
    uint32_t generation = follow->stretches->generation;
    fill_block(follow, follow->stretch, block);
    int result = follow_stretch(follow, follow->passed);
    if (follow->stretches->generation != generation)
        follow->passed = PT_NO_STRETCH;
    return result < 0 ? result : take_event(follow);
}

bool pt_follow_ask(struct pt_follow *follow, uint32_t *from, uint64_t *asked)
{
    struct pt_query *query = &follow->query;
    if (follow->has_event || !follow->enabled || !follow->long_mode)
        return false;
    const struct pt_stretch *stretch = stretch_here(follow);
    if (!stretch)
        return false;
    *from = follow->stretch;
    if (query->tnt_bits == 0) {
        bool decides = stretch->end == PT_STRETCH_BRANCH || stretch->end == PT_STRETCH_RETURN;
        if (pt_query_then_target(query)) {
            *asked = PT_PATH_THEN_TARGET | 1;
            return stretch->end != PT_STRETCH_BRANCH;
        }
        if (!decides) { // before the time of the next branch
            *asked = PT_PATH_TO_DECISION;
            return stretch->end == PT_STRETCH_ON;
        }
        if (pt_query_fill(query) < 0)
            return false; // the next query reports the same status
    }
    uint64_t above = 1ull << query->tnt_bits;
    *asked = (query->tnt & (above - 1)) | above;
    if (pt_query_then_target(query))
        *asked |= PT_PATH_THEN_TARGET;
    return true;
}

void pt_follow_change_returns(struct pt_follow *follow, unsigned peak, unsigned taken,
                              const struct pt_return *left, unsigned count)
{
    unsigned most = (unsigned)PT_FOLLOW_RETURNS - peak;
    if (follow->return_count > most)
        follow->return_count = most;
    follow->return_top = (follow->return_top - taken) % PT_FOLLOW_RETURNS;
    follow->return_count -= taken;
    for (unsigned i = 0; i < count; i++)
        push_return(follow, left[i].ip, left[i].caller);
}

int pt_follow_skip(struct pt_follow *follow, size_t bytes, uint32_t stretch, uint64_t ip)
{
    struct pt_query *query = &follow->query;
    query->at += bytes;
    follow->stretch = stretch;
    follow->ip = ip;
    follow->bound = false;
    follow->status = 0;
    if (pt_query_fetch_usual(query))
        return 0;
    int status = pt_query_read_on(query);
    if (status < 0)
        return status_when_not_followed(status);
    follow->status = status;
    return status ? take_event(follow) : 0;
}

int pt_follow_pass(struct pt_follow *follow, const struct pt_path *path)
{
    struct pt_query *query = &follow->query;
    query->tnt_bits = (uint8_t)(query->tnt_bits - path->bits);
    if (path->peak || path->popped)
        pt_follow_change_returns(follow, path->peak, path->popped, path->push, path->return_count);
    if (path->indirect != PT_NO_STRETCH) {
        uint64_t ip;
        int status =
            pt_query_take_target(query, &ip); // it is there: the path was asked for with it
        if (status < 0)
            return status_when_not_followed(status);
        follow->status = status;
        follow->bound = false;
        follow_target(follow, path->indirect, ip);
        return status ? take_event(follow) : 0;
    }
    if (path->pops) {
        pop_return(follow);
    } else {
        follow->stretch = path->passage.to;
        follow->ip = follow->stretches->items[path->passage.to].ip;
    }
    if (path->bits == 0 || query->tnt_bits)
        return 0;
    follow->status = pt_query_status(query);
    return follow->status & (pts_event_pending | pts_eos) ? take_event(follow) : 0;
}

// Passes branches inside the function while links are known and TNT bits are there.
static void pass_linked(struct pt_follow *follow, uint64_t key, struct pt_follow_passed *passed)
{
    const struct pt_stretch *items = follow->stretches->items, *stretch = &items[follow->stretch];
    struct pt_query *query = &follow->query;
    struct pt_follow_passed sum = *passed;
    uint64_t tnt = query->tnt;
    unsigned bits = query->tnt_bits;
    while (bits && sum.blocks < PT_PATH_BITS && stretch->inner_branch && stretch->key == key) {
        bool taken = tnt >> (bits - 1) & 1;
        uint32_t next = taken ? stretch->taken_stretch : stretch->next_stretch;
        if (next == PT_NO_STRETCH)
            break;
        bits--;
        sum.blocks++;
        sum.instructions += stretch->instructions;
        sum.last_ip = stretch->end_ip;
        stretch = &items[next];
    }
    query->tnt_bits = (uint8_t)bits;
    follow->stretch = (uint32_t)(stretch - items);
    follow->ip = stretch->ip;
    *passed = sum;
}

int pt_follow_branches(struct pt_follow *follow, uint64_t key, struct pt_follow_passed *passed)
{
    struct pt_query *query = &follow->query;
    if (follow->has_event || !follow->enabled || !follow->long_mode)
        return 0;
    while (passed->blocks < PT_PATH_BITS) {
        const struct pt_stretch *stretch = stretch_here(follow);
        if (!stretch || !stretch->inner_branch || stretch->key != key)
            return 0;
        if (query->tnt_bits == 0 && pt_query_fill(query) < 0)
            return 0; // the next query reports the same status
        uint8_t bits = query->tnt_bits;
        pass_linked(follow, key, passed);
        if (query->tnt_bits == bits) { // the first time
            bool taken = query->tnt >> --query->tnt_bits & 1;
            passed->blocks++;
            passed->instructions += stretch->instructions;
            passed->last_ip = stretch->end_ip;
            follow_link(follow, follow->stretch, taken ? PT_LINK_TAKEN : PT_LINK_NEXT,
                        taken ? stretch->taken : stretch->next);
        }
        if (query->tnt_bits)
            continue;
        follow->status = pt_query_status(query);
        if (follow->status & (pts_event_pending | pts_eos))
            return take_event(follow);
    }
    return 0;
}
