// SPDX-License-Identifier: MIT
//
// Every clock is a line of knots over the TSC. RAW's line turns cycles into
// host time; the lines of the others are read backwards, from their value to cycles.
//
// A line is cut into eras where its clock stepped. When exactly it stepped between two knots is
// unknown, so both eras are taken to reach across the gap: a value that only one of them can have
// shown is as exact as any; for one that both can have shown the step is assumed in the middle, and
// the difference is part of its error.
//
// Within an era the line bends where the clock was slewed. Between which knots that happened is
// found from the rates around; the exact place is where the lines before and after it meet.
#include "profiler/clock/clock_map.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/log_file.h"
#include "base/text.h"
#include "profiler/clock/clock_line.h"

// Values of a clock that lie between the same two knots of its line and, taken for cycles, between
// the same two of RAW's.
struct piece {
    int64_t from_ns; // to within a cycle
    const struct knot *knot, *raw;
    double rate, raw_rate;
    uint64_t raw_cycles; // between those of RAW
};
struct piece_array ARRAY_OF(struct piece);

struct clock_map {
    struct line lines[HOST_CLOCKS]; // none for the TSC
    // The whole way of a value, looked up at once, for lines without a step; else none.
    struct piece_array pieces[HOST_CLOCKS];
    double nominal; // ns per cycle of RAW over the whole log
    double worst_error_ns;
};

enum { EXTENSION_KNOTS = 16 };        // how far back the rate of an extension is measured
static const double step_rate = 1e-3; // a rate this far off its neighbours' is a step
// REALTIME against MONOTONIC, in addition to the sandwiches' widths
static const double jump_allowance_ns = 20.0;

// ns per cycle before an era's first knot and after its last: measured over several knots, because
// the rate of one segment has the noise of two sandwiches.
static double rate_at_begin(const struct clock_map *map, const struct line *line,
                            const struct era *era)
{
    size_t other =
        era->last - era->first > EXTENSION_KNOTS ? era->first + EXTENSION_KNOTS : era->last;
    return other == era->first
               ? map->nominal
               : rate_between(&line->knots.items[era->first], &line->knots.items[other]);
}

static double rate_at_end(const struct clock_map *map, const struct line *line,
                          const struct era *era)
{
    size_t other =
        era->last - era->first > EXTENSION_KNOTS ? era->last - EXTENSION_KNOTS : era->first;
    return other == era->last
               ? map->nominal
               : rate_between(&line->knots.items[other], &line->knots.items[era->last]);
}

// --- looking up ----------------------------------------------------------------------------------

// The last knot in [first, last) at or before the cycles; `first` when they precede it.
static size_t knot_at_tsc(const struct line *line, size_t first, size_t last, uint64_t tsc)
{
    const struct knot *knots = line->knots.items;
    return array_bound(first + 1, last, at, (int64_t)(tsc - knots[at].tsc) >= 0) - 1;
}

static size_t knot_at_ns(const struct line *line, size_t first, size_t last, int64_t ns)
{
    return array_bound(first + 1, last, at, ns >= line->knots.items[at].ns) - 1;
}

// The place of a value: the era, the knot beside it, and the rate there.
struct place {
    const struct era *era;
    const struct knot *knot;
    uint64_t tsc;     // the value in cycles
    double rate;      // ns per cycle
    bool outside;     // before the era's first knot or after its last
    double spread_ns; // how far off it is if another era showed the value
};

static void place_near(const struct clock_map *map, const struct line *line, size_t index,
                       bool before, bool after, struct place *place)
{
    const struct knot *knots = line->knots.items;
    place->knot = &knots[index];
    place->outside = before || after;
    place->rate = before  ? rate_at_begin(map, line, place->era)
                  : after ? rate_at_end(map, line, place->era)
                          : rate_between(&knots[index], &knots[index + 1]);
}

// For lines of one era, and for measuring across knots: the clock's value at those cycles.
static struct place place_of_tsc(const struct clock_map *map, const struct line *line, uint64_t tsc)
{
    struct place place = {.era = line->eras.items, .tsc = tsc};
    const struct knot *knots = line->knots.items;
    bool before = (int64_t)(tsc - knots[place.era->first].tsc) < 0;
    bool after = (int64_t)(tsc - knots[place.era->last].tsc) >= 0;
    size_t index =
        after ? place.era->last : knot_at_tsc(line, place.era->first, place.era->last, tsc);
    place_near(map, line, index, before, after, &place);
    return place;
}

