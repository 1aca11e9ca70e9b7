// SPDX-License-Identifier: MIT
#include "analysis/report/summary_findings.h"

#include <stdio.h>

#include "base/text.h"

enum { NAMES_SHOWN = 4, NAMES_SHOWN_FULL = 12, PARTS_SHOWN = 6, NAME_COLUMNS = 22 };
enum { ORDINARY_SHOWN = 5, ORDINARY_SHOWN_FULL = 12 };
#define SMALL_PART 0.005 // of a name's time, or of a request's

// "41 % running for requests, 3 % own work, ..."
static void list_parts(const struct thread_budget *budget, char *line, size_t bytes)
{
    struct budget_part parts[PARTS_SHOWN];
    size_t count = thread_budget_parts(budget, SMALL_PART, parts, PARTS_SHOWN);
    char percent[32];
    for (size_t i = 0; i < count; i++)
        text_append(line, bytes, "%s%s %s", i ? ", " : "",
                    summary_percent(parts[i].ns, budget->whole_ns, percent), parts[i].name);
}

static void write_name(const struct summary *s, const struct thread_budget *budget)
{
    char name[260], several[16], line[800] = "";
    text_clean(budget->name, !s->style->unicode, name, sizeof name);
    fprintf(s->out, "  ");
    summary_field(s, name, NAME_COLUMNS);
    snprintf(several, sizeof several, "x%u", budget->threads);
    fprintf(s->out, "%-5s", budget->threads > 1 ? several : "");
    list_parts(budget, line, sizeof line);
    summary_wrapped(s, line, 2 + NAME_COLUMNS + 5);
}

void summary_write_budget(const struct summary *s)
{
    const struct time_budget *budget = &s->run->findings.budget;
    size_t most = s->style->full ? NAMES_SHOWN_FULL : NAMES_SHOWN, shown = 0;
    char title[120], time[32];
    if (budget->names.count == 0)
        return;
    snprintf(title, sizeof title, "What the server's threads did in these %s",
             summary_duration((double)(budget->end_ns - budget->begin_ns), time));
    summary_heading(s, title);
    for (; shown < budget->names.count && shown < most; shown++) {
        const struct thread_budget *one = &budget->names.items[shown];
        if (shown && !s->style->full && one->busy_ns < SMALL_PART * one->whole_ns)
            break; // it and all that follow did next to nothing
        write_name(s, one);
    }
    if (shown < budget->names.count)
        fprintf(s->out, "  ... and %zu more in the report\n", budget->names.count - shown);
}

// "client receive (client) 2.04 ms (fast end 0.11 ms), ..."
void summary_write_ordinary(const struct summary *s, const struct diagnosis *diagnosis)
{
    const struct ordinary_part_array *parts = &diagnosis->ordinary;
    size_t most = s->style->full ? ORDINARY_SHOWN_FULL : ORDINARY_SHOWN;
    char line[2400] = "", name[260], mean[32], fast[32];
    if (diagnosis->not_available || parts->count == 0)
        return;
    text_append(line, sizeof line, "an ordinary one, in all: ");
    for (size_t i = 0; i < parts->count && i < most; i++) {
        const struct ordinary_part *part = &parts->items[i];
        if (i && part->mean_ns < SMALL_PART * diagnosis->reference_latency_ns)
            break;
        text_clean(part->name, !s->style->unicode, name, sizeof name);
        text_append(line, sizeof line, "%s%s (%s) %s", i ? ", " : "", name, role_name(part->role),
                    summary_duration(part->mean_ns, mean));
        if (part->fast_ns > 0)
            text_append(line, sizeof line, " (fast end %s)", summary_duration(part->fast_ns, fast));
    }
    fprintf(s->out, "  ");
    summary_wrapped(s, line, 4);
}
