// SPDX-License-Identifier: MIT
#include "analysis/hops/packet_clock.h"

#include <math.h>
#include <stdlib.h>

#include "base/quantile.h"

static void compare_clocks(const struct hops_input *in, const struct clock_relation *relation,
                           const struct packet_exchange_array *exchanges, double *bounds,
                           double *differences, struct packet_clock *out)
{
    for (size_t i = 0; i < exchanges->count; i++) {
        const struct packet_exchange *one = &exchanges->items[i];
        const struct lifetime *life = &in->lives[one->request];
        int64_t length = one->stamps.back_ns - one->stamps.left_ns;
        struct clock_offset at = clock_relation_at(relation, one->stamps.left_ns + length / 2);
        bounds[i] = at.bound_ns;
        if (!isfinite(at.bound_ns) || !isfinite(life->hosts_error_ns))
            continue;
        double difference = fabs((double)(at.ns - life->client_moved_ns));
        out->disagreeing += difference > at.bound_ns + life->hosts_error_ns;
        differences[out->compared++] = difference;
    }
    quantile_sort(bounds, exchanges->count);
    quantile_sort(differences, out->compared);
    out->bound_p99_ns = quantile_sorted(bounds, exchanges->count, 0.99);
    out->difference_p50_ns = out->compared ? quantile_sorted(differences, out->compared, 0.5) : 0;
    out->difference_max_ns = out->compared ? differences[out->compared - 1] : 0;
}

int packet_clock_relate(const struct hops_input *in, const struct packet_exchange_array *exchanges,
                        struct packet_clock *out)
{
    size_t count = exchanges->count;
    struct clock_relation *relation = NULL;
    struct error ignored; // no memory is all that can be wrong
    double stamp_error_ns = 0;
    *out = (struct packet_clock){.exchanges = 0};
    if (count == 0)
        return 0;
    for (size_t i = 0; i < in->machine_count; i++)
        stamp_error_ns += in->machines[i].clock.error_ns;
    struct exchange *stamps = malloc(count * sizeof *stamps);
    double *values = malloc(2 * count * sizeof *values);
    int result = stamps && values ? 0 : -1;
    for (size_t i = 0; i < count && result == 0; i++)
        stamps[i] = exchanges->items[i].stamps;
    if (result == 0)
        result = clock_relation_build(stamps, count, stamp_error_ns, &relation, &ignored);
    if (result == 0) {
        *out = (struct packet_clock){
            .exchanges = count,
            .offset_ns = clock_relation_at(relation, stamps->left_ns).ns,
            .rate = clock_relation_rate(relation),
        };
        compare_clocks(in, relation, exchanges, values, values + count, out);
    }
    clock_relation_free(relation);
    free(values);
    free(stamps);
    return result < 0 ? -1 : 0;
}