static int64_t ns_at(const struct place *place)
{
    double beyond = cycles_between(place->knot->tsc, place->tsc) * place->rate;
    return add_saturating(place->knot->ns, clock_saturate(beyond));
}

// When the clock showed the value, if that was in this era.
static struct place place_in_era(const struct clock_map *map, const struct line *line,
                                 const struct era *era, int64_t ns)
{
    struct place place = {.era = era};
    const struct knot *knots = line->knots.items;
    bool before = ns < knots[era->first].ns, after = ns >= knots[era->last].ns;
    size_t index = after ? era->last : knot_at_ns(line, era->first, era->last, ns);
    place_near(map, line, index, before, after, &place);
    double beyond = ns_between(place.knot->ns, ns) / place.rate;
    place.tsc = place.knot->tsc + (uint64_t)clock_saturate(beyond);
    return place;
}

// No era showed the value: the nearest era is extended. Only the first and the last can be.
static struct place place_beside_eras(const struct clock_map *map, const struct line *line,
                                      int64_t ns)
{
    const struct era *eras = line->eras.items, *nearest = eras;
    double distance = (double)INFINITY;
    for (size_t i = 0; i < line->eras.count; i++) {
        double away =
            fabs(ns_between(ns, ns < eras[i].begin_ns ? eras[i].begin_ns : eras[i].end_ns));
        if (away <= distance) {
            distance = away;
            nearest = &eras[i];
        }
    }
    bool inner = ns < nearest->begin_ns ? nearest != eras : nearest + 1 != eras + line->eras.count;
    if (inner)
        ns = ns < nearest->begin_ns ? nearest->begin_ns : nearest->end_ns;
    struct place place = place_in_era(map, line, nearest, ns);
    place.spread_ns = inner ? distance : 0;
    return place;
}

static struct place place_of_ns(const struct clock_map *map, const struct line *line, int64_t ns)
{
    struct place best = {0};
    bool settled = false;
    double low = (double)INFINITY, high = -(double)INFINITY; // cycles after the best's knot
    for (size_t i = line->eras.count; i-- > 0;) {
        const struct era *era = &line->eras.items[i];
        if (ns < era->begin_ns || ns > era->end_ns)
            continue;
        struct place place = place_in_era(map, line, era, ns);
        bool likely =
            (int64_t)(place.tsc - era->begin_tsc) >= 0 && (int64_t)(place.tsc - era->end_tsc) <= 0;
        double cycles = cycles_between(line->knots.items[0].tsc, place.tsc);
        low = fmin(low, cycles);
        high = fmax(high, cycles);
        if (!best.era || (likely && !settled))
            best = place;
        settled |= likely;
    }
    if (!best.era)
        return place_beside_eras(map, line, ns);
    best.spread_ns = (high - low) * map->nominal;
    if (!settled && high > low) // keeps the order of values around a step forward
        best.tsc = best.era->begin_tsc;
    return best;
}

// The error bound at a place.
static double error_at(const struct clock_map *map, const struct line *line,
                       const struct place *place)
{
    if (!place->outside)
        return place->knot->error_ns + place->spread_ns;
    // An extension: the rate it assumes may be off by the noise of the sandwiches it came from, and
    // a clock whose rate has changed before may change it again.
    const struct knot *knots = line->knots.items;
    const struct era *era = place->era;
    double span = cycles_between(knots[era->first].tsc, knots[era->last].tsc);
    double drift = map->nominal * 5e-4; // the fastest slew by frequency of adjtimex(2)
    if (span > 0)
        drift = fabs(place->rate - rate_between(&knots[era->first], &knots[era->last])) +
                (knots[era->first].half_ns + knots[era->last].half_ns) / span + era->change;
    return place->knot->half_ns + fabs(cycles_between(place->knot->tsc, place->tsc)) * drift +
           place->spread_ns;
}

static const struct line *line_of(const struct clock_map *map, enum host_clock clock)
{
    if ((unsigned)clock >= HOST_CLOCKS || map->lines[clock].knots.count == 0)
        return NULL;
    return &map->lines[clock];
}

