// SPDX-License-Identifier: MIT
#include "analysis/pt/packets/pt_packets.h"

#include "analysis/pt/packets/pt_psb.h"

enum {
    WINDOW_BYTES = 1 << 20,
    MAPPED_AT_ONCE = 2 << 20, // a large page of a file
};

// The scan's place, and what it has read of the PSB+ header that it is in, if any.
struct scan {
    const uint8_t *data; // the window, which is [base, base + bytes) of the stream
    uint64_t base;
    size_t bytes, at;
    bool last;           // the window reaches to the end of the stream
    bool searching;      // for a PSB
    bool glancing;       // pass whatever is behind a PSB+ header
    bool passing;        // the search does so
    bool headed;         // a PSB was read since the last search
    bool broken;         // bytes were missing since the last PSB
    uint64_t header_tsc; // of the last PSB that had one
    bool began;          // the place where the part begins was found
    bool ended;          // and the PSB where the next one does
    uint64_t to;         // PSBs from here on are the next part's
    uint64_t begin;      // of the part
    struct pt_packets *out;
    size_t most;         // PSBs are thinned out when there are so many
    uint64_t spacing;    // PSBs nearer to the last kept one are not kept
    struct pt_sync sync; // the last PSB, kept or not
    bool keeping;        // it was kept: it is the last of out->syncs
    bool in_header, header_mode;
    bool after_header;  // that header named an address, and no packet since moved the flow
    uint8_t item_bytes; // of a BIP packet, inside a BBP..BEP group; else 0
};

static uint64_t read_little(const uint8_t *at, size_t bytes)
{
    uint64_t value = 0;
    memcpy(&value, at, bytes);
    return value;
}

static struct pt_shape packet_shape(const struct scan *scan)
{
    const uint8_t *at = scan->data + scan->at;
    if (scan->item_bytes && (at[0] & 7) == 4) // BIP, only here
        return (struct pt_shape){PT_KIND_OTHER, scan->item_bytes};
    return pt_packet_shape(at, scan->bytes - scan->at);
}

static uint64_t header_address(const uint8_t *at, size_t bytes)
{
    uint64_t address = read_little(at + 1, bytes - 1);
    if ((at[0] >> 5) == 3) // 48 bits, sign-extended
        return (uint64_t)((int64_t)(address << 16) >> 16);
    return address;
}

// Drops every other PSB, but none behind missing bytes, or where the clock went back.
static void thin_out(struct scan *scan)
{
    struct pt_syncs *syncs = &scan->out->syncs;
    size_t kept = 1;
    for (size_t i = 1; i < syncs->count; i++)
        if (i % 2 == 0 || syncs->items[i].after_break || syncs->items[i].went_back)
            syncs->items[kept++] = syncs->items[i];
    scan->spacing =
        2 * ((syncs->items[syncs->count - 1].offset - syncs->items[0].offset) / syncs->count + 1);
    syncs->count = kept;
    if (scan->most < kept * 2) // most of them are behind missing bytes
        scan->most = kept * 2;
}

static int sync_begin(struct scan *scan, struct error *err)
{
    struct pt_syncs *syncs = &scan->out->syncs;
    uint64_t offset = scan->base + scan->at;
    scan->headed = true;
    scan->sync =
        (struct pt_sync){.offset = offset, .after_break = scan->broken, .tsc = scan->out->last_tsc};
    if (syncs->count >= scan->most)
        thin_out(scan);
    scan->keeping = syncs->count == 0 || scan->broken ||
                    offset - syncs->items[syncs->count - 1].offset >= scan->spacing;
    scan->broken = false;
    if (scan->keeping && array_push(syncs, scan->sync) < 0)
        return error_set(err, ERROR_FAILED, "out of memory for an index of PSBs");
    return 0;
}

// Notes the time of a PSB. One before which the clock went back is always kept.
static int sync_set_time(struct scan *scan, struct pt_sync *sync, struct error *err)
{
    sync->tsc = scan->out->last_tsc;
    sync->has_tsc = true;
    sync->went_back = sync->tsc < scan->header_tsc;
    scan->header_tsc = sync->tsc;
    scan->out->timed_headers++;
    if (scan->keeping || !sync->went_back)
        return 0;
    scan->keeping = true;
    return array_push(&scan->out->syncs, *sync) < 0
               ? error_set(err, ERROR_FAILED, "out of memory for an index of PSBs")
               : 0;
}

