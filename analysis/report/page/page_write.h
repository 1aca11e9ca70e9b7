// SPDX-License-Identifier: MIT
//
// Writes a page from its template, in which {{name}} stands for a part: head, facts and foot are
// the same for all pages and may hold parts themselves, the others are in struct page. Text from a
// run is escaped here, whatever it holds.
#ifndef ANALYSIS_REPORT_PAGE_PAGE_WRITE_H
#define ANALYSIS_REPORT_PAGE_PAGE_WRITE_H

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>

#include "base/error.h"

// Writes a page's data, for pages whose data is too large for one document.
typedef int page_data_writer(void *context, FILE *out, struct error *err);

// A part of the bar of causes as it stands in the page before its scripts run.
struct page_bar_part {
    char name[300], words[600];
    double share; // of all of the bar
};

struct page {
    const char *template_name;
    const char *title;   // a name
    const char *about;   // what follows it in the browser's title; NULL: nothing
    const char *verdict; // a sentence; NULL: the template has none
    const char *remedy;  // a sentence; NULL or "": none
    const struct page_bar_part *bar;
    size_t bar_parts;
    const char *summary;        // lines of text, for browsers without scripts
    const char *const *scripts; // the page's own, in order, NULL at the end; may be "section_*.js"
    const json_t *data;         // or, where this is NULL, what write_data writes
    page_data_writer *write_data;
    void *context; // of write_data
};

// Writes the page to a file that appears as a whole or not at all. ERROR_FAILED: cannot write.
int page_write(const struct page *page, const char *path, struct error *err);

// A part of what write_data writes. Does not release it.
int page_write_json(const json_t *json, FILE *out, struct error *err);

#endif
