// SPDX-License-Identifier: MIT
#include "analysis/diagnosis/functions.h"

#include <math.h>
#include <stdlib.h>

void function_analysis_init(struct function_analysis *analysis, const struct call_paths *paths,
                            double granularity_ns)
{
    *analysis = (struct function_analysis){.paths = paths, .granularity_ns = granularity_ns};
}

void function_analysis_fini(struct function_analysis *analysis)
{
    free(analysis->first);
    free(analysis->next);
    free(analysis->share_of);
    array_free(&analysis->found);
}

static int indices_grow(uint32_t **items, size_t wanted, size_t from)
{
    uint32_t *grown = realloc(*items, wanted * sizeof *grown);
    if (!grown)
        return -1;
    memset(grown + from, 0, (wanted - from) * sizeof *grown);
    *items = grown;
    return 0;
}

static int make_room(struct function_analysis *analysis, size_t shares, size_t paths)
{
    if (shares > analysis->share_capacity) {
        if (indices_grow(&analysis->first, 2 * shares, analysis->share_capacity) < 0 ||
            indices_grow(&analysis->next, 2 * shares, analysis->share_capacity) < 0)
            return -1;
        analysis->share_capacity = 2 * shares;
    }
    if (paths > analysis->path_capacity) {
        if (indices_grow(&analysis->share_of, 2 * paths, analysis->path_capacity) < 0)
            return -1;
        analysis->path_capacity = 2 * paths;
    }
    return 0;
}

int function_analysis_begin(struct function_analysis *analysis,
                            const struct path_share_array *shares,
                            const struct reference *reference)
{
    if (make_room(analysis, shares->count + 1, analysis->paths->nodes.count) < 0)
        return -1;
    analysis->shares = shares;
    analysis->reference = reference;
    memset(analysis->first, 0, (shares->count + 1) * sizeof *analysis->first);
    for (size_t i = 0; i < shares->count; i++) // callers first: paths ascend
        analysis->share_of[shares->items[i].path] = (uint32_t)i + 1;
    for (size_t i = shares->count; i-- > 0;) {
        uint32_t parent = analysis->paths->nodes.items[shares->items[i].path].parent;
        uint32_t above = parent == NO_PATH ? 0 : analysis->share_of[parent];
        analysis->next[i] = analysis->first[above]; // first[0]: the outermost functions
        analysis->first[above] = (uint32_t)i + 1;
    }
    return 0;
}

static double deviation_threshold(const struct function_analysis *analysis, struct normal normal)
{
    return fmax(analysis->granularity_ns, UNUSUAL_SCATTER * normal.scatter_ns);
}

static double report_function(struct function_analysis *analysis, uint32_t path,
                              enum function_anomaly anomaly, double ns)
{
    if (array_push(&analysis->found,
                   (struct function_cause){.path = path, .anomaly = anomaly, .ns = ns}) < 0)
        analysis->out_of_memory = true;
    return ns;
}

// Scales the findings since `first` down so that they add up to `most` at the most.
static double shrink_findings(struct function_analysis *analysis, size_t first, double sum,
                              double most)
{
    if (sum <= most)
        return sum;
    for (size_t i = first; i < analysis->found.count; i++)
        analysis->found.items[i].ns *= most / sum;
    return most;
}

static double explain_callees(struct function_analysis *analysis, size_t caller);

// A function took `more` ns longer than usual: returns how much of that is explained.
static double explain_one(struct function_analysis *analysis, size_t index)
{
    const struct path_share *share = &analysis->shares->items[index];
    struct normal normal = reference_path(analysis->reference, share->path);
    double calls = reference_path_calls(analysis->reference, share->path);
    double more = share->ns - normal.ns;
    if (more < analysis->granularity_ns)
        return 0;
    bool unusual = more >= deviation_threshold(analysis, normal);
    if (unusual && normal.ns <= 0 && calls <= 0)
        return report_function(analysis, share->path, FUNCTION_UNEXPECTED, more);
    if (unusual && calls > 0 && share->calls > calls &&
        (share->calls - calls) * normal.ns / calls >= NESTED_EXPLAINS * more)
        return report_function(analysis, share->path, FUNCTION_MORE_CALLS, more);
    size_t first = analysis->found.count;
    double nested = shrink_findings(analysis, first, explain_callees(analysis, index + 1), more);
    if (unusual && nested < NESTED_EXPLAINS * more)
        nested += report_function(analysis, share->path, FUNCTION_SLOWER, more - nested);
    return nested;
}

static double explain_callees(struct function_analysis *analysis, size_t caller)
{
    double sum = 0;
    for (uint32_t at = analysis->first[caller]; at; at = analysis->next[at - 1])
        sum += explain_one(analysis, at - 1);
    return sum;
}

double function_analysis_explain(struct function_analysis *analysis, uint32_t component,
                                 double budget_ns)
{
    double sum = 0;
    analysis->found.count = 0;
    for (uint32_t at = analysis->first[0]; at; at = analysis->next[at - 1]) {
        const struct path_share *share = &analysis->shares->items[at - 1];
        if (analysis->paths->nodes.items[share->path].component == component)
            sum += explain_one(analysis, at - 1);
    }
    return shrink_findings(analysis, 0, sum, budget_ns);
}