// What the scan notes of a packet besides counting it.
static int packet_note(struct scan *scan, struct pt_shape shape, struct error *err)
{
    const uint8_t *at = scan->data + scan->at;
    struct pt_packets *out = scan->out;
    struct pt_sync *last = scan->keeping ? &out->syncs.items[out->syncs.count - 1] : &scan->sync;
    switch (shape.kind) {
    case PT_KIND_PSB:
        scan->in_header = true;
        scan->header_mode = scan->after_header = false;
        scan->item_bytes = 0;
        return sync_begin(scan, err);
    case PT_KIND_PSBEND:
    case PT_KIND_OVF: // an overflow ends a header early
        if (scan->in_header) {
            scan->after_header = shape.kind == PT_KIND_PSBEND && last->ip;
            last->hands_over = shape.kind == PT_KIND_PSBEND && (!last->ip || scan->header_mode);
        }
        scan->in_header = false;
        break;
    case PT_KIND_TSC:
        out->last_tsc = read_little(at + 1, 7);
        if (!out->first_tsc)
            out->first_tsc = out->last_tsc;
        return scan->in_header && !last->has_tsc ? sync_set_time(scan, last, err) : 0;
    case PT_KIND_FUP:
        if (scan->in_header && shape.bytes > 1)
            last->ip = header_address(at, shape.bytes);
        scan->after_header = false;
        break;
    case PT_KIND_TIP_PGE:
        if (scan->after_header)
            last->stray = true;
        out->stray_headers += scan->after_header;
        scan->after_header = false;
        break;
    case PT_KIND_TIP:
    case PT_KIND_TIP_PGD:
        scan->after_header = false;
        break;
    case PT_KIND_MODE:
        scan->header_mode |= (at[1] >> 5) == 0; // the execution-mode leaf
        break;
    case PT_KIND_OTHER:
        if (at[0] == PT_EXTENDED && at[1] == 0x63)
            scan->item_bytes = at[2] & 0x80 ? 5 : 9;
        else if (at[0] == PT_EXTENDED && (at[1] & 0x7f) == 0x33)
            scan->item_bytes = 0;
        break;
    default:
        break;
    }
    return 0;
}

// Moves to the next PSB of the window, or to a place where one may begin that the window cuts off.
static void scan_search(struct scan *scan)
{
    const size_t left = scan->bytes - scan->at;
    const size_t cut = scan->glancing ? PT_PSB_CUT_BYTES : PT_PSB_BYTES - 1;
    const uint8_t *from = scan->data + scan->at, *found;
    if (scan->glancing)
        found = pt_psb_find(from, from + left, !scan->last, &scan->out->doubtful);
    else
        found = memmem(from, left, pt_psb, PT_PSB_BYTES);
    size_t next = scan->bytes;
    if (found)
        next = (size_t)(found - scan->data);
    else if (!scan->last)
        next = left < cut ? scan->at : scan->bytes - cut;
    if (!scan->passing)
        scan->out->skipped += next - scan->at;
    scan->at = next;
    scan->searching = !found;
    scan->passing &= scan->searching;
    scan->headed = false;
    if (found && !scan->began) { // what was before it is another part's
        scan->began = true;
        scan->begin = scan->base + next;
        scan->out->skipped = 0;
        scan->broken = false;
    }
    scan->in_header = scan->after_header = false;
    scan->item_bytes = 0;
}

static int scan_flaw(struct scan *scan, const char *what, struct error *err)
{
    struct pt_flaw flaw = {scan->base + scan->at, what};
    scan->out->flaw_count++;
    if (scan->out->flaws.count < PT_FLAWS_KEPT && array_push(&scan->out->flaws, flaw) < 0)
        return error_set(err, ERROR_FAILED, "out of memory for a list of flaws");
    scan->searching = true;
    scan->at++;
    scan->out->skipped++;
    return 0;
}

static int scan_packet(struct scan *scan, struct error *err)
{
    struct pt_shape shape = packet_shape(scan);
    int result = 0;
    if (shape.bytes == 0)
        return scan_flaw(scan, "unknown packet", err);
    if (shape.bytes > scan->bytes - scan->at)
        return scan_flaw(scan, "packet cut off by the end", err);
    if (shape.kind == PT_KIND_PSB && scan->base + scan->at >= scan->to) {
        scan->ended = true;
        return 0;
    }
    if (shape.kind == PT_KIND_TNT)
        scan->after_header = false;
    else if (shape.kind != PT_KIND_CYC)
        result = packet_note(scan, shape, err);
    scan->out->packets++;
    scan->out->count[shape.kind]++;
    scan->at += shape.bytes;
    return result;
}

