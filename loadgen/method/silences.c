// SPDX-License-Identifier: MIT
#include "loadgen/method/silences.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/text.h"

enum {
    SLOTS_MAX = 1 << 20,
    OVERDUE_TIMES = 10, // the usual time: so late a reply is overdue
    CONNECTIONS_LEAST = 4,
};

static const double least_s = 0.05;          // less is any machine's
static const double chance_tolerance = 1e-3; // of one such in a run by chance

struct silence {
    uint64_t begin, end;  // no reply came between
    uint64_t waited_from; // the first request that became overdue in it was sent then
    uint32_t connections; // on which one did
};

struct silence_array ARRAY_OF(struct silence);

// The replies of a part of the run.
struct slot {
    uint64_t first, last; // 0: none
};

// --- where no reply came -------------------------------------------------------------------------

static void fill_slots(const struct engine_result *run, struct slot *slots, size_t count,
                       uint64_t width)
{
    for (size_t i = 0; i < run->sample_count; i++) {
        const uint64_t reply = run->samples[i].reply_tsc;
        if (!sample_is_answered(&run->samples[i]) || reply < run->start_tsc)
            continue;
        const uint64_t at = (reply - run->start_tsc) / width;
        struct slot *slot = &slots[at < count ? at : count - 1];
        slot->first = !slot->first || reply < slot->first ? reply : slot->first;
        slot->last = reply > slot->last ? reply : slot->last;
    }
}

// Of at least that many ticks, which is more than a slot: so none of them is within one.
static int list_gaps(const struct slot *slots, size_t count, uint64_t least,
                     struct silence_array *gaps)
{
    uint64_t last = 0;
    for (size_t i = 0; i < count; i++) {
        if (!slots[i].first)
            continue;
        if (last && slots[i].first - last >= least &&
            array_push(gaps, (struct silence){last, slots[i].first, UINT64_MAX, 0}) < 0)
            return -1;
        last = slots[i].last;
    }
    return 0;
}

static int find_gaps(const struct engine_result *run, uint64_t least, uint64_t width,
                     struct silence_array *gaps)
{
    const size_t count = (size_t)((run->end_tsc - run->start_tsc) / width) + 1;
    struct slot *slots = calloc(count, sizeof *slots);
    if (!slots)
        return -1;
    fill_slots(run, slots, count, width);
    int status = list_gaps(slots, count, least, gaps);
    free(slots);
    return status;
}

// --- how unlikely it is --------------------------------------------------------------------------

// Of the requests that became overdue in none of the gaps, or were not.
struct others {
    uint64_t count, overdue;
};

// Which of the gaps that instant lies in, or none of them: their number.
static size_t gap_at(const struct silence_array *gaps, uint64_t tsc)
{
    size_t at = array_bound(0, gaps->count, i, gaps->items[i].end < tsc);
    return at < gaps->count && gaps->items[at].begin <= tsc ? at : gaps->count;
}

// Requests that were overdue before a gap began say nothing about it; of one connection's, which
// may wait for one another, the first counts. counted: of each connection, one more than the last
// gap in which it was. Requests are nearly in the order in which they were sent.
static void count_overdue(const struct engine_result *run, uint64_t patience, uint32_t *counted,
                          size_t connections, struct silence_array *gaps, struct others *others)
{
    for (size_t i = 0; i < run->sample_count; i++) {
        const struct sample *sample = &run->samples[i];
        if (!sample->sent_tsc)
            continue;
        const bool answered = sample_is_answered(sample);
        const uint64_t overdue = sample->send_tsc + patience;
        const bool late = !answered || sample->reply_tsc > overdue;
        const size_t at = late && answered ? gap_at(gaps, overdue) : gaps->count;
        if (at == gaps->count) {
            others->count++;
            others->overdue += late;
            continue;
        }
        struct silence *gap = &gaps->items[at];
        if (sample->connection >= connections || counted[sample->connection] > at)
            continue;
        counted[sample->connection] = (uint32_t)at + 1;
        gap->connections++;
        if (sample->send_tsc < gap->waited_from)
            gap->waited_from = sample->send_tsc;
    }
}

