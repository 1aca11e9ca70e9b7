// SPDX-License-Identifier: MIT
//
// A comparison of runs as people read it: on the terminal, and as a page.
#ifndef ANALYSIS_REPORT_PAGE_REPORT_COMPARE_H
#define ANALYSIS_REPORT_PAGE_REPORT_COMPARE_H

#include <stdio.h>

#include "analysis/compare/comparison.h"
#include "base/error.h"

void report_compare_text(const struct comparison *comparison, FILE *out);

// A self-contained page, written as a whole or not at all.
int report_compare_html(const struct comparison *comparison, const char *path, struct error *err);

#endif
