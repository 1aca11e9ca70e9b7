// SPDX-License-Identifier: MIT
//
// What the analysis would have found in the run of the report's tests (report_fixture.h), made from
// what is known of it: percentiles, stages, causes, coverage, views.
#ifndef TESTS_ANALYSIS_REPORT_REPORT_FIXTURE_DIAGNOSIS_H
#define TESTS_ANALYSIS_REPORT_REPORT_FIXTURE_DIAGNOSIS_H

#include "tests/analysis/report/report_fixture_server.h"

static void fixture_latency(const struct run_analysis *run, bool corrected,
                            struct latency_summary *out)
{
    double *values = calloc(run->lifetimes.all.count + 1, sizeof *values);
    size_t count = 0;
    for (size_t i = 0; i < run->lifetimes.all.count; i++) {
        const struct lifetime *life = &run->lifetimes.all.items[i];
        double value = corrected ? life->latency_ns : life->uncorrected_latency_ns;
        if (!isnan(value))
            values[count++] = value;
    }
    quantile_sort(values, count);
    for (int i = 0; i < LATENCY_QUANTILES; i++) {
        out->value_ns[i] = quantile_if_seen(quantile_sorted(values, count, latency_quantiles[i]),
                                            count, latency_quantiles[i]);
        out->interval_ns[i] = quantile_interval_sorted(values, count, latency_quantiles[i], 0.95);
    }
    free(values);
}

// Mean stages of the messages within 10 % of each quantile's latency.
static void fixture_stages(struct run_analysis *run)
{
    for (int i = 0; i < LATENCY_QUANTILES; i++) {
        double sums[STAGES] = {0}, number = 0, at = run->lifetimes.latency.value_ns[i];
        for (size_t m = 0; m < run->lifetimes.all.count; m++) {
            const struct lifetime *life = &run->lifetimes.all.items[m];
            if (life->state != LIFETIME_WHOLE || fabs(life->latency_ns - at) > at / 10)
                continue;
            number++;
            for (int stage = 0; stage < STAGES; stage++)
                sums[stage] += life->stage_ns[stage];
        }
        for (int stage = 0; stage < STAGES; stage++)
            run->lifetimes.stage_at_quantile_ns[i][stage] = number > 0 ? sums[stage] / number : 0;
    }
}

static void fixture_cause_statistics(struct diagnosis *diagnosis, struct cause *cause,
                                     uint32_t index)
{
    double *values = calloc(diagnosis->attributions.count + 1, sizeof *values);
    size_t count = 0;
    for (size_t i = 0; i < diagnosis->attributions.count; i++) {
        if (diagnosis->attributions.items[i].cause != index)
            continue;
        values[count] = (double)diagnosis->attributions.items[i].ns;
        cause->total_ns += values[count++];
    }
    quantile_sort(values, count);
    cause->messages = count;
    cause->min_ns = quantile_sorted(values, count, 0);
    cause->p25_ns = quantile_sorted(values, count, 0.25);
    cause->median_ns = quantile_sorted(values, count, 0.5);
    cause->p75_ns = quantile_sorted(values, count, 0.75);
    cause->max_ns = quantile_sorted(values, count, 1);
    free(values);
}

static int fixture_compare_causes(const void *a, const void *b)
{
    double x = ((const struct cause *)a)->total_ns, y = ((const struct cause *)b)->total_ns;
    return (x < y) - (x > y);
}

// Fills the causes, largest total first, and renumbers the attributions.
static void fixture_causes(struct diagnosis *diagnosis, bool odd)
{
    static const struct {
        const char *name, *category;
        enum core_role role;
        enum cause_class class;
    } known[FIXTURE_CAUSES] = {
        {"yes", "other programs", ROLE_A, CAUSE_CONTEXT},
        {"head-of-line blocking", "head-of-line blocking", ROLE_A, CAUSE_BLOCKING},
        {"wake-up latency", "scheduling", ROLE_A, CAUSE_GAP},
        {"NET_RX softirq", "receive processing", ROLE_A, CAUSE_CONTEXT},
        {"interrupt delivery", "NIC delay", ROLE_R, CAUSE_GAP},
        {"client queue", "client", ROLE_CLIENT, CAUSE_STAGE},
        {"in an expected context", "application", ROLE_A, CAUSE_UNEXPLAINED},
    };
    uint32_t renumbered[FIXTURE_CAUSES] = {0};
    for (uint32_t i = 0; i < FIXTURE_CAUSES; i++) {
        struct cause cause = {.role = known[i].role, .class = known[i].class};
        // So that sorting can tell which is which.
        snprintf(cause.name, sizeof cause.name, "%s",
                 odd && i == FIXTURE_HOG ? FIXTURE_ODD_NAME : known[i].name);
        snprintf(cause.category, sizeof cause.category, "%s",
                 odd && i == FIXTURE_HOG ? "</script><b>web tier" : known[i].category);
        cause.explains = known[i].class != CAUSE_UNEXPLAINED;
        fixture_cause_statistics(diagnosis, &cause, i);
        if (cause.messages && array_push(&diagnosis->causes, cause) < 0)
            abort();
    }
    if (diagnosis->causes.count)
        qsort(diagnosis->causes.items, diagnosis->causes.count, sizeof(struct cause),
              fixture_compare_causes);
    for (uint32_t i = 0; i < FIXTURE_CAUSES; i++)
        for (uint32_t j = 0; j < diagnosis->causes.count; j++)
            if (diagnosis->causes.items[j].role == known[i].role &&
                diagnosis->causes.items[j].class == known[i].class &&
                (known[i].class != CAUSE_CONTEXT ||
                 (strncmp(diagnosis->causes.items[j].name, "NET_RX", 6) == 0) ==
                     (i == FIXTURE_SOFTIRQ)))
                renumbered[i] = j;
    for (size_t i = 0; i < diagnosis->attributions.count; i++)
        diagnosis->attributions.items[i].cause = renumbered[diagnosis->attributions.items[i].cause];
}

