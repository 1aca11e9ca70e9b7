// SPDX-License-Identifier: MIT
//
// Files that a run folder should have: what its own documents say was recorded, and is not there.
// The analysis goes without them, as without what never was recorded, so its verdict has to say
// which.
#ifndef ANALYSIS_RUN_MISSING_H
#define ANALYSIS_RUN_MISSING_H

#include <jansson.h>
#include <stddef.h>

// The run's documents, NULL where they are not there.
struct run_documents {
    const json_t *experiment, *capture, *load;
    const char *load_name; // "client/load.json"; NULL: there need not be one
};

// Appends a sentence for each, to be read behind others.
void run_missing_words(const char *run_dir, const struct run_documents *documents, char *out,
                       size_t out_bytes);

#endif
