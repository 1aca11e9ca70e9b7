// SPDX-License-Identifier: MIT
#include "analysis/report/plots/report_plots.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/report/plots/latency_heat.h"
#include "analysis/report/plots/plots_causes.h"
#include "analysis/report/plots/plots_hops.h"
#include "analysis/report/plots/plots_timeline.h"
#include "analysis/report/plots/report_cdf.h"
#include "analysis/report/plots/svg_pieces.h"
#include "base/new_file.h"
#include "base/process.h"
#include "base/quantile.h"
#include "base/units.h"

enum { LEFT = SVG_LEFT, RIGHT = SVG_RIGHT, ROW = 34, PNG_TIMEOUT_MS = 30000 };

// --- plots ---------------------------------------------------------------------------------------

static int draw_latency(const struct run_analysis *run, FILE *out)
{
    const struct lifetime_array *lives = &run->lifetimes.all;
    double *us = malloc((lives->count + 1) * sizeof *us);
    if (!us)
        return -1;
    for (size_t i = 0; i < lives->count; i++)
        us[i] = lives->items[i].latency_ns / 1e3;
    quantile_sort(us, lives->count);
    const struct cdf_series series = {.name = run->evidence.without_client ? "in the server"
                                                                           : "from intended",
                                      .sorted_us = us,
                                      .count = lives->count};
    report_cdf_svg(&series, 1, out);
    free(us);
    return 0;
}

static void draw_heat_axes(const struct run_analysis *run, const struct latency_heat *heat,
                           double top, double bottom, FILE *out)
{
    char text[40];
    double decades = log10(heat->high_ns / heat->low_ns);
    double seconds = (double)(run->lifetimes.end_ns - run->lifetimes.begin_ns) / 1e9;
    for (double ns = pow(10, ceil(log10(heat->low_ns))); ns <= heat->high_ns; ns *= 10) {
        double y = bottom - log10(ns / heat->low_ns) / decades * (bottom - top);
        fprintf(out, "<path class=\"grid\" d=\"M%d %.1fH%d\"/>\n", LEFT, y, RIGHT);
        svg_text(out, LEFT - 8, y + 4, "end", units_format_ns(ns, text, sizeof text));
    }
    for (int i = 0; i <= 5; i++) {
        snprintf(text, sizeof text, "%.3g s", seconds * i / 5);
        svg_text(out, LEFT + (RIGHT - LEFT) * i / 5.0, bottom + 18, "middle", text);
    }
}

static int draw_heat(const struct run_analysis *run, FILE *out)
{
    enum { TOP = 40, BOTTOM = 330, HEIGHT = 360, NEVER = 16 };
    struct latency_heat *heat = calloc(1, sizeof *heat);
    uint64_t most = 1, never = 0;
    if (!heat)
        return -1;
    svg_begin(out, HEIGHT, "Latency over time");
    bool any = latency_heat_fill(&run->lifetimes, heat);
    for (size_t i = 0; i < HEAT_COLUMNS * (HEAT_ROWS + 1); i++) {
        uint64_t cell = heat->cells[i / (HEAT_ROWS + 1)][i % (HEAT_ROWS + 1)];
        most = cell > most ? cell : most;
        never += i % (HEAT_ROWS + 1) == HEAT_ROWS ? cell : 0;
    }
    if (any)
        draw_heat_axes(run, heat, TOP, BOTTOM, out);
    double width = (double)(RIGHT - LEFT) / HEAT_COLUMNS,
           height = (double)(BOTTOM - TOP) / HEAT_ROWS;
    for (size_t column = 0; any && column < HEAT_COLUMNS; column++)
        for (size_t row = 0; row <= HEAT_ROWS; row++) {
            uint64_t cell = heat->cells[column][row];
            double y = row == HEAT_ROWS ? NEVER : BOTTOM - (double)(row + 1) * height;
            if (cell)
                svg_box(out, LEFT + (double)column * width, y, width - 0.3, height - 0.3,
                        row == HEAT_ROWS ? "#b3261e" : "#0067a3",
                        0.16 + 0.84 * log1p((double)cell) / log1p((double)most));
        }
    if (never)
        svg_text(out, LEFT - 8, NEVER + 8, "end", "never");
    fputs("</svg>\n", out);
    free(heat);
    return 0;
}

static void draw_stage_row(const struct run_analysis *run, int quantile, double y, FILE *out)
{
    const double *stages = run->lifetimes.stage_at_quantile_ns[quantile],
                 off_core_ns = run->lifetimes.off_core_at_quantile_ns[quantile];
    double sum = 0, at = LEFT;
    char text[40];
    for (int stage = 1; stage < STAGES; stage++)
        sum += isfinite(stages[stage]) ? stages[stage] : 0;
    svg_text(out, LEFT - 8, y + 17, "end", latency_quantile_names[quantile]);
    for (int stage = 1; stage < STAGES && sum > 0; stage++) {
        double width = stages[stage] > 0 ? stages[stage] / sum * (RIGHT - 80 - LEFT) : 0;
        if (width <= 0)
            continue;
        svg_box(out, at, y, width - 0.5, ROW - 8, svg_stage_tint(stage), 1);
        const double off = stage == STAMP_REPLY ? off_core_ns / stages[stage] * (width - 0.5) : 0;
        if (off > 0)
            svg_box(out, at + width - 0.5 - off, y, off, ROW - 8, svg_off_core_tint(), 1);
        if (width > 56)
            svg_text(out, at + width / 2, y + 17, "middle",
                     units_format_ns(stages[stage], text, sizeof text));
        at += width;
    }
    if (sum > 0)
        svg_text(out, RIGHT, y + 17, "end", units_format_ns(sum, text, sizeof text));
}

