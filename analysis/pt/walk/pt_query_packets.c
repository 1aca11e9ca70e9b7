// SPDX-License-Identifier: MIT
#include "analysis/pt/walk/pt_query_packets.h"

#include <string.h>

static uint64_t read_little(const uint8_t *at, size_t bytes)
{
    uint64_t value = 0;
    memcpy(&value, at, bytes);
    return value;
}

// --- events --------------------------------------------------------------------------------------

static struct pt_event *queue_add(struct pt_query_queue *queue)
{
    if (queue->count == PT_QUERY_QUEUE)
        return NULL;
    struct pt_event *event = &queue->events[(queue->first + queue->count++) % PT_QUERY_QUEUE];
    memset(event, 0, sizeof *event);
    return event;
}

static const struct pt_event *queue_find(const struct pt_query_queue *queue,
                                         enum pt_event_type type)
{
    for (int i = 0; i < queue->count; i++)
        if (queue->events[(queue->first + i) % PT_QUERY_QUEUE].type == type)
            return &queue->events[(queue->first + i) % PT_QUERY_QUEUE];
    return NULL;
}

static void set_time(const struct pt_query *query, struct pt_event *event)
{
    const struct pt_reading *now = &query->clock.now;
    event->tsc = now->tsc;
    event->lost_mtc = now->lost_mtc;
    event->lost_cyc = now->lost_cyc;
    event->has_tsc = now->known;
}

// An event that belongs to no other packet.
static struct pt_event *event_alone(struct pt_query *query, enum pt_event_type type)
{
    memset(&query->event, 0, sizeof query->event);
    query->event.type = type;
    query->has_event = true;
    set_time(query, &query->event);
    return &query->event;
}

// The event that waited longest becomes the latest; NULL: none waits.
static struct pt_event *event_due(struct pt_query *query, struct pt_query_queue *queue)
{
    if (queue->count == 0)
        return NULL;
    query->event = queue->events[queue->first];
    query->has_event = true;
    queue->first = (uint8_t)((queue->first + 1) % PT_QUERY_QUEUE);
    queue->count--;
    return &query->event;
}

bool pt_query_ip(const struct pt_query *query, uint64_t *ip)
{
    bool known = query->ip_known && !query->ip_suppressed;
    *ip = known ? query->ip : 0;
    return known;
}

// The event has the last packet's address, if that has one.
static void set_ip(const struct pt_query *query, struct pt_event *event, uint64_t *ip)
{
    if (!pt_query_ip(query, ip))
        event->ip_suppressed = 1;
}

// --- reading on ----------------------------------------------------------------------------------

// Passes padding and finds out what stands at `at` then. 0, -pte_eos, or unusual.
int pt_query_fetch(struct pt_query *query)
{
    const uint8_t *at = query->at;
    if (at < query->end && *at == 0)
        at = query->at = pt_behind_padding(at, query->end);
    query->next = PT_NEXT_NONE;
    if (at >= query->end)
        return -pte_eos;
    if (pt_is_short_tnt(at[0])) { // most packets are
        query->next = PT_KIND_TNT;
        return 0;
    }
    size_t left = (size_t)(query->end - at);
    if (at[0] == PT_EXTENDED && left < 2)
        return -pte_eos;
    struct pt_shape shape = pt_packet_shape(at, left);
    if (shape.bytes == 0)
        return PT_QUERY_UNUSUAL;
    query->next = shape.kind;
    if (shape.kind != PT_KIND_OTHER)
        return 0;
    if (at[0] == PT_EXTENDED && at[1] == 0x83)
        query->next = PT_NEXT_STOP;
    else if (at[0] == PT_EXTENDED && at[1] == 0xc8)
        query->next = PT_NEXT_VMCS;
    else
        return PT_QUERY_UNUSUAL;
    return 0;
}

