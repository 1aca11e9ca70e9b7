// SPDX-License-Identifier: MIT
#include "analysis/compare/cause_shift.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/lifetime/lifetime.h"

// The number of blocks with messages that each side needs for an estimate of scatter.
enum { LEAST_BLOCKS = 8 };

const char *change_kind_name(enum change_kind kind)
{
    static const char *const names[] = {"unchanged", "appeared", "grew", "shrank", "gone"};
    return names[kind];
}

// --- one cause of one side -----------------------------------------------------------------------

struct message_value {
    double ns;
    size_t block; // of all runs' blocks
};

// How much a side's runs have of one cause, prepared for resampling.
struct side {
    struct slice_profile_list profiles; // those that can be used
    struct resample *resample;          // NULL: there is no profile
    uint64_t messages;
    unsigned blocks;              // with messages
    double *ns;                   // [run][block]
    struct message_value *values; // of the messages that have some of it, ascending
    size_t count, first;          // from the first on they are more than the granularity
    uint32_t *having;             // [run][block], how many these are
    double *sorted;               // room for these
};

static double weighted_mean(const void *context, const uint16_t *weights)
{
    const struct side *side = context;
    double sum = 0, messages = 0;
    for (size_t r = 0; r < side->profiles.count; r++)
        for (size_t b = 0; b < RESAMPLE_BLOCKS; b++) {
            size_t at = r * RESAMPLE_BLOCKS + b;
            sum += weights[at] * side->ns[at];
            messages += weights[at] * (double)side->profiles.items[r]->block_messages[b];
        }
    return messages > 0 ? sum / messages : 0;
}

// The median over the messages that have the cause, with each block weighted; 0 when no message has
// it.
static double weighted_median(const void *context, const uint16_t *weights)
{
    const struct side *side = context;
    uint64_t all = 0, below = 0;
    for (size_t b = 0; b < side->profiles.count * RESAMPLE_BLOCKS; b++)
        all += (uint64_t)weights[b] * side->having[b];
    for (size_t i = side->first; i < side->count; i++) {
        below += weights[side->values[i].block];
        if (2 * below >= all && all > 0)
            return side->values[i].ns;
    }
    return 0;
}

static int by_ns(const void *left, const void *right)
{
    const struct message_value *a = left, *b = right;
    return order_of(a->ns, b->ns);
}

static void select_values(struct side *side, const struct cause_shift *cause, double granularity_ns)
{
    memset(side->ns, 0, side->profiles.count * RESAMPLE_BLOCKS * sizeof *side->ns);
    side->count = 0;
    for (size_t r = 0; r < side->profiles.count; r++) {
        const struct slice_profile *profile = side->profiles.items[r];
        int64_t wanted = slice_profile_find(profile, cause->name, cause->role);
        for (size_t i = 0; wanted >= 0 && i < profile->values.count; i++) {
            const struct profile_value *value = &profile->values.items[i];
            size_t block = r * RESAMPLE_BLOCKS + value->block;
            if (value->component != (uint32_t)wanted)
                continue;
            side->ns[block] += (double)value->ns;
            side->values[side->count++] = (struct message_value){(double)value->ns, block};
        }
    }
    if (side->count)
        qsort(side->values, side->count, sizeof *side->values, by_ns);
    memset(side->having, 0, side->profiles.count * RESAMPLE_BLOCKS * sizeof *side->having);
    side->first = array_bound(0, side->count, at, side->values[at].ns <= granularity_ns);
}

// The median of all messages, of which only those with values are not 0.
static double median_with_zeros(const struct side *side)
{
    size_t rank = (size_t)(side->messages + 1) / 2, zeros = (size_t)side->messages - side->count;
    return rank <= zeros ? 0 : side->values[rank - zeros - 1].ns;
}

static bool is_typical(const struct cause_shift *cause, int side)
{
    return cause->share[side] >= 0.5;
}

static struct resample_spread spread_of_mean(const struct side *side, double sum)
{
    if (side->blocks < LEAST_BLOCKS)
        return (struct resample_spread){.error = INFINITY, .runs = side->profiles.count};
    if (sum <= 0)
        return (struct resample_spread){.error = 0, .runs = side->profiles.count};
    return resample_spread(side->resample, weighted_mean, side);
}

