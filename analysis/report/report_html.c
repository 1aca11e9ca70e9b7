// SPDX-License-Identifier: MIT
#include "analysis/report/report_html.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/report/page_assets.h"
#include "analysis/report/page_data.h"
#include "analysis/report/page_write.h"
#include "analysis/report/summary_text.h"

// What the page's sections share, before them. Each section_*.js adds itself; page.js shows all.
static const char *const shared[] = {"page_plot.js",       "page_latency.js", "page_causes.js",
                                     "page_categories.js", "page_boxes.js",   "page_lifetimes.js",
                                     "page_timeline.js",   "page_views.js",   "page_blocking.js"};

static void write_scripts(FILE *out)
{
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++)
        page_write_asset(shared[i], out);
    for (const struct page_asset *asset = page_assets; asset->name; asset++)
        if (strncmp(asset->name, "section_", strlen("section_")) == 0)
            page_write_asset(asset->name, out);
    page_write_asset("page.js", out);
}

static int write_data(const struct run_analysis *run, FILE *out, struct error *err)
{
    json_t *page = page_data_build(run, err);
    if (!page)
        return -ERROR_FAILED;
    int status = page_write_json(page, out, err);
    json_decref(page);
    return status;
}

// The terminal summary, for browsers without scripts.
static void write_plain_summary(const struct run_analysis *run, FILE *out)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *memory = open_memstream(&text, &bytes);
    if (!memory)
        return;
    summary_text_write(run, &(struct summary_style){.unicode = true, .full = true, .width = 100},
                       memory);
    if (fclose(memory) == 0)
        page_write_escaped(text, out);
    free(text);
}

static int write_part(const char *name, void *context, FILE *out, struct error *err)
{
    const struct run_analysis *run = context;
    if (strcmp(name, "title") == 0)
        page_write_clean(run->evidence.name, out);
    else if (strcmp(name, "verdict") == 0)
        page_write_clean(run->findings.verdict, out);
    else if (strcmp(name, "summary") == 0)
        write_plain_summary(run, out);
    else if (strcmp(name, "data") == 0)
        return write_data(run, out, err);
    else
        write_scripts(out);
    return 0;
}

int report_write_html(const struct run_analysis *run, const char *path, struct error *err)
{
    return page_write(path, "page.html", write_part, (void *)run, err);
}
