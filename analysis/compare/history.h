// SPDX-License-Identifier: MIT
//
// The history of an experiment: an SQLite database with one row per run, and one per percentile and
// cause of it; shown on the terminal, as a list and drawn, and for scripts (docs/gates.md).
#ifndef ANALYSIS_COMPARE_HISTORY_H
#define ANALYSIS_COMPARE_HISTORY_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "analysis/compare/change_points.h"
#include "analysis/compare/comparison.h"
#include "base/array.h"
#include "base/error.h"

struct history; // an open database

// Opens the database; creates it when it is missing and `make` is set. Not such a database:
// ERROR_INPUT that names it.
int history_open(const char *path, bool make, struct history **out, struct error *err);
void history_close(struct history *history);

// Adds the results of a run or of repetitions, a comparison without a base for each of its loads,
// the first's first. `folder` is its absolute path, which may be in the database only once. The
// series of a load beside the first say whose they are: "p99 of load `batch`". Adds everything or
// nothing.
int history_add(struct history *history, const struct comparison *loads, size_t count,
                const char *folder, const char *label, int64_t *id, struct error *err);

struct history_point {
    int64_t run;
    char label[64]; // the one given, else the folder's name
    double us;
    double low_us, high_us; // its 99 % interval; NaN: unknown
};
struct history_point_array ARRAY_OF(struct history_point);

// One percentile or cause of one experiment over its runs, in the order they were added. Runs in
// which it is infinite or unknown are left out and counted.
struct history_series {
    char experiment[128];
    char kind[16];  // "percentile" or "cause"
    char name[160]; // "p99", "nginx (A)", "p99 of load `batch`"
    struct history_point_array points;
    uint64_t unknown;
    struct change_point_array changes;
};
struct history_series_array ARRAY_OF(struct history_series);

// All series, or those of one experiment and of one name, of whichever load (NULL: all), with their
// change points. The caller frees with history_series_free, whatever happens.
int history_read(struct history *history, const char *experiment, const char *name,
                 struct history_series_array *out, struct error *err);
void history_series_free(struct history_series_array *series);

// One line per series: how many runs, the latest value, and where its level changed. Unless
// `whole`, of an experiment's causes whose level has not changed only the largest ones.
void history_list(const struct history_series_array *all, bool whole, FILE *out);

// One bar per run, and a line where the level changed.
void history_plot(const struct history_series *series, bool unicode, FILE *out);

// The caller owns it.
json_t *history_json(const struct history_series_array *all);

#endif
