// SPDX-License-Identifier: MIT
#include "analysis/run/result_fields.h"

#include <stdio.h>

#include "base/json_numbers.h"

#define RUN(member)       offsetof(struct run_analysis, member)
#define CAUSE(member)     offsetof(struct cause, member)
#define DIAGNOSIS(member) offsetof(struct diagnosis, member)

const struct result_field run_counts[] = {
    {"requests", NULL, "scheduled", RESULT_COUNT, RUN(lifetimes.scheduled)},
    {"joined", NULL, NULL, RESULT_COUNT, RUN(lifetimes.states[LIFETIME_WHOLE])},
    {NULL, NULL, "sent", RESULT_COUNT, RUN(lifetimes.sent)},
    {"answered", NULL, "answered", RESULT_COUNT, RUN(lifetimes.answered)},
    {"timed_out", NULL, "timed_out", RESULT_COUNT, RUN(lifetimes.timed_out)},
    {"lost", NULL, "lost", RESULT_COUNT, RUN(lifetimes.lost)},
    {"unsent", NULL, "unsent", RESULT_COUNT, RUN(lifetimes.unsent)},
    {"without_client", NULL, "without_client", RESULT_FLAG, RUN(evidence.without_client)},
    {"framed_requests", NULL, "framed_requests", RESULT_COUNT, RUN(evidence.turns_framed)},
    {"piecewise_turns", NULL, "piecewise_turns", RESULT_COUNT, RUN(evidence.turns_piecewise)},
    {"waiting_requests", NULL, "waiting_requests", RESULT_COUNT, RUN(evidence.turns_waiting)},
    {"unanswered_turns", NULL, "unanswered_turns", RESULT_COUNT, RUN(evidence.turns_unanswered)},
    {"unasked_sends", NULL, "unasked_sends", RESULT_COUNT, RUN(evidence.turns_unasked)},
    {"order_violations", NULL, "order_violations", RESULT_COUNT,
     RUN(lifetimes.join.disorder.violations)},
    {NULL, NULL, "dropped_events", RESULT_COUNT, RUN(evidence.dropped_events)},
    {NULL, NULL, "dropped_calls", RESULT_COUNT, RUN(evidence.dropped_calls)},
    {NULL, NULL, "dropped_samples", RESULT_COUNT, RUN(evidence.dropped_samples)},
    {NULL, NULL, "unpaired", RESULT_COUNT, RUN(evidence.server.unpaired)},
    {NULL, NULL, "lost_intervals", RESULT_COUNT, RUN(evidence.server.lost_intervals)},
    {NULL, NULL, "unrecorded", RESULT_COUNT, RUN(lifetimes.unseen.unrecorded)},
    {0},
};

const struct result_field run_measures[] = {
    {"offered_rate", NULL, "offered_rate", RESULT_SHARE, RUN(lifetimes.offered_rate)},
    {"achieved_rate", NULL, "achieved_rate", RESULT_SHARE, RUN(lifetimes.achieved_rate)},
    {NULL, NULL, "lateness_p50_ns", RESULT_NS, RUN(lifetimes.lateness_p50_ns)},
    {NULL, NULL, "lateness_p99_ns", RESULT_NS, RUN(lifetimes.lateness_p99_ns)},
    {"clock_error_ns", NULL, "clock_error_ns", RESULT_SHARE, RUN(evidence.clock_error_ns)},
    {"worst_disorder_ns", NULL, "worst_disorder_ns", RESULT_SHARE,
     RUN(lifetimes.join.disorder.worst_ns)},
    {"worst_stage_sum_error_ns", NULL, "worst_stage_sum_error_ns", RESULT_SHARE,
     RUN(lifetimes.worst_stage_sum_error_ns)},
    {0},
};

const struct result_field part_fields[] = {
    {"low_us", NULL, "slice_low_ns", RESULT_NS, DIAGNOSIS(slice_low_ns)},
    {"high_us", NULL, NULL, RESULT_NS, DIAGNOSIS(slice_high_ns)},
    {"candidates", NULL, NULL, RESULT_COUNT, DIAGNOSIS(candidates)},
    {"without_stamp", NULL, "without_stamp", RESULT_COUNT, DIAGNOSIS(without_part)},
    {"messages", NULL, "messages", RESULT_COUNT, DIAGNOSIS(messages.count)},
    {NULL, NULL, "reference_ns", RESULT_NS, DIAGNOSIS(reference_latency_ns)},
    {"coverage_median", NULL, NULL, RESULT_SHARE, DIAGNOSIS(coverage_median)},
    {"coverage_min", NULL, NULL, RESULT_SHARE, DIAGNOSIS(coverage_min)},
    {"coverage_total", NULL, "coverage_total", RESULT_SHARE, DIAGNOSIS(coverage_total)},
    {"reason", NULL, "reason", RESULT_TEXT, DIAGNOSIS(reason)},
    {0},
};