static void take_side(struct side *side, int which, double granularity_ns,
                      struct cause_shift *cause)
{
    double sum = 0;
    size_t longer = 0;
    select_values(side, cause, granularity_ns);
    for (size_t i = 0; i < side->profiles.count * RESAMPLE_BLOCKS; i++)
        sum += side->ns[i];
    if (which == COMPARE_BASE)
        cause->normal_ns = median_with_zeros(side);
    for (size_t i = 0; i < side->count; i++)
        longer += side->values[i].ns > cause->normal_ns + granularity_ns;
    for (size_t i = side->first; i < side->count; i++) {
        side->sorted[i - side->first] = side->values[i].ns;
        side->having[side->values[i].block]++;
    }
    cause->messages[which] = side->count - side->first;
    cause->share[which] = (double)cause->messages[which] / (double)side->messages;
    cause->longer[which] = (double)longer / (double)side->messages;
    cause->spread_ns[which] = views_spread(side->sorted, side->count - side->first);
    cause->mean_ns[which] = sum / (double)side->messages;
    cause->spread[which] = spread_of_mean(side, sum);
}

// --- both sides ----------------------------------------------------------------------------------

static enum change_kind kind_of(const struct cause_shift *cause, double granularity_ns)
{
    bool sure = cause->interval.low > 0 || cause->interval.high < 0;
    if (!sure || fabs(cause->difference_ns) < granularity_ns)
        return CHANGE_NONE;
    if (cause->difference_ns > 0)
        return cause->mean_ns[COMPARE_BASE] < granularity_ns ? CHANGE_APPEARED : CHANGE_GREW;
    return cause->mean_ns[COMPARE_CANDIDATE] < granularity_ns ? CHANGE_GONE : CHANGE_SHRANK;
}

static void finish_cause(struct cause_shift *cause, double confidence, double granularity_ns)
{
    cause->difference_ns = cause->mean_ns[COMPARE_CANDIDATE] - cause->mean_ns[COMPARE_BASE];
    cause->interval = resample_difference(cause->difference_ns, &cause->spread[COMPARE_BASE],
                                          &cause->spread[COMPARE_CANDIDATE], confidence);
    cause->kind = kind_of(cause, granularity_ns);
}

// The values of both sides are the cause's.
static void take_medians(const struct side sides[COMPARE_SIDES], double confidence,
                         struct cause_shift *cause)
{
    const struct side *base = &sides[COMPARE_BASE], *candidate = &sides[COMPARE_CANDIDATE];
    cause->median_difference_ns = NAN;
    cause->median_interval = (struct resample_interval){.low = -INFINITY, .high = INFINITY};
    if (!is_typical(cause, COMPARE_BASE) || !is_typical(cause, COMPARE_CANDIDATE) ||
        base->blocks < LEAST_BLOCKS || candidate->blocks < LEAST_BLOCKS)
        return;
    const struct resample_spread before = resample_spread(base->resample, weighted_median, base),
                                 after = resample_spread(candidate->resample, weighted_median,
                                                         candidate);
    cause->median_difference_ns =
        cause->spread_ns[COMPARE_CANDIDATE].median - cause->spread_ns[COMPARE_BASE].median;
    cause->median_interval =
        resample_difference(cause->median_difference_ns, &before, &after, confidence);
}

static bool has_cause(const struct cause_shift_array *causes,
                      const struct profile_component *component)
{
    for (size_t i = 0; i < causes->count; i++)
        if (causes->items[i].role == component->role &&
            strcmp(causes->items[i].name, component->name) == 0)
            return true;
    return false;
}

static int name_causes(const struct slice_profile_list *side, struct cause_shift_array *causes)
{
    for (size_t r = 0; r < side->count; r++)
        for (size_t i = 0; i < side->items[r]->components.count; i++) {
            const struct profile_component *component = &side->items[r]->components.items[i];
            struct cause_shift cause = {.role = component->role, .explains = component->explains};
            if (has_cause(causes, component))
                continue;
            memcpy(cause.name, component->name, sizeof cause.name);
            memcpy(cause.category, component->category, sizeof cause.category);
            if (array_push(causes, cause) < 0)
                return -1;
        }
    return 0;
}

static int by_difference(const void *left, const void *right)
{
    const struct cause_shift *a = left, *b = right;
    double one = fabs(a->difference_ns), other = fabs(b->difference_ns);
    if (one < other || one > other)
        return one > other ? -1 : 1;
    int order = strcmp(a->name, b->name);
    return order ? order : (int)a->role - (int)b->role;
}

