// SPDX-License-Identifier: MIT
#include "analysis/report/terminal/summary_causes.h"

#include <stdio.h>
#include <string.h>

#include "analysis/report/terminal/summary_findings.h"
#include "base/text.h"

enum {
    TOP_CAUSES = 3,
    TOP_CAUSES_FULL = 8,
    TOP_WINDOWS = 6,
    CAUSES_OF_WINDOW = 3,
};

static size_t shown_causes(const struct summary *s)
{
    return s->style->full ? TOP_CAUSES_FULL : TOP_CAUSES;
}

static void write_cause_table(const struct summary *s, const struct diagnosis *diagnosis)
{
    double whole = run_diagnosis_extra_ns(diagnosis);
    const bool wide = s->style->width >= SUMMARY_WIDE; // else without bars and shares of messages
    char a[32], b[32], name[260];
    fprintf(s->out, "%s  %-29s %-8s %9s%s %9s %9s  %s%s\n", summary_faint(s), "cause", "where",
            "messages", wide ? "        " : "", "median", "total",
            wide ? "share of extra time" : "share", summary_plain(s));
    for (size_t i = 0; i < diagnosis->causes.count && i < shown_causes(s); i++) {
        const struct cause *cause = &diagnosis->causes.items[i];
        text_clean(cause->name, !s->style->unicode, name, sizeof name);
        summary_label(s, name, 2, 29);
        fprintf(s->out, " %-8s %9s", role_name(cause->role), text_count(cause->messages, a));
        if (wide)
            fprintf(s->out, " %7s",
                    text_share((double)cause->messages, (double)diagnosis->messages.count, b));
        fprintf(s->out, " %9s %9s  ", summary_duration(cause->median_ns, a),
                summary_duration(cause->total_ns, b));
        if (wide) {
            summary_bar(s, cause->total_ns / whole, SUMMARY_BAR_CELLS);
            fputc(' ', s->out);
        }
        fprintf(s->out, "%s%s\n", text_share(cause->total_ns, whole, b), summary_cause_mark(cause));
        if (cause->parts_words[0])
            fprintf(s->out, "%s    of it %s%s\n", summary_faint(s), cause->parts_words,
                    summary_plain(s));
    }
}

static void write_coverage(const struct summary *s, const struct diagnosis *diagnosis)
{
    size_t shown = shown_causes(s), count = diagnosis->causes.count;
    char smaller[64] = "";
    if (count > shown)
        snprintf(smaller, sizeof smaller, ", with %s smaller", TEXT_COUNT(count - shown));
    summary_explained(s, diagnosis, smaller);
    summary_explain_marks(s, diagnosis, shown);
}

void summary_write_diagnosis(const struct summary *s, const struct diagnosis *diagnosis)
{
    char low[32], high[32], usual[32], messages[96], label[160], line[300];
    diagnosis_slice_label(&diagnosis->slice, s->run->lifetimes.begin_ns, label, sizeof label);
    fprintf(s->out, "\n%sWhy: %s%s", summary_strong(s), label, summary_plain(s));
    if (diagnosis->not_available) {
        char reason[800];
        text_clean(diagnosis->reason, !s->style->unicode, reason, sizeof reason);
        fprintf(s->out, "\n  N/A: ");
        summary_wrapped(s, reason, 7);
        if (s->style->full)
            summary_write_ordinary(s, diagnosis);
        return;
    }
    snprintf(line, sizeof line, "%s, %s to %s; an ordinary one takes %s",
             diagnosis_messages_words(diagnosis, messages, sizeof messages),
             summary_duration(diagnosis->slice_low_ns, low),
             summary_duration(diagnosis->slice_high_ns, high),
             summary_duration(diagnosis->reference_latency_ns, usual));
    const bool beside = text_columns(label) + text_columns(line) + 7 <= s->style->width;
    fputs(beside ? ": " : ":\n  ", s->out);
    summary_wrapped(s, line, 2);
    if (diagnosis->causes.count == 0) {
        fprintf(s->out, "  no cause found\n");
    } else {
        write_cause_table(s, diagnosis);
        write_coverage(s, diagnosis);
    }
    summary_write_tiers(s, diagnosis);
    if (s->style->full) {
        summary_write_shapes(s, diagnosis);
        summary_write_ordinary(s, diagnosis);
    }
}

// Appends the causes that weighed most to a line that begins in column `column`, in the short form
// no more than fit into it: "yes (A) 3.1 ms on 12; ...".
static void top_causes(const struct summary *s, const struct diagnosis *diagnosis, int column,
                       char *line, size_t bytes)
{
    char a[32], b[32], name[260], one[400];
    size_t used = strlen(line);
    if (diagnosis->not_available || diagnosis->causes.count == 0) {
        snprintf(line + used, bytes - used, "%s",
                 diagnosis->not_available ? "N/A" : "no cause found");
        return;
    }
    for (size_t j = 0; j < diagnosis->causes.count && j < CAUSES_OF_WINDOW; j++) {
        const struct cause *cause = &diagnosis->causes.items[j];
        text_clean(cause->name, !s->style->unicode, name, sizeof name);
        snprintf(one, sizeof one, "%s%s (%s) %s on %s", j ? "; " : "", name, role_name(cause->role),
                 summary_duration(cause->total_ns, a), text_count(cause->messages, b));
        if (!s->style->full && j > 0 &&
            column + text_columns(line) + text_columns(one) > s->style->width)
            return;
        used += (size_t)snprintf(line + used, bytes - used, "%s", one);
    }
}

void summary_write_parts(const struct summary *s)
{
    char a[32], b[32], line[1600];
    for (int part = PART_WHOLE + 1; part < PARTS; part++) {
        const struct diagnosis *of = run_diagnosis_of(s->run, 0, (enum lifetime_part)part);
        if (!of)
            continue;
        if (part == PART_WHOLE + 1)
            summary_heading(s, "The same slice of each lifetime on the server");
        int used = snprintf(line, sizeof line, "%s ", lifetime_part_name(of->part));
        if (!of->not_available)
            snprintf(line + used, sizeof line - (size_t)used,
                     ">= %s, else %s: ", summary_duration(of->slice_low_ns, a),
                     summary_duration(of->reference_latency_ns, b));
        top_causes(s, of, 2, line, sizeof line);
        fprintf(s->out, "  ");
        summary_wrapped(s, line, 4);
    }
}

void summary_write_windows(const struct summary *s)
{
    const struct diagnosis_array *all = &s->run->findings.diagnoses;
    if (all->count > 1)
        summary_heading(s, all->items[1].slice.from_ns != all->items[1].slice.to_ns ? "Windows"
                                                                                    : "Slices");
    for (size_t i = 1; i < all->count && i <= TOP_WINDOWS; i++) {
        const struct diagnosis *diagnosis = &all->items[i];
        char label[160], line[1600];
        diagnosis_slice_label(&diagnosis->slice, s->run->lifetimes.begin_ns, label, sizeof label);
        snprintf(line, sizeof line, "%s: ", label);
        top_causes(s, diagnosis, 2, line, sizeof line);
        fprintf(s->out, "  ");
        summary_wrapped(s, line, 2);
    }
    if (all->count > TOP_WINDOWS + 1)
        fprintf(s->out, "  ... and %s more in the report\n",
                TEXT_COUNT(all->count - TOP_WINDOWS - 1));
}