// What the two places below come to, by one search. False: they have to say.
static bool to_host_by_piece(const struct piece_array *pieces, int64_t ns, int64_t *host)
{
    if (pieces->count == 0)
        return false;
    const struct piece *piece =
        &pieces->items[array_bound(1, pieces->count, at, pieces->items[at].from_ns <= ns) - 1];
    if (ns < piece->knot->ns || ns >= piece->knot[1].ns)
        return false;
    double beyond = ns_between(piece->knot->ns, ns) / piece->rate;
    struct place place = {.knot = piece->raw,
                          .rate = piece->raw_rate,
                          .tsc = piece->knot->tsc + (uint64_t)clock_saturate(beyond)};
    *host = ns_at(&place);
    return place.tsc - piece->raw->tsc < piece->raw_cycles;
}

int64_t clock_map_to_host(const struct clock_map *map, enum host_clock clock, uint64_t value)
{
    const struct line *line = line_of(map, clock);
    int64_t host;
    if (line && to_host_by_piece(&map->pieces[clock], (int64_t)value, &host))
        return host;
    if (clock == HOST_CLOCK_RAW || (clock != HOST_CLOCK_TSC && !line))
        return (int64_t)value;
    uint64_t tsc = value;
    if (clock != HOST_CLOCK_TSC)
        tsc = place_of_ns(map, line, (int64_t)value).tsc;
    struct place place = place_of_tsc(map, &map->lines[HOST_CLOCK_RAW], tsc);
    return ns_at(&place);
}

double clock_map_error_ns(const struct clock_map *map, enum host_clock clock, uint64_t value)
{
    const struct line *raw = &map->lines[HOST_CLOCK_RAW];
    const struct line *line = line_of(map, clock);
    if (clock == HOST_CLOCK_RAW)
        return 0;
    if (clock != HOST_CLOCK_TSC && !line)
        return (double)INFINITY;
    uint64_t tsc = value;
    double error = 0;
    if (clock != HOST_CLOCK_TSC) {
        struct place place = place_of_ns(map, line, (int64_t)value);
        tsc = place.tsc;
        error = error_at(map, line, &place);
    }
    struct place place = place_of_tsc(map, raw, tsc);
    return error + error_at(map, raw, &place);
}

double clock_map_worst_error_ns(const struct clock_map *map)
{
    return map->worst_error_ns;
}

// How long before its first knot (negative) or after its last one (positive) that value of a clock
// is, in host time; 0: between them, or the clock has none.
static int64_t outside_ns(const struct clock_map *map, enum host_clock clock, uint64_t value)
{
    const struct knot_array *knots = &map->lines[HOST_CLOCK_RAW].knots;
    const int64_t ns = clock_map_to_host(map, clock, value);
    const int64_t first = knots->items[0].ns, last = knots->items[knots->count - 1].ns;
    if (clock != HOST_CLOCK_TSC && map->lines[clock].knots.count == 0)
        return 0;
    return ns < first ? ns - first : ns > last ? ns - last : 0;
}

int64_t clock_map_apart_ns(const struct clock_map *map, enum host_clock clock, uint64_t first,
                           uint64_t last)
{
    const int64_t begins = outside_ns(map, clock, first), ends = outside_ns(map, clock, last);
    if (begins < 0 && ends < 0)
        return begins > ends ? begins : ends;
    return begins > 0 && ends > 0 ? (begins < ends ? begins : ends) : 0;
}

double clock_map_tsc_hz(const struct clock_map *map)
{
    return 1e9 / map->nominal;
}

// --- building ------------------------------------------------------------------------------------

static int readings_check(const struct clock_reading *readings, size_t count, struct error *err)
{
    for (size_t i = 0; i < count; i++) {
        const struct clock_reading *r = &readings[i];
        if (r->clock == HOST_CLOCK_TSC || r->clock >= HOST_CLOCKS)
            return error_set(err, ERROR_INPUT, "clock reading %zu: no clock has number %u", i,
                             r->clock);
        if (r->ns < 0 || (double)r->ns >= clock_largest || (double)r->tsc >= clock_largest)
            return error_set(err, ERROR_INPUT,
                             "clock reading %zu: %lld ns at cycle %llu cannot be: the log is "
                             "damaged",
                             i, (long long)r->ns, (unsigned long long)r->tsc);
        if (i && r->tsc < readings[i - 1].tsc)
            return error_set(err, ERROR_INPUT,
                             "clock reading %zu: the TSC ran backwards by %llu cycles; this host's "
                             "TSC cannot serve as a clock, or the log is damaged",
                             i, (unsigned long long)(readings[i - 1].tsc - r->tsc));
    }
    return 0;
}