static void fixture_attribute(struct fixture *f, struct diagnosis *diagnosis, size_t index,
                              double reference)
{
    const float *extra = f->extra[index];
    struct diagnosed_message message = {.lifetime = index};
    message.deviation_ns = f->run.lifetimes.all.items[index].latency_ns - reference;
    double left = message.deviation_ns;
    for (uint32_t i = 0; i < FIXTURE_CAUSES; i++) {
        double ns = i == FIXTURE_UNEXPLAINED ? left : fmin((double)extra[i], left);
        if (ns < 500)
            continue;
        if (i != FIXTURE_UNEXPLAINED)
            message.explained_ns += ns;
        left -= ns;
        if (array_push(&diagnosis->attributions, (struct attribution){index, i, (float)ns}) < 0)
            abort();
    }
    if (array_push(&diagnosis->messages, message) < 0)
        abort();
}

static int fixture_compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void fixture_coverage(struct diagnosis *diagnosis)
{
    size_t count = diagnosis->messages.count;
    double *shares = calloc(count + 1, sizeof *shares), explained = 0, all = 0;
    for (size_t i = 0; i < count; i++) {
        const struct diagnosed_message *message = &diagnosis->messages.items[i];
        shares[i] = message->explained_ns / message->deviation_ns;
        explained += message->explained_ns;
        all += message->deviation_ns;
    }
    qsort(shares, count, sizeof *shares, fixture_compare_doubles);
    diagnosis->coverage_median = quantile_sorted(shares, count, 0.5);
    diagnosis->coverage_min = quantile_sorted(shares, count, 0);
    diagnosis->coverage_total = count ? explained / all : NAN;
    free(shares);
}

struct fixture_ranked {
    double latency;
    size_t index;
};

static int fixture_compare_ranked(const void *a, const void *b)
{
    double x = ((const struct fixture_ranked *)a)->latency;
    double y = ((const struct fixture_ranked *)b)->latency;
    return (x < y) - (x > y);
}

// Queues and blockers of about the right kind: the requests before a message held it up.
static void fixture_views(struct fixture *f, struct diagnosis *diagnosis)
{
    struct diagnosis_views *views = &diagnosis->views;
    const struct spread few = {0.4, 0, 0, 0, 1, 5}, many = {7.5, 0, 2, 6, 11, 61};
    for (size_t i = 0; i < diagnosis->messages.count; i++) {
        uint64_t lifetime = diagnosis->messages.items[i].lifetime;
        struct message_view view = {.first_blocker = views->blockers.count,
                                    .first_context = views->context_times.count,
                                    .contexts = 2};
        for (int kind = 0; kind < QUEUE_KINDS; kind++)
            view.ahead[kind] = (uint32_t)(fixture_uniform(f) * 20);
        for (uint32_t context = 1; context <= view.contexts; context++)
            if (array_push(&views->context_times,
                           ((struct context_time){context, 4e5F / (float)context})) < 0)
                abort();
        for (uint64_t b = 1; b <= 12 && b <= lifetime; b++, view.blockers++)
            if (array_push(&views->blockers, (struct blocker){.lifetime = lifetime - b,
                                                              .culprit = NOT_SERVED,
                                                              .ns = (float)(90000 / b),
                                                              .scope = (uint8_t)(b % 3)}) < 0)
                abort();
        view.blocked_by[BLOCKED_BY_THREAD] = view.blockers;
        if (array_push(&views->messages, view) < 0)
            abort();
    }
    for (int kind = 0; kind < QUEUE_KINDS; kind++)
        views->queue[kind] =
            (struct queue_summary){(enum queue_kind)kind, {{many, many}, {few, few}}, 100};
    for (int scope = 0; scope < BLOCKING_SCOPES; scope++)
        views->blocking[scope] =
            (struct blocking_summary){(enum blocking_scope)scope,
                                      blocking_scope_role((enum blocking_scope)scope),
                                      100,
                                      2e7,
                                      2e5,
                                      {2e5, 1e3}};
    static const struct core_context contexts[] = {
        {"NET_RX softirq", ROLE_R, FIXTURE_RECEIVE_CORE, {2e6, 4e6}, {0}, 0},
        {"yes", ROLE_A, FIXTURE_APPLICATION_CORE, {6e7, 1e5}, {0}, 0},
        {"memcached", ROLE_A, FIXTURE_APPLICATION_CORE, {3e7, 2e7}, {0}, 0},
        {"idle", ROLE_A, FIXTURE_APPLICATION_CORE, {1e6, 3e6}, {0}, 0}};
    for (size_t i = 0; i < sizeof contexts / sizeof *contexts; i++) {
        views->context_ns[VIEW_SLICE] += contexts[i].ns[VIEW_SLICE];
        views->context_ns[VIEW_REFERENCE] += contexts[i].ns[VIEW_REFERENCE];
        if (array_push(&views->contexts, contexts[i]) < 0)
            abort();
    }
    views_share_contexts(views);
    // Names that are there will do for functions.
    static const struct call_node calls[] = {{0, 0, SPAN_IDLE, {1e7, 1e7}},
                                             {0, NAME_MEMCACHED, SPAN_TASK, {9e6, 9e6}},
                                             {1, NAME_IRQ, SPAN_FUNCTION, {8e6, 1e6}},
                                             {1, NAME_TIMER, SPAN_FUNCTION, {1e6, 8e6}},
                                             {0, NAME_NET_RX, SPAN_SOFTIRQ, {1e6, 1e6}}};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (array_push(&views->calls, calls[i]) < 0)
            abort();
    struct named_blocker worst = {.messages = 12, .total_ns = 3e6};
    if (array_push(&views->worst, worst) < 0)
        abort();
    views->available = true;
}

