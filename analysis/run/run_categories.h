// SPDX-License-Identifier: MIT
//
// The categories that a run's causes are sorted into. First match: in a file the user names, then
// in RUN/categories.csv, which the experiment left there, then in the program's own. Which files
// were used is kept for the report and run.db.
#ifndef ANALYSIS_RUN_CATEGORIES_H
#define ANALYSIS_RUN_CATEGORIES_H

#include "analysis/diagnosis/categories.h"
#include "base/error.h"

#define RUN_CATEGORIES_FILE "categories.csv"

struct category_source {
    char file[4200];
    size_t rules; // how many; the table has the sources' rules one after another
};

struct run_categories {
    struct categories table;
    struct category_source sources[2]; // the first to match first
    size_t source_count;               // 0: the program's own alone
};

// asked: a file that the user names, or NULL. A bad file is ERROR_INPUT with its line. The caller
// frees, also after a failure.
int run_categories_read(struct run_categories *categories, const char *run_dir, const char *asked,
                        struct error *err);
void run_categories_free(struct run_categories *categories);

#endif
