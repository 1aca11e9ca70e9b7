// SPDX-License-Identifier: MIT
//
// What plots written as SVG are made of. Lengths are in the picture's own units, from its upper
// left corner.
#ifndef ANALYSIS_REPORT_PLOTS_SVG_PIECES_H
#define ANALYSIS_REPORT_PLOTS_SVG_PIECES_H

#include <stdio.h>

enum { SVG_WIDTH = 960, SVG_LEFT = 70, SVG_RIGHT = 940 }; // of a picture, and of what it plots

// The head of a picture of that height on white; its end, "</svg>", is the caller's.
void svg_begin(FILE *out, int height, const char *label);

// Any text: what is markup in it is escaped. anchor: "start", "middle" or "end" stands at x, or as
// near to it as keeps the text in the picture.
void svg_text(FILE *out, double x, double y, const char *anchor, const char *text);

// The same, no wider than that: what has no room ends with an ellipsis.
void svg_text_within(FILE *out, double x, double y, const char *anchor, const char *text,
                     double most);

// About how wide a text is, at most: which font draws it is not known.
double svg_text_width(const char *text);

void svg_box(FILE *out, double x, double y, double width, double height, const char *colour,
             double opacity);

// The colour of the stage that ends at a stamp, as on the page: bright colours are causes, tints
// are places.
const char *svg_stage_tint(int stage);
const char *svg_off_core_tint(void); // of the application's stage what is not its doing

#endif
