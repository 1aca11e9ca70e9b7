// SPDX-License-Identifier: MIT
#include "analysis/lifetime/two_hosts.h"

#include <math.h>
#include <stdlib.h>

#include "analysis/lifetime/clock_relation.h"
#include "base/quantile.h"

static const double round_trip_quantiles[ROUND_TRIPS] = {0.5, 0.9, 0.99, 1};
const char *const round_trip_quantile_names[ROUND_TRIPS] = {"p50", "p90", "p99", "max"};

// The share of exchanges whose bound must be narrow enough for the two ways to be reported apart.
#define NARROW_SHARE 0.99

// A transmission that may be a repeated one is no bound: the first may be what came.
static bool is_bound(const struct lifetime *life, int kind)
{
    return lifetime_has(life, (enum stamp_kind)kind) &&
           !(kind == STAMP_SERVER_TX && life->fallback >> kind & 1);
}

// The request's four stamps: on either host those nearest to the network.
static bool exchange_of(const struct lifetime *life, struct exchange *out)
{
    int left = is_bound(life, STAMP_CLIENT_TX) ? STAMP_CLIENT_TX : STAMP_SEND;
    int back = is_bound(life, STAMP_CLIENT_RX) ? STAMP_CLIENT_RX : STAMP_REPLY_READ;
    int came = STAMP_NIC, replied = STAMP_SERVER_TX;
    while (came < STAMP_SERVER_TX && !is_bound(life, came))
        came++;
    while (replied > STAMP_NIC && !is_bound(life, replied))
        replied--;
    if (!is_bound(life, left) || !is_bound(life, back) || !is_bound(life, came) ||
        !is_bound(life, replied))
        return false;
    *out = (struct exchange){life->stamp_ns[left], life->stamp_ns[came], life->stamp_ns[replied],
                             life->stamp_ns[back]};
    return true;
}

static double round_trip_of(const struct exchange *exchange)
{
    return (double)(exchange->back_ns - exchange->left_ns) -
           (double)(exchange->replied_ns - exchange->came_ns);
}

// The offset of a request: that at the middle of its way. Its stamps lie on either side.
static struct clock_offset offset_of(const struct clock_relation *relation,
                                     const struct exchange *exchange)
{
    int64_t length = exchange->back_ns - exchange->left_ns;
    struct clock_offset first = clock_relation_at(relation, exchange->left_ns);
    struct clock_offset last = clock_relation_at(relation, exchange->back_ns);
    struct clock_offset at = clock_relation_at(relation, exchange->left_ns + length / 2);
    double apart = fmax(fabs((double)(first.ns - at.ns)), fabs((double)(last.ns - at.ns)));
    at.bound_ns = fmax(at.bound_ns, fmax(first.bound_ns, last.bound_ns)) + apart;
    return at;
}

static void move_client(struct lifetime *life, int64_t by_ns)
{
    static const enum stamp_kind client[] = {STAMP_INTENDED, STAMP_SEND, STAMP_CLIENT_TX,
                                             STAMP_CLIENT_RX, STAMP_REPLY_READ};
    life->client_moved_ns = by_ns;
    for (size_t i = 0; i < sizeof client / sizeof *client; i++)
        life->stamp_ns[client[i]] += by_ns;
}

static void summarise(struct two_hosts *out, const struct clock_relation *relation,
                      const struct exchange *exchanges, double *values, double stamp_error_ns)
{
    size_t count = out->exchanges;
    for (size_t i = 0; i < count; i++) {
        values[i] = round_trip_of(&exchanges[i]);
        out->negative_trips += values[i] < -2 * stamp_error_ns;
    }
    quantile_sort(values, count);
    for (int q = 0; q < ROUND_TRIPS; q++)
        out->round_trip_ns[q] = quantile_sorted(values, count, round_trip_quantiles[q]);
    for (size_t i = 0; i < count; i++)
        values[i] = offset_of(relation, &exchanges[i]).bound_ns;
    quantile_sort(values, count);
    out->bound_p50_ns = quantile_sorted(values, count, 0.5);
    out->bound_p99_ns = quantile_sorted(values, count, NARROW_SHARE);
    out->both_ways = !(out->bound_p99_ns <= out->round_trip_ns[0]);
    out->offset_ns = clock_relation_at(relation, exchanges->left_ns).ns;
    out->rate = clock_relation_rate(relation);
    out->gaps = clock_relation_gaps(relation);
}

static void place(struct lifetime *life, const struct clock_relation *relation,
                  struct two_hosts *out)
{
    struct exchange exchange;
    if (!exchange_of(life, &exchange)) {
        if (lifetime_has(life, STAMP_INTENDED))
            move_client(life, clock_relation_at(relation, life->stamp_ns[STAMP_INTENDED]).ns);
        return;
    }
    struct clock_offset at = offset_of(relation, &exchange);
    bool known = isfinite(at.bound_ns);
    out->unknown += !known;
    // The way to the server counts as 0 ns here, so that the way back holds the time of both.
    bool merged = out->both_ways || !known;
    life->hosts_error_ns = merged ? (double)INFINITY : at.bound_ns;
    move_client(life, merged ? exchange.came_ns - exchange.left_ns : at.ns);
}

int two_hosts_relate(struct lifetime *lives, size_t count, double stamp_error_ns,
                     struct two_hosts *out, struct error *err)
{
    *out = (struct two_hosts){.apart = true};
    struct exchange *exchanges = malloc((count + 1) * sizeof *exchanges);
    double *values = malloc((count + 1) * sizeof *values);
    struct clock_relation *relation = NULL;
    int result = exchanges && values
                     ? 0
                     : error_set(err, ERROR_FAILED, "no memory to relate the clocks of two hosts");
    for (size_t i = 0; i < count && result == 0; i++)
        out->exchanges += exchange_of(&lives[i], &exchanges[out->exchanges]);
    if (result == 0 && out->exchanges > 0)
        result = clock_relation_build(exchanges, out->exchanges, stamp_error_ns, &relation, err);
    if (relation) {
        summarise(out, relation, exchanges, values, stamp_error_ns);
        for (size_t i = 0; i < count; i++)
            place(&lives[i], relation, out);
    }
    clock_relation_free(relation);
    free(values);
    free(exchanges);
    return result;
}
