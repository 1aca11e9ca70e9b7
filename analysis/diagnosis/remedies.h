// SPDX-License-Identifier: MIT
//
// What a category of causes means in plain words, and what helps against it.
#ifndef ANALYSIS_DIAGNOSIS_REMEDIES_H
#define ANALYSIS_DIAGNOSIS_REMEDIES_H

#include <stdbool.h>

// A row of remedies.tbl.h, which says what its members are.
struct remedy {
    const char *category;
    bool expected;
    const char *happened;
    const char *helps;
};

// NULL: a category of the user's own, of which nothing is known.
const struct remedy *remedy_of(const char *category);

#endif
