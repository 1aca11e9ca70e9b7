// SPDX-License-Identifier: MIT
//
// Internal to analysis/samples: what a sample's addresses and its thread are called.
#ifndef ANALYSIS_SAMPLES_SAMPLE_NAMES_H
#define ANALYSIS_SAMPLES_SAMPLE_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/code/code_image.h"
#include "analysis/code/symbols.h"
#include "analysis/perf/perf_data.h"
#include "analysis/perf/perf_data_maps.h"
#include "analysis/timeline/names.h"

// That a thread was called so from some instant on.
struct thread_name {
    uint32_t thread;
    uint64_t time;
    const char *name; // in the perf_data
};
struct thread_names ARRAY_OF(struct thread_name); // by thread, then time

struct sample_names {
    const struct perf_data *data;
    struct perf_maps maps;
    struct code_images images;
    struct symbols *symbols;
    struct name_table table;
    struct index_array numbers; // of the symbols' names in the table, plus 1; 0: not met yet
    struct thread_names threads;
};

// names: gets what the samples are called. The caller calls fini, also after a failure.
int sample_names_init(struct sample_names *names, const struct perf_data *data, const char *path,
                      const char *symfs, struct name_array *out, struct error *err);
void sample_names_fini(struct sample_names *names);

// The number of a function's or thread's name. *known: a symbol covers the address; else the name
// is its file's, or "[unknown]". -1: no memory.
int sample_names_function(struct sample_names *names, const struct perf_sample *sample,
                          uint64_t address, uint32_t *number, bool *known);
int sample_names_thread(struct sample_names *names, const struct perf_sample *sample,
                        uint32_t *number);

#endif