// Collects one clock's readings. Two that are too close to compute a rate between them become one.
static int readings_collect(const struct clock_reading *readings, size_t count,
                            enum host_clock clock, struct line *line, struct error *err)
{
    for (size_t i = 0; i < count; i++) {
        if (readings[i].clock != (uint32_t)clock)
            continue;
        struct knot knot = {.tsc = readings[i].tsc, .ns = readings[i].ns};
        knot.half_ns = (double)readings[i].width / 2; // in cycles until the rate is known
        const struct knot *last =
            line->knots.count ? &line->knots.items[line->knots.count - 1] : NULL;
        if (last && clock != HOST_CLOCK_REALTIME && knot.ns < last->ns)
            return error_set(err, ERROR_INPUT,
                             "clock reading %zu: %s ran backwards by %lld ns, which the kernel "
                             "never lets it do: the log is damaged",
                             i, clock == HOST_CLOCK_RAW ? "CLOCK_MONOTONIC_RAW" : "CLOCK_MONOTONIC",
                             (long long)(last->ns - knot.ns));
        if (last && (knot.tsc == last->tsc || knot.ns == last->ns))
            continue;
        if (array_push(&line->knots, knot) < 0)
            return error_set(err, ERROR_FAILED, "no memory for a clock map of %s readings",
                             TEXT_COUNT(count));
    }
    return 0;
}

// How much MONOTONIC gained between two instants, and the noise of that figure.
static double monotonic_passed(const struct clock_map *map, uint64_t from, uint64_t to,
                               double *noise_ns)
{
    const struct line *line = &map->lines[HOST_CLOCK_MONOTONIC];
    struct place a = place_of_tsc(map, line, from), b = place_of_tsc(map, line, to);
    *noise_ns = error_at(map, line, &a) + error_at(map, line, &b);
    return ns_between(ns_at(&a), ns_at(&b));
}

// True when the clock stepped between knots i and i + 1. REALTIME and MONOTONIC are slewed alike,
// so their difference shows even the smallest step. Without it only a rate that differs from both
// neighbours' shows one.
static bool clock_stepped(const struct clock_map *map, enum host_clock clock, size_t i)
{
    const struct line *line = &map->lines[clock];
    const struct knot *k = line->knots.items;
    if (k[i + 1].ns <= k[i].ns)
        return true;
    double passed = ns_between(k[i].ns, k[i + 1].ns);
    double noise = k[i].half_ns + k[i + 1].half_ns;
    const struct line *monotonic = &map->lines[HOST_CLOCK_MONOTONIC];
    if (clock == HOST_CLOCK_REALTIME && monotonic->eras.count == 1 && monotonic->knots.count > 1) {
        double its_noise;
        double expected = monotonic_passed(map, k[i].tsc, k[i + 1].tsc, &its_noise);
        return fabs(passed - expected) > noise + its_noise + jump_allowance_ns;
    }
    double cycles = cycles_between(k[i].tsc, k[i + 1].tsc);
    double allowed = step_rate * map->nominal + 2 * noise / cycles;
    double rate = passed / cycles;
    bool alone = true;
    if (i > 0 && k[i].ns > k[i - 1].ns) {
        alone = false;
        if (fabs(rate - rate_between(&k[i - 1], &k[i])) <= allowed)
            return false;
    }
    if (i + 2 < line->knots.count && k[i + 2].ns > k[i + 1].ns) {
        alone = false;
        if (fabs(rate - rate_between(&k[i + 1], &k[i + 2])) <= allowed)
            return false;
    }
    return !alone || fabs(rate - map->nominal) > allowed;
}

static int split_eras(const struct clock_map *map, enum host_clock clock, struct line *line,
                      struct error *err)
{
    struct era era = {0};
    struct era_array eras = {0};
    for (size_t i = 0; i < line->knots.count; i++) {
        era.last = i;
        if (i + 1 < line->knots.count && (clock == HOST_CLOCK_RAW || !clock_stepped(map, clock, i)))
            continue;
        if (array_push(&eras, era) < 0) {
            array_free(&eras);
            return error_set(err, ERROR_FAILED, "no memory for a clock map");
        }
        era.first = i + 1;
    }
    line->eras.items = eras.items;
    line->eras.count = eras.count;
    line->eras.capacity = eras.capacity;
    return 0;
}

