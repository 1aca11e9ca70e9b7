// SPDX-License-Identifier: MIT
//
// How right the diagnosis is about random servers (synthetic.h): is the top cause the one that cost
// the slice most, how far off are the nanoseconds, how much is explained, and does it keep quiet
// where nothing is wrong.
#ifndef TESTS_ANALYSIS_DIAGNOSIS_SYNTHETIC_SCORE_H
#define TESTS_ANALYSIS_DIAGNOSIS_SYNTHETIC_SCORE_H

#include <stdio.h>

#include "base/quantile.h"
#include "tests/analysis/diagnosis/synthetic.h"
#include "tests/analysis/diagnosis/synthetic_pt.h"

struct score_values ARRAY_OF(double);

struct score {
    unsigned scenarios, right;         // with causes; top cause as it should be
    unsigned quiet, quiet_right;       // without; nothing reported
    unsigned blamed, blamed_wrong;     // causes of a tenth of a slice's time; that truly had none
    uint64_t messages, messages_right; // of slices, held up by something; their own top cause
    struct score_values errors;        // of what a cause added to a message, relative
    struct score_values coverage;      // median of each scenario
    unsigned wrong[SYNTHETIC_CAUSES];
};

static inline void score_free(struct score *score)
{
    array_free(&score->errors);
    array_free(&score->coverage);
}

// Random options of one seed: one to three causes, or none.
static inline struct synthetic_options score_options(uint64_t seed, bool quiet)
{
    struct synthetic draw = {.random = seed * 0x9e3779b97f4a7c15u + 1};
    for (int i = 0; i < 10; i++)
        synthetic_uniform(&draw);
    struct synthetic_options options = {.seed = seed,
                                        .messages = 1500,
                                        .gap_ns = 60000 + (int64_t)synthetic_below(&draw, 100000),
                                        .regular = quiet,
                                        .noise = 0.02 + 0.1 * synthetic_uniform(&draw),
                                        .functions = true,
                                        .truth = true};
    unsigned causes = quiet ? 0 : 1 + (unsigned)synthetic_below(&draw, 3);
    while ((unsigned)__builtin_popcount(options.causes) < causes)
        options.causes |= 1u << synthetic_below(&draw, SYNTHETIC_CHOSEN);
    options.hits = causes ? 15 / causes : 0;
    options.bystander = synthetic_below(&draw, 2);
    return options;
}

static inline int score_cause(const struct cause *cause)
{
    for (int i = 0; i < SYNTHETIC_CAUSES; i++)
        if (synthetic_names[i].name && cause->role == synthetic_names[i].role &&
            strcmp(cause->name, synthetic_names[i].name) == 0)
            return i;
    return -1;
}

static inline int score_largest(const double *ns)
{
    int top = 0;
    for (int i = 1; i < SYNTHETIC_CAUSES; i++)
        if (ns[i] > ns[top])
            top = i;
    return top;
}

// What the message's causes truly cost against what was attributed; adds up both.
static inline void score_message(struct score *score, const struct synthetic *s,
                                 const double *attributed, uint64_t lifetime,
                                 enum lifetime_part part, double *truth)
{
    const struct synthetic_truth *held = &s->truth[s->lives.items[lifetime].request];
    double mine[SYNTHETIC_CAUSES];
    for (int c = 0; c < SYNTHETIC_CAUSES; c++) {
        mine[c] = (double)held->ns[part][c];
        truth[c] += mine[c];
        if (mine[c] > 5000)
            SYNTHETIC_PUSH(&score->errors, fabs(attributed[c] - mine[c]) / mine[c]);
    }
    int top = score_largest(mine);
    if (mine[top] < 5000)
        return;
    score->messages++;
    score->messages_right += score_largest(attributed) == top && attributed[top] > 0;
}

static inline void score_show(const struct synthetic *s, const struct diagnosis *g,
                              const double *truth)
{
    printf("  seed %llu:", (unsigned long long)s->options.seed);
    for (int c = 0; c < SYNTHETIC_CAUSES; c++)
        if (truth[c] > 0)
            printf(" %s (%s) %.0f us;", synthetic_names[c].name, role_name(synthetic_names[c].role),
                   truth[c] / 1000);
    printf("\n    found:");
    for (size_t i = 0; i < g->causes.count && i < 4; i++)
        printf(" %s (%s) %.0f us x %llu;", g->causes.items[i].name,
               role_name(g->causes.items[i].role), g->causes.items[i].total_ns / 1000,
               (unsigned long long)g->causes.items[i].messages);
    printf("%s\n", g->not_available ? g->reason : "");
}

