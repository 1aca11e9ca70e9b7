// SPDX-License-Identifier: MIT
//
// Writes a page from its template, in which {{name}} stands for a part: head, style and foot are
// the same for all pages and may hold parts themselves, the others are the page's own. Text from a
// run is escaped here, whatever it holds.
#ifndef ANALYSIS_REPORT_PAGE_WRITE_H
#define ANALYSIS_REPORT_PAGE_WRITE_H

#include <jansson.h>
#include <stdio.h>

#include "base/error.h"

// Writes the part of that name. Negative, with *err filled in, when it cannot be made; what cannot
// be written is found when the file is closed.
typedef int page_part(const char *name, void *context, FILE *out, struct error *err);

// Writes the page to a file that appears as a whole or not at all. ERROR_FAILED: cannot write.
int page_write(const char *path, const char *template_name, page_part *part, void *context,
               struct error *err);

// Text as markup shows it.
void page_write_escaped(const char *text, FILE *out);

// The same of a name or a sentence from a run, without control characters.
void page_write_clean(const char *text, FILE *out);

// JSON for a script element. Does not release it.
int page_write_json(const json_t *json, FILE *out, struct error *err);

// One of the program's own files.
void page_write_asset(const char *name, FILE *out);

#endif
