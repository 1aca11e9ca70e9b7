// SPDX-License-Identifier: MIT
#include "analysis/diagnosis/cause_parts.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

static int add_sum(struct part_sum_array *sums, uint32_t component, double ns)
{
    for (size_t i = 0; i < sums->count; i++) {
        if (sums->items[i].component == component) {
            sums->items[i].ns += ns;
            return 0;
        }
    }
    return array_push(sums, (struct part_sum){component, ns});
}

// The message's attribution to a component; its index, or where there is none the count.
static size_t find(const struct attribution_array *all, size_t first, uint32_t component)
{
    while (first < all->count && all->items[first].cause != component)
        first++;
    return first;
}

int cause_parts_fold(struct part_sum_array *sums, struct attribution_array *all, size_t first,
                     const struct component_array *components)
{
    for (size_t i = first; i < all->count;) {
        struct attribution *part = &all->items[i];
        const uint32_t whole = components->items[part->cause].whole;
        if (!whole) {
            i++;
            continue;
        }
        if (add_sum(sums, part->cause, part->ns) < 0)
            return -1;
        const size_t at = find(all, first, whole - 1);
        if (at == all->count) {
            part->cause = whole - 1;
            continue;
        }
        all->items[at].ns += part->ns;
        *part = all->items[--all->count]; // sorted later; looked at next
    }
    return 0;
}

static void put_part(struct cause *cause, const struct cause_part *part)
{
    size_t at = cause->part_count < CAUSE_PARTS ? cause->part_count++ : CAUSE_PARTS;
    for (; at > 0 && cause->parts[at - 1].total_ns < part->total_ns; at--)
        if (at < CAUSE_PARTS)
            cause->parts[at] = cause->parts[at - 1];
    if (at < CAUSE_PARTS)
        cause->parts[at] = *part;
}

void cause_parts_put(struct cause *cause, uint32_t component, const struct part_sum_array *sums,
                     const struct component_array *components)
{
    for (size_t i = 0; i < sums->count; i++) {
        const struct component *of = &components->items[sums->items[i].component];
        struct cause_part part = {.total_ns = sums->items[i].ns};
        if (of->whole != component + 1)
            continue;
        snprintf(part.name, sizeof part.name, "%s", of->part);
        snprintf(part.category, sizeof part.category, "%s", of->category ? of->category : "other");
        put_part(cause, &part);
    }
    for (unsigned i = 0; i < cause->part_count; i++)
        text_append(cause->parts_words, sizeof cause->parts_words, "%s%s %d %%", i ? ", " : "",
                    cause->parts[i].name,
                    text_whole_percent(cause->parts[i].total_ns, cause->total_ns));
}
