// SPDX-License-Identifier: MIT
#include "analysis/report/terminal/summary_findings.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

enum { NAMES_SHOWN = 12, PARTS_SHOWN = 6, NAME_COLUMNS = 22 };
enum { ORDINARY_SHOWN = 12 };
#define SMALL_PART 0.005 // of a name's time, or of a request's

// "41 % running for requests, 3 % own work, ..."
static void list_parts(const struct thread_budget *budget, char *line, size_t bytes)
{
    struct budget_part parts[PARTS_SHOWN];
    size_t count = thread_budget_parts(budget, SMALL_PART, parts, PARTS_SHOWN);
    char percent[32];
    for (size_t i = 0; i < count; i++)
        text_append(line, bytes, "%s%s %s", i ? ", " : "",
                    text_share(parts[i].ns, budget->whole_ns, percent), parts[i].name);
}

static void write_name(const struct summary *s, const struct thread_budget *budget)
{
    char name[260], several[16], line[800] = "";
    text_clean(budget->name, !s->style->unicode, name, sizeof name);
    summary_label(s, name, 2, NAME_COLUMNS);
    snprintf(several, sizeof several, "x%u", budget->threads);
    fprintf(s->out, "%-5s", budget->threads > 1 ? several : "");
    list_parts(budget, line, sizeof line);
    summary_wrapped(s, line, 2 + NAME_COLUMNS + 5);
}

void summary_write_budget(const struct summary *s)
{
    const struct time_budget *budget = &s->run->findings.budget;
    size_t shown = 0;
    char title[120], time[32];
    if (budget->names.count == 0)
        return;
    snprintf(title, sizeof title, "What the server's threads did in these %s",
             summary_duration((double)(budget->end_ns - budget->begin_ns), time));
    summary_heading(s, title);
    for (; shown < budget->names.count && shown < NAMES_SHOWN; shown++)
        write_name(s, &budget->names.items[shown]);
    if (shown < budget->names.count)
        fprintf(s->out, "  ... and %s more in the report\n",
                TEXT_COUNT(budget->names.count - shown));
}

// "client receive (client) 2.04 ms (fast end 0.11 ms), ..."
void summary_write_ordinary(const struct summary *s, const struct diagnosis *diagnosis)
{
    const struct ordinary_part_array *parts = &diagnosis->ordinary;
    char line[2400] = "", name[260], mean[32], fast[32];
    if (parts->count == 0)
        return;
    text_append(line, sizeof line, "an ordinary one, in all: ");
    for (size_t i = 0; i < parts->count && i < ORDINARY_SHOWN; i++) {
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

void summary_write_shapes(const struct summary *s, const struct diagnosis *diagnosis)
{
    char name[260], line[600];
    for (size_t i = 0; i < diagnosis->causes.count; i++) {
        const struct cause *cause = &diagnosis->causes.items[i];
        if (!cause->shape[0])
            continue;
        snprintf(line, sizeof line, "in time: %s (%s) %s",
                 text_clean(cause->name, !s->style->unicode, name, sizeof name),
                 role_name(cause->role), cause->shape);
        fprintf(s->out, "  ");
        summary_wrapped(s, line, 4);
    }
}

// The tiers come in the order of their causes, the largest first; the server itself is above them.
static void write_tier(const struct summary *s, const struct diagnosis *diagnosis, const char *tier,
                       double whole)
{
    const struct cause *top = NULL;
    char name[260], label[260], total[32], share[32];
    double ns = 0;
    for (size_t i = 0; i < diagnosis->causes.count; i++) {
        const struct cause *cause = &diagnosis->causes.items[i];
        if (strcmp(cause->tier, tier) != 0 || (!tier[0] && cause->role < ROLE_R))
            continue;
        ns += cause->total_ns;
        top = top ? top : cause;
    }
    if (!top)
        return;
    text_clean(top->name, !s->style->unicode, name, sizeof name);
    text_clean(tier[0] ? tier : "the server itself", !s->style->unicode, label, sizeof label);
    const int column = fprintf(s->out, "  %s%-32s %9s %7s  most: ", tier[0] ? "-> " : "", label,
                               summary_duration(ns, total), text_share(ns, whole, share));
    summary_wrapped(s, name, column);
}

void summary_write_tiers(const struct summary *s, const struct diagnosis *diagnosis)
{
    double whole = run_diagnosis_extra_ns(diagnosis);
    bool any = false;
    for (size_t i = 0; i < diagnosis->causes.count; i++)
        any |= diagnosis->causes.items[i].tier[0] != '\0';
    if (!any)
        return;
    fprintf(s->out, "  one server behind the other:\n");
    write_tier(s, diagnosis, "", whole);
    for (size_t i = 0; i < diagnosis->causes.count; i++) {
        const char *tier = diagnosis->causes.items[i].tier;
        size_t before = 0;
        while (before < i && strcmp(diagnosis->causes.items[before].tier, tier) != 0)
            before++;
        if (tier[0] && before == i)
            write_tier(s, diagnosis, tier, whole);
    }
}

void summary_write_shared(const struct summary *s)
{
    const struct shared_trait_array *shared = &s->run->findings.shared;
    char words[100], clean[260], line[600], a[32], b[32], c[32], d[32];
    if (shared->count)
        summary_heading(s, "What the slow requests share");
    for (size_t i = 0; i < shared->count; i++) {
        const struct shared_trait *trait = &shared->items[i];
        shared_trait_words(trait, run_operation_name(s->run, 0, trait->value), words, sizeof words);
        snprintf(line, sizeof line,
                 "%s: %s of the slow, %s of all; median %s, of the others %s; %.3g times as "
                 "likely to be slow (at least %.2g)",
                 text_clean(words, !s->style->unicode, clean, sizeof clean),
                 text_share(trait->slow_share, 1, a), text_share(trait->share, 1, b),
                 summary_duration(trait->median_ns, c), summary_duration(trait->other_median_ns, d),
                 trait->odds_ratio, trait->odds_low);
        fprintf(s->out, "  ");
        summary_wrapped(s, line, 4);
    }
}
