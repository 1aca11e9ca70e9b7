// SPDX-License-Identifier: MIT
#include "analysis/report/plots/plots_causes.h"

#include <math.h>
#include <string.h>

#include "analysis/report/plots/svg_pieces.h"
#include "analysis/run/run_lede.h"
#include "base/text.h"
#include "base/units.h"

enum { CAUSES_DRAWN = 8, BALLOONS_DRAWN = 4000 };

// As on the page, by rank; the last one is that of all others.
static const char *const colours[CAUSES_DRAWN] = {"#d55e00", "#0072b2", "#009e73", "#cc79a7",
                                                  "#e69f00", "#56b4e9", "#8a7a00", "#7d8087"};

bool plot_has_causes(const struct run_analysis *run)
{
    return run->findings.verdict_available && run->findings.diagnoses.items[0].causes.count > 0 &&
           run_diagnosis_extra_ns(&run->findings.diagnoses.items[0]) > 0;
}

int plot_causes(const struct run_analysis *run, FILE *out)
{
    struct named_cause causes[CAUSES_DRAWN];
    const struct diagnosis *first = run->findings.diagnoses.items;
    size_t count = run_causes_by_words(run, first, ALL_CAUSES, causes, CAUSES_DRAWN);
    double whole = run_diagnosis_extra_ns(first);
    svg_begin(out, (int)count * 46 + 20, "What made the slow requests slow");
    for (size_t i = 0; i < count; i++) {
        double y = 14 + 46 * (double)i, share = causes[i].total_ns / whole;
        char text[CAUSE_WORDS_BYTES + 16], words[CAUSE_WORDS_BYTES];
        snprintf(text, sizeof text, "%d %%", text_whole_percent(causes[i].total_ns, whole));
        svg_text(out, SVG_LEFT - 8, y + 28, "end", text);
        svg_text(out, SVG_LEFT, y + 10, "start",
                 run_cause_words(run, &first->causes, causes[i].index, words));
        svg_box(out, SVG_LEFT, y + 16, fmin(share, 1) * (SVG_RIGHT - SVG_LEFT), 16,
                causes[i].cause->explains ? colours[i] : colours[CAUSES_DRAWN - 1], 1);
    }
    fputs("</svg>\n", out);
    return 0;
}

// --- a logarithmic axis of time ------------------------------------------------------------------

struct log_axis {
    double low_ns, high_ns;
    double at_low, at_high; // in the picture
};

static double log_at(const struct log_axis *axis, double ns)
{
    double share = log(fmax(ns, axis->low_ns) / axis->low_ns) / log(axis->high_ns / axis->low_ns);
    return axis->at_low + fmin(share, 1) * (axis->at_high - axis->at_low);
}

static struct log_axis log_axis_of(double least_ns, double most_ns, double at_low, double at_high)
{
    double low = fmax(least_ns, 10), high = fmax(most_ns, 10 * low);
    return (struct log_axis){pow(10, floor(log10(low))), high, at_low, at_high};
}

// --- boxes ---------------------------------------------------------------------------------------

// words: of the cause, which have the room that its numbers leave.
static void draw_box_row(const struct log_axis *axis, const struct cause *cause, const char *words,
                         double y, const char *colour, FILE *out)
{
    enum { BETWEEN = 16 };
    char text[120], median[40], total[40];
    double left = log_at(axis, cause->p25_ns), right = log_at(axis, cause->p75_ns);
    double ends[2] = {log_at(axis, cause->min_ns), log_at(axis, cause->max_ns)};
    svg_box(out, ends[0], y + 23.5, ends[1] - ends[0], 1, colour, 1);
    for (int i = 0; i < 2; i++)
        svg_box(out, ends[i] - 0.5, y + 19, 1, 10, colour, 1);
    svg_box(out, left, y + 16, fmax(right - left, 1.5), 16, colour, 0.4);
    svg_box(out, log_at(axis, cause->median_ns) - 1.5, y + 16, 3, 16, colour, 1);
    snprintf(text, sizeof text, "%s messages, median %s, in all %s", TEXT_COUNT(cause->messages),
             units_format_ns(cause->median_ns, median, sizeof median),
             units_format_ns(cause->total_ns, total, sizeof total));
    svg_text(out, SVG_RIGHT, y + 10, "end", text);
    svg_text_within(out, SVG_LEFT, y + 10, "start", words,
                    SVG_RIGHT - SVG_LEFT - BETWEEN - svg_text_width(text));
}

