// SPDX-License-Identifier: MIT
#include "analysis/run/run_holders.h"

#include <string.h>

#define NEARLY_ALL 0.8

static bool begins_with_any(const char *name, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strncmp(name, words[i], strlen(words[i])) == 0)
            return true;
    return false;
}

size_t run_holder_length(const char *name)
{
    // Names that say whom without a colon, and ends that are no doing of his.
    static const char *const whose[] = {"stopped by a tracer (", "stop-the-world pause (",
                                        "waiting for ", "blocked in "};
    static const char *const ends[] = {", timed out", ", in vain", ", which "};
    const char *whom =
        begins_with_any(name, whose, sizeof whose / sizeof *whose) ? name : strstr(name, ": ");
    const char *what = whom ? strstr(whom, ", ") : NULL;
    return what && !begins_with_any(what, ends, sizeof ends / sizeof *ends) ? (size_t)(what - name)
                                                                            : strlen(name);
}

bool run_same_holder(const struct cause *one, const struct cause *other)
{
    size_t length = run_holder_length(one->name);
    return one->role == other->role && one->apart == other->apart &&
           run_holder_length(other->name) == length && strcmp(one->tier, other->tier) == 0 &&
           strncmp(one->name, other->name, length) == 0;
}

// The pieces of the i-th cause, which is the largest; total_ns 0: it is not.
static struct held_time gather(const struct cause_array *causes, size_t i)
{
    struct held_time held = {.first = i};
    for (size_t j = 0; j < causes->count; j++) {
        if (!run_same_holder(&causes->items[i], &causes->items[j]))
            continue;
        if (j < i)
            return (struct held_time){0};
        held.total_ns += causes->items[j].total_ns;
    }
    held.several = causes->items[i].total_ns < NEARLY_ALL * held.total_ns;
    return held;
}

size_t run_held_times(const struct diagnosis *diagnosis, bool (*wanted)(const struct cause *),
                      struct held_time *out, size_t most)
{
    size_t count = 0;
    for (size_t i = 0; i < diagnosis->causes.count; i++) {
        if (!wanted(&diagnosis->causes.items[i]))
            continue;
        const struct held_time held = gather(&diagnosis->causes, i);
        if (held.total_ns <= 0)
            continue;
        size_t at = count < most ? count++ : most;
        for (; at > 0 && out[at - 1].total_ns < held.total_ns; at--)
            if (at < most)
                out[at] = out[at - 1];
        if (at < most)
            out[at] = held;
    }
    return count;
}

const char *run_held_piece(const struct cause *cause)
{
    const char *rest = cause->name + run_holder_length(cause->name);
    return *rest ? rest + 2 : "running";
}
