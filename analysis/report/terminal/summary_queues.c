// SPDX-License-Identifier: MIT
#include "analysis/report/terminal/summary_queues.h"

#include <stdio.h>

#include "analysis/run/run_culprits.h"
#include "base/text.h"
#include "base/units.h"

enum { CULPRITS_NAMED = 2 };

#define CULPRIT_SHARE  0.05 // of the time that all held up others: less is not named
#define BLOCKING_SHARE 0.1  // of the extra time: its first culprit is named

static void write_side(const struct diagnosis_views *views, int side, FILE *out)
{
    fprintf(out, "  %-18s", side == VIEW_SLICE ? "of these messages" : "of ordinary ones");
    for (int kind = 0; kind < QUEUE_KINDS; kind++)
        fprintf(out, "%12.2f", views->queue[kind].sides[side].ahead.mean);
    fputc('\n', out);
}

static void write_scopes(const struct summary *s, const struct diagnosis_views *views)
{
    char median[32], line[600] = "";
    for (int scope = 0; scope < BLOCKING_SCOPES; scope++) {
        const struct blocking_summary *one = &views->blocking[scope];
        if (one->messages == 0 || one->total_ns <= 0)
            continue;
        text_append(
            line, sizeof line, "%s %s %s (%s)", line[0] ? "," : "held up (median, messages) by",
            blocking_scope_name((enum blocking_scope)scope),
            units_format_ns(one->median_ns, median, sizeof median), TEXT_COUNT(one->messages));
    }
    if (!line[0])
        return;
    fprintf(s->out, "  ");
    summary_wrapped(s, line, 4);
}

// Whose requests held up others, the few that account for most of it; and, where these account for
// far less than the cause, so.
static void write_culprits(const struct summary *s, const struct diagnosis *diagnosis)
{
    const struct diagnosis_views *views = &diagnosis->views;
    char words[240], line[300], total[32], other[32], count[32];
    double sum = 0, cause_ns = run_blocking_ns(diagnosis);
    for (size_t i = 0; i < views->culprits.count; i++)
        sum += views->culprits.items[i].total_ns;
    for (size_t i = 0; i < views->culprits.count && i < CULPRITS_NAMED; i++) {
        const struct culprit *one = &views->culprits.items[i];
        if (one->total_ns < CULPRIT_SHARE * sum)
            break;
        snprintf(line, sizeof line, "%s %s", i ? "and" : "by ",
                 run_culprit_words(s->run, one, words, sizeof words));
        fprintf(s->out, "  ");
        summary_wrapped(s, line, 6);
        fprintf(s->out, "    held up %s messages for %s in all\n", text_count(one->messages, count),
                units_format_ns(one->total_ns, total, sizeof total));
    }
    if (views->blocked_ns < cause_ns / 2)
        fprintf(s->out, "  of %s of head-of-line blocking only %s is known to be whose\n",
                units_format_ns(cause_ns, total, sizeof total),
                units_format_ns(views->blocked_ns, other, sizeof other));
    if (views->slow_themselves && views->slow_behind)
        fprintf(s->out,
                "  %s of the %s messages are slow by themselves, %s because of those ahead\n",
                text_count(views->slow_themselves, total), text_count(views->messages.count, count),
                text_count(views->slow_behind, other));
}

void summary_write_first_culprit(const struct summary *s, const struct diagnosis *diagnosis)
{
    const struct culprit *one = diagnosis->views.culprits.items;
    char words[240], line[400], total[32], count[32];
    if (!diagnosis->views.available || diagnosis->views.culprits.count == 0 ||
        run_blocking_ns(diagnosis) < BLOCKING_SHARE * run_diagnosis_extra_ns(diagnosis))
        return;
    snprintf(line, sizeof line, "held up most by %s: %s messages, for %s in all",
             run_culprit_words(s->run, one, words, sizeof words), text_count(one->messages, count),
             units_format_ns(one->total_ns, total, sizeof total));
    fprintf(s->out, "  ");
    summary_wrapped(s, line, 4);
}

void summary_write_queues(const struct summary *s, const struct diagnosis *diagnosis)
{
    const struct diagnosis_views *views = &diagnosis->views;
    if (!views->available)
        return;
    fprintf(s->out, "  %-18s", "ahead, on average");
    for (int kind = 0; kind < QUEUE_KINDS; kind++)
        fprintf(s->out, "%12s", queue_kind_name((enum queue_kind)kind));
    fputc('\n', s->out);
    write_side(views, VIEW_SLICE, s->out);
    write_side(views, VIEW_REFERENCE, s->out);
    write_scopes(s, views);
    write_culprits(s, diagnosis);
}
