// SPDX-License-Identifier: MIT
#include "analysis/report/report_compare.h"

#include <math.h>
#include <string.h>

#include "analysis/report/page_compare_messages.h"
#include "analysis/report/page_write.h"
#include "base/text.h"
#include "base/units.h"

static const char *const scripts[] = {"page_plot.js", "page_views.js", "page_compare_plots.js",
                                      "page_compare.js"};

static const char *duration(double ns, char out[32])
{
    if (isnan(ns))
        return "-";
    return isinf(ns) ? "never" : units_format_ns(ns, out, 32);
}

static const char *signed_duration(double ns, char out[32])
{
    if (isnan(ns))
        return "?";
    out[0] = ns < 0 ? '-' : '+';
    units_format_ns(fabs(ns), out + 1, 31);
    return out;
}

static void write_latency(const struct run_comparison *comparison, FILE *out)
{
    char text[32];
    fprintf(out, "\n  %-10s", "latency");
    for (int q = 0; q < LATENCY_QUANTILES; q++)
        fprintf(out, "%10s", latency_quantile_names[q]);
    for (int side = 0; side < COMPARE_SIDES; side++) {
        fprintf(out, "\n  %-10s", side == COMPARE_BASE ? "base" : "candidate");
        for (int q = 0; q < LATENCY_QUANTILES; q++)
            fprintf(out, "%10s", duration(comparison->runs[side].latency.value_ns[q], text));
    }
    fputc('\n', out);
}

static void write_change(const struct change *change, FILE *out)
{
    char name[300], clean[260], base[32], candidate[32], difference[32], low[32], high[32],
        interval[80];
    text_clean(change->name, false, clean, sizeof clean);
    snprintf(name, sizeof name, "%s (%s)", clean, role_name(change->role));
    snprintf(interval, sizeof interval, "[%s, %s]", signed_duration(change->low_ns, low),
             signed_duration(change->high_ns, high));
    fprintf(out, "  %-9s %-44.44s %9s %9s %9s %-20s %5.1f %% -> %.1f %%\n",
            change_kind_name(change->kind), name, duration(change->mean_ns[COMPARE_BASE], base),
            duration(change->mean_ns[COMPARE_CANDIDATE], candidate),
            signed_duration(change->difference_ns, difference), interval,
            100 * change->share[COMPARE_BASE], 100 * change->share[COMPARE_CANDIDATE]);
}

// Those that differ by more than can be told apart, the first five.
static void write_categories(const struct slice_comparison *slice, FILE *out)
{
    enum { SHOWN = 5 };
    char clean[200], difference[32];
    double least = fmax(slice->sides[COMPARE_BASE]->granularity_ns,
                        slice->sides[COMPARE_CANDIDATE]->granularity_ns);
    size_t shown = 0;
    while (shown < slice->categories.count && shown < SHOWN &&
           fabs(slice->categories.items[shown].difference_ns) >= least)
        shown++;
    for (size_t i = 0; i < shown; i++) {
        const struct category_change *one = &slice->categories.items[i];
        text_clean(one->category, false, clean, sizeof clean);
        fprintf(out, "%s %s %s%s", i ? "," : "  by category:", clean,
                signed_duration(one->difference_ns, difference), i + 1 == shown ? "\n" : "");
    }
}

static void write_queue(const struct slice_comparison *slice, FILE *out)
{
    if (!slice->sides[COMPARE_BASE]->has_views || !slice->sides[COMPARE_CANDIDATE]->has_views)
        return;
    fputs("  ahead, on average:", out);
    for (int kind = 0; kind < QUEUE_KINDS; kind++)
        fprintf(out, "%s %s %.2f -> %.2f", kind ? "," : "", queue_kind_name((enum queue_kind)kind),
                slice->sides[COMPARE_BASE]->queue[kind].ahead[VIEW_SLICE].mean,
                slice->sides[COMPARE_CANDIDATE]->queue[kind].ahead[VIEW_SLICE].mean);
    fputc('\n', out);
}

