// SPDX-License-Identifier: MIT
#include "analysis/report/summary_setup.h"

#include <string.h>

#include "base/text.h"
#include "base/units.h"

enum { TUNED_SHOWN = 6, LINE_WIDTH = 98 };

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "?";
}

static void write_line(const char *line, bool ascii, FILE *out)
{
    char clean[LINE_WIDTH + 1];
    fprintf(out, "%s\n", text_clean(line, ascii, clean, sizeof clean));
}

static void write_tuned(const json_t *one, bool ascii, FILE *out)
{
    char line[1600];
    bool applied = json_is_true(json_object_get(one, "applied"));
    const char *path = text_of(one, "path");
    // What is not applied first: it is what a reader must know.
    if (applied)
        snprintf(line, sizeof line, "  set      %s on %s: %.200s, was %.200s (%.600s)",
                 text_of(one, "setting"), text_of(one, "host"), text_of(one, "value"),
                 text_of(one, "old"), path);
    else
        snprintf(line, sizeof line, "  not set  %s on %s: %.200s: %.400s (%.600s)",
                 text_of(one, "setting"), text_of(one, "host"), text_of(one, "value"),
                 text_of(one, "reason"), path);
    write_line(line, ascii, out);
}

// Those that were not applied come first.
static void write_tuning(const json_t *tuned, bool full, bool ascii, FILE *out)
{
    size_t count = json_array_size(tuned), shown = 0, applied_count = 0;
    for (size_t i = 0; i < count; i++)
        applied_count += json_is_true(json_object_get(json_array_get(tuned, i), "applied"));
    if (count == 0)
        return;
    if (!full && applied_count == count) {
        fprintf(out, "Tuning: %zu setting%s, all applied and undone afterwards\n", count,
                count > 1 ? "s" : "");
        return;
    }
    fprintf(out, "Tuning, undone afterwards\n");
    for (int applied = 0; applied < 2; applied++)
        for (size_t i = 0; i < count && shown < TUNED_SHOWN; i++) {
            const json_t *one = json_array_get(tuned, i);
            if (json_is_true(json_object_get(one, "applied")) != (applied == 1))
                continue;
            write_tuned(one, ascii, out);
            shown++;
        }
    if (shown < count)
        fprintf(out, "  ... and %zu more in the report\n", count - shown);
}

static void write_neighbour(const json_t *one, bool ascii, FILE *out)
{
    char line[600], p50[32] = "?", p99[32] = "?";
    const json_t *median = json_object_get(one, "p50_us"), *tail = json_object_get(one, "p99_us");
    if (json_is_number(median))
        units_format_ns(json_number_value(median) * 1e3, p50, sizeof p50);
    if (json_is_number(tail))
        units_format_ns(json_number_value(tail) * 1e3, p99, sizeof p99);
    snprintf(line, sizeof line, "Neighbour %s: %.0f/s asked for, %.0f/s answered, p50 %s, p99 %s",
             text_of(one, "name"), json_number_value(json_object_get(one, "rate")),
             json_number_value(json_object_get(one, "achieved_rate")), p50, p99);
    write_line(line, ascii, out);
}

void summary_setup_write(const struct run_analysis *run, bool full, bool ascii, FILE *out)
{
    const json_t *loads = json_object_get(run->evidence.experiment, "neighbour_loads");
    write_tuning(json_object_get(run->evidence.experiment, "tuned"), full, ascii, out);
    for (size_t i = 0; i < json_array_size(loads); i++)
        write_neighbour(json_array_get(loads, i), ascii, out);
}
