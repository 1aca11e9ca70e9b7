// SPDX-License-Identifier: MIT
//
// The building blocks of the terminal summary: readable numbers, fields, bars and wrapped lines, in
// a style that suits the stream.
#ifndef ANALYSIS_REPORT_TERMINAL_SUMMARY_PIECES_H
#define ANALYSIS_REPORT_TERMINAL_SUMMARY_PIECES_H

#include <stdbool.h>
#include <stdio.h>

#include "analysis/run/run_analysis.h"

enum {
    SUMMARY_WIDE = 99,      // columns from which on tables have all of theirs
    SUMMARY_BAR_CELLS = 10, // of their bars
};

struct summary_style {
    bool unicode; // bars of blocks and typographic signs; else plain ASCII
    bool colour;  // ANSI colours
    bool full;    // all that there is; else a screen
    int width;    // columns, at least 80
};

// What suits the stream: colours only on a terminal (and not with NO_COLOR or TERM=dumb), Unicode
// only where the locale's character set is UTF-8, as wide as the terminal, between 80 and 100.
struct summary_style summary_style_for(FILE *stream);

struct summary {
    const struct run_analysis *run;
    const struct summary_style *style;
    FILE *out;
};

// Escape sequences that begin and end a way of writing; "" without colours.
const char *summary_strong(const struct summary *s);
const char *summary_faint(const struct summary *s);
const char *summary_warn(const struct summary *s, bool bad);
const char *summary_plain(const struct summary *s);

// A duration, or why there is none: "never" for an unanswered request's, "-" for an unknown one.
const char *summary_duration(double ns, char out[32]);

// The text in a field of so many columns, cut or padded; a bar in one.
void summary_field(const struct summary *s, const char *text, int width);
void summary_bar(const struct summary *s, double part, int cells);

// The indented text in front of a row's fields; what is wider than its own has a line of its own.
void summary_label(const struct summary *s, const char *text, int indent, int width);

// How much of the extra time is explained; by: "" or by what else than the causes shown.
void summary_explained(const struct summary *s, const struct diagnosis *diagnosis, const char *by);

// The mark behind a cause that explains nothing (" *", located only) or is not the server's doing
// (" +"); and a line for each mark that the first `shown` causes have.
const char *summary_cause_mark(const struct cause *cause);
void summary_explain_marks(const struct summary *s, const struct diagnosis *diagnosis,
                           size_t shown);

// Words broken into lines of the style's width, all but the first indented.
void summary_wrapped(const struct summary *s, const char *text, int indent);

// An empty line, and a title; or the title in a field, for what follows on its line.
void summary_heading(const struct summary *s, const char *text);
void summary_heading_field(const struct summary *s, const char *text, int width);

#endif
