// SPDX-License-Identifier: MIT
//
// What the causes of a run are sorted by: the program's categories, before them those the run was
// made with (RUN/categories.csv, left there by the experiment), and before these a file asked for.
// Which they were is kept, for the report and run.db.
#ifndef ANALYSIS_RUN_CATEGORIES_H
#define ANALYSIS_RUN_CATEGORIES_H

#include "analysis/diagnosis/categories.h"
#include "base/error.h"

#define RUN_CATEGORIES_FILE "categories.csv"

struct category_source {
    char file[4200];
    size_t rules; // of the table's first ones, after those of the sources before
};

struct run_categories {
    struct categories table;
    struct category_source sources[2]; // the first to match first
    size_t source_count;               // 0: the program's own alone
};

// asked: a file, NULL for none. A bad file is ERROR_INPUT with its line. The caller frees, also
// after a failure.
int run_categories_read(struct run_categories *categories, const char *run_dir, const char *asked,
                        struct error *err);
void run_categories_free(struct run_categories *categories);

#endif
