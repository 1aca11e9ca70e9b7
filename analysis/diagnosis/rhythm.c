// SPDX-License-Identifier: MIT
#include "analysis/diagnosis/rhythm.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "base/units.h"

#define CHANCE 1e-3 // a shape must be less likely than this where there is none
enum {
    LEAST_TIMES = 6,
    LEAST_BEATS = 8,      // of a period: fewer say little, whatever chance says
    SEARCHED_TIMES = 500, // the first ones, for candidates of a period
    FREQUENCIES = 200000, // that are tried at most
    STEPS = 8,            // of the frequency, to a turn over the window
    THIN = 4              // what follows within this part of a period is of the same beat
};
#define ON_BEAT     0.8  // the share of the times that must be on the beat
#define BEAT_WIDTH  0.25 // and within this part of the period
#define FUNDAMENTAL 0.6  // of the strongest frequency's power: its multiples are as strong

// --- when it came --------------------------------------------------------------------------------

struct times {
    double *at; // when it came, since the window's begin
    size_t count;
    double window_ns;
    double lasts_ns; // the median time that messages slowed together were there
};

static int compare_messages(const void *left, const void *right)
{
    const struct rhythm_message *a = left, *b = right;
    return order_of(a->begin_ns, b->begin_ns);
}

static int compare_double(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return order_of(a, b);
}

static int gather_times(struct times *out, struct rhythm_message *messages, size_t count,
                        int64_t begin_ns, int64_t end_ns)
{
    double *lasts = malloc((count + 1) * sizeof *lasts);
    *out = (struct times){.at = malloc((count + 1) * sizeof *out->at),
                          .window_ns = (double)(end_ns - begin_ns)};
    if (!lasts || !out->at) {
        free(lasts);
        return -1;
    }
    qsort(messages, count, sizeof *messages, compare_messages);
    int64_t until = INT64_MIN;
    for (size_t i = 0; i < count; i++) {
        if (messages[i].begin_ns > until) {
            out->at[out->count] = (double)(messages[i].begin_ns - begin_ns);
            out->count++;
        }
        until = messages[i].end_ns > until ? messages[i].end_ns : until;
        lasts[out->count - 1] = (double)(until - begin_ns) - out->at[out->count - 1];
    }
    qsort(lasts, out->count, sizeof *lasts, compare_double);
    out->lasts_ns = out->count ? lasts[out->count / 2] : 0;
    free(lasts);
    return 0;
}

// --- periods -------------------------------------------------------------------------------------

// How well the times agree with a frequency: 0 to count.
static double power_at(const double *at, size_t count, double frequency)
{
    double real = 0, imaginary = 0;
    for (size_t i = 0; i < count; i++) {
        double turns = at[i] * frequency, angle = 2 * M_PI * (turns - floor(turns));
        real += cos(angle);
        imaginary += sin(angle);
    }
    return (real * real + imaginary * imaginary) / (double)count;
}

// Four times at once. A float is enough: over all frequencies an arrow's angle is off by a
// hundredth and its length by a hundredth at most, and what is found is looked at again.
typedef float four __attribute__((vector_size(16)));
struct arrows {
    four x, y;         // where they point
    four cosine, sine; // of what they turn by
};

// The powers at `steps` frequencies, each `step` above the one before: every time is an arrow that
// turns a little further at each.
static int powers_build(const double *at, size_t count, double step, size_t steps, float *powers)
{
    const size_t fours = (count + 3) / 4;
    struct arrows *arrows = aligned_alloc(sizeof(four), fours * sizeof *arrows);
    if (!arrows)
        return -1;
    memset(arrows, 0, fours * sizeof *arrows); // arrows beyond the last have no length
    for (size_t i = 0; i < count; i++) {
        struct arrows *own = &arrows[i / 4];
        double angle = 2 * M_PI * at[i] * step;
        own->x[i % 4] = 1;
        own->cosine[i % 4] = (float)cos(angle);
        own->sine[i % 4] = (float)sin(angle);
    }
    for (size_t s = 0; s < steps; s++) {
        four reals = {0}, imaginaries = {0};
        for (size_t i = 0; i < fours; i++) {
            struct arrows *own = &arrows[i];
            four x = own->x * own->cosine - own->y * own->sine;
            own->y = own->x * own->sine + own->y * own->cosine;
            own->x = x;
            reals += own->x;
            imaginaries += own->y;
        }
        float real = reals[0] + reals[1] + reals[2] + reals[3];
        float imaginary = imaginaries[0] + imaginaries[1] + imaginaries[2] + imaginaries[3];
        powers[s] = (real * real + imaginary * imaginary) / (float)count;
    }
    free(arrows);
    return 0;
}

// The strongest frequency of those near `frequency`.
static double climb(const double *at, size_t count, double frequency, double reach)
{
    double best = frequency, most = power_at(at, count, frequency);
    enum { TRIES = 64 };
    for (int i = -TRIES; i <= TRIES; i++) {
        double other = frequency + reach * i / TRIES, power = power_at(at, count, other);
        if (power > most)
            most = power, best = other;
    }
    return best;
}

