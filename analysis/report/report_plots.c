// SPDX-License-Identifier: MIT
#include "analysis/report/report_plots.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "analysis/report/latency_heat.h"
#include "analysis/report/report_cdf.h"
#include "analysis/run/run_lede.h"
#include "base/new_file.h"
#include "base/quantile.h"
#include "base/text.h"
#include "base/units.h"

enum { WIDTH = 960, LEFT = 70, RIGHT = 940, CAUSES_DRAWN = 8, ROW = 34 };

// As on the page: bright colours are causes, tints are places.
static const char *const cause_colours[CAUSES_DRAWN] = {"#d55e00", "#0072b2", "#009e73", "#cc79a7",
                                                        "#e69f00", "#56b4e9", "#8a7a00", "#7d8087"};
static const char *const stage_tints[] = {"#9fb8cc", "#b9cddc", "#c4c7cb", "#a9c9bd", "#e2cfa4",
                                          "#d3b778", "#e9dcbd", "#d6d8db", "#cfdde8"};

// --- pieces --------------------------------------------------------------------------------------

static void begin(FILE *out, int height, const char *label)
{
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" role=\"img\" "
            "aria-label=\"%s\">\n"
            "<style>text{font:12px sans-serif;fill:#333}.grid{stroke:#ddd;fill:none}</style>\n"
            "<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n",
            WIDTH, height, label, WIDTH, height);
}

static void put_text(FILE *out, double x, double y, const char *anchor, const char *text)
{
    char clean[600];
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
    for (const char *at = text_clean(text, false, clean, sizeof clean); *at; at++)
        if (*at == '<' || *at == '&')
            fputs(*at == '<' ? "&lt;" : "&amp;", out);
        else
            fputc(*at, out);
    fputs("</text>\n", out);
}

static void put_box(FILE *out, double x, double y, double width, double height, const char *colour,
                    double opacity)
{
    fprintf(out,
            "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\" fill=\"%s\" "
            "fill-opacity=\"%.2f\"/>\n",
            x, y, width, height, colour, opacity);
}

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
        put_text(out, LEFT - 8, y + 4, "end", units_format_ns(ns, text, sizeof text));
    }
    for (int i = 0; i <= 5; i++) {
        snprintf(text, sizeof text, "%.3g s", seconds * i / 5);
        put_text(out, LEFT + (RIGHT - LEFT) * i / 5.0, bottom + 18, "middle", text);
    }
}

static int draw_heat(const struct run_analysis *run, FILE *out)
{
    enum { TOP = 40, BOTTOM = 330, HEIGHT = 360, NEVER = 16 };
    struct latency_heat *heat = calloc(1, sizeof *heat);
    uint64_t most = 1, never = 0;
    if (!heat)
        return -1;
    begin(out, HEIGHT, "Latency over time");
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
                put_box(out, LEFT + (double)column * width, y, width - 0.3, height - 0.3,
                        row == HEAT_ROWS ? "#b3261e" : "#0067a3",
                        0.16 + 0.84 * log1p((double)cell) / log1p((double)most));
        }
    if (never)
        put_text(out, LEFT - 8, NEVER + 8, "end", "never");
    fputs("</svg>\n", out);
    free(heat);
    return 0;
}

static void draw_stage_row(const struct run_analysis *run, int quantile, double y, FILE *out)
{
    const double *stages = run->lifetimes.stage_at_quantile_ns[quantile];
    double sum = 0, at = LEFT;
    char text[40];
    for (int stage = 1; stage < STAGES; stage++)
        sum += isfinite(stages[stage]) ? stages[stage] : 0;
    put_text(out, LEFT - 8, y + 17, "end", latency_quantile_names[quantile]);
    for (int stage = 1; stage < STAGES && sum > 0; stage++) {
        double width = stages[stage] > 0 ? stages[stage] / sum * (RIGHT - 80 - LEFT) : 0;
        if (width <= 0)
            continue;
        put_box(out, at, y, width - 0.5, ROW - 8, stage_tints[stage - 1], 1);
        if (width > 56)
            put_text(out, at + width / 2, y + 17, "middle",
                     units_format_ns(stages[stage], text, sizeof text));
        at += width;
    }
    if (sum > 0)
        put_text(out, RIGHT, y + 17, "end", units_format_ns(sum, text, sizeof text));
}