// Compares every cause that takes any time on either side. medians: compare these, too.
static int take_causes(struct side sides[COMPARE_SIDES], double confidence, double granularity_ns,
                       bool medians, struct cause_shift_array *causes)
{
    bool alone = sides[COMPARE_BASE].profiles.count == 0;
    for (int side = 0; side < COMPARE_SIDES; side++)
        if (name_causes(&sides[side].profiles, causes) < 0)
            return -1;
    size_t kept = 0;
    for (size_t i = 0; i < causes->count; i++) {
        struct cause_shift cause = causes->items[i];
        cause.mean_ns[COMPARE_BASE] = cause.share[COMPARE_BASE] = NAN;
        for (int side = alone; side < COMPARE_SIDES; side++)
            take_side(&sides[side], side, granularity_ns, &cause);
        cause.median_difference_ns = NAN;
        finish_cause(&cause, confidence, granularity_ns);
        if (medians && !alone)
            take_medians(sides, confidence, &cause);
        if (cause.mean_ns[COMPARE_BASE] > 0 || cause.mean_ns[COMPARE_CANDIDATE] > 0)
            causes->items[kept++] = cause;
    }
    causes->count = kept;
    if (!alone)
        array_sort(causes, by_difference);
    return 0;
}

// --- sides ---------------------------------------------------------------------------------------

// -1: no memory; what there is is freed by side_end.
static int side_begin(struct side *side)
{
    size_t values = 1;
    for (size_t r = 0; r < side->profiles.count; r++) {
        const struct slice_profile *profile = side->profiles.items[r];
        side->messages += profile->messages;
        values += profile->values.count;
        for (int b = 0; b < RESAMPLE_BLOCKS; b++)
            side->blocks += profile->block_messages[b] > 0;
    }
    if (side->profiles.count == 0)
        return 0;
    side->resample = resample_alloc(side->profiles.count);
    side->ns = malloc(side->profiles.count * RESAMPLE_BLOCKS * sizeof *side->ns);
    side->having = malloc(side->profiles.count * RESAMPLE_BLOCKS * sizeof *side->having);
    side->values = malloc(values * sizeof *side->values);
    side->sorted = malloc(values * sizeof *side->sorted);
    return side->resample && side->ns && side->having && side->values && side->sorted ? 0 : -1;
}

static void side_end(struct side *side)
{
    array_free(&side->profiles);
    resample_free(side->resample);
    free(side->ns);
    free(side->having);
    free(side->values);
    free(side->sorted);
}

// Selects the profiles that can be used; what is missing becomes the reason.
static int choose_profiles(const struct slice_profile_list *from, int side,
                           struct slice_profile_list *to, struct slice_shift *out)
{
    double latency = 0;
    out->low_ns[side] = INFINITY;
    for (size_t r = 0; r < from->count; r++) {
        const struct slice_profile *profile = from->items[r];
        memcpy(out->words, profile->words, sizeof out->words);
        if (!profile->available) {
            if (!out->reason[0])
                snprintf(out->reason, sizeof out->reason, "%s: %s",
                         side == COMPARE_BASE ? "the base" : "the candidate", profile->reason);
            continue;
        }
        if (array_push(to, profile) < 0)
            return -1;
        out->messages[side] += profile->messages;
        out->low_ns[side] = fmin(out->low_ns[side], profile->low_ns);
        out->high_ns[side] = fmax(out->high_ns[side], profile->high_ns);
        out->granularity_ns = fmax(out->granularity_ns, profile->granularity_ns);
        latency += profile->mean_ns * (double)profile->messages;
    }
    out->runs[side] = to->count;
    out->mean_ns[side] = out->messages[side] ? latency / (double)out->messages[side] : (double)NAN;
    // Leaving out half of a side's runs would make it another selection of runs.
    if (from->count && to->count * 2 <= from->count)
        out->available = false;
    return 0;
}

static void take_latency(struct side sides[COMPARE_SIDES], double confidence,
                         struct slice_shift *out)
{
    out->latency = (struct cause_shift){.name = "mean latency", .explains = true};
    for (int which = 0; which < COMPARE_SIDES; which++) {
        struct side *side = &sides[which];
        for (size_t r = 0; r < side->profiles.count; r++)
            memcpy(side->ns + r * RESAMPLE_BLOCKS, side->profiles.items[r]->block_latency_ns,
                   sizeof side->profiles.items[r]->block_latency_ns);
        out->latency.mean_ns[which] = out->mean_ns[which];
        if (side->profiles.count)
            out->latency.spread[which] = spread_of_mean(side, out->mean_ns[which]);
    }
    finish_cause(&out->latency, confidence, out->granularity_ns);
}

