// SPDX-License-Identifier: MIT
#include "analysis/diagnosis/views.h"

#include <math.h>

#include "base/quantile.h"

static const struct {
    const char *name;
    enum core_role role;
} scopes[BLOCKING_SCOPES] = {
    [BLOCKED_BY_CONNECTION] = {"same connection", ROLE_A},
    [BLOCKED_BY_BATCH] = {"same batch", ROLE_A},
    [BLOCKED_BY_THREAD] = {"earlier batch", ROLE_A},
    [BLOCKED_BY_CORE_A] = {"other thread on the core", ROLE_A},
    [BLOCKED_BY_CORE_R] = {"receive core", ROLE_R},
};

const char *queue_kind_name(enum queue_kind kind)
{
    static const char *const names[QUEUE_KINDS] = {"app receive", "app send", "processing",
                                                   "kernel R", "kernel A"};
    return kind < QUEUE_KINDS ? names[kind] : "?";
}

const char *blocking_scope_name(enum blocking_scope scope)
{
    return scope < BLOCKING_SCOPES ? scopes[scope].name : "?";
}

enum core_role blocking_scope_role(enum blocking_scope scope)
{
    return scope < BLOCKING_SCOPES ? scopes[scope].role : ROLE_A;
}

// Sorts the values.
struct spread views_spread(double *values, size_t count)
{
    struct spread spread = {NAN, NAN, NAN, NAN, NAN, NAN};
    if (count == 0)
        return spread;
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += values[i];
    quantile_sort(values, count);
    spread.mean = sum / (double)count;
    spread.min = values[0];
    spread.p25 = quantile_sorted(values, count, 0.25);
    spread.median = quantile_sorted(values, count, 0.5);
    spread.p75 = quantile_sorted(values, count, 0.75);
    spread.max = values[count - 1];
    return spread;
}

void views_share_contexts(struct diagnosis_views *views)
{
    for (size_t i = 0; i < views->contexts.count; i++)
        for (int side = 0; side < VIEW_SIDES; side++)
            views->contexts.items[i].share[side] =
                views->contexts.items[i].ns[side] / views->context_ns[side];
}