// Whether the packet at `at` gives an event.
bool pt_query_will_event(const struct pt_query *query)
{
    switch (query->next) {
    case PT_KIND_TIP:
        return query->tip.count > 0;
    case PT_KIND_FUP:
        return query->fup.count > 0;
    case PT_KIND_PSBEND:
        return query->psb.count > 0;
    case PT_KIND_TIP_PGE:
    case PT_KIND_TIP_PGD:
    case PT_KIND_PIP:
    case PT_KIND_MODE:
    case PT_KIND_CBR:
    case PT_KIND_OVF:
    case PT_NEXT_STOP:
    case PT_NEXT_VMCS:
        return true;
    default:
        return false;
    }
}

// The bytes of the packet at `at`, 0 when it is cut off.
static size_t whole_bytes(const struct pt_query *query)
{
    size_t left = (size_t)(query->end - query->at);
    struct pt_shape shape = pt_packet_shape(query->at, left);
    return shape.bytes <= left ? shape.bytes : 0;
}

// Reads the address in a packet, which is not passed yet.
static int read_ip(struct pt_query *query, size_t *bytes)
{
    *bytes = whole_bytes(query);
    if (*bytes == 0)
        return -pte_eos;
    uint64_t value = read_little(query->at + 1, *bytes - 1);
    query->ip_suppressed = false;
    switch (query->at[0] >> 5) {
    case 0:
        query->ip_suppressed = true;
        return 0;
    case 1:
        query->ip = (query->ip & ~0xffffull) | value;
        break;
    case 2:
        query->ip = (query->ip & ~0xffffffffull) | value;
        break;
    case 3:
        query->ip = (uint64_t)((int64_t)(value << 16) >> 16);
        break;
    case 4:
        query->ip = (query->ip & ~0xffffffffffffull) | value;
        break;
    default: // 6, the shape is known
        query->ip = value;
        break;
    }
    query->ip_known = true;
    return 0;
}

int pt_query_read_tnt(struct pt_query *query)
{
    uint64_t bits = query->at[0] >> 1;
    size_t bytes = 1;
    if (query->at[0] == PT_EXTENDED) {
        if (query->end - query->at < 8)
            return -pte_eos;
        bits = read_little(query->at + 2, 6);
        bytes = 8;
    }
    if (query->tnt_bits || bits < 2)
        return PT_QUERY_UNUSUAL;
    query->tnt_bits = (uint8_t)(63 - __builtin_clzll(bits));
    query->tnt = bits;
    query->tnt_seams = 0;
    query->at += bytes;
    return 0;
}

// --- time ----------------------------------------------------------------------------------------

static bool read_cyc(struct pt_query *query, size_t bytes)
{
    const uint8_t *at = query->at;
    uint64_t cycles = at[0] >> 3;
    if (bytes > 9)
        return false;
    for (size_t i = 1; i < bytes; i++)
        cycles |= (uint64_t)(at[i] >> 1) << (5 + 7 * (i - 1));
    if (query->errata.skd007 && bytes == 2 && (cycles & ~0x1full) == 0x20 && at + 2 < query->end &&
        at[2] == 0xf3) // part of an OVF
        return false;
    return pt_trace_clock_cyc(&query->clock, cycles);
}

// Passes a packet of time, in a PSB's header or outside.
static int read_time(struct pt_query *query, bool header)
{
    const uint8_t *at = query->at;
    size_t bytes = whole_bytes(query);
    uint64_t fast;
    bool possible = true;
    if (bytes == 0)
        return -pte_eos;
    switch (query->next) {
    case PT_KIND_TSC:
        possible = pt_trace_clock_tsc(&query->clock, read_little(at + 1, 7), header);
        break;
    case PT_KIND_TMA:
        fast = read_little(at + 5, 2);
        possible =
            at[4] == 0 && fast <= 0x1ff &&
            pt_trace_clock_tma(&query->clock, (uint16_t)read_little(at + 2, 2), (uint16_t)fast);
        break;
    case PT_KIND_MTC:
        possible = pt_trace_clock_mtc(&query->clock, at[1]);
        break;
    case PT_KIND_CYC:
        possible = read_cyc(query, bytes);
        break;
    default: // CBR
        possible = pt_trace_clock_cbr(&query->clock, at[2], header);
        break;
    }
    query->at += bytes;
    return possible ? 0 : PT_QUERY_UNUSUAL;
}