static uint32_t last_connection(const struct engine_result *run)
{
    uint32_t last = 0;
    for (size_t i = 0; i < run->sample_count; i++)
        last = run->samples[i].connection > last ? run->samples[i].connection : last;
    return last;
}

// Whether all of these connections' requests would hardly be overdue by themselves at any time of
// the run: each is as likely as others' are.
static bool is_unlikely(uint32_t connections, const struct others *others)
{
    const double each = (double)(others->overdue + 1) / (double)(others->count + 1);
    return connections >= CONNECTIONS_LEAST &&
           (double)others->count * pow(each, connections) <= chance_tolerance;
}

static void take_gap(const struct engine_result *run, const struct silence *gap, uint64_t least,
                     struct silences *found)
{
    const uint64_t begin = gap->waited_from > gap->begin ? gap->waited_from : gap->begin;
    if (gap->end - begin < least)
        return;
    const double lasted_s = (double)(gap->end - begin) / run->tsc_hz;
    found->count++;
    found->lasted_s += lasted_s;
    if (lasted_s <= found->longest_s)
        return;
    found->longest_s = lasted_s;
    found->after_s = (double)(int64_t)(begin - run->start_tsc) / run->tsc_hz;
    found->longest_awaited_on = gap->connections;
}

static int judge_gaps(const struct engine_result *run, uint64_t patience, uint64_t least,
                      struct silence_array *gaps, struct silences *found)
{
    const size_t connections = (size_t)last_connection(run) + 1;
    struct others others = {0};
    uint32_t *counted = calloc(connections, sizeof *counted);
    if (!counted)
        return -1;
    count_overdue(run, patience, counted, connections, gaps, &others);
    free(counted);
    for (size_t i = 0; i < gaps->count; i++)
        if (is_unlikely(gaps->items[i].connections, &others))
            take_gap(run, &gaps->items[i], least, found);
    return 0;
}

int silences_find(const struct engine_result *run, double usual_us, struct silences *found,
                  struct error *err)
{
    struct silence_array gaps = {0};
    *found = (struct silences){0};
    if (run->totals || !isfinite(usual_us) || run->end_tsc <= run->start_tsc)
        return 0;
    // Half of it at least is not this client's own standstill, wherever that was.
    const uint64_t own = 2 * run->standstill.lasted_tsc,
                   patience = (uint64_t)(OVERDUE_TIMES * usual_us / 1e6 * run->tsc_hz);
    uint64_t least = (uint64_t)(least_s * run->tsc_hz);
    least = own > least ? own : least;
    uint64_t width = least / 2, widest = (run->end_tsc - run->start_tsc) / SLOTS_MAX + 1;
    if (width < widest)
        least = 2 * (width = widest);
    int status = find_gaps(run, least, width, &gaps);
    if (status == 0 && gaps.count)
        status = judge_gaps(run, patience, least, &gaps, found);
    array_free(&gaps);
    return status == 0 ? 0
                       : error_set(err, ERROR_FAILED,
                                   "out of memory for when no replies came to %s requests",
                                   TEXT_COUNT(run->sample_count));
}

bool silences_words(const struct silences *found, char *out, size_t out_bytes)
{
    char more[80] = "";
    *out = '\0';
    if (!found->count)
        return false;
    if (found->count > 1)
        snprintf(more, sizeof more, " (%s such, %s in all)", TEXT_COUNT(found->count),
                 TEXT_NS(1e9 * found->lasted_s));
    snprintf(
        out, out_bytes,
        "no reply came on any connection for %s, %s after the begin, while %s waited for "
        "one%s: the server or its host stood still, one request held up all others, or the network "
        "was down",
        TEXT_NS(1e9 * found->longest_s), TEXT_NS(1e9 * found->after_s),
        TEXT_COUNT(found->longest_awaited_on), more);
    return true;
}
