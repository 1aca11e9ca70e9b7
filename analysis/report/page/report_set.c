// SPDX-License-Identifier: MIT
#include "analysis/report/page/report_set.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/report/page/page_write.h"
#include "base/input_file.h"
#include "base/text.h"
#include "base/units.h"

enum { PATH_BYTES = 4300, PICTURE_BYTES = 4 << 20 };

static const char *const set_scripts[] = {"page_plot.js", "page_runs.js", "page_set.js", NULL};
static const char *const documents[] = {"repetitions.json", "matrix.json", "study.json"};

// The path of the folder's document; NULL: it has none.
static const char *document_path(const char *directory, char path[PATH_BYTES])
{
    for (size_t i = 0; i < sizeof documents / sizeof *documents; i++) {
        snprintf(path, PATH_BYTES, "%s/%s", directory, documents[i]);
        if (access(path, F_OK) == 0)
            return path;
    }
    return NULL;
}

bool report_is_set(const char *directory)
{
    char path[PATH_BYTES];
    return document_path(directory, path) != NULL;
}

// The list that the page shows must be there; the rest may be missing.
static bool is_set_document(const json_t *document)
{
    const json_t *list = json_object_get(document, "list"), *one;
    size_t i;
    if (!json_is_array(list) || !json_is_string(json_object_get(document, "name")))
        return false;
    json_array_foreach(list, i, one) if (!json_is_object(one)) return false;
    return true;
}

json_t *report_set_read(const char *directory, struct error *err)
{
    char path[PATH_BYTES];
    json_error_t problem = {.line = 0};
    const char *found = document_path(directory, path);
    json_t *document = found ? input_json(path, &problem) : NULL;
    if (!found)
        error_set(err, ERROR_INPUT, "%s has no repetitions.json, matrix.json or study.json",
                  directory);
    else if (!document)
        error_set(err, ERROR_INPUT, "%s:%d: %s", path, problem.line, problem.text);
    else if (!is_set_document(document)) {
        error_set(err, ERROR_INPUT, "%s is not what taillight run writes", path);
        json_decref(document);
        document = NULL;
    }
    return document;
}

// --- in words ------------------------------------------------------------------------------------

static const char *duration(const json_t *us, char out[32])
{
    return json_is_number(us) ? units_format_ns(json_number_value(us) * 1000, out, 32)
           : us               ? "never"
                              : "known of too few requests";
}

// name: of which of several loads; NULL: there is one.
static void verdict_append_pooled(const json_t *document, const char *name, char *out, size_t bytes)
{
    char requests[32], value[32], low[32], high[32], clean[100];
    const json_t *pooled = json_object_get(document, "pooled");
    const json_t *interval = json_object_get(json_object_get(pooled, "ci_us"), "p99");
    const json_t *exceeds = json_object_get(json_object_get(document, "between"), "exceeds_within");
    text_append(out, bytes, "; ");
    if (name)
        text_append(out, bytes, "load `%s`: ", text_clean(name, false, clean, sizeof clean));
    text_append(
        out, bytes, "%s requests in all: p99 %s",
        text_count((uint64_t)json_integer_value(json_object_get(pooled, "requests")), requests),
        duration(json_object_get(json_object_get(pooled, "latency_us"), "p99"), value));
    if (json_array_size(interval) == 2)
        text_append(out, bytes, " [%s, %s]", duration(json_array_get(interval, 0), low),
                    duration(json_array_get(interval, 1), high));
    if (json_is_boolean(exceeds))
        text_append(out, bytes, "; the repetitions differ by %s chance within them explains",
                    json_is_true(exceeds) ? "more than" : "no more than");
}

// What the document lists.
static const char *member_noun(const json_t *document)
{
    return json_object_get(document, "pooled")   ? "repetition"
           : json_object_get(document, "rounds") ? "step"
                                                 : "configuration";
}

// Why the load of a row cannot be trusted; NULL: it can be.
static const char *doubt_of(const json_t *row)
{
    const char *verdict = json_string_value(json_object_get(row, "load_verdict"));
    const char *reason = json_string_value(json_array_get(json_object_get(row, "load_reasons"), 0));
    if (!verdict || strcmp(verdict, "n/a") != 0)
        return NULL;
    return reason ? reason : "it does not say why";
}