const struct result_field cause_fields[] = {
    {"cause", "name", "name", RESULT_TEXT, CAUSE(name)},
    {"role", "role", "role", RESULT_ROLE, CAUSE(role)},
    {"class", "class", "class", RESULT_CLASS, CAUSE(class)},
    {"category", "category", "category", RESULT_TEXT, CAUSE(category)},
    {"shape", "shape", "shape", RESULT_TEXT, CAUSE(shape)},
    {"parts", "parts", "parts", RESULT_TEXT, CAUSE(parts_words)},
    {"tier", "tier", "tier", RESULT_TEXT, CAUSE(tier)},
    {"explains", "explains", "explains", RESULT_FLAG, CAUSE(explains)},
    {"messages", "messages", "messages", RESULT_COUNT, CAUSE(messages)},
    {"total_us", "total_ns", "total_ns", RESULT_NS, CAUSE(total_ns)},
    {NULL, "min_ns", "min_ns", RESULT_NS, CAUSE(min_ns)},
    {NULL, "p25_ns", "p25_ns", RESULT_NS, CAUSE(p25_ns)},
    {"median_us", "median_ns", "median_ns", RESULT_NS, CAUSE(median_ns)},
    {NULL, "p75_ns", "p75_ns", RESULT_NS, CAUSE(p75_ns)},
    {NULL, "max_ns", "max_ns", RESULT_NS, CAUSE(max_ns)},
    {0},
};

const struct result_field diagnosis_fields[] = {
    {"slice_low", "slice_low", "low", RESULT_SHARE, DIAGNOSIS(slice.low)},
    {"slice_high", "slice_high", "high", RESULT_SHARE, DIAGNOSIS(slice.high)},
    {"latency_low_us", "latency_low_ns", "slice_low_ns", RESULT_NS, DIAGNOSIS(slice_low_ns)},
    {"latency_high_us", "latency_high_ns", "slice_high_ns", RESULT_NS, DIAGNOSIS(slice_high_ns)},
    {"candidates", "candidates", "candidates", RESULT_COUNT, DIAGNOSIS(candidates)},
    {"messages", "messages", "total", RESULT_COUNT, DIAGNOSIS(messages.count)},
    {"passed_over", NULL, "passed_over", RESULT_COUNT, DIAGNOSIS(passed_over)},
    {"reference_messages", "reference_messages", "reference_count", RESULT_COUNT,
     DIAGNOSIS(reference_count)},
    {"reference_earlier", "reference_earlier", "earlier", RESULT_COUNT, DIAGNOSIS(earlier)},
    {NULL, "reference_latency_ns", "reference_latency_ns", RESULT_NS,
     DIAGNOSIS(reference_latency_ns)},
    {NULL, "granularity_ns", "granularity_ns", RESULT_NS, DIAGNOSIS(granularity_ns)},
    {"coverage_median", "coverage_median", "coverage_median", RESULT_SHARE,
     DIAGNOSIS(coverage_median)},
    {"coverage_min", "coverage_min", "coverage_min", RESULT_SHARE, DIAGNOSIS(coverage_min)},
    {"coverage_total", "coverage_total", "coverage_total", RESULT_SHARE, DIAGNOSIS(coverage_total)},
    {"reason", NULL, "reason", RESULT_TEXT, DIAGNOSIS(reason)},
    {0},
};

#define CONTEXT(member)  offsetof(struct core_context, member)
#define SIDE(member)     offsetof(struct queue_side, member)
#define BLOCKING(member) offsetof(struct blocking_summary, member)

const struct result_field context_fields[] = {
    {"role", "role", NULL, RESULT_ROLE, CONTEXT(role)},
    {"core", "core", NULL, RESULT_CORE, CONTEXT(core)},
    {"context", "context", NULL, RESULT_TEXT, CONTEXT(name)},
    {NULL, "slice_ns", NULL, RESULT_NS, CONTEXT(ns[VIEW_SLICE])},
    {NULL, "reference_ns", NULL, RESULT_NS, CONTEXT(ns[VIEW_REFERENCE])},
    {"share", "slice_share", NULL, RESULT_SHARE, CONTEXT(share[VIEW_SLICE])},
    {"reference_share", "reference_share", NULL, RESULT_SHARE, CONTEXT(share[VIEW_REFERENCE])},
    {0},
};

