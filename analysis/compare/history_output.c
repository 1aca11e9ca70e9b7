// SPDX-License-Identifier: MIT
#include "analysis/compare/history_output.h"

#include <math.h>
#include <string.h>

#include "base/json_numbers.h"
#include "base/text.h"
#include "base/units.h"

enum { BAR_COLUMNS = 40 };

static const char *format_duration(double us, char out[32])
{
    return units_format_ns(us * 1000, out, 32);
}

// "+38 % since #12 v1.4 (100 us -> 138 us, p 0.002)".
static void write_change(const struct history_series *series, const struct change_point *change,
                         FILE *out)
{
    char before[32], after[32], label[200], percent[TEXT_NUMBER_BYTES];
    const struct history_point *point = &series->points.items[change->first];
    if (change->before > 0)
        fprintf(out, "%s %% ", text_percent(change->after / change->before - 1, percent));
    fprintf(out, "since #%lld %s (%s -> %s, p %.3f)", (long long)point->run,
            text_clean(point->label, false, label, sizeof label),
            format_duration(change->before, before), format_duration(change->after, after),
            change->p);
}

void history_list(const struct history_series_array *all, FILE *out)
{
    const char *experiment = "";
    char name[300], value[32];
    for (size_t i = 0; i < all->count; i++) {
        const struct history_series *series = &all->items[i];
        if (i == 0 || strcmp(experiment, series->experiment) != 0) {
            experiment = series->experiment;
            fprintf(out, "%s%s\n", i ? "\n" : "", text_clean(experiment, false, name, sizeof name));
        }
        fprintf(out, "  %-44s %4zu runs", text_clean(series->name, false, name, sizeof name),
                series->points.count);
        if (series->points.count)
            fprintf(out, ", now %s",
                    format_duration(series->points.items[series->points.count - 1].us, value));
        if (series->unknown)
            fprintf(out, ", not known in %llu", (unsigned long long)series->unknown);
        for (size_t c = 0; c < series->changes.count; c++) {
            fputs(c ? "; " : ": ", out);
            write_change(series, &series->changes.items[c], out);
        }
        fputc('\n', out);
    }
}

void history_plot(const struct history_series *series, bool unicode, FILE *out)
{
    char text[300], value[32];
    double most = 0;
    size_t change = 0;
    for (size_t i = 0; i < series->points.count; i++)
        most = fmax(most, series->points.items[i].us);
    fprintf(out, "%s: ", text_clean(series->experiment, false, text, sizeof text));
    fprintf(out, "%s\n", text_clean(series->name, false, text, sizeof text));
    for (size_t i = 0; i < series->points.count; i++) {
        const struct history_point *point = &series->points.items[i];
        if (change < series->changes.count && series->changes.items[change].first == i) {
            fputs("  ---- ", out);
            write_change(series, &series->changes.items[change++], out);
            fputc('\n', out);
        }
        text_clean(point->label, false, text, sizeof text);
        fprintf(out, "  #%-5lld %-20.20s %10s ", (long long)point->run, text,
                format_duration(point->us, value));
        for (int bar = (int)lround(BAR_COLUMNS * point->us / fmax(most, 1e-9)); bar > 0; bar--)
            fputs(unicode ? "\u2588" : "#", out);
        fputc('\n', out);
    }
    if (series->unknown)
        fprintf(out, "  not known in %llu runs\n", (unsigned long long)series->unknown);
}

// Labels and the names of experiments and causes may contain any characters.
static json_t *text_json(const char *text)
{
    char clean[400];
    return json_string(text_clean(text, false, clean, sizeof clean));
}

static json_t *point_json(const struct history_point *point)
{
    return json_pack("{s:I, s:o, s:o, s:o, s:o}", "run", (json_int_t)point->run, "label",
                     text_json(point->label), "us", json_number_or_null(point->us), "low_us",
                     json_number_or_null(point->low_us), "high_us",
                     json_number_or_null(point->high_us));
}

static json_t *series_json(const struct history_series *series)
{
    json_t *points = json_array(), *changes = json_array();
    for (size_t i = 0; i < series->points.count; i++)
        json_array_append_new(points, point_json(&series->points.items[i]));
    for (size_t i = 0; i < series->changes.count; i++) {
        const struct change_point *change = &series->changes.items[i];
        json_array_append_new(
            changes, json_pack("{s:I, s:f, s:f, s:f}", "run",
                               (json_int_t)series->points.items[change->first].run, "before_us",
                               change->before, "after_us", change->after, "p", change->p));
    }
    return json_pack("{s:o, s:o, s:o, s:I, s:o, s:o}", "experiment", text_json(series->experiment),
                     "kind", text_json(series->kind), "name", text_json(series->name), "unknown",
                     (json_int_t)series->unknown, "points", points, "changes", changes);
}

json_t *history_json(const struct history_series_array *all)
{
    json_t *list = json_array();
    for (size_t i = 0; i < all->count; i++)
        json_array_append_new(list, series_json(&all->items[i]));
    return json_pack("{s:s, s:f, s:i, s:i, s:o}", "taillight_version", TAILLIGHT_VERSION,
                     "significance", CHANGE_POINT_SIGNIFICANCE, "permutations",
                     CHANGE_POINT_PERMUTATIONS, "seed", CHANGE_POINT_SEED, "series", list);
}