// The period that the times agree with best; 0: none. -1: no memory.
static int find_candidate(const struct times *times, double *period)
{
    size_t count = times->count < SEARCHED_TIMES ? times->count : SEARCHED_TIMES;
    double span = times->at[count - 1] - times->at[0];
    double step = 1 / (STEPS * span), highest = 1 / (THIN * fmax(times->lasts_ns, 1000));
    size_t steps = (size_t)fmin(highest / step, FREQUENCIES), first = 2 * STEPS;
    float most = 0;
    *period = 0;
    if (!(span > 0) || steps <= first)
        return 0;
    float *powers = malloc(steps * sizeof *powers);
    if (!powers || powers_build(times->at, count, step, steps, powers) < 0) {
        free(powers);
        return -1;
    }
    for (size_t s = first; s < steps; s++) // powers[s] is of (s + 1) * step
        most = fmaxf(most, powers[s]);
    size_t at = first;
    while (powers[at] < (float)FUNDAMENTAL * most)
        at++;
    while (at + 1 < steps && powers[at + 1] > powers[at])
        at++;
    double frequency = climb(times->at, count, (double)(at + 1) * step, step);
    frequency = climb(times->at, times->count, frequency, step);
    *period = 1 / frequency;
    free(powers);
    return 0;
}

// Keeps the first time of each beat: what follows within a part of the period is of the same.
// Returns how many; kept needs room for all.
static size_t thin_out(const struct times *times, double period, double *kept)
{
    size_t count = 0;
    for (size_t i = 0; i < times->count; i++)
        if (count == 0 || times->at[i] - kept[count - 1] >= period / THIN)
            kept[count++] = times->at[i];
    return count;
}

// The logarithm of how likely it is at most that, of `count` independent places on [0, 1), some
// `part` of them lie within a width: each of them as the first, any others of the rest behind it.
static double log_chance_within(size_t count, size_t part, double width)
{
    double n = (double)count, k = (double)part;
    return log(n) + lgamma(n) - lgamma(k) - lgamma(n - k + 1) + (k - 1) * log(width);
}

static double share_near(const double *sorted, size_t count, double from, double width)
{
    size_t within = 0;
    for (size_t i = 0; i < count; i++) {
        double behind = sorted[i] - from;
        within += behind - floor(behind) <= width;
    }
    return (double)within / (double)count;
}

// Whether the beats come at a fixed period: their places within it are close together.
static bool keeps_time(const struct times *times, double period, double *work, double *share)
{
    size_t count = thin_out(times, period, work);
    double least = 1, from = 0;
    for (size_t i = 0; i < count; i++)
        work[i] = work[i] / period - floor(work[i] / period);
    qsort(work, count, sizeof *work, compare_double);
    size_t part = (size_t)ceil(ON_BEAT * (double)count);
    if (count < LEAST_BEATS)
        return false;
    for (size_t i = 0; i < count; i++) {
        size_t last = (i + part - 1) % count;
        double width = work[last] - work[i] + (last < i);
        if (width < least)
            least = width, from = work[i];
    }
    // As many periods could have been found by chance as have room in the window, up to this one;
    // with their halves and so on, down to the shortest, a dozen times as many.
    double tries = 24 * times->window_ns / period;
    *share = share_near(work, count, from - (BEAT_WIDTH - least) / 2, BEAT_WIDTH);
    return least <= BEAT_WIDTH &&
           log_chance_within(count, part, fmax(least, 1e-6)) + log(tries) < log(CHANCE);
}

// Whether each beat comes a period after the one before, or a few: a timer that is set anew each
// time wanders, so that a fixed period would not fit.
static bool comes_after(const struct times *times, double *period, double *work, double *share)
{
    enum { MOST_MISSED = 3, MULTIPLES = 3 };
    const double near = 0.1;
    size_t count = thin_out(times, *period, work);
    size_t gaps = 0, fitting = 0;
    double sum = 0, beats = 0;
    for (size_t i = 1; i < count; i++) {
        double multiple = (work[i] - work[i - 1]) / *period, whole = round(multiple);
        gaps++;
        if (whole < 1 || whole > MOST_MISSED || fabs(multiple - whole) > near)
            continue;
        fitting++;
        sum += work[i] - work[i - 1];
        beats += whole;
    }
    if (gaps < LEAST_BEATS || (double)fitting < ON_BEAT * (double)gaps ||
        times->lasts_ns > *period / THIN)
        return false;
    double chance = gsl_cdf_binomial_Q((unsigned)fitting - 1, 2 * near, (unsigned)gaps);
    *period = sum / beats;
    *share = (double)fitting / (double)gaps;
    return chance * MULTIPLES < CHANCE / 10;
}