// Passes TNT packets of one byte, targets of jumps and padding, of which most of a trace consists.
static void scan_branches(struct scan *scan, size_t stop)
{
    const uint8_t *data = scan->data;
    size_t at = scan->at, branches = 0, targets = 0, padding = 0;
    while (at < stop) {
        if (pt_is_short_tnt(data[at])) {
            uint64_t next;
            size_t run = 1;
            if (stop - at >= sizeof next) {
                memcpy(&next, data + at, sizeof next);
                run = pt_short_tnt_run(next);
            }
            branches += run;
            at += run;
            continue;
        }
        if (data[at] == 0) {
            size_t begin = at;
            at = (size_t)(pt_behind_padding(data + at, data + stop) - data);
            padding += at - begin;
            continue;
        }
        size_t bytes = pt_tip_bytes(data[at]);
        if (bytes == 0 || bytes > scan->bytes - at)
            break;
        targets++;
        at += bytes;
    }
    scan->at = at;
    scan->out->packets += branches + targets + padding;
    scan->out->count[PT_KIND_TNT] += branches;
    scan->out->count[PT_KIND_TIP] += targets;
    scan->out->count[PT_KIND_PAD] += padding;
    if (branches || targets)
        scan->after_header = false;
}

// Scans the window up to the point where its end may cut off a packet.
static int scan_window(struct scan *scan, struct error *err)
{
    size_t stop = scan->bytes;
    if (!scan->last)
        stop -= PT_PSB_BYTES;
    int result = 0;
    while (result == 0 && !scan->ended && scan->at < stop) {
        if (scan->searching) {
            scan_search(scan);
            if (scan->searching)
                break;
        } else if (scan->glancing && scan->headed && !scan->in_header && !scan->after_header) {
            scan->searching = scan->passing = true;
        } else {
            if (!scan->item_bytes) // else they may be BIP packets
                scan_branches(scan, stop);
            if (scan->at < stop)
                result = scan_packet(scan, err);
        }
    }
    return result;
}

int pt_packets_scan(const struct pt_bytes *source, struct pt_packets *out, struct error *err)
{
    return pt_packets_scan_thinly(source, PT_MOST_SYNCS, out, err);
}

int pt_packets_scan_thinly(const struct pt_bytes *source, size_t most_syncs, struct pt_packets *out,
                           struct error *err)
{
    struct pt_packets_part all = {.to = UINT64_MAX};
    int result = pt_packets_scan_part(source, most_syncs, &all, err);
    *out = all.found;
    return result;
}

struct range {
    const struct pt_bytes *source;
    uint64_t begin;
};

static const uint8_t *range_view(void *context, uint64_t offset, size_t bytes, uint8_t *scratch)
{
    const struct range *range = context;
    return pt_bytes_view(range->source, range->begin + offset, bytes, scratch);
}

int pt_packets_scan_range(const struct pt_bytes *source, uint64_t begin, uint64_t end,
                          struct pt_packets *out, struct error *err)
{
    struct range range = {source, begin};
    struct pt_bytes bytes = {.bytes = end - begin,
                             .data = source->data ? source->data + begin : NULL,
                             .view = range_view,
                             .context = &range};
    int result = pt_packets_scan(&bytes, out, err);
    pt_bytes_release(source, begin, bytes.bytes);
    return result;
}

// The last time of a stream whose last PSB this is: any packet behind it may have it.
static int glance_at_end(const struct pt_bytes *source, uint64_t psb, struct pt_packets *out,
                         struct error *err)
{
    struct pt_packets rest;
    int result = pt_packets_scan_range(source, psb, pt_bytes_until(source, psb), &rest, err);
    if (result < 0)
        return result;
    if (rest.last_tsc)
        out->last_tsc = rest.last_tsc;
    pt_packets_free(&rest);
    return 0;
}

bool pt_packets_glanced(struct pt_packets *packets)
{
    const uint64_t psbs = packets->count[PT_KIND_PSB];
    if (psbs == 0 || packets->timed_headers < psbs || packets->flaw_count || packets->doubtful)
        return false;
    memset(packets->count, 0, sizeof packets->count);
    packets->count[PT_KIND_PSB] = psbs;
    packets->packets = packets->scanned = 0;
    packets->glanced = true;
    return true;
}

