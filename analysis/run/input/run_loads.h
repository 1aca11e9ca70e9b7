// SPDX-License-Identifier: MIT
//
// A run with several loads is looked at from one of them, the first unless another is asked for:
// its requests are the run's, and those of the others are what they met on their way. Each load has
// a folder of its own (run_path.h).
#ifndef ANALYSIS_RUN_RUN_LOADS_H
#define ANALYSIS_RUN_RUN_LOADS_H

#include <jansson.h>

#include "analysis/run/input/run_path.h"
#include "base/array.h"
#include "base/error.h"
#include "base/log_file.h"

enum { RUN_LOAD_NAME_BYTES = 32 };

// A load beside the one that is looked at.
struct run_load {
    char name[RUN_LOAD_NAME_BYTES];
    char folder[LOAD_FOLDER_BYTES];
    json_t *summary;                        // its load.json; NULL: there is none
    struct log_reader samples, connections; // empty where they are not there
    const char *missing;                    // the name of such a one; NULL: both are there
};
struct run_load_array ARRAY_OF(struct run_load);

// Turns experiment.json (NULL: there is none) to the load that is asked for (NULL: the first): its
// `load` and `workload` become that one's, and `loads` the others, which *others lists. folder: of
// the chosen one. ERROR_INPUT: the run has no load of that name.
int run_loads_choose(json_t **experiment, const char *asked, const char *run_dir,
                     char folder[LOAD_FOLDER_BYTES], struct run_load_array *others,
                     struct error *err);

// Reads what the others left; what is not there is left empty. A damaged file is ERROR_INPUT.
int run_loads_open(struct run_load_array *others, const char *run_dir, struct error *err);

void run_loads_free(struct run_load_array *others);

#endif
