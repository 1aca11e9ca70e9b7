// SPDX-License-Identifier: MIT
#include "analysis/hops/hop_clocks.h"

#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/quantile.h"

// A packet that both machines saw: where its records stand, and which way it went.
struct crossing {
    size_t first_at, first_count, other_at, other_count;
    bool is_back;               // from the other machine to the first
    int64_t first_ns, other_ns; // at the hops that are next to one another, each by its clock
};

struct joining {
    struct hop_recording *first, *other;
    const bool *is_ingress;
    double error_ns; // of one stamp of each machine together
    struct ARRAY_OF(struct crossing) crossings;
    struct clock_relation *link, *packets; // packets NULL: none relate the clocks
    struct hop_clock *out;
};

// --- packets that both machines saw --------------------------------------------------------------

static int compare_packets(const struct hop_record *x, const struct hop_record *y)
{
    if (x->flow != y->flow)
        return order_of(x->flow, y->flow);
    return x->end != y->end ? order_of(x->end, y->end) : order_of(x->datagram, y->datagram);
}

static int by_packet(const void *a, const void *b)
{
    const struct hop_record *x = a, *y = b;
    return compare_packets(x, y) ?: order_of(x->time, y->time);
}

// How many records from `at` on are of the same packet. *once: it passed no hop twice, so that it
// is one packet and not one like another before.
static size_t packet_length(const struct hop_recording *recording, size_t at, bool *once)
{
    const struct hop_record *items = recording->records;
    uint32_t seen = 0;
    size_t count = 0;
    *once = !(items[at].flags & HOP_OPENS);
    for (; at + count < recording->count && compare_packets(&items[at], &items[at + count]) == 0;
         count++) {
        uint32_t bit = UINT32_C(1) << items[at + count].hop % HOPS_MAX;
        *once &= !(seen & bit) && !(items[at + count].flags & HOP_ONLY_COVERS);
        seen |= bit;
    }
    return count;
}

// Packets leave a machine at an egress hop and enter the next at an ingress one. False: the hops do
// not say from where to where this one went.
static bool find_way(const struct joining *j, struct crossing *c)
{
    const struct hop_record *first = &j->first->records[c->first_at],
                            *first_last = first + c->first_count - 1,
                            *other = &j->other->records[c->other_at],
                            *other_last = other + c->other_count - 1;
    bool there = !j->is_ingress[first_last->hop] && j->is_ingress[other->hop];
    c->is_back = !j->is_ingress[other_last->hop] && j->is_ingress[first->hop];
    c->first_ns = (int64_t)(c->is_back ? first : first_last)->time;
    c->other_ns = (int64_t)(c->is_back ? other_last : other)->time;
    return there != c->is_back;
}

static int find_crossings(struct joining *j)
{
    size_t a = 0, b = 0;
    while (a < j->first->count && b < j->other->count) {
        int order = compare_packets(&j->first->records[a], &j->other->records[b]);
        bool once_a = false, once_b = false;
        struct crossing c = {.first_at = a, .other_at = b};
        if (order <= 0)
            a += c.first_count = packet_length(j->first, a, &once_a);
        if (order >= 0)
            b += c.other_count = packet_length(j->other, b, &once_b);
        if (order == 0 && once_a && once_b && find_way(j, &c) && array_push(&j->crossings, c) < 0)
            return -1;
    }
    return 0;
}

// --- the clocks ----------------------------------------------------------------------------------

// Each way bounds the offset from one side, whichever packets of the two make up an exchange.
static int relate_by_packets(struct joining *j, struct error *err)
{
    size_t count = j->crossings.count, ways[2] = {0, 0};
    struct crossing *sides[2] = {malloc((count + 1) * sizeof **sides),
                                 malloc((count + 1) * sizeof **sides)};
    struct exchange *exchanges = malloc((count + 1) * sizeof *exchanges);
    int result = sides[0] && sides[1] && exchanges ? 0 : -ERROR_FAILED;
    for (size_t i = 0; i < count && result == 0; i++) {
        bool back = j->crossings.items[i].is_back;
        sides[back][ways[back]++] = j->crossings.items[i];
    }
    if (result == 0 && ways[0] && ways[1]) {
        size_t most = ways[0] > ways[1] ? ways[0] : ways[1];
        for (size_t i = 0; i < most; i++) {
            const struct crossing *there = &sides[0][i % ways[0]], *back = &sides[1][i % ways[1]];
            exchanges[i] = (struct exchange){.left_ns = there->first_ns,
                                             .came_ns = there->other_ns,
                                             .replied_ns = back->other_ns,
                                             .back_ns = back->first_ns};
        }
        result = clock_relation_build(exchanges, most, j->error_ns, &j->packets, err);
    }
    free(exchanges);
    free(sides[0]);
    free(sides[1]);
    return result;
}

static struct clock_offset offset_by(const struct clock_relation *relation, int64_t first_ns)
{
    return relation ? clock_relation_at(relation, first_ns)
                    : (struct clock_offset){.bound_ns = INFINITY};
}

