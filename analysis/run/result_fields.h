// SPDX-License-Identifier: MIT
//
// What there is to say of a cause and of a diagnosis, a row a thing: from it come summary.json, the
// tables of run.db and the report page's data.
#ifndef ANALYSIS_RUN_RESULT_FIELDS_H
#define ANALYSIS_RUN_RESULT_FIELDS_H

#include <stddef.h>
#include <stdint.h>

#include "analysis/diagnosis/diagnosis.h"

enum result_form {
    RESULT_TEXT,  // char[]
    RESULT_ROLE,  // enum core_role: a name, a number on the page
    RESULT_CLASS, // enum cause_class: the same
    RESULT_COUNT, // uint64_t or size_t
    RESULT_FLAG,  // bool
    RESULT_NS,    // double; microseconds in summary.json
    RESULT_SHARE, // double
};

struct result_field {
    const char *summary, *column, *page; // its names in the three; NULL: not there
    enum result_form form;
    size_t offset; // in struct cause or struct diagnosis
};

extern const struct result_field cause_fields[], diagnosis_fields[]; // each ends with a zero row

// A field's value: the text or the name, the number; whole ones are exact as int64_t.
const char *result_text(const struct result_field *field, const void *record);
double result_number(const struct result_field *field, const void *record);
int64_t result_whole(const struct result_field *field, const void *record);

#endif