int plot_boxes(const struct run_analysis *run, FILE *out)
{
    enum { TOP = 14, BOX_ROW = 46 };
    struct named_cause causes[CAUSES_DRAWN];
    const struct diagnosis *first = run->findings.diagnoses.items;
    size_t count = run_named_causes(first, ALL_CAUSES, causes, CAUSES_DRAWN);
    double least = INFINITY, most = 0, bottom = TOP + (double)count * BOX_ROW;
    char text[40], words[CAUSE_WORDS_BYTES];
    for (size_t i = 0; i < count; i++) {
        least = causes[i].cause->min_ns > 0 ? fmin(least, causes[i].cause->min_ns) : least;
        most = fmax(most, causes[i].cause->max_ns);
    }
    struct log_axis axis = log_axis_of(isfinite(least) ? least : 10, most, SVG_LEFT, SVG_RIGHT);
    svg_begin(out, (int)bottom + 30, "What each cause added to the messages that it slowed");
    for (double ns = axis.low_ns; ns <= axis.high_ns; ns *= 10) {
        double x = log_at(&axis, ns);
        fprintf(out, "<path class=\"grid\" d=\"M%.1f %dV%.1f\"/>\n", x, TOP, bottom);
        svg_text(out, x, bottom + 18, "middle", units_format_ns(ns, text, sizeof text));
    }
    for (size_t i = 0; i < count; i++) {
        run_cause_words(run, &first->causes, causes[i].index, words);
        draw_box_row(&axis, causes[i].cause, words, TOP + BOX_ROW * (double)i, colours[i], out);
    }
    fputs("</svg>\n", out);
    return 0;
}

// --- balloons ------------------------------------------------------------------------------------

// Which of the named causes a cause of the diagnosis is a part of; the last colour's: none.
static size_t rank_of(const struct cause *cause, const struct named_cause *named, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(cause->name, named[i].cause->name) == 0 &&
            strcmp(cause->category, named[i].cause->category) == 0)
            return i;
    return CAUSES_DRAWN - 1;
}

static void draw_balloon_axes(const struct log_axis *axis, double seconds, FILE *out)
{
    char text[40];
    for (double ns = axis->low_ns; ns <= axis->high_ns; ns *= 10) {
        double y = log_at(axis, ns);
        fprintf(out, "<path class=\"grid\" d=\"M%d %.1fH%d\"/>\n", SVG_LEFT, y, SVG_RIGHT);
        svg_text(out, SVG_LEFT - 8, y + 4, "end", units_format_ns(ns, text, sizeof text));
    }
    for (int i = 0; i <= 5; i++) {
        snprintf(text, sizeof text, "%.3g s", seconds * i / 5);
        svg_text(out, SVG_LEFT + (SVG_RIGHT - SVG_LEFT) * i / 5.0, axis->at_low + 18, "middle",
                 text);
    }
}

int plot_balloons(const struct run_analysis *run, FILE *out)
{
    enum { TOP = 24, BOTTOM = 360, LEGEND = BOTTOM + 40, LEGEND_ROW = 20, RADIUS = 14 };
    struct named_cause causes[CAUSES_DRAWN];
    const struct diagnosis *first = run->findings.diagnoses.items;
    size_t count = run_named_causes(first, ALL_CAUSES, causes, CAUSES_DRAWN);
    size_t all = first->attributions.count, drawn = all < BALLOONS_DRAWN ? all : BALLOONS_DRAWN;
    double least = INFINITY, most = 0;
    char text[CAUSE_WORDS_BYTES];
    for (size_t i = 0; i < drawn; i++) {
        double ns = (double)first->attributions.items[i].ns;
        least = ns > 0 ? fmin(least, ns) : least;
        most = fmax(most, ns);
    }
    struct log_axis axis = log_axis_of(isfinite(least) ? least : 10, most, BOTTOM, TOP);
    double span = fmax((double)(run->lifetimes.end_ns - run->lifetimes.begin_ns), 1);
    svg_begin(out, LEGEND + (int)count * LEGEND_ROW, "What each cause added to each slow message");
    draw_balloon_axes(&axis, span / 1e9, out);
    for (size_t i = 0; i < drawn; i++) {
        const struct attribution *one = &first->attributions.items[i];
        const struct lifetime *life = &run->lifetimes.all.items[one->lifetime];
        double since = (double)life->stamp_ns[STAMP_INTENDED] - (double)run->lifetimes.begin_ns;
        const char *colour = colours[rank_of(&first->causes.items[one->cause], causes, count)];
        if (!(one->ns > 0))
            continue;
        fprintf(out,
                "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\" fill=\"%s\" fill-opacity=\"0.4\" "
                "stroke=\"%s\"/>\n",
                SVG_LEFT + fmin(fmax(since / span, 0), 1) * (SVG_RIGHT - SVG_LEFT),
                log_at(&axis, (double)one->ns), fmax(RADIUS * sqrt((double)one->ns / most), 1.5),
                colour, colour);
    }
    for (size_t i = 0; i < count; i++) {
        double y = LEGEND + (double)i * LEGEND_ROW;
        svg_box(out, SVG_LEFT, y, 12, 12, colours[i], 0.7);
        svg_text(out, SVG_LEFT + 20, y + 11, "start",
                 run_cause_words(run, &first->causes, causes[i].index, text));
    }
    if (drawn < all) {
        snprintf(text, sizeof text, "%s of %s are drawn, those of the slowest messages",
                 TEXT_COUNT(drawn), TEXT_COUNT(all));
        svg_text(out, SVG_RIGHT, TOP - 10, "end", text);
    }
    fputs("</svg>\n", out);
    return 0;
}
