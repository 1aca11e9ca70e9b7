// SPDX-License-Identifier: MIT
#include "analysis/report/summary_views.h"

#include <string.h>

#include "base/text.h"
#include "base/units.h"

enum { NAMED = 1, LINE_WIDTH = 98 };

static void write_side(const struct diagnosis_views *views, int side, FILE *out)
{
    fprintf(out, "  %-18s", side == VIEW_SLICE ? "of these messages" : "of ordinary ones");
    for (int kind = 0; kind < QUEUE_KINDS; kind++)
        fprintf(out, "%12.2f", views->queue[kind].ahead[side].mean);
    fputc('\n', out);
}

// A list of a line, or of more where the terminal is narrow.
struct list {
    const char *title; // begins the first line
    FILE *out;
    int column; // 0: nothing was written yet
};

static void list_item(struct list *list, const char *text)
{
    int length = (int)strlen(text), indent = (int)strlen(list->title);
    bool first = list->column == 0;
    if (first)
        list->column = fprintf(list->out, "%s", list->title);
    else if (list->column + length + 2 > LINE_WIDTH)
        list->column = fprintf(list->out, ",\n%*s", indent, "") - 2;
    else
        list->column += fprintf(list->out, ", ");
    list->column += fprintf(list->out, "%s", text);
}

static void list_end(struct list *list)
{
    if (list->column)
        fputc('\n', list->out);
}

static void write_scopes(const struct diagnosis_views *views, FILE *out)
{
    char median[32], count[32], text[120];
    struct list list = {"  held up (median, messages) by ", out, 0};
    for (int scope = 0; scope < BLOCKING_SCOPES; scope++) {
        const struct blocking_summary *one = &views->blocking[scope];
        if (one->messages == 0 || one->total_ns <= 0)
            continue;
        snprintf(text, sizeof text, "%s %s (%s)", blocking_scope_name((enum blocking_scope)scope),
                 units_format_ns(one->median_ns, median, sizeof median),
                 text_count(one->messages, count));
        list_item(&list, text);
    }
    list_end(&list);
}

static void write_worst(const struct run_analysis *run, const struct diagnosis_views *views,
                        FILE *out)
{
    char total[32], count[32], text[120];
    struct list list = {"  longest by request ", out, 0};
    for (size_t i = 0; i < views->worst.count && i < NAMED; i++) {
        const struct named_blocker *one = &views->worst.items[i];
        snprintf(text, sizeof text, "%llu, %s over %s messages",
                 (unsigned long long)run->lifetimes.all.items[one->lifetime].request,
                 units_format_ns(one->total_ns, total, sizeof total),
                 text_count(one->messages, count));
        list_item(&list, text);
    }
    list_end(&list);
}

void summary_views_write(const struct run_analysis *run, const struct diagnosis *diagnosis,
                         FILE *out)
{
    const struct diagnosis_views *views = &diagnosis->views;
    if (!views->available)
        return;
    fprintf(out, "  %-18s", "ahead, on average");
    for (int kind = 0; kind < QUEUE_KINDS; kind++)
        fprintf(out, "%12s", queue_kind_name((enum queue_kind)kind));
    fputc('\n', out);
    write_side(views, VIEW_SLICE, out);
    write_side(views, VIEW_REFERENCE, out);
    write_scopes(views, out);
    write_worst(run, views, out);
}
