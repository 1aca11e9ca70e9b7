// SPDX-License-Identifier: MIT
#include "analysis/compare/run_compare.h"

#include <gsl/gsl_rng.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/quantile.h"
#include "base/text.h"
#include "base/units.h"
#include "base/array.h"

// Resamples, and the blocks with messages that a side needs to be resampled at all.
enum { RESAMPLES = 2000, RESAMPLE_SEED = 20260, LEAST_BLOCKS = 8, NAMED_CHANGES = 3 };

// One quantity of both sides, block by block.
struct blocks {
    double ns[COMPARE_SIDES][COMPARE_BLOCKS];
};

const char *change_kind_name(enum change_kind kind)
{
    static const char *const names[] = {"unchanged", "appeared", "grew", "shrank", "gone"};
    return names[kind];
}

static unsigned blocks_with_messages(const struct slice_profile *profile)
{
    unsigned count = 0;
    for (int b = 0; b < COMPARE_BLOCKS; b++)
        count += profile->block_messages[b] > 0;
    return count;
}

// How often each block is drawn in each resample; the same for all quantities, so that their
// differences stay comparable. Each side's draws come from the blocks that have messages.
struct draws {
    uint8_t times[RESAMPLES][COMPARE_SIDES][COMPARE_BLOCKS];
};

// The seed is always the same: a comparison can be repeated. -1: no memory.
static int draw(struct draws *draws, const struct slice_profile *const sides[COMPARE_SIDES])
{
    gsl_rng *random = gsl_rng_alloc(gsl_rng_mt19937);
    if (!random)
        return -1;
    gsl_rng_set(random, RESAMPLE_SEED);
    memset(draws, 0, sizeof *draws);
    for (int side = 0; side < COMPARE_SIDES; side++) {
        unsigned filled[COMPARE_BLOCKS], count = 0;
        for (unsigned b = 0; b < COMPARE_BLOCKS; b++)
            if (sides[side]->block_messages[b] > 0)
                filled[count++] = b;
        for (int r = 0; r < RESAMPLES; r++)
            for (unsigned i = 0; i < count; i++)
                draws->times[r][side][filled[gsl_rng_uniform_int(random, count)]]++;
    }
    gsl_rng_free(random);
    return 0;
}

static double resampled_mean(const uint8_t times[COMPARE_BLOCKS], const double ns[COMPARE_BLOCKS],
                             const uint64_t messages[COMPARE_BLOCKS])
{
    double sum = 0, count = 0;
    for (int b = 0; b < COMPARE_BLOCKS; b++) {
        sum += times[b] * ns[b];
        count += times[b] * (double)messages[b];
    }
    return sum / count;
}

static void set_interval(struct change *change, const struct blocks *blocks,
                         const struct slice_comparison *slice, const struct draws *draws)
{
    double differences[RESAMPLES];
    change->low_ns = change->high_ns = NAN;
    for (int side = 0; side < COMPARE_SIDES; side++)
        if (blocks_with_messages(slice->sides[side]) < LEAST_BLOCKS)
            return;
    for (int r = 0; r < RESAMPLES; r++) {
        double means[COMPARE_SIDES];
        for (int side = 0; side < COMPARE_SIDES; side++)
            means[side] = resampled_mean(draws->times[r][side], blocks->ns[side],
                                         slice->sides[side]->block_messages);
        differences[r] = means[COMPARE_CANDIDATE] - means[COMPARE_BASE];
    }
    quantile_sort(differences, RESAMPLES);
    change->low_ns = quantile_sorted(differences, RESAMPLES, (1 - COMPARE_CONFIDENCE) / 2);
    change->high_ns = quantile_sorted(differences, RESAMPLES, (1 + COMPARE_CONFIDENCE) / 2);
}

