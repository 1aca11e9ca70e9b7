// SPDX-License-Identifier: MIT
//
// Any bytes as an experiment file: an experiment or an error with a place, never a crash.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/experiment.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct experiment experiment;
    struct error err = {0};
    if (experiment_parse("fuzz.yaml", (const char *)data, size, &experiment, &err) < 0) {
        if (err.kind != ERROR_INPUT || strncmp(err.text, "fuzz.yaml:", 10) != 0)
            abort();
        return 0;
    }
    json_t *document = experiment_to_json(&experiment);
    if (!document)
        abort();
    json_decref(document);
    experiment_free(&experiment);
    return 0;
}
