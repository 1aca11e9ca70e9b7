// SPDX-License-Identifier: MIT
#include "analysis/report/plots/svg_pieces.h"

#include <math.h>
#include <string.h>

#include "base/text.h"

enum { FONT_SIZE = 12 };
static const double THINNEST = 0.1; // of a box that is there

void svg_begin(FILE *out, int height, const char *label)
{
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" role=\"img\" "
            "aria-label=\"%s\">\n"
            "<style>text{font:%dpx sans-serif;fill:#333}.grid{stroke:#ddd;fill:none}</style>\n"
            "<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n",
            SVG_WIDTH, height, label, FONT_SIZE, SVG_WIDTH, height);
}

// Of a sans-serif font that is wider than most (DejaVu Sans), of FONT_SIZE.
static double letter_width(const char *letter)
{
    static const struct {
        const char *letters;
        double ems;
    } rows[] = {{"ijl|!'.,:; ", 0.32}, {"ft()[]{}r-`/\\", 0.41}, {"mwMW%@", 0.98}};
    const unsigned char first = (unsigned char)*letter;
    double ems = first >= 0xe0 ? 1 : first >= 'A' && first <= 'Z' ? 0.72 : 0.64;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strchr(rows[i].letters, first))
            ems = rows[i].ems;
    return (first & 0xc0) == 0x80 ? 0 : FONT_SIZE * ems; // 10......: a character goes on
}

double svg_text_width(const char *text)
{
    double width = 0;
    for (; *text; text++)
        width += letter_width(text);
    return width;
}

// Cuts the text to that width, with an ellipsis for what is missing. Returns its width.
static double cut_text(char *text, size_t bytes, double most)
{
    static const char ellipsis[] = "\u2026";
    double width = svg_text_width(text), room = most - svg_text_width(ellipsis), used = 0;
    size_t at = 0;
    if (width <= most)
        return width;
    while (text[at] && used + letter_width(text + at) <= room)
        used += letter_width(text + at++);
    while (at > 0 && (text[at - 1] == ' ' || ((unsigned char)text[at] & 0xc0) == 0x80))
        at--;
    snprintf(text + at, bytes - at, "%s", ellipsis);
    return svg_text_width(text);
}

void svg_text_within(FILE *out, double x, double y, const char *anchor, const char *text,
                     double most)
{
    enum { MARGIN = 2 };
    char clean[600];
    text_clean(text, false, clean, sizeof clean - 4);
    const double width = cut_text(clean, sizeof clean, most),
                 before = *anchor == 's'   ? 0
                          : *anchor == 'm' ? width / 2
                                           : width,
                 from = fmax(MARGIN, fmin(x - before, SVG_WIDTH - MARGIN - width));
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", from + before, y, anchor);
    for (const char *at = clean; *at; at++)
        if (*at == '<' || *at == '&')
            fputs(*at == '<' ? "&lt;" : "&amp;", out);
        else
            fputc(*at, out);
    fputs("</text>\n", out);
}

void svg_text(FILE *out, double x, double y, const char *anchor, const char *text)
{
    svg_text_within(out, x, y, anchor, text, SVG_WIDTH - 4);
}

void svg_box(FILE *out, double x, double y, double width, double height, const char *colour,
             double opacity)
{
    fprintf(out,
            "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\" fill=\"%s\" "
            "fill-opacity=\"%.2f\"/>\n",
            x, y, fmax(width, THINNEST), height, colour, opacity);
}

const char *svg_off_core_tint(void)
{
    return "#c9c4b8";
}

const char *svg_stage_tint(int stage)
{
    static const char *const tints[] = {"#9fb8cc", "#b9cddc", "#c4c7cb", "#a9c9bd", "#e2cfa4",
                                        "#d3b778", "#e9dcbd", "#d6d8db", "#cfdde8"};
    return tints[stage - 1];
}