// The median gap between two times, as a period and as two or three of them.
static bool find_wandering(const struct times *times, double *period, double *work, double *share)
{
    for (size_t i = 1; i < times->count; i++)
        work[i - 1] = times->at[i] - times->at[i - 1];
    qsort(work, times->count - 1, sizeof *work, compare_double);
    double median = work[(times->count - 1) / 2];
    for (int multiple = 1; multiple <= 3; multiple++) {
        *period = median / multiple;
        if (*period > 0 && comes_after(times, period, work, share))
            return true;
    }
    return false;
}

static int find_period(const struct times *times, struct rhythm *out)
{
    double *work = malloc(times->count * sizeof *work);
    double period, share;
    int result = work ? find_candidate(times, &period) : -1;
    if (result == 0 && ((period > 0 && keeps_time(times, period, work, &share)) ||
                        find_wandering(times, &period, work, &share))) {
        out->shape = RHYTHM_PERIODIC;
        out->period_ns = period;
        out->share = share;
    }
    free(work);
    return result;
}

// --- stretches and trends ------------------------------------------------------------------------

// A part of the window that has far more than its share of the times.
static void find_stretch(const struct times *times, int64_t begin_ns, struct rhythm *out)
{
    static const double parts[] = {1, 0.95, 0.8, 0.6};
    const double concentrated = 1.6;
    double best = log(CHANCE / (double)(sizeof parts / sizeof *parts));
    for (size_t p = 0; p < sizeof parts / sizeof *parts; p++) {
        size_t part = (size_t)ceil(parts[p] * (double)times->count);
        for (size_t i = 0; i + part <= times->count; i++) {
            double width = (times->at[i + part - 1] - times->at[i]) / times->window_ns;
            double share = (double)part / (double)times->count;
            double chance = log_chance_within(times->count, part, fmax(width, 1e-6));
            if (share < concentrated * width || chance >= best)
                continue;
            best = chance;
            out->shape = RHYTHM_STRETCH;
            out->share = share;
            out->from_ns = begin_ns + (int64_t)times->at[i];
            out->to_ns = begin_ns + (int64_t)(times->at[i + part - 1] + times->lasts_ns);
        }
    }
}

// Laplace's test: of times without a trend the mean lies in the middle of the window.
static void find_trend(const struct times *times, struct rhythm *out)
{
    double sum = 0, later = 0;
    for (size_t i = 0; i < times->count; i++) {
        sum += times->at[i] / times->window_ns - 0.5;
        later += times->at[i] > times->window_ns / 2;
    }
    double deviations = sum * sqrt(12 / (double)times->count);
    if (2 * gsl_cdf_ugaussian_Q(fabs(deviations)) >= CHANCE)
        return;
    out->shape = sum > 0 ? RHYTHM_RISING : RHYTHM_FALLING;
    out->share = (sum > 0 ? later : (double)times->count - later) / (double)times->count;
}

int rhythm_find(struct rhythm *out, struct rhythm_message *messages, size_t count, int64_t begin_ns,
                int64_t end_ns)
{
    struct times times;
    *out = (struct rhythm){0};
    int result = gather_times(&times, messages, count, begin_ns, end_ns);
    if (result == 0 && times.count >= LEAST_TIMES && end_ns > begin_ns) {
        out->times = times.count;
        result = find_period(&times, out);
        if (result == 0 && out->shape == RHYTHM_NONE)
            find_stretch(&times, begin_ns, out);
        if (result == 0 && out->shape == RHYTHM_NONE)
            find_trend(&times, out);
    }
    free(times.at);
    return result;
}

char *rhythm_words(const struct rhythm *rhythm, int64_t begin_ns, char *out, size_t out_bytes)
{
    char time[32];
    const int percent = text_whole_percent(rhythm->share, 1);
    out[0] = '\0';
    switch (rhythm->shape) {
    case RHYTHM_NONE:
        break;
    case RHYTHM_PERIODIC:
        snprintf(out, out_bytes, "every %s (%d %% of %s times)",
                 units_format_ns(rhythm->period_ns, time, sizeof time), percent,
                 TEXT_COUNT(rhythm->times));
        break;
    case RHYTHM_STRETCH:
        snprintf(out, out_bytes, "from %s to %s (%d %% of the %s times that it came)",
                 TEXT_INSTANT((double)(rhythm->from_ns - begin_ns)),
                 TEXT_INSTANT((double)(rhythm->to_ns - begin_ns)), percent,
                 TEXT_COUNT(rhythm->times));
        break;
    case RHYTHM_RISING:
    case RHYTHM_FALLING:
        snprintf(out, out_bytes, "%s often: %d %% of %s times in the %s half",
                 rhythm->shape == RHYTHM_RISING ? "more and more" : "less and less", percent,
                 TEXT_COUNT(rhythm->times), rhythm->shape == RHYTHM_RISING ? "second" : "first");
        break;
    }
    return out;
}