static void draw_stage_key(int top, int place, const char *tint, const char *name, FILE *out)
{
    const double x = LEFT + place % 5 * 172, y = top + place / 5 * 22;
    svg_box(out, x, y, 12, 12, tint, 1);
    svg_text(out, x + 18, y + 11, "start", name);
}

static int draw_stages(const struct run_analysis *run, FILE *out)
{
    int top = 16, legend = top + LATENCY_QUANTILES * ROW + 14, used = 0;
    double off_core_ns = 0;
    svg_begin(out, legend + 66, "Where the time goes, by percentile");
    for (int i = 0; i < LATENCY_QUANTILES; i++)
        draw_stage_row(run, i, top + i * ROW, out);
    for (int stage = 1; stage < STAGES; stage++) {
        double most = 0;
        for (int i = 0; i < LATENCY_QUANTILES; i++)
            most = fmax(most, run->lifetimes.stage_at_quantile_ns[i][stage]);
        if (!(most > 0))
            continue;
        draw_stage_key(legend, used++, svg_stage_tint(stage),
                       stage_name((enum stamp_kind)stage, join_undivided(&run->lifetimes.join)),
                       out);
    }
    for (int i = 0; i < LATENCY_QUANTILES; i++)
        off_core_ns = fmax(off_core_ns, run->lifetimes.off_core_at_quantile_ns[i]);
    if (off_core_ns > 0)
        draw_stage_key(legend, used, svg_off_core_tint(), "application, not running", out);
    fputs("</svg>\n", out);
    return 0;
}

// --- the whole -----------------------------------------------------------------------------------

static bool always(const struct run_analysis *run)
{
    return run->lifetimes.all.count > 0;
}

static const struct {
    const char *name;
    bool (*has)(const struct run_analysis *run);
    int (*draw)(const struct run_analysis *run, FILE *out); // -1: no memory
} plots[] = {
    {"latency", always, draw_latency},      {"heat", always, draw_heat},
    {"stages", always, draw_stages},        {"causes", plot_has_causes, plot_causes},
    {"boxes", plot_has_causes, plot_boxes}, {"balloons", plot_has_causes, plot_balloons},
    {"hops", plot_has_hops, plot_hops},     {"timeline", plot_has_timeline, plot_timeline},
};

static int write_svg(const struct run_analysis *run, size_t plot, const char *path,
                     struct error *err)
{
    struct new_file file;
    int result = new_file_open(&file, path, err);
    if (result == 0 && plots[plot].draw(run, file.file) < 0)
        result = error_set(err, ERROR_FAILED, "no memory for %s", path);
    return new_file_finish(&file, result, err);
}

// By librsvg's program, since it is that or all of a font's shaping and drawing.
static int write_png(const char *svg, const char *path, struct error *err)
{
    struct new_file file;
    struct error inner;
    int result = new_file_open(&file, path, err);
    if (result < 0)
        return result;
    const char *const words[] = {"rsvg-convert", "--zoom", "2", "--output",
                                 file.partial,   svg,      NULL};
    if (process_run(words, NULL, PNG_TIMEOUT_MS, NULL, 0, &inner) < 0)
        result = error_set(err, ERROR_INPUT, "no %s, which --png takes rsvg-convert for: %s", path,
                           inner.text);
    return new_file_finish(&file, result, err);
}

int report_plots_folder(const char *folder, struct error *err)
{
    struct stat there;
    bool made = mkdir(folder, 0777) == 0;
    if (!made && errno == EEXIST && stat(folder, &there) == 0) {
        made = S_ISDIR(there.st_mode) && access(folder, W_OK) == 0;
        errno = S_ISDIR(there.st_mode) ? errno : ENOTDIR;
    }
    return made ? 0
                : error_set_errno(err, ERROR_INPUT, "--plots: %s is no folder to write in", folder);
}

int report_plots_write(const struct run_analysis *run, const char *folder, bool png,
                       struct error *err)
{
    if (report_plots_folder(folder, err) < 0)
        return -ERROR_INPUT;
    for (size_t i = 0; i < sizeof plots / sizeof *plots; i++) {
        char svg[4200], other[4200];
        snprintf(svg, sizeof svg, "%s/%s.svg", folder, plots[i].name);
        snprintf(other, sizeof other, "%s/%s.png", folder, plots[i].name);
        if (!plots[i].has(run))
            continue;
        int result = write_svg(run, i, svg, err);
        if (result == 0 && png)
            result = write_png(svg, other, err);
        if (result < 0)
            return result;
    }
    return 0;
}