static enum change_kind kind_of(const struct change *change, double granularity_ns)
{
    double base = change->mean_ns[COMPARE_BASE], candidate = change->mean_ns[COMPARE_CANDIDATE];
    bool sure = change->low_ns > 0 || change->high_ns < 0; // false where they are not known
    if (!sure || fabs(change->difference_ns) < granularity_ns)
        return CHANGE_NONE;
    if (change->difference_ns > 0)
        return base < granularity_ns ? CHANGE_APPEARED : CHANGE_GREW;
    return candidate < granularity_ns ? CHANGE_GONE : CHANGE_SHRANK;
}

static double granularity_of(const struct slice_comparison *slice)
{
    return fmax(slice->sides[COMPARE_BASE]->granularity_ns,
                slice->sides[COMPARE_CANDIDATE]->granularity_ns);
}

static void finish(struct change *change, const struct blocks *blocks,
                   const struct slice_comparison *slice, const struct draws *draws)
{
    change->difference_ns = change->mean_ns[COMPARE_CANDIDATE] - change->mean_ns[COMPARE_BASE];
    set_interval(change, blocks, slice, draws);
    change->kind = kind_of(change, granularity_of(slice));
}

static int64_t find_component(const struct slice_profile *profile, const char *name,
                              enum core_role role)
{
    for (size_t i = 0; i < profile->components.count; i++)
        if (profile->components.items[i].role == role &&
            strcmp(profile->components.items[i].name, name) == 0)
            return (int64_t)i;
    return -1;
}

// What of the values belongs to the component; returns how many messages have some.
static size_t select_values(const struct slice_profile *profile, int64_t component, double *out,
                            double blocks[COMPARE_BLOCKS])
{
    size_t count = 0;
    for (size_t i = 0; component >= 0 && i < profile->values.count; i++) {
        const struct profile_value *value = &profile->values.items[i];
        if (value->component != (uint32_t)component)
            continue;
        out[count++] = (double)value->ns;
        blocks[value->block] += (double)value->ns;
    }
    return count;
}

// The median of `messages` values of which only the `count` given, ascending, are not 0.
static double median_with_zeros(const double *ascending, size_t count, uint64_t messages)
{
    size_t rank = (size_t)(messages + 1) / 2, zeros = (size_t)messages - count;
    return rank <= zeros ? 0 : ascending[rank - zeros - 1];
}

static void compare_component(struct slice_comparison *slice, const struct draws *draws,
                              const struct profile_component *component, double *scratch,
                              struct change *change)
{
    struct blocks blocks = {0};
    double normal = 0;
    *change = (struct change){.role = component->role, .explains = component->explains};
    memcpy(change->name, component->name, sizeof change->name);
    memcpy(change->category, component->category, sizeof change->category);
    for (int side = 0; side < COMPARE_SIDES; side++) {
        const struct slice_profile *profile = slice->sides[side];
        size_t count =
            select_values(profile, find_component(profile, component->name, component->role),
                          scratch, blocks.ns[side]);
        double sum = 0;
        for (int b = 0; b < COMPARE_BLOCKS; b++)
            sum += blocks.ns[side][b];
        quantile_sort(scratch, count);
        if (side == COMPARE_BASE)
            normal = median_with_zeros(scratch, count, profile->messages);
        size_t longer = 0;
        for (size_t i = 0; i < count; i++)
            longer += scratch[i] > normal + granularity_of(slice);
        change->messages[side] = count;
        change->spread_ns[side] = views_spread(scratch, count);
        change->mean_ns[side] = sum / (double)profile->messages;
        change->share[side] = (double)longer / (double)profile->messages;
    }
    change->normal_ns = normal;
    finish(change, &blocks, slice, draws);
}

static void compare_latency(struct slice_comparison *slice, const struct draws *draws)
{
    struct blocks blocks;
    struct change *change = &slice->latency;
    *change = (struct change){.explains = true};
    snprintf(change->name, sizeof change->name, "mean latency");
    for (int side = 0; side < COMPARE_SIDES; side++) {
        memcpy(blocks.ns[side], slice->sides[side]->block_latency_ns, sizeof blocks.ns[side]);
        change->mean_ns[side] = slice->sides[side]->mean_ns;
        change->share[side] = NAN;
    }
    finish(change, &blocks, slice, draws);
}