// The same of all loads of the document's member; *name: of the one that it is about.
static const char *doubt_of_member(const json_t *document, size_t member, const char **name)
{
    json_t *row = json_array_get(json_object_get(document, "list"), member), *other;
    const char *reason = doubt_of(row);
    const bool repeated = json_object_get(document, "pooled");
    const char *key = json_string_value(json_object_get(repeated ? document : row, "load"));
    *name = key ? key : "";
    json_object_foreach(json_object_get(repeated ? document : row, "loads"), key, other)
    {
        if (reason)
            return reason;
        *name = key;
        reason =
            doubt_of(repeated ? json_array_get(json_object_get(other, "list"), member) : other);
    }
    return reason;
}

char *report_set_doubt(const json_t *document, char out[REPORT_DOUBT_BYTES])
{
    const json_t *list = json_object_get(document, "list");
    char why[REPORT_DOUBT_BYTES] = "", clean[REPORT_DOUBT_BYTES];
    size_t doubtful = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name, *reason = doubt_of_member(document, i, &name);
        if (reason && doubtful++ == 0)
            snprintf(why, sizeof why, "%s%s%s%s", *name ? "load `" : "", name, *name ? "`: " : "",
                     reason);
    }
    out[0] = '\0';
    if (doubtful)
        snprintf(out, REPORT_DOUBT_BYTES,
                 "Inconclusive: the load of %s of %s %s%s cannot be trusted: %s",
                 TEXT_COUNT(doubtful), TEXT_COUNT(json_array_size(list)), member_noun(document),
                 text_plural((double)json_array_size(list)),
                 text_clean(why, false, clean, sizeof clean));
    return out;
}

void report_set_verdict(const json_t *document, char *out, size_t out_bytes)
{
    size_t count = json_array_size(json_object_get(document, "list"));
    const json_t *rounds = json_object_get(document, "rounds");
    char doubt[REPORT_DOUBT_BYTES];
    bool pooled = json_object_get(document, "pooled") != NULL;
    report_set_doubt(document, doubt);
    snprintf(out, out_bytes, "%s%s%zu %s%s of %s", doubt, doubt[0] ? ". " : "", count,
             member_noun(document), text_plural((double)count),
             json_string_value(json_object_get(document, "name")));
    if (json_integer_value(rounds) > 1)
        text_append(out, out_bytes, ", %s rounds", TEXT_COUNT(json_integer_value(rounds)));
    if (pooled) {
        const char *name = json_string_value(json_object_get(document, "load"));
        json_t *other;
        verdict_append_pooled(document, name, out, out_bytes);
        json_object_foreach(json_object_get(document, "loads"), name, other)
            verdict_append_pooled(other, name, out, out_bytes);
    }
}

static void verdict_append_gates(const json_t *gates, char *out, size_t bytes)
{
    static const char *const outcomes[] = {"failed", "inconclusive", "passed"};
    size_t counts[3] = {0}, i;
    const json_t *gate;
    json_array_foreach(gates, i, gate) for (int k = 0; k < 3; k++)
    {
        const char *outcome = json_string_value(json_object_get(gate, "outcome"));
        counts[k] += outcome && strcmp(outcome, outcomes[k]) == 0;
    }
    bool first = true;
    for (int k = 0; k < 3; k++)
        if (counts[k]) {
            text_append(out, bytes, "%s%s gate%s %s", first ? ". " : ", ", TEXT_COUNT(counts[k]),
                        counts[k] == 1 ? "" : "s", outcomes[k]);
            first = false;
        }
}

// --- the page ------------------------------------------------------------------------------------

// The whole file as text; NULL: it is not there, or larger than any picture of ours.
static json_t *read_picture(const char *directory)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/cdf.svg", directory);
    FILE *file = input_stream(path, NULL);
    char *text = file ? malloc(PICTURE_BYTES) : NULL;
    size_t bytes = text ? fread(text, 1, PICTURE_BYTES, file) : 0;
    json_t *picture = bytes && bytes < PICTURE_BYTES ? json_stringn(text, bytes) : NULL;
    free(text);
    if (file)
        fclose(file);
    return picture;
}

// What the scripts show: document, gates, picture. NULL with *err filled when there is none.
static json_t *page_data(const char *directory, struct error *err)
{
    char path[PATH_BYTES];
    json_t *document = report_set_read(directory, err);
    if (!document)
        return NULL;
    snprintf(path, sizeof path, "%s/gates.json", directory);
    json_t *judged = input_json(path, NULL);
    json_t *data = json_pack("{s:s, s:o, s:O*, s:o*}", "taillight_version", TAILLIGHT_VERSION,
                             "document", document, "gates", json_object_get(judged, "gates"),
                             "picture", read_picture(directory));
    json_decref(judged);
    if (!data)
        error_set(err, ERROR_FAILED, "no memory for the page of %s", directory);
    return data;
}

