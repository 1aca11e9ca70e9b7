// SPDX-License-Identifier: MIT
#include "analysis/report/plots/report_cdf.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "analysis/report/plots/svg_pieces.h"
#include "base/quantile.h"
#include "base/units.h"

enum {
    HEIGHT = 380,
    TOP = 40,
    BOTTOM = 330,
    PANEL_WIDTH = 400,
    POINTS = 300,
    LOWEST_DECADE = 6, // of the share that is slower: one in a million
};
static const int panel_left[2] = {60, 540};

// Colours that colour-blind readers can tell apart (Okabe and Ito); dashes differ as well.
static const char *const colours[CDF_SERIES_MAX] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                    "#e69f00", "#56b4e9", "#000000", "#888888"};
static const char *const dashes[CDF_SERIES_MAX] = {"none", "6 3", "2 3", "8 3 2 3",
                                                   "none", "6 3", "2 3", "8 3 2 3"};

struct axis {
    double low, high; // latency, us
};

static double x_of(const struct axis *axis, int panel, double us)
{
    double share = log(us / axis->low) / log(axis->high / axis->low);
    share = share < 0 ? 0 : share > 1 ? 1 : share;
    return panel_left[panel] + share * PANEL_WIDTH;
}

// Left: the share that is at most so slow. Right: the share that is slower, by decades from 1 %.
static double y_of(int panel, double share)
{
    double up = panel == 0 ? share : (log10(1 - share) + LOWEST_DECADE) / (LOWEST_DECADE - 2);
    up = up < 0 ? 0 : up > 1 ? 1 : up;
    return panel == 0 ? BOTTOM - up * (BOTTOM - TOP) : TOP + (1 - up) * (BOTTOM - TOP);
}

// The smallest and the largest latency of all, from a share on.
static struct axis axis_of(const struct cdf_series *series, size_t count, double from)
{
    struct axis axis = {INFINITY, 0};
    for (size_t i = 0; i < count; i++) {
        double low = quantile_sorted(series[i].sorted_us, series[i].count, from);
        axis.low = low < axis.low ? low : axis.low;
        for (size_t k = series[i].count; k-- > 0;)
            if (isfinite(series[i].sorted_us[k])) {
                axis.high = fmax(axis.high, series[i].sorted_us[k]);
                break;
            }
    }
    axis.low = axis.low > 0.1 ? axis.low : 0.1;
    if (!(axis.high > axis.low))
        axis.high = axis.low * 10;
    return axis;
}

static void write_grid(const struct axis *axis, int panel, FILE *out)
{
    char text[40];
    int left = panel_left[panel], right = left + PANEL_WIDTH;
    bool wide = axis->high / axis->low > 30; // one label a decade has room, else three
    for (double decade = pow(10, floor(log10(axis->low))); decade < axis->high; decade *= 10)
        for (int step = 1; step <= (wide ? 1 : 5); step += step == 1 ? 1 : 3) {
            double us = decade * step;
            if (us < axis->low || us > axis->high)
                continue;
            double x = x_of(axis, panel, us);
            fprintf(out, "<path class=\"grid\" d=\"M%.1f %dV%d\"/>\n", x, TOP, BOTTOM);
            svg_text(out, x, BOTTOM + 16, "middle", units_format_ns(us * 1e3, text, sizeof text));
        }
    for (int i = 0; i <= 4; i++) {
        static const char *const tail[] = {"99 %", "99.9 %", "99.99 %", "99.999 %", "99.9999 %"};
        double share = panel == 0 ? i / 4.0 : 1 - pow(10, -2 - i), y = y_of(panel, share);
        snprintf(text, sizeof text, "%d %%", i * 25);
        fprintf(out, "<path class=\"grid\" d=\"M%d %.1fH%d\"/>\n", left, y, right);
        svg_text(out, left - 6, y + 4, "end", panel == 0 ? text : tail[i]);
    }
    svg_text(out, left + PANEL_WIDTH / 2.0, TOP - 14, "middle",
             panel == 0 ? "all requests" : "the slowest percent");
    svg_text(out, left + PANEL_WIDTH / 2.0, BOTTOM + 36, "middle", "latency");
}

static void write_curve(const struct cdf_series *one, const struct axis *axis, int panel,
                        size_t index, FILE *out)
{
    bool begun = false;
    fprintf(out,
            "<path fill=\"none\" stroke=\"%s\" stroke-width=\"1.8\" stroke-dasharray=\"%s\" d=\"",
            colours[index], dashes[index]);
    for (int i = 0; i <= POINTS; i++) {
        double at = (double)i / POINTS;
        double share = panel == 0 ? at : 1 - pow(10, -2 - (LOWEST_DECADE - 2) * at);
        // Beyond the last request there is nothing to draw.
        if ((1 - share) * (double)one->count < 0.5 && i < POINTS && panel == 1)
            break;
        double us = quantile_sorted(one->sorted_us, one->count, share);
        if (!isfinite(us))
            break;
        fprintf(out, "%s%.1f %.1f", begun ? "L" : "M", x_of(axis, panel, us), y_of(panel, share));
        begun = true;
    }
    fprintf(out, "%s\"/>\n", begun ? "" : "M0 0");
}

static void write_legend(const struct cdf_series *series, size_t count, FILE *out)
{
    enum { LINE = 30, GAP = 6, MOST = PANEL_WIDTH / 2 };
    double widest = 0;
    for (size_t i = 0; i < count; i++)
        widest = fmin(fmax(widest, svg_text_width(series[i].name)), MOST);
    const double left = panel_left[0] + PANEL_WIDTH - 10 - widest;
    for (size_t i = 0; i < count; i++) {
        double y = BOTTOM - 10 - 18 * (double)(count - 1 - i);
        fprintf(out,
                "<path fill=\"none\" stroke=\"%s\" stroke-width=\"2.5\" stroke-dasharray=\"%s\" "
                "d=\"M%.1f %.1fh%d\"/>\n",
                colours[i], dashes[i], left - GAP - LINE, y - 4, LINE);
        svg_text_within(out, left, y, "start", series[i].name, MOST);
    }
}

void report_cdf_svg(const struct cdf_series *series, size_t count, FILE *out)
{
    count = count > CDF_SERIES_MAX ? CDF_SERIES_MAX : count;
    svg_begin(out, HEIGHT, "Distributions of latency");
    for (int panel = 0; panel < 2; panel++) {
        const struct axis axis = axis_of(series, count, panel == 0 ? 0.001 : 0.99);
        write_grid(&axis, panel, out);
        for (size_t i = 0; i < count; i++)
            write_curve(&series[i], &axis, panel, i, out);
    }
    write_legend(series, count, out);
    fputs("</svg>\n", out);
}