// Those that changed, the first ten.
static void write_functions(const struct slice_comparison *slice, FILE *out)
{
    enum { SHOWN = 10 };
    size_t changed = 0;
    if (!slice->has_functions)
        return;
    fprintf(out, "  functions by their own time, of %llu and %llu messages with known functions:\n",
            (unsigned long long)slice->sides[COMPARE_BASE]->functions->messages,
            (unsigned long long)slice->sides[COMPARE_CANDIDATE]->functions->messages);
    for (size_t i = 0; i < slice->functions.count; i++)
        if (slice->functions.items[i].kind != CHANGE_NONE && ++changed <= SHOWN)
            write_change(&slice->functions.items[i], out);
    if (changed > SHOWN)
        fprintf(out, "  and %zu more functions that changed\n", changed - SHOWN);
    else if (changed == 0)
        fprintf(out, "  none of the %zu changed, as far as these runs can tell\n",
                slice->functions.count);
}

static void write_slice(const struct slice_comparison *slice, FILE *out)
{
    size_t unchanged = 0;
    fprintf(out, "\n%s\n", slice->verdict);
    if (!slice->available)
        return;
    fprintf(out, "  %-9s %-44s %9s %9s %9s %-20s messages\n", "", "mean of a message", "base",
            "candidate", "change", "[99 %]");
    for (size_t i = 0; i < slice->changes.count; i++) {
        if (slice->changes.items[i].kind == CHANGE_NONE)
            unchanged++;
        else
            write_change(&slice->changes.items[i], out);
    }
    if (unchanged && isnan(slice->latency.low_ns))
        fprintf(out, "  %zu of which nobody can tell: too few messages\n", unchanged);
    else if (unchanged)
        fprintf(out, "  %zu unchanged, as far as these runs can tell\n", unchanged);
    write_categories(slice, out);
    write_functions(slice, out);
    write_queue(slice, out);
}

void report_compare_text(const struct run_comparison *comparison, FILE *out)
{
    fprintf(out, "%s against %s\n", comparison->runs[COMPARE_CANDIDATE].run_dir,
            comparison->runs[COMPARE_BASE].run_dir);
    write_latency(comparison, out);
    for (size_t i = 0; i < comparison->slices.count; i++)
        write_slice(&comparison->slices.items[i], out);
    fputs("\nIntervals: from resampling 40 blocks of time of each run. How much runs differ by "
          "themselves they do not\nknow: repeat both to learn that.\n",
          out);
}

struct page {
    const struct run_comparison *comparison;
};

static int write_data(const struct run_comparison *comparison, FILE *out, struct error *err)
{
    json_t *document = run_comparison_json(comparison);
    json_t *slices = json_object_get(document, "slices");
    for (size_t i = 0; i < comparison->slices.count; i++) {
        const struct slice_comparison *slice = &comparison->slices.items[i];
        json_object_set_new(json_array_get(slices, i), "balloons",
                            json_pack("{s:o, s:o}", "base",
                                      page_compare_messages(slice, COMPARE_BASE), "candidate",
                                      page_compare_messages(slice, COMPARE_CANDIDATE)));
    }
    int result = document ? page_write_json(document, out, err)
                          : error_set(err, ERROR_FAILED, "no memory for the comparison's page");
    json_decref(document);
    return result;
}

static int write_part(const char *name, void *context, FILE *out, struct error *err)
{
    const struct run_comparison *comparison = ((const struct page *)context)->comparison;
    if (strcmp(name, "title") == 0)
        page_write_clean(comparison->runs[COMPARE_CANDIDATE].name, out);
    else if (strcmp(name, "verdict") == 0)
        page_write_clean(comparison->slices.count ? comparison->slices.items[0].verdict : "", out);
    else if (strcmp(name, "data") == 0)
        return write_data(comparison, out, err);
    else
        for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++)
            page_write_asset(scripts[i], out);
    return 0;
}

int report_compare_html(const struct run_comparison *comparison, const char *path,
                        struct error *err)
{
    struct page page = {comparison};
    return page_write(path, "page_compare.html", write_part, &page, err);
}
