// SPDX-License-Identifier: MIT
//
// What went on on the server's cores while a slow message was under way, as rows of run.db.
#ifndef ANALYSIS_EXPORT_RUN_SPANS_H
#define ANALYSIS_EXPORT_RUN_SPANS_H

#include <sqlite3.h>

#include "analysis/run/run_analysis.h"

extern const char run_spans_schema[]; // the table and its view

// Fills the table with the spans of the explained messages of the run's slice, the slowest first,
// until there are RUN_SPANS_MOST, and tells in `meta` of how many messages there are any and of how
// many there was no room. -1: the error is SQLite's latest.
enum { RUN_SPANS_MOST = 200000 };
int run_spans_write(sqlite3 *database, const struct run_analysis *run);

#endif
