// SPDX-License-Identifier: MIT
//
// The plot of the truth benchmark: one panel for each queue, latency (logarithmic) against load,
// the exact curves as lines and what was measured as points with their intervals. An SVG without a
// background, in colours that can be read on a light and on a dark page.
#ifndef BENCH_TRUTH_PLOT_H
#define BENCH_TRUTH_PLOT_H

#include <math.h>
#include <stdio.h>

enum {
    PLOT_PANELS_MAX = 3,
    PLOT_LINES_MAX = 2,
    PLOT_POINTS_MAX = 40,
    PLOT_PANEL_WIDTH = 300,
    PLOT_HEIGHT = 320,
    PLOT_LEFT = 60,
    PLOT_TOP = 40,
    PLOT_BOTTOM = 50,
};

struct plot_point {
    double load, us, low, high;
};

struct plot_line {
    const char *name, *colour;
    struct plot_point curve[PLOT_POINTS_MAX], measured[PLOT_POINTS_MAX];
    int curve_count, measured_count;
};

struct plot_panel {
    const char *name;
    struct plot_line lines[PLOT_LINES_MAX];
};

struct plot {
    struct plot_panel panels[PLOT_PANELS_MAX];
    double low_us, high_us;
};

static inline double plot_x(int panel, double load)
{
    return PLOT_LEFT + panel * (PLOT_PANEL_WIDTH + 20) + load * PLOT_PANEL_WIDTH;
}

static inline double plot_y(const struct plot *plot, double us)
{
    double share = log(us / plot->low_us) / log(plot->high_us / plot->low_us);
    return PLOT_TOP + (1 - share) * (PLOT_HEIGHT - PLOT_TOP - PLOT_BOTTOM);
}

static inline void plot_write_axes(const struct plot *plot, int panel, FILE *file)
{
    double left = plot_x(panel, 0), right = plot_x(panel, 1);
    fprintf(file, "<text x='%.1f' y='24' text-anchor='middle' font-weight='bold'>%s</text>\n",
            (left + right) / 2, plot->panels[panel].name);
    for (double us = 100; us <= plot->high_us; us *= 10) {
        double y = plot_y(plot, us);
        fprintf(file, "<path d='M%.1f %.1fH%.1f' stroke='#8888' fill='none'/>\n", left, y, right);
        if (panel == 0)
            fprintf(file, "<text x='%.1f' y='%.1f' text-anchor='end'>%g %s</text>\n", left - 6,
                    y + 4, us >= 1000 ? us / 1000 : us, us >= 1000 ? "ms" : "&#181;s");
    }
    for (int percent = 0; percent <= 100; percent += 20)
        fprintf(file, "<text x='%.1f' y='%d' text-anchor='middle'>%d</text>\n",
                plot_x(panel, percent / 100.0), PLOT_HEIGHT - PLOT_BOTTOM + 18, percent);
    fprintf(file, "<text x='%.1f' y='%d' text-anchor='middle'>load, %%</text>\n",
            (left + right) / 2, PLOT_HEIGHT - PLOT_BOTTOM + 36);
}

static inline void plot_write_line(const struct plot *plot, int panel, const struct plot_line *line,
                                   FILE *file)
{
    fprintf(file, "<path fill='none' stroke-width='1.5' stroke='%s' d='", line->colour);
    for (int i = 0; i < line->curve_count; i++)
        fprintf(file, "%c%.1f %.1f", i ? 'L' : 'M', plot_x(panel, line->curve[i].load),
                plot_y(plot, line->curve[i].us));
    fprintf(file, "'/>\n");
    for (int i = 0; i < line->measured_count; i++) {
        const struct plot_point *point = &line->measured[i];
        double x = plot_x(panel, point->load);
        fprintf(file, "<path stroke='%s' stroke-width='2' d='M%.1f %.1fV%.1f'/>", line->colour, x,
                plot_y(plot, point->low), plot_y(plot, point->high));
        fprintf(file, "<circle cx='%.1f' cy='%.1f' r='3.5' fill='%s'/>\n", x,
                plot_y(plot, point->us), line->colour);
    }
    const struct plot_point *last = &line->curve[line->curve_count - 1];
    fprintf(file, "<text x='%.1f' y='%.1f' fill='%s'>%s</text>\n", plot_x(panel, last->load) + 6,
            plot_y(plot, last->us) + 4, line->colour, line->name);
}

// Returns 0, or -1 when the file could not be written.
static inline int plot_write(const struct plot *plot, const char *path)
{
    FILE *file = fopen(path, "we");
    if (!file)
        return -1;
    double width = plot_x(PLOT_PANELS_MAX - 1, 1) + 20;
    fprintf(file,
            "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 %.0f %d' width='%.0f' "
            "font-family='sans-serif' font-size='12' fill='#888'>\n"
            "<title>Latency against load: exact (lines) and measured (points, 95 %% "
            "intervals)</title>\n",
            width, PLOT_HEIGHT, width);
    for (int panel = 0; panel < PLOT_PANELS_MAX; panel++) {
        plot_write_axes(plot, panel, file);
        for (int line = 0; line < PLOT_LINES_MAX; line++)
            plot_write_line(plot, panel, &plot->panels[panel].lines[line], file);
    }
    fprintf(file, "</svg>\n");
    return fclose(file) == 0 ? 0 : -1;
}

#endif
