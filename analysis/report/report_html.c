// SPDX-License-Identifier: MIT
#include "analysis/report/report_html.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/report/page_assets.h"
#include "analysis/report/page_data.h"
#include "analysis/report/report_text.h"
#include "analysis/report/summary_text.h"

static void write_escaped(const char *text, FILE *out)
{
    for (; *text; text++) {
        switch (*text) {
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        case '&':
            fputs("&amp;", out);
            break;
        case '"':
            fputs("&quot;", out);
            break;
        default:
            fputc(*text, out);
        }
    }
}

static void write_clean(const char *text, FILE *out)
{
    char clean[1024];
    write_escaped(report_clean_text(text, false, clean, sizeof clean), out);
}

// JSON inside a script element: all that could end the element, or begin a comment in it, starts
// with '<', which only occurs inside strings. The text is plain ASCII (JSON_ENSURE_ASCII).
static int write_script_json(const char *text, size_t bytes, void *context)
{
    FILE *out = context;
    for (size_t i = 0; i < bytes; i++) {
        if (text[i] == '<')
            fputs("\\u003c", out);
        else
            fputc(text[i], out);
    }
    return ferror(out) ? -1 : 0;
}

static int write_data(const struct run_analysis *run, FILE *out, struct error *err)
{
    json_t *page = page_data_build(run, err);
    if (!page)
        return -ERROR_FAILED;
    size_t flags = JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(12);
    int written = json_dump_callback(page, write_script_json, out, flags);
    json_decref(page);
    // A disk that is full shows when the file is closed; anything else is a failure here.
    if (written < 0 && !ferror(out))
        return error_set(err, ERROR_FAILED,
                         "cannot put the report's data into words: out of "
                         "memory, or a document of the run nests too deeply");
    return 0;
}

// The terminal summary, for browsers without scripts.
static void write_plain_summary(const struct run_analysis *run, FILE *out)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *memory = open_memstream(&text, &bytes);
    if (!memory)
        return;
    summary_text_write(run, &(struct summary_style){.unicode = true, .width = 100}, memory);
    if (fclose(memory) == 0)
        write_escaped(text, out);
    free(text);
}

static void write_scripts(FILE *out)
{
    for (const struct page_asset *asset = page_assets; asset->name; asset++)
        if (strstr(asset->name, ".js"))
            fwrite(asset->begin, 1, (size_t)(asset->end - asset->begin), out);
}

static const struct page_asset *find_asset(const char *name)
{
    const struct page_asset *asset = page_assets;
    while (asset->name && strcmp(asset->name, name) != 0)
        asset++;
    return asset;
}

// Fills the template: {{name}} stands for a part of the page.
static int write_part(const struct run_analysis *run, const char *name, size_t length, FILE *out,
                      struct error *err)
{
    const struct page_asset *style = find_asset("page.css");
    if (strncmp(name, "title", length) == 0)
        write_clean(run->name, out);
    else if (strncmp(name, "verdict", length) == 0)
        write_clean(run->verdict, out);
    else if (strncmp(name, "summary", length) == 0)
        write_plain_summary(run, out);
    else if (strncmp(name, "style", length) == 0)
        fwrite(style->begin, 1, (size_t)(style->end - style->begin), out);
    else if (strncmp(name, "script", length) == 0)
        write_scripts(out);
    else if (strncmp(name, "data", length) == 0)
        return write_data(run, out, err);
    return 0;
}

static int write_page(const struct run_analysis *run, FILE *out, struct error *err)
{
    const struct page_asset *template = find_asset("page.html");
    const char *at = template->begin, *open;
    while ((open = memmem(at, (size_t)(template->end - at), "{{", 2)) != NULL) {
        fwrite(at, 1, (size_t)(open - at), out);
        const char *close = memmem(open, (size_t)(template->end - open), "}}", 2);
        if (!close)
            break;
        int written = write_part(run, open + 2, (size_t)(close - open - 2), out, err);
        if (written < 0)
            return written;
        at = close + 2;
    }
    fwrite(at, 1, (size_t)(template->end - at), out);
    return 0;
}

int report_write_html(const struct run_analysis *run, const char *path, struct error *err)
{
    char partial[4200];
    if ((size_t)snprintf(partial, sizeof partial, "%s.partial", path) >= sizeof partial)
        return error_set(err, ERROR_INPUT, "the report's path is too long: %.80s...", path);
    FILE *out = fopen(partial, "we");
    if (!out)
        return error_set_errno(err, ERROR_FAILED, "cannot write the report to %s", partial);
    int result = write_page(run, out, err);
    bool bad = ferror(out) != 0;
    if ((fclose(out) != 0 || bad) && result == 0)
        result = error_set_errno(err, ERROR_FAILED, "cannot write the report to %s", partial);
    if (result == 0 && rename(partial, path) < 0)
        result = error_set_errno(err, ERROR_FAILED, "cannot rename %s to %s", partial, path);
    if (result < 0)
        unlink(partial);
    return result;
}