// Causes that explain a tenth or more, and had no time in truth.
static inline unsigned score_blame(struct score *score, const struct diagnosis *g,
                                   const double *truth)
{
    double deviation = 0;
    unsigned wrong = 0;
    for (size_t m = 0; m < g->messages.count; m++)
        deviation += fmax(g->messages.items[m].deviation_ns, 0);
    for (size_t i = 0; i < g->causes.count; i++) {
        const struct cause *cause = &g->causes.items[i];
        if (!cause->explains || cause->total_ns < 0.1 * deviation)
            continue;
        int known = score_cause(cause);
        score->blamed++;
        wrong += known < 0 || truth[known] < 0.01 * cause->total_ns;
    }
    score->blamed_wrong += wrong;
    return wrong;
}

static inline void score_diagnosis(struct score *score, const struct synthetic *s,
                                   const struct diagnosis *g)
{
    double truth[SYNTHETIC_CAUSES] = {0};
    size_t at = 0;
    for (size_t m = 0; m < g->messages.count; m++) {
        double attributed[SYNTHETIC_CAUSES] = {0};
        for (; at < g->attributions.count &&
               g->attributions.items[at].lifetime == g->messages.items[m].lifetime;
             at++) {
            int cause = score_cause(&g->causes.items[g->attributions.items[at].cause]);
            if (cause >= 0)
                attributed[cause] += (double)g->attributions.items[at].ns;
        }
        score_message(score, s, attributed, g->messages.items[m].lifetime, g->part, truth);
    }
    if (s->options.causes == 0) {
        score->quiet++;
        score->quiet_right += g->causes.count == 0;
        if (g->causes.count)
            score_show(s, g, truth);
        return;
    }
    int top = score_largest(truth);
    // A lifetime that no cause held up is as quiet as a server without one.
    if (g->part != PART_WHOLE && truth[top] < 5000 * (double)g->messages.count)
        return;
    bool right = g->causes.count > 0 && score_cause(&g->causes.items[0]) == top;
    score->scenarios++;
    score->right += right;
    score->wrong[top] += !right;
    if (score_blame(score, g, truth) > 0 || !right)
        score_show(s, g, truth);
    SYNTHETIC_PUSH(&score->coverage, g->coverage_median);
}

// The lifetimes on the server, each on its own: receive, service, send.
static inline int score_parts(struct score scores[PARTS], uint64_t seed, bool quiet)
{
    struct synthetic_options options = score_options(seed, quiet);
    const struct diagnosis_slice slowest = {.low = 0.99, .high = 1};
    struct synthetic s;
    struct error err = {0};
    int result = 0;
    synthetic_build(&s, &options);
    struct diagnosis_input input = synthetic_input(&s);
    for (int part = PART_WHOLE + 1; part < PARTS && result == 0; part++) {
        struct diagnosis diagnosis = {0};
        input.part = (enum lifetime_part)part;
        result = diagnose(&input, &slowest, &diagnosis, &err);
        if (result == 0)
            score_diagnosis(&scores[part], &s, &diagnosis);
        else
            fprintf(stderr, "%s\n", err.text);
        diagnosis_free(&diagnosis);
    }
    synthetic_free(&s);
    return result;
}

// through_pt: what the diagnosis gets was Intel PT in between. 0, or -1 where something failed.
static inline int score_seed(struct score *score, uint64_t seed, bool quiet, bool through_pt)
{
    struct synthetic_options options = score_options(seed, quiet);
    const struct diagnosis_slice slowest = {.low = 0.99, .high = 1};
    struct synthetic s;
    struct diagnosis diagnosis = {0};
    struct error err = {0};
    uint64_t errors = 0;
    synthetic_build(&s, &options);
    int result = through_pt ? synthetic_through_pt(&s, &errors, &err) : 0;
    if (result == 0 && errors)
        result = error_set(&err, ERROR_FAILED, "seed %llu: %llu errors in decoding",
                           (unsigned long long)seed, (unsigned long long)errors);
    struct diagnosis_input input = synthetic_input(&s);
    if (result == 0)
        result = diagnose(&input, &slowest, &diagnosis, &err);
    if (result == 0)
        score_diagnosis(score, &s, &diagnosis);
    else
        fprintf(stderr, "%s\n", err.text);
    diagnosis_free(&diagnosis);
    synthetic_free(&s);
    return result;
}

static inline double score_median(struct score_values *values)
{
    quantile_sort(values->items, values->count);
    return quantile_sorted(values->items, values->count, 0.5);
}

#endif
