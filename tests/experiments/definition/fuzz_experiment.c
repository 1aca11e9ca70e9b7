// SPDX-License-Identifier: MIT
//
// Any bytes as an experiment file, what follows the first zero byte as every file it extends:
// experiments or an error with a place, never a crash.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/definition/experiment_set.h"
#include "experiments/definition/output.h"
#include "experiments/definition/study.h"

// What `extends` opens; the opener has no context of its own.
static const char *base;
static size_t base_bytes;

static int open_base(const char *path, struct document **out, struct error *err)
{
    return document_parse(path, base, base_bytes, out, err);
}

// As a study whose steps, and what it extends, are all this very text.
static void try_study(void)
{
    struct study study;
    struct error err = {0};
    FILE *nowhere = fopen("/dev/null", "w");
    int result = study_load("fuzz.yaml", open_base, &study, &err);
    if (result < 0 && (err.kind != ERROR_INPUT || !strchr(err.text, ':')))
        abort();
    if (result > 0 && nowhere)
        study_print_plan(&study, nowhere);
    if (result > 0)
        study_free(&study);
    if (nowhere)
        fclose(nowhere);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct experiment_set set;
    struct error err = {0};
    const char *text = (const char *)data, *zero = size ? memchr(data, 0, size) : NULL;
    size_t bytes = zero ? (size_t)(zero - text) : size;
    base = text;
    base_bytes = bytes;
    try_study();
    base = zero ? zero + 1 : "";
    base_bytes = zero ? size - bytes - 1 : 0;
    if (experiment_set_parse("fuzz.yaml", text, bytes, open_base, &set, &err) < 0) {
        if (err.kind != ERROR_INPUT || !strchr(err.text, ':'))
            abort();
        return 0;
    }
    for (size_t i = 0; i < set.count; i++) {
        json_t *document = experiment_to_json(&set.items[i]);
        if (!document)
            abort();
        json_decref(document);
    }
    experiment_set_free(&set);
    return 0;
}
