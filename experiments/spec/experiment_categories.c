// SPDX-License-Identifier: MIT
#include "experiments/spec/experiment_categories.h"

#include <stdio.h>
#include <string.h>

#include "analysis/diagnosis/categories.h"

static int check(const struct experiment *experiment, struct error *err)
{
    struct categories categories = {0};
    int result = categories_add_file(&categories, experiment->categories, err);
    categories_free(&categories);
    return result;
}

int experiment_categories_choose(struct experiment *experiment, const char *asked,
                                 struct error *err)
{
    if (asked && strlen(asked) >= sizeof experiment->categories)
        return error_set(err, ERROR_INPUT, "%.80s...: the path is too long", asked);
    if (asked)
        snprintf(experiment->categories, sizeof experiment->categories, "%s", asked);
    int result = experiment->categories[0] ? check(experiment, err) : 0;
    if (result < 0 && !asked)
        return error_prefix(err, "%s: diagnose: categories", experiment->path);
    return result;
}
