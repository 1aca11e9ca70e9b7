// SPDX-License-Identifier: MIT
#include "analysis/compare/cause_shift.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/lifetime/lifetime.h"

_Static_assert((int)RESAMPLE_BLOCKS == (int)COMPARE_BLOCKS, "a profile comes in blocks of its own");

// One cause's time in every block of every run of a side.
struct figure {
    const struct slice_profile_list *profiles;
    const double *ns; // [run][block]
};

static double weighted_mean(const void *context, const uint16_t *weights)
{
    const struct figure *figure = context;
    double sum = 0, messages = 0;
    for (size_t r = 0; r < figure->profiles->count; r++)
        for (size_t b = 0; b < RESAMPLE_BLOCKS; b++) {
            size_t at = r * RESAMPLE_BLOCKS + b;
            sum += weights[at] * figure->ns[at];
            messages += weights[at] * (double)figure->profiles->items[r]->block_messages[b];
        }
    return messages > 0 ? sum / messages : 0;
}

// -1: there is none.
static int64_t find_component(const struct slice_profile *profile, const struct cause_shift *cause)
{
    for (size_t i = 0; i < profile->components.count; i++)
        if (profile->components.items[i].role == cause->role &&
            strcmp(profile->components.items[i].name, cause->name) == 0)
            return (int64_t)i;
    return -1;
}

static double granularity(const struct slice_profile_list sides[COMPARE_SIDES])
{
    double most = 0;
    for (int side = 0; side < COMPARE_SIDES; side++)
        for (size_t r = 0; r < sides[side].count; r++)
            most = fmax(most, sides[side].items[r]->granularity_ns);
    return most;
}

struct message_value {
    double ns;
    size_t block; // of all runs' blocks
};

static int by_ns(const void *left, const void *right)
{
    const struct message_value *a = left, *b = right;
    return order_of(a->ns, b->ns);
}

struct scratch {
    double *ns;                   // [run][block]
    struct message_value *values; // of the messages that have some of it, ascending
    size_t count;
};

// The middle of the values when every block counts so many times; 0 where none does.
static double weighted_median(const void *context, const uint16_t *weights)
{
    const struct scratch *scratch = context;
    uint64_t all = 0, below = 0;
    for (size_t i = 0; i < scratch->count; i++)
        all += weights[scratch->values[i].block];
    for (size_t i = 0; i < scratch->count; i++) {
        below += weights[scratch->values[i].block];
        if (2 * below >= all && all > 0)
            return scratch->values[i].ns;
    }
    return 0;
}

static void select_values(const struct slice_profile_list *side, const struct cause_shift *cause,
                          double least_ns, struct scratch *scratch)
{
    memset(scratch->ns, 0, side->count * RESAMPLE_BLOCKS * sizeof *scratch->ns);
    scratch->count = 0;
    for (size_t r = 0; r < side->count; r++) {
        const struct slice_profile *profile = side->items[r];
        int64_t wanted = find_component(profile, cause);
        for (size_t i = 0; wanted >= 0 && i < profile->values.count; i++) {
            const struct profile_value *value = &profile->values.items[i];
            size_t block = r * RESAMPLE_BLOCKS + value->block;
            if (value->component != (uint32_t)wanted)
                continue;
            scratch->ns[block] += (double)value->ns;
            if ((double)value->ns > least_ns)
                scratch->values[scratch->count++] =
                    (struct message_value){(double)value->ns, block};
        }
    }
    if (scratch->count)
        qsort(scratch->values, scratch->count, sizeof *scratch->values, by_ns);
}

static bool is_typical(const struct cause_shift *cause, int side)
{
    return cause->share[side] >= 0.5;
}

static int take_side(const struct slice_profile_list *side, int which, double least_ns,
                     uint64_t messages, struct scratch *scratch, struct cause_shift *cause,
                     struct resample_spread *of_median)
{
    select_values(side, cause, least_ns, scratch);
    const struct figure figure = {side, scratch->ns};
    double sum = 0;
    for (size_t i = 0; i < side->count * RESAMPLE_BLOCKS; i++)
        sum += scratch->ns[i];
    cause->mean_ns[which] = sum / (double)messages;
    cause->share[which] = (double)scratch->count / (double)messages;
    cause->median_ns[which] =
        scratch->count ? scratch->values[(scratch->count - 1) / 2].ns : (double)NAN;
    if (is_typical(cause, which) &&
        resample_spread(weighted_median, scratch, side->count, of_median) < 0)
        return -1;
    if (sum <= 0) {
        cause->spread[which] = (struct resample_spread){.error = 0, .runs = side->count};
        return 0;
    }
    return resample_spread(weighted_mean, &figure, side->count, &cause->spread[which]);
}

static bool has(const struct cause_shift_array *causes, const struct profile_component *component)
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
            if (has(causes, component))
                continue;
            memcpy(cause.name, component->name, sizeof cause.name);
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

static void take_medians(const struct resample_spread spread[COMPARE_SIDES], double confidence,
                         struct cause_shift *cause)
{
    cause->median_difference_ns = NAN;
    cause->median_interval = (struct resample_interval){.low = -INFINITY, .high = INFINITY};
    if (!is_typical(cause, COMPARE_BASE) || !is_typical(cause, COMPARE_CANDIDATE))
        return;
    cause->median_difference_ns =
        cause->median_ns[COMPARE_CANDIDATE] - cause->median_ns[COMPARE_BASE];
    cause->median_interval = resample_difference(cause->median_difference_ns, &spread[COMPARE_BASE],
                                                 &spread[COMPARE_CANDIDATE], confidence);
}