static int draw_stages(const struct run_analysis *run, FILE *out)
{
    int top = 16, legend = top + LATENCY_QUANTILES * ROW + 14, used = 0;
    begin(out, legend + 66, "Where the time goes, by percentile");
    for (int i = 0; i < LATENCY_QUANTILES; i++)
        draw_stage_row(run, i, top + i * ROW, out);
    for (int stage = 1; stage < STAGES; stage++) {
        double most = 0;
        for (int i = 0; i < LATENCY_QUANTILES; i++)
            most = fmax(most, run->lifetimes.stage_at_quantile_ns[i][stage]);
        if (!(most > 0))
            continue;
        double x = LEFT + used % 5 * 172, y = legend + used / 5 * 22;
        put_box(out, x, y, 12, 12, stage_tints[stage - 1], 1);
        put_text(out, x + 18, y + 11, "start",
                 stage_name((enum stamp_kind)stage, run->lifetimes.join.hosts.both_ways));
        used++;
    }
    fputs("</svg>\n", out);
    return 0;
}

// The causes of the run's slice as in the page's bar, one below the other, in words.
static int draw_causes(const struct run_analysis *run, FILE *out)
{
    struct named_cause causes[CAUSES_DRAWN];
    const struct diagnosis *first = run->findings.diagnoses.items;
    size_t count = run_named_causes(first, false, causes, CAUSES_DRAWN);
    double whole = run_diagnosis_extra_ns(first);
    begin(out, (int)count * 46 + 20, "What made the slow requests slow");
    for (size_t i = 0; i < count; i++) {
        double y = 14 + 46 * (double)i, share = causes[i].total_ns / whole;
        char text[CAUSE_WORDS_BYTES + 16], words[CAUSE_WORDS_BYTES];
        snprintf(text, sizeof text, "%.0f %%", 100 * share);
        put_text(out, LEFT - 8, y + 28, "end", text);
        put_text(out, LEFT, y + 10, "start",
                 run_cause_words(run, &first->causes, causes[i].index, words));
        put_box(out, LEFT, y + 16, fmin(share, 1) * (RIGHT - LEFT), 16,
                causes[i].cause->explains ? cause_colours[i] : cause_colours[CAUSES_DRAWN - 1], 1);
    }
    fputs("</svg>\n", out);
    return 0;
}

// --- the whole -----------------------------------------------------------------------------------

static bool always(const struct run_analysis *run)
{
    return run->lifetimes.all.count > 0;
}

static bool has_causes(const struct run_analysis *run)
{
    return run->findings.verdict_available && run->findings.diagnoses.items[0].causes.count > 0 &&
           run_diagnosis_extra_ns(&run->findings.diagnoses.items[0]) > 0;
}

static const struct {
    const char *file;
    bool (*has)(const struct run_analysis *run);
    int (*draw)(const struct run_analysis *run, FILE *out); // -1: no memory
} plots[] = {
    {"latency.svg", always, draw_latency},
    {"heat.svg", always, draw_heat},
    {"stages.svg", always, draw_stages},
    {"causes.svg", has_causes, draw_causes},
};

int report_plots_write(const struct run_analysis *run, const char *folder, struct error *err)
{
    if (mkdir(folder, 0777) < 0 && errno != EEXIST)
        return error_set_errno(err, ERROR_INPUT, "cannot make the folder %s for the plots", folder);
    for (size_t i = 0; i < sizeof plots / sizeof *plots; i++) {
        char path[4200];
        struct new_file file;
        snprintf(path, sizeof path, "%s/%s", folder, plots[i].file);
        if (!plots[i].has(run))
            continue;
        int result = new_file_open(&file, path, err);
        if (result == 0 && plots[i].draw(run, file.file) < 0)
            result = error_set(err, ERROR_FAILED, "no memory for %s", path);
        result = new_file_finish(&file, result, err);
        if (result < 0)
            return result;
    }
    return 0;
}
