// SPDX-License-Identifier: MIT
#include "analysis/export/perfetto_extent.h"

#include "base/array.h"

static int by_begin(const void *left, const void *right)
{
    const struct time_range *a = left, *b = right;
    return order_of(a->begin_ns, b->begin_ns);
}

static void join_neighbours(struct perfetto_moments *moments)
{
    struct time_range *spans = moments->spans.items;
    size_t kept = 0;
    array_sort(&moments->spans, by_begin);
    for (size_t i = 0; i < moments->spans.count; i++) {
        if (kept == 0 || spans[i].begin_ns > spans[kept - 1].end_ns)
            spans[kept++] = spans[i];
        else if (spans[i].end_ns > spans[kept - 1].end_ns)
            spans[kept - 1].end_ns = spans[i].end_ns;
    }
    moments->spans.count = kept;
}

static int add_messages(const struct run_analysis *run, const struct diagnosis *diagnosis,
                        struct perfetto_moments *out)
{
    for (size_t i = 0; i < diagnosis->messages.count; i++) {
        uint64_t lifetime = diagnosis->messages.items[i].lifetime;
        struct time_range span = lifetime_extent(&run->lifetimes.all.items[lifetime]);
        if (span.begin_ns <= span.end_ns && array_push(&out->spans, span) < 0)
            return -1;
    }
    return 0;
}

int perfetto_moments_of(const struct run_analysis *run, enum perfetto_extent extent,
                        struct perfetto_moments *out)
{
    const struct diagnosis_array *diagnoses = &run->findings.diagnoses;
    *out = (struct perfetto_moments){.all = extent == PERFETTO_RUN};
    for (size_t i = 0; !out->all && i < diagnoses->count; i++) {
        const struct diagnosis_slice *slice = &diagnoses->items[i].slice;
        const struct time_range window = {slice->from_ns, slice->to_ns};
        int result = extent == PERFETTO_MESSAGES ? add_messages(run, &diagnoses->items[i], out)
                                                 : array_push(&out->spans, window);
        if (result < 0)
            return -1;
    }
    join_neighbours(out);
    return 0;
}

bool perfetto_moments_have(const struct perfetto_moments *moments, int64_t begin_ns, int64_t end_ns)
{
    if (moments->all)
        return true;
    const struct time_range *spans = moments->spans.items;
    size_t first = array_bound(0, moments->spans.count, at, spans[at].end_ns < begin_ns);
    return first < moments->spans.count && spans[first].begin_ns <= end_ns;
}
