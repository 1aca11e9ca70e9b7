// SPDX-License-Identifier: MIT
#include "analysis/diagnosis/ordinary.h"

#include <stdio.h>
#include <string.h>

#include "analysis/diagnosis/remedies.h"

// A part concerns every message when most of them have it and it takes this share of their time:
// all of it where a message should not have any, else what is above the fast end, and only where
// that is far above.
#define CONCERNING_SHARE 0.3
#define MET_BY_MOST      0.5
#define FAR_ABOVE        3
enum { CONCERNING_NS = 10000 };

// What a part has that an ordinary message should not.
static double excess_of(const struct ordinary_part *part, bool expected)
{
    if (!expected)
        return part->mean_ns;
    return part->mean_ns >= FAR_ABOVE * part->fast_ns ? part->mean_ns - part->fast_ns : 0;
}

// Parts of a category ask for the same remedy, so they are judged together.
static void judge_category(struct ordinary_part_array *parts, size_t of, double latency_ns)
{
    const struct remedy *remedy = remedy_of(parts->items[of].category);
    double excess = 0, met = 0;
    for (size_t i = 0; i < parts->count; i++)
        if (strcmp(parts->items[i].category, parts->items[of].category) == 0) {
            excess += excess_of(&parts->items[i], !remedy || remedy->expected);
            met += parts->items[i].met;
        }
    parts->items[of].remedy = remedy ? remedy->helps : NULL;
    parts->items[of].concerns = met >= MET_BY_MOST && excess >= CONCERNING_NS &&
                                excess >= CONCERNING_SHARE * latency_ns &&
                                excess_of(&parts->items[of], !remedy || remedy->expected) > 0;
}

static int largest_first(const void *left, const void *right)
{
    const struct ordinary_part *a = left, *b = right;
    return order_of(b->mean_ns, a->mean_ns) ?: strcmp(a->name, b->name);
}

int ordinary_build(struct ordinary_part_array *out, const struct reference *reference,
                   const struct component_table *table)
{
    double latency_ns = 0; // the band's mean
    for (size_t i = 0; i < reference->component_count; i++)
        latency_ns += reference->components[i].mean_ns;
    for (size_t i = 0; i < reference->component_count; i++) {
        const struct component *component = &table->components.items[i];
        const struct normal *normal = &reference->components[i];
        const char *category = component->category ? component->category : "";
        struct ordinary_part part = {.role = component->role,
                                     .mean_ns = normal->mean_ns,
                                     .fast_ns = normal->fast_ns,
                                     .met = normal->met};
        if (!(normal->mean_ns > 0))
            continue;
        memcpy(part.name, component->name, sizeof part.name);
        snprintf(part.category, sizeof part.category, "%s", category);
        if (array_push(out, part) < 0)
            return -1;
    }
    for (size_t i = 0; i < out->count; i++)
        judge_category(out, i, latency_ns);
    array_sort(out, largest_first);
    return 0;
}