// --- PSB and its header --------------------------------------------------------------------------

// Erratum BDM70: the header has an address although tracing is off, and TIP.PGE follows.
static bool address_is_stray(const struct pt_query *query, const uint8_t *at)
{
    if (!query->errata.bdm70 || query->enabled)
        return false;
    while (at < query->end) {
        size_t left = (size_t)(query->end - at);
        struct pt_shape shape = pt_packet_shape(at, left);
        bool vmcs = shape.kind == PT_KIND_OTHER && left > 1 && at[1] == 0xc8;
        bool mnt = shape.kind == PT_KIND_OTHER && left > 1 && at[1] == 0xc3;
        if (shape.bytes == 0 || shape.bytes > left)
            return false;
        switch (shape.kind) {
        case PT_KIND_TIP_PGE:
            return true;
        case PT_KIND_PAD:
        case PT_KIND_TSC:
        case PT_KIND_CBR:
        case PT_KIND_PSBEND:
        case PT_KIND_PIP:
        case PT_KIND_MODE:
        case PT_KIND_TMA:
        case PT_KIND_MTC:
        case PT_KIND_CYC:
            break;
        default:
            if (!vmcs && !mnt)
                return false;
        }
        at += shape.bytes;
    }
    return false;
}

static uint64_t cr3_of(const uint8_t *at)
{
    return read_little(at + 2, 6) >> 1 << 5;
}

static bool mode_of(uint8_t bits, enum pt_exec_mode *out)
{
    if ((bits & 3) == 3)
        return false;
    *out = bits & 1 ? ptem_64bit : bits & 2 ? ptem_32bit : ptem_16bit;
    return true;
}

static void transaction_of(uint8_t bits, struct pt_event *event)
{
    event->type = ptev_tsx;
    event->variant.tsx.speculative = (bits & 1) != 0;
    event->variant.tsx.aborted = (bits >> 1 & 1) != 0;
}

static int header_event(struct pt_query *query, size_t bytes)
{
    const uint8_t *at = query->at;
    struct pt_event *event = queue_add(&query->psb);
    if (!event)
        return PT_QUERY_UNUSUAL;
    switch (query->next) {
    case PT_KIND_PIP:
        event->type = ptev_async_paging;
        event->variant.async_paging.cr3 = cr3_of(at);
        event->variant.async_paging.non_root = (at[2] & 1) != 0;
        break;
    case PT_KIND_CBR:
        event->type = ptev_cbr;
        event->variant.cbr.ratio = at[2];
        break;
    case PT_NEXT_VMCS:
        event->type = ptev_async_vmcs;
        event->variant.async_vmcs.base = read_little(at + 2, 5) << 12;
        break;
    default: // MODE
        event->type = ptev_exec_mode;
        if (at[1] >> 5 == 1)
            transaction_of(at[1], event);
        else if (at[1] >> 5 || !mode_of(at[1], &event->variant.exec_mode.mode))
            return PT_QUERY_UNUSUAL;
        break;
    }
    query->at += bytes;
    return 0;
}