// Decides where each era begins and ends.
static void set_borders(const struct clock_map *map, struct line *line)
{
    const struct knot *knots = line->knots.items;
    for (size_t i = 0; i < line->eras.count; i++) {
        struct era *era = &line->eras.items[i];
        const struct knot *first = &knots[era->first], *last = &knots[era->last];
        // cycles it may have lasted before its first and after its last knot
        double early = 0, late = 0;
        if (i > 0)
            early = cycles_between(first[-1].tsc, first->tsc);
        if (i + 1 < line->eras.count)
            late = cycles_between(last->tsc, last[1].tsc);
        era->begin_tsc = first->tsc - (uint64_t)(early / 2);
        era->end_tsc = last->tsc + (uint64_t)(late / 2);
        era->begin_ns =
            add_saturating(first->ns, -clock_saturate(early * rate_at_begin(map, line, era)));
        era->end_ns = add_saturating(last->ns, clock_saturate(late * rate_at_end(map, line, era)));
    }
}

// How much the rate of each era was seen to change.
static void set_changes(struct line *line)
{
    const struct knot *k = line->knots.items;
    for (size_t e = 0; e < line->eras.count; e++) {
        struct era *era = &line->eras.items[e];
        for (size_t i = era->first + 1; i < era->last; i++) {
            double change = fabs(rate_between(&k[i], &k[i + 1]) - rate_between(&k[i - 1], &k[i]));
            double cycles = cycles_between(k[i].tsc, k[i + 1].tsc);
            double noise = 2 * (k[i].half_ns + k[i + 1].half_ns) / cycles;
            era->change = fmax(era->change, change - noise);
        }
    }
}

// The bound of each segment: the sandwiches at its ends, and what a change of the clock's rate
// somewhere inside could bend it: at most a quarter of the difference times its length. A change
// that was found to be at one of its ends bends nothing.
static void set_errors(struct line *line)
{
    struct knot *k = line->knots.items;
    for (size_t e = 0; e < line->eras.count; e++) {
        const struct era *era = &line->eras.items[e];
        for (size_t i = era->first; i <= era->last; i++) {
            k[i].error_ns = k[i].half_ns;
            if (i == era->last)
                break;
            double rate = rate_between(&k[i], &k[i + 1]);
            double before = i > era->first ? rate_between(&k[i - 1], &k[i]) : rate;
            double after = i + 2 <= era->last ? rate_between(&k[i + 1], &k[i + 2]) : rate;
            if (k[i].bend || (i > era->first && k[i - 1].bend))
                before = rate;
            if (k[i + 1].bend || (i + 2 <= era->last && k[i + 2].bend))
                after = rate;
            double change =
                fmax(fabs(after - before), fmax(fabs(rate - before), fabs(rate - after)));
            double cycles = cycles_between(k[i].tsc, k[i + 1].tsc);
            k[i].error_ns = fmax(k[i].half_ns, k[i + 1].half_ns) + change * cycles / 4;
        }
    }
}

static int build_line(struct clock_map *map, enum host_clock clock, struct error *err)
{
    struct line *line = &map->lines[clock];
    for (size_t i = 0; i < line->knots.count; i++)
        line->knots.items[i].half_ns = line->knots.items[i].half_ns * map->nominal + 1;
    int result = split_eras(map, clock, line, err);
    if (result < 0)
        return result;
    set_changes(line);
    result = clock == HOST_CLOCK_RAW ? 0 : line_add_bends(line, err);
    if (result < 0)
        return result;
    set_borders(map, line);
    set_errors(line);
    return 0;
}

// Between eras: the error bound of any value there, which is how far apart the two sides see the
// clock.
static double worst_of_line(const struct clock_map *map, const struct line *line)
{
    const struct knot *k = line->knots.items;
    double worst = 0;
    for (size_t e = 0; e < line->eras.count; e++) {
        const struct era *era = &line->eras.items[e];
        for (size_t i = era->first; i <= era->last; i++)
            worst = fmax(worst, k[i].error_ns);
        if (e + 1 == line->eras.count)
            break;
        struct place left = place_of_ns(map, line, k[era->last].ns);
        struct place right = place_of_ns(map, line, k[era->last + 1].ns);
        worst = fmax(worst, fmax(error_at(map, line, &left), error_at(map, line, &right)));
    }
    return worst;
}