// The slowest 1 % of a window.
// Receive lifetimes have two of the whole's causes, service lifetimes none, those of sending are
// not available.
static void fixture_parts(struct run_analysis *run, const struct diagnosis *whole)
{
    for (int part = PART_WHOLE + 1; part < PARTS; part++) {
        struct diagnosis one = {.part = (enum lifetime_part)part,
                                .without_part = part == PART_SEND,
                                .not_available = part == PART_SEND,
                                .reason = "no answer's departure was seen",
                                .slice_low_ns = whole->slice_low_ns / 2,
                                .reference_latency_ns = whole->reference_latency_ns / 2,
                                .coverage_total = 0.9};
        for (size_t i = 0; part != PART_SEND && i < whole->messages.count; i++)
            if (array_push(&one.messages, whole->messages.items[i]) < 0)
                abort();
        for (size_t i = 0; part == PART_RECEIVE && i < whole->causes.count && i < 2; i++)
            if (array_push(&one.causes, whole->causes.items[i]) < 0)
                abort();
        if (array_push(&run->findings.part_diagnoses, one) < 0)
            abort();
    }
}

static void fixture_diagnose(struct fixture *f, const struct fixture_options *options, int64_t from,
                             int64_t to)
{
    struct run_analysis *run = &f->run;
    struct diagnosis diagnosis = {.granularity_ns = 500};
    diagnosis.slice.low = options->everything ? 0 : 0.99;
    diagnosis.slice.high = 1;
    diagnosis.slice.from_ns = from;
    diagnosis.slice.to_ns = to;
    struct fixture_ranked *ranked = calloc(run->lifetimes.all.count + 1, sizeof *ranked);
    size_t count = 0;
    for (size_t i = 0; i < run->lifetimes.all.count; i++) {
        const struct lifetime *life = &run->lifetimes.all.items[i];
        int64_t at = life->stamp_ns[STAMP_INTENDED];
        if (from != to && (at < from || at >= to))
            continue;
        if (life->state == LIFETIME_WHOLE)
            ranked[count++] = (struct fixture_ranked){life->latency_ns, i};
        else
            diagnosis.left_out[life->state]++;
    }
    qsort(ranked, count, sizeof *ranked, fixture_compare_ranked);
    diagnosis.candidates = count;
    diagnosis.reference_count = count / 5;
    diagnosis.reference_taken = count / 10;
    diagnosis.reference_latency_ns = count ? ranked[count / 2].latency : NAN;
    size_t slow = options->everything ? count : (count + 99) / 100;
    for (size_t i = 0; !options->no_causes && i < slow; i++)
        fixture_attribute(f, &diagnosis, ranked[i].index, diagnosis.reference_latency_ns);
    diagnosis.slice_high_ns = count ? ranked[0].latency : NAN;
    diagnosis.slice_low_ns = slow ? ranked[slow - 1].latency : NAN;
    if (options->no_verdict) {
        diagnosis.not_available = true;
        diagnosis.reference_count = 0;
        diagnosis.reference_latency_ns = NAN;
        snprintf(diagnosis.reason, sizeof diagnosis.reason, "only %zu of %zu requests were joined",
                 count, run->lifetimes.all.count);
    }
    fixture_causes(&diagnosis, options->odd);
    fixture_coverage(&diagnosis);
    free(ranked);
    if (!options->no_verdict && diagnosis.messages.count)
        fixture_views(f, &diagnosis);
    fixture_parts(run, &diagnosis);
    if (array_push(&run->findings.diagnoses, diagnosis) < 0)
        abort();
}

#endif
