// SPDX-License-Identifier: MIT
#include "analysis/report/terminal/summary_setup.h"

#include <jansson.h>
#include <stdio.h>

#include "base/text.h"
#include "base/units.h"

enum { TUNED_SHOWN = 6 };

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "?";
}

static void write_line(const struct summary *s, const char *title, const char *line)
{
    char clean[1600];
    summary_wrapped(s, text_clean(line, !s->style->unicode, clean, sizeof clean),
                    fprintf(s->out, "%s", title));
}

static void write_tuned(const struct summary *s, const json_t *one)
{
    char line[1600];
    bool applied = json_is_true(json_object_get(one, "applied"));
    const char *path = text_of(one, "path");
    // What is not applied first: it is what a reader must know.
    if (applied)
        snprintf(line, sizeof line, "%s on %s: %.200s, was %.200s (%.600s)",
                 text_of(one, "setting"), text_of(one, "host"), text_of(one, "value"),
                 text_of(one, "old"), path);
    else
        snprintf(line, sizeof line, "%s on %s: %.200s: %.400s (%.600s)", text_of(one, "setting"),
                 text_of(one, "host"), text_of(one, "value"), text_of(one, "reason"), path);
    write_line(s, applied ? "  set      " : "  not set  ", line);
}

// Those that were not applied come first.
static void write_tuning(const struct summary *s, const json_t *tuned)
{
    size_t count = json_array_size(tuned), shown = 0, applied_count = 0;
    for (size_t i = 0; i < count; i++)
        applied_count += json_is_true(json_object_get(json_array_get(tuned, i), "applied"));
    if (count == 0)
        return;
    if (!s->style->full && applied_count == count) {
        fprintf(s->out, "Tuning: %s setting%s, all applied and undone afterwards\n",
                TEXT_COUNT(count), count > 1 ? "s" : "");
        return;
    }
    fprintf(s->out, "Tuning, undone afterwards\n");
    for (int applied = 0; applied < 2; applied++)
        for (size_t i = 0; i < count && shown < TUNED_SHOWN; i++) {
            const json_t *one = json_array_get(tuned, i);
            if (json_is_true(json_object_get(one, "applied")) != (applied == 1))
                continue;
            write_tuned(s, one);
            shown++;
        }
    if (shown < count)
        fprintf(s->out, "  ... and %s more in the report\n", TEXT_COUNT(count - shown));
}

static void write_neighbour(const struct summary *s, const json_t *one)
{
    char line[600], p50[32] = "?", p99[32] = "?";
    char asked[TEXT_NUMBER_BYTES], answered[TEXT_NUMBER_BYTES];
    const json_t *median = json_object_get(one, "p50_us"), *tail = json_object_get(one, "p99_us");
    if (json_is_number(median))
        units_format_ns(json_number_value(median) * 1e3, p50, sizeof p50);
    if (json_is_number(tail))
        units_format_ns(json_number_value(tail) * 1e3, p99, sizeof p99);
    snprintf(
        line, sizeof line, "%s: %s/s asked for, %s/s answered, p50 %s, p99 %s",
        text_of(one, "name"), text_rate(json_number_value(json_object_get(one, "rate")), asked),
        text_rate(json_number_value(json_object_get(one, "achieved_rate")), answered), p50, p99);
    write_line(s, "Neighbour ", line);
}

void summary_write_setup(const struct summary *s)
{
    const json_t *experiment = s->run->evidence.experiment;
    const json_t *loads = json_object_get(experiment, "neighbour_loads");
    write_tuning(s, json_object_get(experiment, "tuned"));
    for (size_t i = 0; i < json_array_size(loads); i++)
        write_neighbour(s, json_array_get(loads, i));
}