// The pieces between two neighbouring knots of a line.
static int cut_segment(const struct knot *knot, const struct line *raw, struct piece_array *pieces)
{
    const struct knot *raws = raw->knots.items;
    size_t last = raw->knots.count - 1, j = knot_at_tsc(raw, 0, last, knot->tsc);
    double rate = rate_between(knot, knot + 1);
    int result = 0;
    for (; j < last && (int64_t)(raws[j].tsc - knot[1].tsc) < 0 && result == 0; j++) {
        double before = fmax(0, cycles_between(knot->tsc, raws[j].tsc)) * rate;
        struct piece piece = {.from_ns = add_saturating(knot->ns, clock_saturate(before)),
                              .knot = knot,
                              .raw = &raws[j],
                              .rate = rate,
                              .raw_rate = rate_between(&raws[j], &raws[j + 1]),
                              .raw_cycles = raws[j + 1].tsc - raws[j].tsc};
        result = array_push(pieces, piece);
    }
    return result;
}

static int cut_line(struct clock_map *map, enum host_clock clock, struct error *err)
{
    const struct line *line = &map->lines[clock];
    size_t last = line->knots.count ? line->knots.count - 1 : 0;
    for (size_t i = 0; i < last && line->eras.count == 1; i++)
        if (line->knots.items[i].ns >= line->knots.items[i + 1].ns)
            return 0; // not to be searched
    for (size_t i = 0; i < last && line->eras.count == 1; i++)
        if (cut_segment(&line->knots.items[i], &map->lines[HOST_CLOCK_RAW], &map->pieces[clock]) <
            0)
            return error_set(err, ERROR_FAILED, "no memory for a clock map");
    return 0;
}

int clock_map_build(const struct clock_reading *readings, size_t count, struct clock_map **out,
                    struct error *err)
{
    *out = NULL;
    int result = readings_check(readings, count, err);
    if (result < 0)
        return result;
    struct clock_map *map = calloc(1, sizeof *map);
    if (!map)
        return error_set(err, ERROR_FAILED, "no memory for a clock map");
    for (int clock = HOST_CLOCK_RAW; clock < HOST_CLOCKS && result == 0; clock++)
        result = readings_collect(readings, count, (enum host_clock)clock, &map->lines[clock], err);
    if (result < 0)
        goto fail;
    const struct line *raw = &map->lines[HOST_CLOCK_RAW];
    if (raw->knots.count < 2) {
        result = error_set(err, ERROR_INPUT,
                           "the clock log holds %s readings of CLOCK_MONOTONIC_RAW; a map needs "
                           "two at different times",
                           TEXT_COUNT(raw->knots.count));
        goto fail;
    }
    map->nominal = rate_between(&raw->knots.items[0], &raw->knots.items[raw->knots.count - 1]);
    if (!(map->nominal > 1e-3 && map->nominal < 1e3)) {
        result = error_set(err, ERROR_INPUT,
                           "the clock log says the TSC runs at %g Hz, which cannot be: it is "
                           "damaged",
                           1e9 / map->nominal);
        goto fail;
    }
    for (int clock = HOST_CLOCK_RAW; clock < HOST_CLOCKS && result == 0; clock++)
        result = build_line(map, (enum host_clock)clock, err);
    for (int clock = HOST_CLOCK_RAW + 1; clock < HOST_CLOCKS && result == 0; clock++)
        result = cut_line(map, (enum host_clock)clock, err);
    if (result < 0)
        goto fail;
    double raw_worst = worst_of_line(map, raw), others = 0;
    for (int clock = HOST_CLOCK_MONOTONIC; clock < HOST_CLOCKS; clock++)
        others = fmax(others, worst_of_line(map, &map->lines[clock]));
    map->worst_error_ns = raw_worst + others;
    *out = map;
    return 0;
fail:
    clock_map_free(map);
    return result;
}

void clock_map_free(struct clock_map *map)
{
    if (!map)
        return;
    for (int clock = 0; clock < HOST_CLOCKS; clock++) {
        array_free(&map->lines[clock].knots);
        array_free(&map->lines[clock].eras);
        array_free(&map->pieces[clock]);
    }
    free(map);
}

int clock_map_open(const char *path, struct clock_map **out, struct error *err)
{
    struct log_reader reader;
    *out = NULL;
    int result = log_reader_open(&reader, path, LOG_CLOCK, CLOCK_LOG_VERSION,
                                 sizeof(struct clock_reading), err);
    if (result < 0)
        return result;
    result = clock_map_build(reader.records, reader.count, out, err);
    log_reader_close(&reader);
    return result < 0 ? error_prefix(err, "%s", path) : 0;
}