static int header_packet(struct pt_query *query)
{
    size_t bytes = whole_bytes(query);
    int result;
    if (bytes == 0)
        return -pte_eos;
    switch (query->next) {
    case PT_KIND_TSC:
    case PT_KIND_TMA:
    case PT_KIND_MTC:
    case PT_KIND_CYC:
        return read_time(query, true);
    case PT_KIND_CBR:
        result = header_event(query, 0);
        return result < 0 ? result : read_time(query, true);
    case PT_KIND_PIP:
    case PT_KIND_MODE:
    case PT_NEXT_VMCS:
        return header_event(query, bytes);
    case PT_KIND_FUP:
        if (!address_is_stray(query, query->at + bytes)) {
            result = read_ip(query, &bytes);
            if (result < 0)
                return result;
            query->enabled |= !query->ip_suppressed;
        }
        query->at += bytes;
        return 0;
    default:
        return PT_QUERY_UNUSUAL;
    }
}

// Up to the PSBEND, or the OVF that ends the header early.
int pt_query_read_psb(struct pt_query *query)
{
    const uint8_t *psb = query->at;
    size_t bytes = whole_bytes(query);
    int result = bytes ? 0 : -pte_eos;
    pt_trace_clock_psb(&query->clock);
    query->at += bytes;
    query->ip_known = query->ip_suppressed = false;
    query->ip = 0;
    while (result == 0 && (result = pt_query_fetch(query)) == 0 && query->next != PT_KIND_PSBEND &&
           query->next != PT_KIND_OVF)
        result = header_packet(query);
    if (result < 0) {
        query->at = psb;
        query->psb.count = 0;
        query->next = PT_KIND_PSB;
    }
    return result;
}

// A PSB inside the trace. A walk that begins there believes its header; one that comes from before
// and is not where that says went astray.
static int read_inner_psb(struct pt_query *query)
{
    bool enabled = query->enabled;
    int result = pt_query_read_psb(query);
    return result == 0 && enabled != query->ip_known ? PT_QUERY_UNUSUAL : result;
}

// The next of the header's events; false: none is left.
static bool psb_event(struct pt_query *query)
{
    struct pt_event *event = event_due(query, &query->psb);
    if (!event)
        return false;
    event->status_update = 1;
    set_time(query, event);
    switch (event->type) {
    case ptev_async_paging:
        set_ip(query, event, &event->variant.async_paging.ip);
        break;
    case ptev_exec_mode:
        set_ip(query, event, &event->variant.exec_mode.ip);
        break;
    case ptev_tsx:
        set_ip(query, event, &event->variant.tsx.ip);
        break;
    case ptev_async_vmcs:
        set_ip(query, event, &event->variant.async_vmcs.ip);
        break;
    default: // CBR
        break;
    }
    return true;
}

// --- packets that make events --------------------------------------------------------------------

static int read_tip(struct pt_query *query)
{
    size_t bytes;
    int result = read_ip(query, &bytes);
    if (result < 0)
        return result;
    struct pt_event *event = event_due(query, &query->tip);
    if (event) {
        if (event->type == ptev_async_branch) {
            query->consume = true;
            set_ip(query, event, &event->variant.async_branch.to);
        } else if (event->type == ptev_async_paging) {
            set_ip(query, event, &event->variant.async_paging.ip);
        } else {
            set_ip(query, event, &event->variant.exec_mode.ip);
        }
        if (query->tip.count || !query->consume)
            return 0;
        query->consume = false;
    }
    query->at += bytes;
    return 0;
}

// "Tracing is on" comes first, then the events that waited for it.
static int read_pge(struct pt_query *query)
{
    size_t bytes;
    struct pt_event *event;
    int result = read_ip(query, &bytes);
    if (result < 0)
        return result;
    if (!query->consume) {
        event = event_alone(query, ptev_enabled);
        if (!pt_query_ip(query, &event->variant.enabled.ip))
            return PT_QUERY_UNUSUAL;
        query->tnt_bits = 0;
        query->consume = query->enabled = true;
    } else {
        event = event_due(query, &query->tip);
        if (!event || event->type != ptev_exec_mode)
            return PT_QUERY_UNUSUAL;
        set_ip(query, event, &event->variant.exec_mode.ip);
    }
    if (query->tip.count)
        return 0;
    query->consume = false;
    query->at += bytes;
    return 0;
}