static struct clock_offset best_offset(const struct joining *j, int64_t first_ns)
{
    struct clock_offset link = offset_by(j->link, first_ns),
                        packets = offset_by(j->packets, first_ns);
    return packets.bound_ns <= link.bound_ns && isfinite(packets.bound_ns) ? packets : link;
}

// The relation asks for the time of the first machine, which is what is to be known: from a guess
// that is wrong by an offset, one round leaves only what the offset changes in that time.
static struct clock_offset offset_there(const struct joining *j, int64_t other_ns, int64_t guess_ns)
{
    struct clock_offset at = best_offset(j, other_ns - guess_ns);
    return best_offset(j, other_ns - at.ns);
}

static double p99(double *values, size_t count)
{
    quantile_sort(values, count);
    return count ? quantile_sorted(values, count, 0.99) : INFINITY;
}

static int compare_offsets(struct joining *j, const struct exchange *trips, size_t trip_count)
{
    struct hop_clock *out = j->out;
    size_t crossings = j->crossings.count, count = crossings ? crossings : trip_count;
    double *link = malloc(4 * count * sizeof *link), *packets = link + count,
           *best = packets + count, *differences = best + count;
    if (!link)
        return -ERROR_FAILED;
    for (size_t i = 0; i < count; i++) {
        int64_t at_ns = crossings ? j->crossings.items[i].first_ns : trips[i].left_ns;
        struct clock_offset a = offset_by(j->link, at_ns), b = offset_by(j->packets, at_ns);
        link[i] = a.bound_ns;
        packets[i] = b.bound_ns;
        best[i] = fmin(a.bound_ns, b.bound_ns);
        if (!isfinite(a.bound_ns) || !isfinite(b.bound_ns))
            continue;
        double difference = fabs((double)(a.ns - b.ns));
        out->disagreeing += difference > a.bound_ns + b.bound_ns;
        differences[out->compared++] = difference;
    }
    out->link_bound_p99_ns = p99(link, count);
    out->packet_bound_p99_ns = p99(packets, count);
    out->bound_p99_ns = p99(best, count);
    quantile_sort(differences, out->compared);
    out->difference_p50_ns = out->compared ? quantile_sorted(differences, out->compared, 0.5) : 0;
    out->difference_max_ns = out->compared ? differences[out->compared - 1] : 0;
    free(link);
    return 0;
}

// --- the records ---------------------------------------------------------------------------------

static void move_records(struct joining *j)
{
    for (size_t i = 0; i < j->other->count; i++) {
        struct hop_record *record = &j->other->records[i];
        struct clock_offset at = offset_there(j, (int64_t)record->time, j->out->offset_ns);
        j->out->unrelated += isfinite(at.bound_ns) ? 0 : 1;
        record->time -= (uint64_t)at.ns;
    }
}

static void straighten(struct joining *j)
{
    for (size_t i = 0; i < j->crossings.count; i++) {
        const struct crossing *c = &j->crossings.items[i];
        struct hop_record *other = &j->other->records[c->other_at];
        int64_t other_ns = (int64_t)other[c->is_back ? c->other_count - 1 : 0].time;
        int64_t early_ns = c->is_back ? other_ns - c->first_ns : c->first_ns - other_ns;
        if (early_ns < 0)
            continue;
        j->out->backwards += (double)early_ns > best_offset(j, c->first_ns).bound_ns + j->error_ns;
        int64_t by_ns = c->is_back ? -(early_ns + 1) : early_ns + 1;
        for (size_t k = 0; k < c->other_count; k++)
            other[k].time += (uint64_t)by_ns;
    }
}

int hop_clocks_join(struct hop_recording *first, struct hop_recording *other,
                    const bool is_ingress[HOPS_MAX], const struct exchange *trips,
                    size_t trip_count, struct hop_clock *out, struct error *err)
{
    struct joining j = {.first = first,
                        .other = other,
                        .is_ingress = is_ingress,
                        .error_ns = first->error_ns + other->error_ns,
                        .out = out};
    *out = (struct hop_clock){.trips = trip_count};
    if (first->count > 1)
        qsort(first->records, first->count, sizeof *first->records, by_packet);
    if (other->count > 1)
        qsort(other->records, other->count, sizeof *other->records, by_packet);
    int result = clock_relation_build(trips, trip_count, j.error_ns, &j.link, err);
    if (result == 0 && (find_crossings(&j) < 0 || relate_by_packets(&j, err) < 0 ||
                        compare_offsets(&j, trips, trip_count) < 0))
        result = error_set(err, ERROR_FAILED, "no memory to relate the clocks of two machines");
    if (result == 0) {
        int64_t middle_ns =
            trips[0].left_ns + (trips[trip_count - 1].left_ns - trips[0].left_ns) / 2;
        struct clock_offset at = best_offset(&j, middle_ns);
        out->crossings = j.crossings.count;
        out->offset_ns = at.ns;
        out->rate = clock_relation_rate(j.packets ? j.packets : j.link);
        move_records(&j);
        straighten(&j);
    }
    clock_relation_free(j.packets);
    clock_relation_free(j.link);
    array_free(&j.crossings);
    return result;
}
