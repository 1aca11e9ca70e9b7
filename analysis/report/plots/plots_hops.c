// SPDX-License-Identifier: MIT
#include "analysis/report/plots/plots_hops.h"

#include "analysis/report/plots/svg_pieces.h"
#include "base/units.h"

enum { ROW = 30, LEGEND_ROW = 22, HEADING = 30, WHOLE_WIDTH = 80 };

static const char *const tints[] = {"#e3a06a", "#74add6", "#73c4a8", "#ddb0c9",
                                    "#ecc673", "#9fd0ef", "#bdb46e"};

static const char *tint_of(size_t part)
{
    return tints[part % (sizeof tints / sizeof *tints)];
}

// A way's rows: the last is all of it.
struct way_rows {
    const struct hop_row *items;
    size_t count;
};

static struct way_rows rows_of(const struct run_analysis *run, enum hop_way way)
{
    const struct hop_row_array *all = &run->lifetimes.hops.rows;
    struct way_rows rows = {.items = NULL};
    for (size_t i = 0; i < all->count; i++) {
        if (all->items[i].way != way)
            continue;
        rows.items = rows.items ? rows.items : &all->items[i];
        rows.count++;
    }
    return rows;
}

bool plot_has_hops(const struct run_analysis *run)
{
    return run->lifetimes.hops.rows.count > 0;
}

// Each part's own value at that percentile, and that of all of the way on the right.
static void draw_bar(const struct way_rows *rows, size_t quantile, double y, FILE *out)
{
    double sum = 0, at = SVG_LEFT;
    char text[40];
    for (size_t i = 0; i + 1 < rows->count; i++)
        sum += rows->items[i].value_ns[quantile] > 0 ? rows->items[i].value_ns[quantile] : 0;
    svg_text(out, SVG_LEFT - 8, y + 17, "end", hop_quantile_names[quantile]);
    for (size_t i = 0; i + 1 < rows->count && sum > 0; i++) {
        double ns = rows->items[i].value_ns[quantile];
        double width = ns > 0 ? ns / sum * (SVG_RIGHT - WHOLE_WIDTH - SVG_LEFT) : 0;
        if (width <= 0)
            continue;
        svg_box(out, at, y, width - 0.5, ROW - 6, tint_of(i), 1);
        if (width > 56)
            svg_text(out, at + width / 2, y + 17, "middle", units_format_ns(ns, text, sizeof text));
        at += width;
    }
    double whole = rows->items[rows->count - 1].value_ns[quantile];
    if (whole > 0)
        svg_text(out, SVG_RIGHT, y + 17, "end", units_format_ns(whole, text, sizeof text));
}

static double draw_way(const struct way_rows *rows, double y, FILE *out)
{
    svg_text(out, SVG_LEFT, y + 18, "start", rows->items[rows->count - 1].name);
    y += HEADING;
    for (size_t i = 0; i < HOP_QUANTILES; i++, y += ROW)
        draw_bar(rows, i, y, out);
    for (size_t i = 0; i + 1 < rows->count; i++, y += LEGEND_ROW) {
        svg_box(out, SVG_LEFT, y, 12, 12, tint_of(i), 1);
        svg_text(out, SVG_LEFT + 18, y + 11, "start", rows->items[i].name);
    }
    return y;
}

int plot_hops(const struct run_analysis *run, FILE *out)
{
    double y = 0;
    int height = 10;
    for (int way = 0; way < HOP_WAYS; way++) {
        struct way_rows rows = rows_of(run, (enum hop_way)way);
        height +=
            rows.count ? HEADING + HOP_QUANTILES * ROW + (int)(rows.count - 1) * LEGEND_ROW : 0;
    }
    svg_begin(out, height, "Hop by hop, by percentile");
    for (int way = 0; way < HOP_WAYS; way++) {
        struct way_rows rows = rows_of(run, (enum hop_way)way);
        if (rows.count)
            y = draw_way(&rows, y, out);
    }
    fputs("</svg>\n", out);
    return 0;
}
