// SPDX-License-Identifier: MIT
#include "analysis/pt/packets/pt_windows.h"

#include <string.h>

bool pt_windows_touch(const struct pt_windows *windows, uint64_t from, uint64_t to)
{
    if (to < from) // the clock went back meanwhile: from which time on is not known
        return windows->count > 0;
    // the first window that ends at or after `from`
    size_t low = array_bound(0, windows->count, at, windows->items[at].to < from);
    return low < windows->count && windows->items[low].from <= to;
}

// The refined index while the stream's PSBs are added in order.
struct refining {
    const struct pt_windows *windows;
    const struct pt_bytes *source;
    struct pt_syncs out;
    struct pt_packets counted; // in what was scanned
    bool wanted; // whether the bytes between the last PSB and the one before it are needed
    bool open;   // a walk continues until a PSB at which it can end
};

// Adds the next PSB; `to` is the time of the one after it.
static int take_sync(struct refining *refining, const struct pt_sync *sync, bool indexed,
                     uint64_t to)
{
    bool wanted = pt_windows_touch(refining->windows, sync->tsc, to);
    refining->open |= refining->wanted;
    bool keep = indexed || wanted || wanted != refining->wanted || refining->open;
    if (!wanted && (sync->hands_over || sync->after_break))
        refining->open = false;
    refining->wanted = wanted;
    return keep ? array_push(&refining->out, *sync) : 0;
}

// Scans from one PSB of the index to the next one, or to where bytes are missing.
static int scan_gap(const struct refining *refining, const struct pt_syncs *syncs, size_t at,
                    struct pt_packets *out, struct error *err)
{
    const struct pt_bytes *source = refining->source;
    uint64_t begin = syncs->items[at].offset, end = pt_bytes_until(source, begin);
    if (at + 1 < syncs->count && syncs->items[at + 1].offset < end)
        end = syncs->items[at + 1].offset;
    return pt_packets_scan_range(source, begin, end, out, err);
}

static int take_gap(struct refining *refining, const struct pt_syncs *syncs, size_t at,
                    uint64_t next_tsc, struct error *err)
{
    const struct pt_sync *first = &syncs->items[at];
    struct pt_packets inside;
    int result = scan_gap(refining, syncs, at, &inside, err);
    if (result < 0)
        return result;
    result = pt_packets_count_in(&refining->counted, &inside, first->offset);
    refining->counted.scanned += inside.bytes;
    struct pt_syncs *found = &inside.syncs;
    for (size_t i = 0; i < found->count; i++) {
        struct pt_sync *sync = &found->items[i];
        sync->offset += first->offset;
        if (sync->tsc == 0) // no timing packet since the gap began
            sync->tsc = first->tsc;
    }
    for (size_t i = 0; i < found->count && result == 0; i++)
        result = take_sync(refining, i ? &found->items[i] : first, i == 0,
                           i + 1 < found->count ? found->items[i + 1].tsc : next_tsc);
    pt_packets_free(&inside);
    return result < 0 ? error_set(err, ERROR_FAILED, "out of memory for PSBs near windows") : 0;
}

// Of what was only glanced at, what is counted are the packets near windows, and all PSBs.
static void count_instead(struct pt_packets *packets, struct pt_packets *counted)
{
    counted->count[PT_KIND_PSB] = packets->count[PT_KIND_PSB];
    memcpy(packets->count, counted->count, sizeof packets->count);
    packets->packets = counted->packets;
    packets->scanned = counted->scanned;
    packets->skipped += counted->skipped;
    packets->flaw_count = counted->flaw_count;
    array_free(&packets->flaws);
    packets->flaws = counted->flaws;
    counted->flaws = (struct pt_flaws){0};
}

int pt_windows_refine(const struct pt_windows *windows, const struct pt_bytes *source,
                      struct pt_packets *packets, struct error *err)
{
    const struct pt_syncs *syncs = &packets->syncs;
    struct refining refining = {.windows = windows, .source = source};
    int result = 0;
    if (!packets->glanced && packets->count[PT_KIND_PSB] == syncs->count)
        return 0;
    for (size_t i = 0; i < syncs->count && result == 0; i++) {
        const struct pt_sync *sync = &syncs->items[i];
        uint64_t to = i + 1 < syncs->count ? sync[1].tsc : UINT64_MAX;
        bool goes_on = (refining.open || refining.wanted) && !sync->hands_over;
        bool unordered = i + 1 < syncs->count && sync[1].went_back;
        if (goes_on || unordered || pt_windows_touch(windows, sync->tsc, to))
            result = take_gap(&refining, syncs, i, to, err);
        else if (take_sync(&refining, sync, true, to) < 0)
            result = error_set(err, ERROR_FAILED, "out of memory for an index of PSBs");
    }
    if (result == 0 && packets->glanced)
        count_instead(packets, &refining.counted);
    array_free(&refining.counted.flaws);
    if (result < 0) {
        array_free(&refining.out);
        return result;
    }
    array_free(&packets->syncs);
    packets->syncs = refining.out;
    return 0;
}
