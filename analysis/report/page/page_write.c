// SPDX-License-Identifier: MIT
#include "analysis/report/page/page_write.h"

#include <fnmatch.h>
#include <stdbool.h>
#include <string.h>

#include "analysis/report/page/page_packed.h"
#include "base/new_file.h"
#include "base/text.h"

enum { BAR_WORDS = 5 };     // of how many parts words stand below the bar
#define BAR_PART_NAMED 0.15 // of the bar: room for the name

// --- the files of the page -----------------------------------------------------------------------

// The pages' own files, inside the program: templates, their style and their scripts. The
// assembler includes them, so building needs no other tool. page_files.inc lists them; the
// Makefile writes it from what this folder holds. Paths are relative to the top of the tree, where
// make runs.
#define ASSET(symbol, file)                                                                        \
    __asm__(".section .rodata\n"                                                                   \
            ".local " #symbol "_begin, " #symbol "_end\n" #symbol                                  \
            "_begin: .incbin \"analysis/report/page/assets/" file "\"\n" #symbol "_end: .byte 0\n" \
            ".previous\n");                                                                        \
    extern const char symbol##_begin[], symbol##_end[];
#include "analysis/report/page/page_files.inc"
#undef ASSET

#define ASSET(symbol, file) {file, symbol##_begin, symbol##_end},
static const struct page_asset {
    const char *name; // NULL: the end
    const char *begin, *end;
} page_assets[] = {
#include "analysis/report/page/page_files.inc"
    {0},
};

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

// A name or a sentence from a run, without control characters.
static void write_clean(const char *text, FILE *out)
{
    char clean[4096];
    write_escaped(text_clean(text, false, clean, sizeof clean), out);
}

int page_write_json(const json_t *json, FILE *out, struct error *err)
{
    int written = json_dumpf(json, out, JSON_COMPACT | JSON_REAL_PRECISION(12));
    // A disk that is full shows when the file is closed; anything else is a failure here.
    if (written < 0 && !ferror(out))
        return error_set(err, ERROR_FAILED,
                         "cannot put the report's data into words: out of "
                         "memory, or a document of the run nests too deeply");
    return 0;
}

static int write_data(const struct page *page, FILE *out, struct error *err)
{
    FILE *packed = page_packed_open(out);
    if (!packed)
        return error_set(err, ERROR_FAILED, "out of memory for the report's data");
    int result = page->data ? page_write_json(page->data, packed, err)
                            : page->write_data(page->context, packed, err);
    if (fclose(packed) != 0 && !ferror(out) && result == 0)
        result = error_set(err, ERROR_FAILED, "cannot compress the report's data");
    return result;
}

static const struct page_asset *find_asset(const char *name)
{
    const struct page_asset *asset = page_assets;
    while (asset->name && strcmp(asset->name, name) != 0)
        asset++;
    return asset;
}

static void write_scripts(const char *const *patterns, FILE *out)
{
    for (; *patterns; patterns++)
        for (const struct page_asset *asset = page_assets; asset->name; asset++)
            if (fnmatch(*patterns, asset->name, 0) == 0)
                fwrite(asset->begin, 1, (size_t)(asset->end - asset->begin), out);
}

static void write_remedy(const char *remedy, FILE *out)
{
    if (!remedy || !remedy[0])
        return;
    fputs("\u2192 ", out);
    write_clean(remedy, out);
    fputc('.', out);
}

// As section_bar.js makes it, without colours, and without what is chosen by a click.
static void write_bar(const struct page *page, FILE *out)
{
    if (page->bar_parts == 0)
        return;
    fputs(
        "<p class=\"hint\">Where the extra time of the slow messages went.</p><div class=\"bar\">",
        out);
    for (size_t i = 0; i < page->bar_parts; i++) {
        const struct page_bar_part *part = &page->bar[i];
        fprintf(out, "<span class=\"part\" style=\"flex:%.4f 1 0\">", part->share);
        if (part->share >= BAR_PART_NAMED) {
            write_clean(part->name, out);
            fprintf(out, " %d %%", text_whole_percent(part->share, 1));
        }
        fputs("</span>", out);
    }
    fputs("</div><ul class=\"bar-words\">", out);
    for (size_t i = 0; i < page->bar_parts && i < BAR_WORDS; i++) {
        fprintf(out, "<li><span class=\"words\"><span class=\"swatch\"></span><b>%d %%</b><span>",
                text_whole_percent(page->bar[i].share, 1));
        write_clean(page->bar[i].words, out);
        fputs("</span></span></li>", out);
    }
    fputs("</ul>", out);
}

static int write_part(const struct page *page, const char *name, FILE *out, struct error *err)
{
    if (strcmp(name, "title") == 0)
        write_clean(page->title, out);
    else if (strcmp(name, "about") == 0)
        write_clean(page->about ? page->about : "", out);
    else if (strcmp(name, "verdict") == 0)
        write_clean(page->verdict, out);
    else if (strcmp(name, "remedy") == 0)
        write_remedy(page->remedy, out);
    else if (strcmp(name, "bar") == 0)
        write_bar(page, out);
    else if (strcmp(name, "summary") == 0)
        write_escaped(page->summary, out);
    else if (strcmp(name, "data") == 0)
        return write_data(page, out, err);
    else
        write_scripts(page->scripts, out);
    return 0;
}

// What all pages have, by the name of the part.
static const char *shared_asset(const char *part)
{
    static const char *const shared[][2] = {{"head", "page_head.html"},
                                            {"facts", "page_verdict.html"},
                                            {"css", "page.css"},
                                            {"foot", "page_foot.html"}};
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++)
        if (strcmp(part, shared[i][0]) == 0)
            return shared[i][1];
    return NULL;
}

static int fill_template(const struct page_asset *template, const struct page *page, FILE *out,
                         struct error *err)
{
    const char *at = template->begin, *open;
    while ((open = memmem(at, (size_t)(template->end - at), "{{", 2)) != NULL) {
        fwrite(at, 1, (size_t)(open - at), out);
        const char *close = memmem(open, (size_t)(template->end - open), "}}", 2);
        if (!close)
            break;
        char name[32];
        snprintf(name, sizeof name, "%.*s", (int)(close - open - 2), open + 2);
        const char *shared = shared_asset(name);
        int written = shared ? fill_template(find_asset(shared), page, out, err)
                             : write_part(page, name, out, err);
        if (written < 0)
            return written;
        at = close + 2;
    }
    fwrite(at, 1, (size_t)(template->end - at), out);
    return 0;
}

int page_write(const struct page *page, const char *path, struct error *err)
{
    struct new_file out;
    int result = new_file_open(&out, path, err);
    if (result < 0)
        return error_prefix(err, "the report");
    result = fill_template(find_asset(page->template_name), page, out.file, err);
    return new_file_finish(&out, result, err);
}
