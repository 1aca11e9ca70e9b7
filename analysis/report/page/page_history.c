// SPDX-License-Identifier: MIT
#include "analysis/report/page/page_history.h"

#include <stdio.h>
#include <string.h>

#include "analysis/compare/history.h"
#include "analysis/report/page/page_write.h"
#include "base/text.h"

enum { NAMED_CHANGES = 3 };

static const char *const scripts[] = {"page_plot.js", "page_runs.js", "page_history.js", NULL};

// "p99 of guard +38 % since #12 v1.4": the latest change of a series.
static void verdict_append_change(const struct history_series *series, char *out, size_t bytes)
{
    char percent[TEXT_NUMBER_BYTES];
    const struct change_point *change = &series->changes.items[series->changes.count - 1];
    const struct history_point *point = &series->points.items[change->first];
    text_append(out, bytes, "%s of %s", series->name, series->experiment);
    if (change->before > 0)
        text_append(out, bytes, " %s %%",
                    text_percent(change->after / change->before - 1, percent));
    text_append(out, bytes, " since #%lld %s", (long long)point->run, point->label);
}

static int64_t run_of_latest_change(const struct history_series *series)
{
    if (series->changes.count == 0)
        return -1;
    return series->points.items[series->changes.items[series->changes.count - 1].first].run;
}

// Goes through the series that changed, latest change first: the one after `previous` (NULL: the
// first), or NULL at the end.
static const struct history_series *next_changed(const struct history_series_array *all,
                                                 const struct history_series *previous)
{
    const struct history_series *found = NULL;
    for (size_t i = 0; i < all->count; i++) {
        const struct history_series *series = &all->items[i];
        int64_t run = run_of_latest_change(series),
                bound = previous ? run_of_latest_change(previous) : INT64_MAX;
        bool is_later = run > bound || (run == bound && series <= previous);
        if (run >= 0 && !is_later && (!found || run > run_of_latest_change(found)))
            found = series;
    }
    return found;
}

// The headline: how many series of how many runs changed their level, and the latest changes.
static void history_page_verdict(const struct history_series_array *all, char *out,
                                 size_t out_bytes)
{
    const struct history_series *one = NULL;
    size_t changed = 0;
    for (size_t i = 0; i < all->count; i++)
        changed += all->items[i].changes.count > 0;
    if (changed)
        snprintf(out, out_bytes,
                 "%s of %s series changed their level; the latest: ", TEXT_COUNT(changed),
                 TEXT_COUNT(all->count));
    else
        snprintf(out, out_bytes, "None of the %s series changed its level", TEXT_COUNT(all->count));
    for (size_t i = 0; i < NAMED_CHANGES && (one = next_changed(all, one)) != NULL; i++) {
        text_append(out, out_bytes, "%s", i ? "; " : "");
        verdict_append_change(one, out, out_bytes);
    }
}

int history_page_write(const struct history_series_array *all, const char *path, struct error *err)
{
    char verdict[1000];
    json_t *document = history_json(all);
    if (!document)
        return error_set(err, ERROR_FAILED, "no memory for the history's page");
    history_page_verdict(all, verdict, sizeof verdict);
    const struct page page = {.template_name = "page_history.html",
                              .title = "History",
                              .verdict = verdict,
                              .scripts = scripts,
                              .data = document};
    int result = page_write(&page, path, err);
    json_decref(document);
    return result;
}
