// SPDX-License-Identifier: MIT
#include "analysis/run/result_fields.h"

#define CAUSE(member)     offsetof(struct cause, member)
#define DIAGNOSIS(member) offsetof(struct diagnosis, member)

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