static int read_pgd(struct pt_query *query)
{
    size_t bytes;
    int result = read_ip(query, &bytes);
    if (result < 0)
        return result;
    struct pt_event *event = event_due(query, &query->tip);
    if (!event) {
        event = event_alone(query, ptev_disabled);
        set_ip(query, event, &event->variant.disabled.ip);
    } else if (event->type == ptev_async_branch) {
        uint64_t from = event->variant.async_branch.from;
        event->type = ptev_async_disabled;
        event->variant.async_disabled.at = from;
        set_ip(query, event, &event->variant.async_disabled.ip);
    } else {
        event->ip_suppressed = 1;
    }
    if (query->tip.count)
        return 0;
    query->enabled = false;
    query->at += bytes;
    return 0;
}

static int read_fup(struct pt_query *query)
{
    size_t bytes;
    int result = read_ip(query, &bytes);
    if (result < 0)
        return result;
    struct pt_event *event = event_due(query, &query->fup);
    if (event && event->type == ptev_overflow) {
        if (!pt_query_ip(query, &event->variant.overflow.ip))
            return PT_QUERY_UNUSUAL;
        query->consume = true;
    } else if (event) { // of a transaction; another packet follows an abort's
        query->consume |= !event->variant.tsx.aborted;
        set_ip(query, event, &event->variant.tsx.ip);
    } else {
        event = queue_add(&query->tip);
        if (!event)
            return PT_QUERY_UNUSUAL;
        event->type = ptev_async_branch;
        set_time(query, event);
        query->at += bytes;
        return pt_query_ip(query, &event->variant.async_branch.from) ? 0 : PT_QUERY_UNUSUAL;
    }
    if (query->fup.count || !query->consume)
        return 0;
    query->consume = false;
    query->at += bytes;
    return 0;
}

static int read_pip(struct pt_query *query)
{
    if (queue_find(&query->tip, ptev_async_branch)) {
        struct pt_event *event = queue_add(&query->tip);
        if (!event)
            return PT_QUERY_UNUSUAL;
        event->type = ptev_async_paging;
        event->variant.async_paging.cr3 = cr3_of(query->at);
        event->variant.async_paging.non_root = (query->at[2] & 1) != 0;
        set_time(query, event);
    } else {
        struct pt_event *event = event_alone(query, ptev_paging);
        event->variant.paging.cr3 = cr3_of(query->at);
        event->variant.paging.non_root = (query->at[2] & 1) != 0;
    }
    return 0;
}

static int read_mode(struct pt_query *query)
{
    uint8_t bits = query->at[1];
    struct pt_event *event;
    if (bits >> 5 == 0) {
        event = queue_add(&query->tip);
        if (!event || !mode_of(bits, &event->variant.exec_mode.mode))
            return PT_QUERY_UNUSUAL;
        event->type = ptev_exec_mode;
        set_time(query, event);
        return 0;
    }
    if (bits >> 5 != 1)
        return PT_QUERY_UNUSUAL;
    if (query->enabled) {
        event = queue_add(&query->fup);
        if (!event)
            return PT_QUERY_UNUSUAL;
        set_time(query, event);
    } else {
        event = event_alone(query, ptev_tsx);
        event->ip_suppressed = 1;
    }
    transaction_of(bits, event);
    return 0;
}

