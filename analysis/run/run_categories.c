// SPDX-License-Identifier: MIT
#include "analysis/run/run_categories.h"

#include <stdio.h>
#include <unistd.h>

// Adds a file, which takes precedence over those added before.
static int read_source(struct run_categories *categories, const char *path, struct error *err)
{
    size_t before = categories->table.rules.count;
    int result = categories_add_file(&categories->table, path, err);
    if (result < 0)
        return result;
    categories->sources[1] = categories->sources[0];
    snprintf(categories->sources[0].file, sizeof categories->sources[0].file, "%s", path);
    categories->sources[0].rules = categories->table.rules.count - before;
    categories->source_count++;
    return 0;
}

int run_categories_read(struct run_categories *categories, const char *run_dir, const char *asked,
                        struct error *err)
{
    char own[4200];
    snprintf(own, sizeof own, "%s/%s", run_dir, RUN_CATEGORIES_FILE);
    *categories = (struct run_categories){.source_count = 0};
    int result = categories_init(&categories->table, err);
    if (result == 0 && access(own, F_OK) == 0)
        result = read_source(categories, own, err);
    if (result == 0 && asked)
        result = read_source(categories, asked, err);
    return result;
}

void run_categories_free(struct run_categories *categories)
{
    categories_free(&categories->table);
    *categories = (struct run_categories){.source_count = 0};
}
