// SPDX-License-Identifier: MIT
#include "analysis/pt/walk/pt_query.h"

#include <string.h>

#include "analysis/pt/walk/pt_query_packets.h"

void pt_query_open(struct pt_query *query, const struct pt_config *config)
{
    memset(query, 0,
           offsetof(struct pt_query, psb)); // those events are written before they are read
    query->psb.first = query->tip.first = query->fup.first = 0;
    query->psb.count = query->tip.count = query->fup.count = 0;
    query->begin = query->at = config->begin;
    query->end = config->end;
    query->errata = config->errata;
    query->next = PT_NEXT_NONE;
    pt_trace_clock_init(&query->clock, config);
}

// Whether nothing whole follows.
static bool at_end(const struct pt_query *query)
{
    return query->next == PT_NEXT_NONE &&
           (query->at >= query->end ||
            (query->at[0] == PT_EXTENDED && query->end - query->at == 1));
}

static bool is_packet(const struct pt_query *query)
{
    return query->next != PT_NEXT_NONE && query->next != PT_NEXT_BROKEN;
}

int pt_query_status(const struct pt_query *query)
{
    if (query->tnt_bits)
        return 0;
    if (!is_packet(query))
        return at_end(query) ? pts_eos : 0;
    return pt_query_will_event(query) ? pts_event_pending : 0;
}

// --- reading ahead -------------------------------------------------------------------------------

// Up to the next packet that answers a query.
static int read_ahead(struct pt_query *query)
{
    if (pt_query_fetch_usual(query))
        return 0;
    for (;;) {
        int result = pt_query_fetch(query);
        if (result < 0)
            return result;
        if (query->next == PT_KIND_TIP || query->next == PT_KIND_TNT || pt_query_will_event(query))
            return 0;
        result = pt_query_read(query);
        if (result == -pte_eos) { // cut off by the end
            query->at = query->end;
            query->next = PT_NEXT_NONE;
        }
        if (result < 0)
            return result;
    }
}

// As read_ahead, but the end is reported by the status, and by the next query.
static inline int read_ahead_or_end(struct pt_query *query)
{
    if (pt_query_fetch_usual(query))
        return 0;
    int result = read_ahead(query);
    if (result == PT_QUERY_UNUSUAL) {
        query->next = PT_NEXT_BROKEN;
        query->tnt_bits = 0;
    }
    return result == -pte_eos ? 0 : result;
}

int pt_query_read_on(struct pt_query *query)
{
    int result = read_ahead_or_end(query);
    return result < 0 ? result : pt_query_status(query);
}

// --- queries -------------------------------------------------------------------------------------

int pt_query_sync(struct pt_query *query, uint64_t *ip, uint64_t offset)
{
    query->at = query->begin + offset;
    query->enabled = query->consume = query->has_event = false;
    query->tnt_bits = 0;
    query->psb.count = query->tip.count = query->fup.count = 0;
    query->read = (struct pt_reading){0};
    pt_trace_clock_restart(&query->clock);
    int result = pt_query_fetch(query);
    if (result == 0)
        result = query->next == PT_KIND_PSB ? pt_query_read_psb(query) : PT_QUERY_UNUSUAL;
    if (result < 0)
        return result;
    bool known = pt_query_ip(query, ip); // before reading ahead: another PSB may follow
    result = read_ahead(query);
    if (result < 0)
        return result;
    known = known || pt_query_ip(query, ip);
    return pt_query_status(query) | (known ? 0 : pts_ip_suppressed);
}

// The eight bytes' branches, where each is a TNT packet of six, the first one uppermost.
static uint64_t eight_tnt(uint64_t bytes)
{
    uint64_t bits = __builtin_bswap64(bytes) >> 1;
    bits = (bits & 0x003f003f003f003f) | (bits & 0x3f003f003f003f00) >> 2;
    bits = (bits & 0x00000fff00000fff) | (bits & 0x0fff00000fff0000) >> 4;
    return (bits & 0xffffff) | bits >> 32 << 24;
}