// Whether the FUP follows that says where the processor is; only packets of time may stand between.
// Otherwise tracing is off. Negative: neither.
static int overflow_has_address(const struct pt_query *query)
{
    for (const uint8_t *at = query->at; at < query->end;) {
        size_t left = (size_t)(query->end - at);
        struct pt_shape shape = pt_packet_shape(at, left);
        if (shape.bytes == 0)
            return PT_QUERY_UNUSUAL;
        if (shape.bytes > left)
            return 0;
        switch (shape.kind) {
        case PT_KIND_FUP:
            return 1;
        case PT_KIND_PAD:
        case PT_KIND_CBR:
        case PT_KIND_TSC:
        case PT_KIND_TMA:
        case PT_KIND_MTC:
        case PT_KIND_CYC:
            break;
        case PT_KIND_PSB:
        case PT_KIND_TIP_PGE:
        case PT_KIND_MODE:
        case PT_KIND_PIP:
        case PT_KIND_OVF:
            return 0;
        case PT_KIND_OTHER:
            return at[0] == PT_EXTENDED && (at[1] == 0x83 || at[1] == 0xc8) ? 0 : PT_QUERY_UNUSUAL;
        default:
            return PT_QUERY_UNUSUAL;
        }
        at += shape.bytes;
    }
    return 0;
}

static int read_overflow(struct pt_query *query)
{
    if (psb_event(query))
        return 0;
    if (query->errata.skd010 || query->errata.apl11 || query->errata.apl12)
        return PT_QUERY_UNUSUAL;
    query->enabled = query->consume = query->ip_known = query->ip_suppressed = false;
    query->ip = 0;
    query->tnt_bits = 0;
    query->psb.count = query->tip.count = query->fup.count = 0;
    query->read = (struct pt_reading){0};
    pt_trace_clock_uncalibrate(&query->clock);
    query->at += 2;
    int address = overflow_has_address(query);
    if (address < 0)
        return address;
    query->enabled = address;
    if (!address) {
        event_alone(query, ptev_overflow)->ip_suppressed = 1;
        return 0;
    }
    struct pt_event *event = queue_add(&query->fup);
    event->type = ptev_overflow;
    set_time(query, event);
    return 0;
}

static int read_vmcs(struct pt_query *query)
{
    if (queue_find(&query->tip, ptev_async_paging) || queue_find(&query->tip, ptev_async_branch))
        return PT_QUERY_UNUSUAL;
    event_alone(query, ptev_vmcs)->variant.vmcs.base = read_little(query->at + 2, 5) << 12;
    return 0;
}

// --- any packet ----------------------------------------------------------------------------------

// What is done with a packet that is there as a whole and then passed.
static int read_whole(struct pt_query *query)
{
    if (query->next == PT_NEXT_STOP)
        event_alone(query, ptev_stop);
    return query->next == PT_KIND_PIP    ? read_pip(query)
           : query->next == PT_KIND_MODE ? read_mode(query)
           : query->next == PT_NEXT_VMCS ? read_vmcs(query)
                                         : 0;
}

// Reads the packet at `at`; what it gives is in has_event, or in the TNT bits.
int pt_query_read(struct pt_query *query)
{
    size_t bytes;
    int result;
    switch (query->next) {
    case PT_KIND_PSB:
        return read_inner_psb(query);
    case PT_KIND_PSBEND:
        query->at += psb_event(query) ? 0 : 2;
        return 0;
    case PT_KIND_TNT:
        return pt_query_read_tnt(query);
    case PT_KIND_TIP:
        return read_tip(query);
    case PT_KIND_TIP_PGE:
        return read_pge(query);
    case PT_KIND_TIP_PGD:
        return read_pgd(query);
    case PT_KIND_FUP:
        return read_fup(query);
    case PT_KIND_TSC:
    case PT_KIND_TMA:
    case PT_KIND_MTC:
    case PT_KIND_CYC:
        return read_time(query, false);
    case PT_KIND_CBR:
        result = read_time(query, false);
        if (result == 0)
            event_alone(query, ptev_cbr)->variant.cbr.ratio = query->at[-2];
        return result;
    case PT_KIND_OVF:
        return read_overflow(query);
    default:
        bytes = whole_bytes(query);
        if (bytes == 0)
            return -pte_eos;
        result = read_whole(query);
        query->at += bytes;
        return result;
    }
}
