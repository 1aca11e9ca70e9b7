// SPDX-License-Identifier: MIT
#include "analysis/report/report_html.h"

#include <stdio.h>
#include <stdlib.h>

#include "analysis/report/page_data.h"
#include "analysis/report/page_write.h"
#include "analysis/report/summary_text.h"

// What the sections share comes before them. Each section_*.js adds itself; page.js shows them.
static const char *const scripts[] = {"page_plot.js",       "page_latency.js", "page_causes.js",
                                      "page_categories.js", "page_boxes.js",   "page_lifetimes.js",
                                      "page_timeline.js",   "page_views.js",   "page_blocking.js",
                                      "section_*.js",       "page.js",         NULL};

// The terminal summary, for browsers without scripts. The caller frees; NULL: no memory.
static char *plain_summary(const struct run_analysis *run)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *memory = open_memstream(&text, &bytes);
    if (!memory)
        return NULL;
    summary_text_write(run, &(struct summary_style){.unicode = true, .full = true, .width = 100},
                       memory);
    if (fclose(memory) == 0)
        return text;
    free(text);
    return NULL;
}

int report_write_html(const struct run_analysis *run, const char *path, struct error *err)
{
    json_t *data = page_data_build(run, err);
    if (!data)
        return -ERROR_FAILED;
    char *summary = plain_summary(run);
    const struct page page = {.template_name = "page.html",
                              .title = run->evidence.name,
                              .verdict = run->findings.verdict,
                              .summary = summary ? summary : "",
                              .scripts = scripts,
                              .data = data};
    int result = page_write(&page, path, err);
    free(summary);
    json_decref(data);
    return result;
}