// TNT packets that follow one another are taken together.
static void join_tnt(struct pt_query *query)
{
    enum { MOST_BITS = 64 - 7 }; // with room for one more packet and the mark of the first
    const uint64_t eight_seams = 0x41041041041;       // one every six bits
    const uint8_t *at = query->at, *end = query->end; // bytes may be anything's, also the query's
    uint64_t tnt = query->tnt, seams = query->tnt_seams, bytes;
    unsigned all = query->tnt_bits;
    if (all <= MOST_BITS - 48 && end - at >= 8) {
        memcpy(&bytes, at, sizeof bytes);
        if ((bytes & 0x8181818181818181) == 0x8080808080808080) {
            tnt = tnt << 48 | eight_tnt(bytes);
            seams = seams << 48 | eight_seams << 6;
            all += 48;
            at += 8;
        }
    }
    while (all <= MOST_BITS - 6 && at < end && pt_is_short_tnt(*at)) {
        unsigned bits = *at++ >> 1, count = 31 - (unsigned)__builtin_clz(bits);
        tnt = tnt << count | (bits ^ 1u << count);
        seams = (seams | 1) << count;
        all += count;
    }
    query->tnt = tnt;
    query->tnt_seams = seams;
    query->tnt_bits = (uint8_t)all;
    query->at = query->tnt_end = at;
}

// Whether the branches of a packet wait behind those of the present one: then a jump's target
// cannot be next.
static bool tnt_waits(const struct pt_query *query)
{
    return query->tnt_bits && (pt_query_tnt_waiting(query) || query->next == PT_KIND_TNT);
}

int pt_query_fill(struct pt_query *query)
{
    if (!is_packet(query))
        return at_end(query) ? -pte_eos : PT_QUERY_UNUSUAL;
    if (query->next != PT_KIND_TNT)
        return -pte_bad_query;
    int result = pt_query_read_tnt(query);
    if (result < 0)
        return result;
    query->read = query->clock.now;
    join_tnt(query);
    return read_ahead_or_end(query);
}

int pt_query_branch(struct pt_query *query, bool *taken)
{
    int result = query->tnt_bits ? 0 : pt_query_fill(query);
    if (result < 0)
        return result;
    query->tnt_bits--;
    *taken = query->tnt >> query->tnt_bits & 1;
    return pt_query_status(query);
}

int pt_query_indirect(struct pt_query *query, uint64_t *ip)
{
    if (query->tnt_bits == 0 && pt_query_then_target(query))
        return pt_query_take_target(query, ip);
    for (;;) {
        if (!is_packet(query))
            return at_end(query) ? -pte_eos : PT_QUERY_UNUSUAL;
        if (pt_query_will_event(query) || tnt_waits(query))
            return -pte_bad_query;
        bool answer = query->next == PT_KIND_TIP;
        int result = pt_query_read(query);
        if (result < 0)
            return result;
        if (answer)
            break;
        result = read_ahead(query);
        if (result < 0)
            return result;
    }
    int known = pt_query_ip(query, ip) ? 0 : pts_ip_suppressed;
    query->read = query->clock.now;
    int result = read_ahead_or_end(query);
    return result < 0 ? result : pt_query_status(query) | known;
}

int pt_query_event(struct pt_query *query, struct pt_event *event)
{
    if (query->tnt_bits)
        return -pte_bad_query;
    for (query->has_event = false; !query->has_event;) {
        if (!is_packet(query))
            return at_end(query) ? -pte_eos : PT_QUERY_UNUSUAL;
        if ((query->next == PT_KIND_TIP || query->next == PT_KIND_TNT) &&
            !pt_query_will_event(query))
            return -pte_bad_query;
        int result = pt_query_read(query);
        if (result == 0 && !query->has_event)
            result = read_ahead(query);
        if (result < 0)
            return result;
    }
    *event = query->event;
    query->read = query->clock.now;
    int result = read_ahead_or_end(query);
    return result < 0 ? result : pt_query_status(query);
}
