// SPDX-License-Identifier: MIT
#include "analysis/report/report_load.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "analysis/report/page_write.h"

static const char *const scripts[] = {"page_plot.js", "page_load.js", NULL};

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
static bool is_whole(const json_t *document)
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
    json_t *document = json_load_file(path, 0, &problem);
    if (!document) {
        error_set(err, ERROR_INPUT, "%s:%d: %s", path, problem.line, problem.text);
        return NULL;
    }
    if (!is_whole(document)) {
        json_decref(document);
        error_set(err, ERROR_INPUT, "%s is not what taillight load --sweep or --slo writes", path);
        return NULL;
    }
    return document;
}

void report_load_verdict(const json_t *document, char *out, size_t out_bytes)
{
    const json_t *slo = json_object_get(document, "slo");
    const json_t *saturation = json_object_get(document, "saturation");
    if (json_is_object(slo))
        snprintf(out, out_bytes, "%s", text_of(slo, "why"));
    else if (json_is_object(saturation))
        snprintf(out, out_bytes, "From %.0f requests/s on %s",
                 json_number_value(json_object_get(saturation, "rate")),
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
                              .scripts = scripts,
                              .data = document};
    return page_write(&page, path, err);
}