const struct result_field queue_side_fields[] = {
    {"ahead", "ahead", NULL, RESULT_SPREAD, SIDE(ahead)},
    {"us", "ns", NULL, RESULT_SPREAD_NS, SIDE(ns)},
    {0},
};

const struct result_field blocking_fields[] = {
    {"by", NULL, NULL, RESULT_SCOPE, BLOCKING(scope)},
    {"role", NULL, NULL, RESULT_ROLE, BLOCKING(role)},
    {"messages", NULL, NULL, RESULT_COUNT, BLOCKING(messages)},
    {"mean_us", NULL, NULL, RESULT_NS, BLOCKING(mean_ns[VIEW_SLICE])},
    {0},
};

const struct result_field blocking_time_fields[] = {
    {"total_us", NULL, NULL, RESULT_NS, BLOCKING(total_ns)},
    {"median_us", NULL, NULL, RESULT_NS, BLOCKING(median_ns)},
    {"reference_mean_us", NULL, NULL, RESULT_NS, BLOCKING(mean_ns[VIEW_REFERENCE])},
    {0},
};

enum result_matter result_matter(enum result_form form)
{
    static const enum result_matter matters[] = {
        [RESULT_COUNT] = RESULT_OF_INTEGER,   [RESULT_CORE] = RESULT_OF_INTEGER,
        [RESULT_FLAG] = RESULT_OF_INTEGER,    [RESULT_NS] = RESULT_OF_REAL,
        [RESULT_SHARE] = RESULT_OF_REAL,      [RESULT_SPREAD] = RESULT_OF_SPREAD,
        [RESULT_SPREAD_NS] = RESULT_OF_SPREAD};
    return matters[form]; // the others are of text
}

static const void *value_of(const struct result_field *field, const void *record)
{
    return (const char *)record + field->offset;
}

const char *result_text(const struct result_field *field, const void *record)
{
    if (field->form == RESULT_TEXT)
        return value_of(field, record);
    if (field->form == RESULT_ROLE)
        return role_name(*(const enum core_role *)value_of(field, record));
    if (field->form == RESULT_SCOPE)
        return blocking_scope_name(*(const enum blocking_scope *)value_of(field, record));
    return cause_class_name(*(const enum cause_class *)value_of(field, record));
}

double result_number(const struct result_field *field, const void *record)
{
    return *(const double *)value_of(field, record);
}

int64_t result_whole(const struct result_field *field, const void *record)
{
    const void *value = value_of(field, record);
    if (field->form == RESULT_FLAG)
        return *(const bool *)value;
    if (field->form == RESULT_ROLE)
        return *(const enum core_role *)value;
    if (field->form == RESULT_CLASS)
        return *(const enum cause_class *)value;
    if (field->form == RESULT_CORE)
        return *(const uint16_t *)value;
    return (int64_t) * (const uint64_t *)value;
}

const struct spread *result_spread(const struct result_field *field, const void *record)
{
    return value_of(field, record);
}

const char *const spread_names[SPREAD_NUMBERS] = {"mean", "min", "p25", "median", "p75", "max"};

double spread_number(const struct spread *spread, size_t index)
{
    return (const double[]){spread->mean,   spread->min, spread->p25,
                            spread->median, spread->p75, spread->max}[index];
}

json_t *result_spread_json(const struct spread *spread, double unit)
{
    json_t *object = json_object();
    for (size_t i = 0; i < SPREAD_NUMBERS; i++)
        json_object_set_new(object, spread_names[i],
                            json_number_or_null(spread_number(spread, i) / unit));
    return object;
}

static json_t *field_json(const struct result_field *field, const void *record)
{
    double unit = field->form == RESULT_NS || field->form == RESULT_SPREAD_NS ? 1000 : 1;
    switch (result_matter(field->form)) {
    case RESULT_OF_INTEGER:
        return field->form == RESULT_FLAG ? json_boolean(result_whole(field, record))
                                          : json_integer(result_whole(field, record));
    case RESULT_OF_REAL:
        return json_number_or_null(result_number(field, record) / unit);
    case RESULT_OF_SPREAD:
        return result_spread_json(result_spread(field, record), unit);
    default:
        return json_string(result_text(field, record));
    }
}

void result_put_json(json_t *object, const char *prefix, const struct result_field *field,
                     const void *record)
{
    char key[64];
    for (; !result_field_ends(field); field++) {
        snprintf(key, sizeof key, "%s%s", prefix, field->summary ? field->summary : "");
        if (field->summary)
            json_object_set_new(object, key, field_json(field, record));
    }
}
