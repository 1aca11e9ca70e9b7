// SPDX-License-Identifier: MIT
//
// Files that a run folder should have: what its own documents say was recorded, and is not there,
// or is of another run than they are, by its number of records. The analysis goes without them, as
// without what never was recorded, so its verdict has to say which.
#ifndef ANALYSIS_RUN_MISSING_H
#define ANALYSIS_RUN_MISSING_H

#include <jansson.h>
#include <stddef.h>

#include "base/log_file.h"

// The run's documents, NULL where they are not there.
struct run_documents {
    const json_t *experiment, *capture, *load;
    const char *load_name; // "client/load.json"; NULL: there need not be one
    // Their logs; NULL: they are in segments, or there are none
    const struct log_header *events, *sockets, *calls, *connections, *samples;
};

// Of what else is missing the verdict has to judge; "": nothing is.
struct run_missing {
    char load[300];   // "client/load.json is missing, so ...", why the load cannot be trusted
    char losses[300]; // "server/capture.json is missing", why nobody knows what the capture lost
};

// Appends a sentence for each file, to be read behind others, or writes it into *missing.
void run_missing_words(const char *run_dir, const struct run_documents *documents,
                       struct run_missing *missing, char *out, size_t out_bytes);

#endif
