// SPDX-License-Identifier: MIT
#include "analysis/report/svg_pieces.h"

#include "base/text.h"

void svg_begin(FILE *out, int height, const char *label)
{
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" role=\"img\" "
            "aria-label=\"%s\">\n"
            "<style>text{font:12px sans-serif;fill:#333}.grid{stroke:#ddd;fill:none}</style>\n"
            "<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n",
            SVG_WIDTH, height, label, SVG_WIDTH, height);
}

void svg_text(FILE *out, double x, double y, const char *anchor, const char *text)
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

void svg_box(FILE *out, double x, double y, double width, double height, const char *colour,
             double opacity)
{
    fprintf(out,
            "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\" fill=\"%s\" "
            "fill-opacity=\"%.2f\"/>\n",
            x, y, width, height, colour, opacity);
}

const char *svg_stage_tint(int stage)
{
    static const char *const tints[] = {"#9fb8cc", "#b9cddc", "#c4c7cb", "#a9c9bd", "#e2cfa4",
                                        "#d3b778", "#e9dcbd", "#d6d8db", "#cfdde8"};
    return tints[stage - 1];
}
