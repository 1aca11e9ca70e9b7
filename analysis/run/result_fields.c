// SPDX-License-Identifier: MIT
#include "analysis/run/result_fields.h"

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
    {"order_violations", NULL, "order_violations", RESULT_COUNT,
     RUN(lifetimes.join.disorder.violations)},
    {NULL, NULL, "dropped_events", RESULT_COUNT, RUN(evidence.dropped_events)},
    {NULL, NULL, "dropped_calls", RESULT_COUNT, RUN(evidence.dropped_calls)},
    {NULL, NULL, "dropped_samples", RESULT_COUNT, RUN(evidence.dropped_samples)},
    {NULL, NULL, "unpaired", RESULT_COUNT, RUN(evidence.server.unpaired)},
    {NULL, NULL, "lost_intervals", RESULT_COUNT, RUN(evidence.server.lost_intervals)},
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
    {"reference_messages", "reference_messages", "reference_count", RESULT_COUNT,
     DIAGNOSIS(reference_count)},
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
    return (int64_t) * (const uint64_t *)value;
}