int report_set_write(const char *directory, const char *path, struct error *err)
{
    char in_folder[PATH_BYTES], verdict[1400];
    json_t *data = page_data(directory, err);
    if (!data)
        return -(int)err->kind;
    const json_t *document = json_object_get(data, "document");
    report_set_verdict(document, verdict, sizeof verdict);
    verdict_append_gates(json_object_get(data, "gates"), verdict, sizeof verdict);
    const struct page page = {.template_name = "page_set.html",
                              .title = json_string_value(json_object_get(document, "name")),
                              .verdict = verdict,
                              .scripts = set_scripts,
                              .data = data};
    snprintf(in_folder, sizeof in_folder, "%s/report.html", directory);
    int result = page_write(&page, path ? path : in_folder, err);
    json_decref(data);
    return result;
}

// --- a sweep or a search -------------------------------------------------------------------------

static const char *const load_scripts[] = {"page_plot.js", "page_load.js", NULL};

bool report_is_load(const char *directory)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/sweep.json", directory);
    return access(path, F_OK) == 0;
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

// What the page draws must be there; what it only shows may be missing.
static bool is_load_document(const json_t *document)
{
    const json_t *points = json_object_get(document, "points"), *point;
    size_t i;
    if (!json_is_array(points) || json_array_size(points) == 0)
        return false;
    json_array_foreach(points, i, point)
    {
        if (!json_is_number(json_object_get(point, "rate")) ||
            !json_is_object(json_object_get(point, "latency_us")) ||
            !json_is_object(json_object_get(point, "ci_us")) ||
            !json_is_object(json_object_get(point, "saturated")))
            return false;
    }
    return true;
}

json_t *report_load_read(const char *directory, struct error *err)
{
    char path[4200];
    json_error_t problem;
    snprintf(path, sizeof path, "%s/sweep.json", directory);
    json_t *document = input_json(path, &problem);
    if (!document) {
        error_set(err, ERROR_INPUT, "%s:%d: %s", path, problem.line, problem.text);
        return NULL;
    }
    if (!is_load_document(document)) {
        json_decref(document);
        error_set(err, ERROR_INPUT, "%s is not what taillight load --sweep or --slo writes", path);
        return NULL;
    }
    return document;
}

// What stands against the first rate's figures; a page made of a document from elsewhere has a
// word, too.
static const char *first_doubt(const json_t *document)
{
    const json_t *point = json_array_get(json_object_get(document, "points"), 0);
    const char *reason = json_string_value(json_array_get(json_object_get(point, "reasons"), 0));
    return reason ? reason : "it does not say why";
}

void report_load_verdict(const json_t *document, char *out, size_t out_bytes)
{
    const json_t *slo = json_object_get(document, "slo");
    const json_t *saturation = json_object_get(document, "saturation");
    if (json_is_object(slo))
        snprintf(out, out_bytes, "%s", text_of(slo, "why"));
    else if (json_is_null(json_object_get(document, "highest_ok")))
        snprintf(out, out_bytes,
                 "Inconclusive: the figures of no rate can be trusted; of the first: %s",
                 first_doubt(document));
    else if (json_is_object(saturation))
        snprintf(out, out_bytes, "From %s requests/s on %s",
                 text_rate(json_number_value(json_object_get(saturation, "rate")),
                           (char[TEXT_NUMBER_BYTES]){""}),
                 text_of(saturation, "why"));
    else if (strcmp(text_of(document, "stop"), "range") == 0)
        snprintf(out, out_bytes, "Neither the server nor the client was saturated at any rate");
    else
        snprintf(out, out_bytes, "The sweep ended early: %s", text_of(document, "stop"));
}

int report_load_write(const json_t *document, const char *path, struct error *err)
{
    char verdict[600];
    report_load_verdict(document, verdict, sizeof verdict);
    const struct page page = {.template_name = "page_load.html",
                              .title = text_of(document, "server"),
                              .about = " under load",
                              .verdict = verdict,
                              .scripts = load_scripts,
                              .data = document};
    return page_write(&page, path, err);
}
