// SPDX-License-Identifier: MIT
//
// What the results say of a run, a diagnosis, a part of its lifetimes and a cause, a row for each
// value: summary.json, the tables of run.db and the report page's data are written from these.
#ifndef ANALYSIS_RUN_RESULT_FIELDS_H
#define ANALYSIS_RUN_RESULT_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/run/run_analysis.h"

enum result_form {
    RESULT_TEXT,  // char[]
    RESULT_ROLE,  // enum core_role: a name, a number on the page
    RESULT_CLASS, // enum cause_class: the same
    RESULT_COUNT, // uint64_t or size_t
    RESULT_FLAG,  // bool
    RESULT_NS,    // double; microseconds in summary.json
    RESULT_SHARE, // double, as it is
};

struct result_field {
    const char *summary, *column, *page; // its name in each; NULL: not in that one
    enum result_form form;
    size_t offset; // in the record
};

// Each ends with a zero row.
extern const struct result_field run_counts[], run_measures[]; // of struct run_analysis
extern const struct result_field diagnosis_fields[];           // of struct diagnosis
extern const struct result_field part_fields[];                // the same, of a part of lifetimes
extern const struct result_field cause_fields[];               // of struct cause

static inline bool result_field_ends(const struct result_field *field)
{
    return !field->summary && !field->column && !field->page;
}

// A field's value, by its form: a text or a name, a number, a whole number.
const char *result_text(const struct result_field *field, const void *record);
double result_number(const struct result_field *field, const void *record);
int64_t result_whole(const struct result_field *field, const void *record);

#endif
