// SPDX-License-Identifier: MIT
//
// What the results say of a run, a diagnosis, a part of its lifetimes, a cause and the views, a row
// for each value: summary.json, the tables of run.db, comparisons and the report page's data are
// written from these.
#ifndef ANALYSIS_RUN_RESULT_FIELDS_H
#define ANALYSIS_RUN_RESULT_FIELDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/run/run_analysis.h"

enum result_form {
    RESULT_TEXT,      // char[]
    RESULT_ROLE,      // enum core_role: a name, a number on the page
    RESULT_CLASS,     // enum cause_class: the same
    RESULT_SCOPE,     // enum blocking_scope: a name
    RESULT_COUNT,     // uint64_t or size_t
    RESULT_CORE,      // uint16_t
    RESULT_FLAG,      // bool
    RESULT_NS,        // double; microseconds in summary.json
    RESULT_SHARE,     // double, as it is
    RESULT_SPREAD,    // struct spread: six numbers
    RESULT_SPREAD_NS, // the same, of times; microseconds in summary.json
};

// What a form is made of.
enum result_matter { RESULT_OF_TEXT, RESULT_OF_INTEGER, RESULT_OF_REAL, RESULT_OF_SPREAD };
enum result_matter result_matter(enum result_form form);

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
extern const struct result_field context_fields[];             // of struct core_context
extern const struct result_field queue_side_fields[];          // of struct queue_side
extern const struct result_field blocking_fields[];            // of struct blocking_summary
extern const struct result_field blocking_time_fields[];       // the same, not in comparisons

static inline bool result_field_ends(const struct result_field *field)
{
    return !field->summary && !field->column && !field->page;
}

// A field's value, by its form: a text or a name, a number, a whole number.
const char *result_text(const struct result_field *field, const void *record);
double result_number(const struct result_field *field, const void *record);
int64_t result_whole(const struct result_field *field, const void *record);
const struct spread *result_spread(const struct result_field *field, const void *record);

// The six numbers of a spread, by name.
enum { SPREAD_NUMBERS = 6 };
extern const char *const spread_names[SPREAD_NUMBERS];
double spread_number(const struct spread *spread, size_t index);

// Adds the fields that have a name in summary.json, as they stand there; each key begins with the
// prefix.
void result_put_json(json_t *object, const char *prefix, const struct result_field *field,
                     const void *record);
json_t *result_spread_json(const struct spread *spread, double unit); // divided by unit

#endif