static int compare_changes(const void *left, const void *right)
{
    const struct change *a = left, *b = right;
    double one = fabs(a->difference_ns), other = fabs(b->difference_ns);
    if (one < other || one > other)
        return one > other ? -1 : 1;
    int order = strcmp(a->name, b->name);
    return order ? order : (int)a->role - (int)b->role;
}

// Every component that takes any time on either side.
static int compare_components(struct slice_comparison *slice, const struct draws *draws,
                              double *scratch)
{
    for (int side = 0; side < COMPARE_SIDES; side++) {
        const struct slice_profile *profile = slice->sides[side];
        for (size_t i = 0; i < profile->components.count; i++) {
            const struct profile_component *component = &profile->components.items[i];
            struct change change;
            if (side == COMPARE_CANDIDATE &&
                find_component(slice->sides[COMPARE_BASE], component->name, component->role) >= 0)
                continue; // had already
            compare_component(slice, draws, component, scratch, &change);
            if ((change.mean_ns[COMPARE_BASE] > 0 || change.mean_ns[COMPARE_CANDIDATE] > 0) &&
                array_push(&slice->changes, change) < 0)
                return -1;
        }
    }
    array_sort(&slice->changes, compare_changes);
    return 0;
}

static int compare_category_changes(const void *left, const void *right)
{
    const struct category_change *a = left, *b = right;
    double one = fabs(a->difference_ns), other = fabs(b->difference_ns);
    if (one < other || one > other)
        return one > other ? -1 : 1;
    return strcmp(a->category, b->category);
}

static int sum_categories(struct slice_comparison *slice)
{
    struct category_change_array *sums = &slice->categories;
    for (size_t i = 0; i < slice->changes.count; i++) {
        const struct change *change = &slice->changes.items[i];
        size_t at = 0;
        while (at < sums->count && strcmp(sums->items[at].category, change->category) != 0)
            at++;
        if (at == sums->count &&
            array_push(sums, (struct category_change){.category = change->category}) < 0)
            return -1;
        sums->items[at].difference_ns += change->difference_ns;
    }
    array_sort(sums, compare_category_changes);
    return 0;
}

static void say_changes(struct slice_comparison *slice)
{
    char time[32];
    size_t named = 0, changed = 0, bytes = sizeof slice->verdict;
    for (size_t i = 0; i < slice->changes.count; i++) {
        const struct change *change = &slice->changes.items[i];
        if (change->kind == CHANGE_NONE || ++changed > NAMED_CHANGES)
            continue;
        text_append(slice->verdict, bytes,
                    "%s%s (%s) %s: %c%s a message, on %.3g %% of them (%.3g %%)",
                    named++ ? "; " : " ", change->name, role_name(change->role),
                    change_kind_name(change->kind), change->difference_ns < 0 ? '-' : '+',
                    units_format_ns(fabs(change->difference_ns), time, sizeof time),
                    100 * change->share[COMPARE_CANDIDATE], 100 * change->share[COMPARE_BASE]);
    }
    if (changed == 0 && isnan(slice->latency.low_ns) && slice->changes.count)
        text_append(
            slice->verdict, bytes, " The largest difference is %s (%s), %c%s a message",
            slice->changes.items[0].name, role_name(slice->changes.items[0].role),
            slice->changes.items[0].difference_ns < 0 ? '-' : '+',
            units_format_ns(fabs(slice->changes.items[0].difference_ns), time, sizeof time));
    else if (changed == 0)
        text_append(slice->verdict, bytes, " No cause changed by more than the runs' own scatter");
    else if (changed > NAMED_CHANGES)
        text_append(slice->verdict, bytes, "; and %zu smaller changes", changed - NAMED_CHANGES);
    text_append(slice->verdict, bytes, ".");
}