static int by_category_difference(const void *left, const void *right)
{
    const struct category_shift *a = left, *b = right;
    double one = fabs(a->difference_ns), other = fabs(b->difference_ns);
    return one > other ? -1 : one < other ? 1 : strcmp(a->category, b->category);
}

static int sum_categories(struct slice_shift *out)
{
    for (size_t i = 0; i < out->causes.count; i++) {
        const struct cause_shift *cause = &out->causes.items[i];
        size_t at = 0;
        while (at < out->categories.count &&
               strcmp(out->categories.items[at].category, cause->category) != 0)
            at++;
        if (at == out->categories.count &&
            array_push(&out->categories, (struct category_shift){.category = cause->category}) < 0)
            return -1;
        out->categories.items[at].difference_ns += cause->difference_ns;
    }
    array_sort(&out->categories, by_category_difference);
    return 0;
}

static int take_functions(const struct side sides[COMPARE_SIDES], double confidence,
                          struct slice_shift *out)
{
    struct side functions[COMPARE_SIDES] = {{.count = 0}, {.count = 0}};
    int result = 0;
    for (int which = 0; which < COMPARE_SIDES && result == 0; which++) {
        for (size_t r = 0; r < sides[which].profiles.count && result == 0; r++)
            if (sides[which].profiles.items[r]->functions)
                result = array_push(&functions[which].profiles,
                                    sides[which].profiles.items[r]->functions);
        if (result == 0)
            result = side_begin(&functions[which]);
        out->function_messages[which] = functions[which].messages;
    }
    if (result == 0 && out->function_messages[COMPARE_BASE] &&
        out->function_messages[COMPARE_CANDIDATE])
        result = take_causes(functions, confidence, out->granularity_ns, false, &out->functions);
    for (int which = 0; which < COMPARE_SIDES; which++)
        side_end(&functions[which]);
    return result;
}

static int compare_sides(struct side sides[COMPARE_SIDES], double confidence,
                         struct slice_shift *out)
{
    take_latency(sides, confidence, out);
    if (take_causes(sides, confidence, out->granularity_ns, true, &out->causes) < 0)
        return -1;
    if (sides[COMPARE_BASE].profiles.count == 0)
        return 0;
    return sum_categories(out) < 0 ? -1 : take_functions(sides, confidence, out);
}

int slice_shift(const struct slice_profile_list lists[COMPARE_SIDES], double confidence,
                struct slice_shift *out, struct error *err)
{
    struct side sides[COMPARE_SIDES] = {{.count = 0}, {.count = 0}};
    int result = 0;
    *out = (struct slice_shift){.available = true};
    for (int which = 0; which < COMPARE_SIDES && result == 0; which++) {
        result = choose_profiles(&lists[which], which, &sides[which].profiles, out);
        if (result == 0)
            result = side_begin(&sides[which]);
    }
    if (result == 0 && out->available && sides[COMPARE_CANDIDATE].profiles.count)
        result = compare_sides(sides, confidence, out);
    for (int which = 0; which < COMPARE_SIDES; which++)
        side_end(&sides[which]);
    return result < 0 ? error_set(err, ERROR_FAILED, "out of memory to compare causes") : 0;
}

void slice_shift_free(struct slice_shift *shift)
{
    array_free(&shift->causes);
    array_free(&shift->categories);
    array_free(&shift->functions);
}

// --- names ---------------------------------------------------------------------------------------

static bool surely_moved(const struct resample_interval *interval, bool up)
{
    return up ? interval->low > 0 : interval->high < 0;
}

size_t slice_shift_named(const struct slice_shift *shift, bool up, struct named_shift *out,
                         size_t most)
{
    double least = fabs(shift->mean_ns[COMPARE_CANDIDATE] - shift->mean_ns[COMPARE_BASE]) / 20;
    size_t count = 0;
    for (int by_median = 0; by_median < 2; by_median++)
        for (size_t i = 0; i < shift->causes.count && count < most; i++) {
            const struct cause_shift *cause = &shift->causes.items[i];
            bool by_mean =
                surely_moved(&cause->interval, up) && fabs(cause->difference_ns) >= least;
            if (by_median ? !by_mean && surely_moved(&cause->median_interval, up) &&
                                fabs(cause->median_difference_ns) >= least
                          : by_mean)
                out[count++] = (struct named_shift){cause, by_median};
        }
    return count;
}

char *cause_shift_name(const struct cause_shift *cause, char *out, size_t out_bytes)
{
    snprintf(out, out_bytes, "%s (%s)", cause->name, role_name(cause->role));
    return out;
}