static int take_causes(const struct slice_profile_list sides[COMPARE_SIDES], double confidence,
                       struct scratch *scratch, struct slice_shift *out)
{
    struct cause_shift_array *causes = &out->causes;
    bool alone = sides[COMPARE_BASE].count == 0;
    for (int side = 0; side < COMPARE_SIDES; side++)
        if (name_causes(&sides[side], causes) < 0)
            return -1;
    size_t kept = 0;
    for (size_t i = 0; i < causes->count; i++) {
        struct cause_shift cause = causes->items[i];
        struct resample_spread of_median[COMPARE_SIDES] = {{.runs = 0}, {.runs = 0}};
        for (int side = alone; side < COMPARE_SIDES; side++)
            if (take_side(&sides[side], side, granularity(sides), out->messages[side], scratch,
                          &cause, &of_median[side]) < 0)
                return -1;
        if (alone)
            cause.mean_ns[COMPARE_BASE] = cause.share[COMPARE_BASE] =
                cause.median_ns[COMPARE_BASE] = NAN;
        cause.difference_ns = cause.mean_ns[COMPARE_CANDIDATE] - cause.mean_ns[COMPARE_BASE];
        if (!alone)
            cause.interval = resample_difference(cause.difference_ns, &cause.spread[COMPARE_BASE],
                                                 &cause.spread[COMPARE_CANDIDATE], confidence);
        take_medians(of_median, confidence, &cause);
        if (cause.mean_ns[COMPARE_BASE] > 0 || cause.mean_ns[COMPARE_CANDIDATE] > 0)
            causes->items[kept++] = cause;
    }
    causes->count = kept;
    if (kept && !alone)
        qsort(causes->items, kept, sizeof *causes->items, by_difference);
    return 0;
}

// The profiles that can be used; what is missing becomes the reason.
static int choose(const struct slice_profile_list *from, int side, struct slice_profile_list *to,
                  struct slice_shift *out)
{
    double latency = 0;
    size_t blocks = 0;
    for (size_t r = 0; r < from->count; r++) {
        const struct slice_profile *profile = from->items[r];
        if (!profile->available) {
            snprintf(out->reason, sizeof out->reason, "%s: %s",
                     side == COMPARE_BASE ? "the base" : "the candidate", profile->reason);
            continue;
        }
        if (array_push(to, profile) < 0)
            return -1;
        out->messages[side] += profile->messages;
        latency += profile->mean_ns * (double)profile->messages;
        blocks++;
    }
    out->runs[side] = blocks;
    out->mean_ns[side] = out->messages[side] ? latency / (double)out->messages[side] : (double)NAN;
    return 0;
}

int slice_shift(const struct slice_profile_list sides[COMPARE_SIDES], double confidence,
                struct slice_shift *out, struct error *err)
{
    struct slice_profile_list usable[COMPARE_SIDES] = {{0}, {0}};
    size_t values = 1, runs = 1;
    int result = 0;
    *out = (struct slice_shift){.available = true};
    for (int side = 0; side < COMPARE_SIDES && result == 0; side++) {
        result = choose(&sides[side], side, &usable[side], out);
        // Half of a side's runs without a profile would be another selection of runs.
        if (sides[side].count && usable[side].count * 2 <= sides[side].count)
            out->available = false;
        for (size_t r = 0; r < usable[side].count; r++)
            values += usable[side].items[r]->values.count;
        runs += usable[side].count;
    }
    struct scratch scratch = {.ns = malloc(runs * RESAMPLE_BLOCKS * sizeof *scratch.ns),
                              .values = malloc(values * sizeof *scratch.values)};
    if (result == 0 && !(scratch.ns && scratch.values))
        result = -1;
    if (result == 0 && out->available && usable[COMPARE_CANDIDATE].count)
        result = take_causes(usable, confidence, &scratch, out);
    free(scratch.ns);
    free(scratch.values);
    for (int side = 0; side < COMPARE_SIDES; side++)
        array_free(&usable[side]);
    return result < 0 ? error_set(err, ERROR_FAILED, "out of memory to compare causes") : 0;
}

void slice_shift_free(struct slice_shift *shift)
{
    array_free(&shift->causes);
}

static bool surely(const struct resample_interval *interval, bool up)
{
    return up ? interval->low > 0 : interval->high < 0;
}

size_t slice_shift_named(const struct slice_shift *shift, bool up, struct named_cause *out,
                         size_t most)
{
    double least = fabs(shift->mean_ns[COMPARE_CANDIDATE] - shift->mean_ns[COMPARE_BASE]) / 20;
    size_t count = 0;
    for (int by_median = 0; by_median < 2; by_median++)
        for (size_t i = 0; i < shift->causes.count && count < most; i++) {
            const struct cause_shift *cause = &shift->causes.items[i];
            bool by_mean = surely(&cause->interval, up) && fabs(cause->difference_ns) >= least;
            if (by_median ? !by_mean && surely(&cause->median_interval, up) &&
                                fabs(cause->median_difference_ns) >= least
                          : by_mean)
                out[count++] = (struct named_cause){cause, by_median};
        }
    return count;
}

char *cause_shift_name(const struct cause_shift *cause, char *out, size_t out_bytes)
{
    snprintf(out, out_bytes, "%s (%s)", cause->name, role_name(cause->role));
    return out;
}