static void say_slice(struct slice_comparison *slice)
{
    char base[32], candidate[32], low[32], high[32];
    const struct change *latency = &slice->latency;
    size_t bytes = sizeof slice->verdict;
    for (int side = 0; side < COMPARE_SIDES; side++)
        if (!slice->sides[side]->available) {
            text_append(slice->verdict, bytes, "N/A: %s: %s",
                        side == COMPARE_BASE ? "the base" : "the candidate",
                        slice->sides[side]->reason);
            return;
        }
    text_append(slice->verdict, bytes, "%s took %s on average, %s before (%+.3g %%)",
                slice->sides[COMPARE_CANDIDATE]->words,
                units_format_ns(latency->mean_ns[COMPARE_CANDIDATE], candidate, sizeof candidate),
                units_format_ns(latency->mean_ns[COMPARE_BASE], base, sizeof base),
                100 * latency->difference_ns / latency->mean_ns[COMPARE_BASE]);
    if (isnan(latency->low_ns))
        text_append(slice->verdict, bytes, "; too few messages to say how sure that is.");
    else
        text_append(slice->verdict, bytes, "; the difference lies between %c%s and %c%s (%.0f %%).",
                    latency->low_ns < 0 ? '-' : '+',
                    units_format_ns(fabs(latency->low_ns), low, sizeof low),
                    latency->high_ns < 0 ? '-' : '+',
                    units_format_ns(fabs(latency->high_ns), high, sizeof high),
                    100 * COMPARE_CONFIDENCE);
    say_changes(slice);
}

// The latency where it is asked for, and every component.
static int compare_sides(struct slice_comparison *slice, bool latency)
{
    size_t most = slice->sides[COMPARE_BASE]->values.count;
    if (most < slice->sides[COMPARE_CANDIDATE]->values.count)
        most = slice->sides[COMPARE_CANDIDATE]->values.count;
    struct draws *draws = malloc(sizeof *draws);
    double *scratch = malloc((most + 1) * sizeof *scratch);
    int result = draws && scratch ? draw(draws, slice->sides) : -1;
    if (result == 0) {
        if (latency)
            compare_latency(slice, draws);
        result = compare_components(slice, draws, scratch);
    }
    free(draws);
    free(scratch);
    return result;
}

static int compare_functions(struct slice_comparison *slice)
{
    struct slice_comparison functions = {.sides = {slice->sides[COMPARE_BASE]->functions,
                                                   slice->sides[COMPARE_CANDIDATE]->functions}};
    slice->has_functions = functions.sides[COMPARE_BASE] && functions.sides[COMPARE_CANDIDATE];
    if (!slice->has_functions)
        return 0;
    int result = compare_sides(&functions, false);
    slice->functions = functions.changes;
    return result;
}

static int compare_slice(struct slice_comparison *slice)
{
    slice->available =
        slice->sides[COMPARE_BASE]->available && slice->sides[COMPARE_CANDIDATE]->available;
    if (slice->available && (compare_sides(slice, true) < 0 || sum_categories(slice) < 0 ||
                             compare_functions(slice) < 0))
        return -1;
    say_slice(slice);
    return 0;
}

int run_compare(struct run_comparison *out, struct error *err)
{
    const struct slice_profile_array *base = &out->runs[COMPARE_BASE].slices,
                                     *candidate = &out->runs[COMPARE_CANDIDATE].slices;
    size_t count = base->count < candidate->count ? base->count : candidate->count;
    for (size_t i = 0; i < count; i++) {
        struct slice_comparison slice = {.sides = {&base->items[i], &candidate->items[i]}};
        if (compare_slice(&slice) < 0 || array_push(&out->slices, slice) < 0) {
            array_free(&slice.changes);
            array_free(&slice.functions);
            return error_set(err, ERROR_FAILED, "no memory to compare %zu slices", count);
        }
    }
    return 0;
}

void run_comparison_free(struct run_comparison *comparison)
{
    for (size_t i = 0; i < comparison->slices.count; i++) {
        array_free(&comparison->slices.items[i].categories);
        array_free(&comparison->slices.items[i].changes);
        array_free(&comparison->slices.items[i].functions);
    }
    array_free(&comparison->slices);
    for (int side = 0; side < COMPARE_SIDES; side++)
        run_profile_free(&comparison->runs[side]);
}