int pt_packets_scan_part(const struct pt_bytes *source, size_t most_syncs,
                         struct pt_packets_part *part, struct error *err)
{
    struct pt_packets *out = &part->found;
    *out = (struct pt_packets){.bytes = source->bytes, .scanned = source->bytes};
    struct scan scan = {.out = out,
                        .base = part->from,
                        .searching = true,
                        .glancing = part->glance,
                        .most = most_syncs,
                        .began = part->from == 0,
                        .to = part->to};
    uint8_t *scratch = NULL;
    int result = 0;
    if (pt_bytes_scattered(source) && !(scratch = malloc(WINDOW_BYTES)))
        return error_set(err, ERROR_FAILED, "out of memory for a look at the trace");
    while (result == 0 && !scan.ended && scan.base < source->bytes) {
        uint64_t end = pt_bytes_until(source, scan.base), left = end - scan.base;
        scan.last = left <= WINDOW_BYTES;
        scan.bytes = scan.last ? (size_t)left : WINDOW_BYTES;
        scan.data = pt_bytes_view(source, scan.base, scan.bytes, scratch);
        scan.at = 0;
        result = scan_window(&scan, err);
        pt_bytes_release(source, scan.base, scan.at);
        scan.base += scan.last && !scan.ended ? left : scan.at;
        if (scan.last && !scan.ended) {
            scan.broken = scan.searching = true;
            scan.passing = false;
        }
    }
    if (result == 0 && scan.glancing && !scan.ended && out->count[PT_KIND_PSB])
        result = glance_at_end(source, scan.sync.offset, out, err);
    if (scan.ended) { // nobody else gives back what was mapped with the next part's begin
        uint64_t left = source->bytes - scan.base;
        pt_bytes_release(source, scan.base, left < MAPPED_AT_ONCE ? left : MAPPED_AT_ONCE);
    }
    part->begin = scan.began ? scan.begin : source->bytes;
    part->end = scan.base;
    part->broken = scan.began && scan.broken;
    part->header_tsc = scan.header_tsc;
    if (!scan.began)
        out->skipped = 0;
    free(scratch);
    if (result < 0)
        pt_packets_free(out);
    return result;
}

// --- parts ---------------------------------------------------------------------------------------

// What the part's own bytes do not say: whether bytes are missing before its first PSB, or the
// clock went back, and the time of those before its first timing packet.
static void part_continue(struct pt_packets *part, bool broken, uint64_t header_tsc, uint64_t tsc)
{
    struct pt_syncs *syncs = &part->syncs;
    if (syncs->count) {
        struct pt_sync *first = &syncs->items[0];
        first->after_break |= broken;
        first->went_back = first->has_tsc && first->tsc < header_tsc;
    }
    for (size_t i = 0; i < syncs->count && !syncs->items[i].tsc; i++)
        syncs->items[i].tsc = tsc;
}

int pt_packets_count_in(struct pt_packets *all, const struct pt_packets *part, uint64_t offset)
{
    size_t flaws = PT_FLAWS_KEPT - all->flaws.count;
    if (flaws > part->flaws.count)
        flaws = part->flaws.count;
    if (array_reserve(&all->flaws, all->flaws.count + flaws) < 0)
        return -1;
    for (size_t i = 0; i < flaws; i++) {
        struct pt_flaw flaw = part->flaws.items[i];
        flaw.offset += offset;
        all->flaws.items[all->flaws.count++] = flaw;
    }
    for (int kind = 0; kind < PT_KINDS; kind++)
        all->count[kind] += part->count[kind];
    all->skipped += part->skipped;
    all->packets += part->packets;
    all->flaw_count += part->flaw_count;
    return 0;
}

static int part_append(struct pt_packets *all, const struct pt_packets *part)
{
    if (array_reserve(&all->syncs, all->syncs.count + part->syncs.count) < 0 ||
        pt_packets_count_in(all, part, 0) < 0)
        return -1;
    for (size_t i = 0; i < part->syncs.count; i++)
        all->syncs.items[all->syncs.count++] = part->syncs.items[i];
    all->stray_headers += part->stray_headers;
    all->timed_headers += part->timed_headers;
    all->doubtful |= part->doubtful;
    if (!all->first_tsc)
        all->first_tsc = part->first_tsc;
    if (part->last_tsc)
        all->last_tsc = part->last_tsc;
    return 0;
}

int pt_packets_join(struct pt_packets_part *parts, size_t count, struct pt_packets *out,
                    struct error *err)
{
    bool broken = parts[0].broken;
    uint64_t header_tsc = parts[0].header_tsc;
    for (size_t i = 1; i < count; i++)
        if (parts[i].begin != parts[i - 1].end)
            return 0;
    *out = parts[0].found;
    parts[0].found = (struct pt_packets){0};
    for (size_t i = 1; i < count; i++) {
        struct pt_packets *part = &parts[i].found;
        part_continue(part, broken, header_tsc, out->last_tsc);
        header_tsc = parts[i].header_tsc ? parts[i].header_tsc : header_tsc;
        broken = parts[i].broken || (broken && part->syncs.count == 0);
        if (part_append(out, part) < 0) {
            pt_packets_free(out);
            return error_set(err, ERROR_FAILED, "out of memory for an index of PSBs");
        }
    }
    return 1;
}

void pt_packets_free(struct pt_packets *packets)
{
    array_free(&packets->syncs);
    array_free(&packets->flaws);
}

size_t pt_packets_find(const struct pt_packets *packets, uint64_t tsc)
{
    size_t low = array_bound(0, packets->syncs.count, at, packets->syncs.items[at].tsc <= tsc);
    return low ? low - 1 : 0;
}
