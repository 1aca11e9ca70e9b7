// SPDX-License-Identifier: MIT
#include "analysis/report/summary_views.h"

#include "analysis/report/report_text.h"
#include "base/units.h"

enum { NAMED = 3 };

static void write_side(const struct diagnosis_views *views, int side, FILE *out)
{
    fprintf(out, "  %-20s", side == VIEW_SLICE ? "of these messages" : "of ordinary ones");
    for (int kind = 0; kind < QUEUE_KINDS; kind++)
        fprintf(out, "%13.2f", views->queue[kind].ahead[side].mean);
    fputc('\n', out);
}

static void write_scopes(const struct diagnosis_views *views, FILE *out)
{
    char median[32], count[32];
    const char *between = "  held up by ";
    for (int scope = 0; scope < BLOCKING_SCOPES; scope++) {
        const struct blocking_summary *one = &views->blocking[scope];
        if (one->messages == 0 || one->total_ns <= 0)
            continue;
        fprintf(out, "%s%s %s (%s)", between, blocking_scope_name((enum blocking_scope)scope),
                units_format_ns(one->median_ns, median, sizeof median),
                report_count(one->messages, count));
        between = ", ";
    }
    if (*between == ',')
        fputs(": median (messages)\n", out);
}

static void write_worst(const struct run_analysis *run, const struct diagnosis_views *views,
                        FILE *out)
{
    char total[32], count[32];
    for (size_t i = 0; i < views->worst.count && i < NAMED; i++) {
        const struct named_blocker *one = &views->worst.items[i];
        fprintf(out, "%s%llu (%s, %s messages)", i ? ", " : "  longest by request ",
                (unsigned long long)run->lifetimes.items[one->lifetime].request,
                units_format_ns(one->total_ns, total, sizeof total),
                report_count(one->messages, count));
    }
    if (views->worst.count)
        fputc('\n', out);
}

void summary_views_write(const struct run_analysis *run, const struct diagnosis *diagnosis,
                         FILE *out)
{
    const struct diagnosis_views *views = &diagnosis->views;
    if (!views->available)
        return;
    fprintf(out, "  %-20s", "ahead, on average");
    for (int kind = 0; kind < QUEUE_KINDS; kind++)
        fprintf(out, "%13s", queue_kind_name((enum queue_kind)kind));
    fputc('\n', out);
    write_side(views, VIEW_SLICE, out);
    write_side(views, VIEW_REFERENCE, out);
    write_scopes(views, out);
    write_worst(run, views, out);
}
