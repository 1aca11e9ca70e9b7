// SPDX-License-Identifier: MIT
//
// `taillight analyze` of a perf.data that holds samples and no processor trace: which functions
// and threads they were in.
#ifndef ANALYSIS_ANALYZE_SAMPLES_H
#define ANALYSIS_ANALYZE_SAMPLES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct samples_analyze_options {
    const char *symfs;  // NULL: code is looked for on this host only
    const char *folded; // file for folded stacks, NULL: none
    uint64_t top;       // functions listed
    bool json;
};

// Prints on stdout.
int samples_analyze(const char *path, const struct samples_analyze_options *options,
                    struct error *err);

#endif
