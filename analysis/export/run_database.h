// SPDX-License-Identifier: MIT
//
// run.db: the run's requests, stages and causes as SQLite tables, so that people can ask their own
// questions (docs/run-db.md).
#ifndef ANALYSIS_RUN_DATABASE_H
#define ANALYSIS_RUN_DATABASE_H

#include "analysis/run/run_analysis.h"
#include "base/error.h"

// Writes `path` anew: under "<path>.partial" first, renamed when it is complete. On failure neither
// is left half written.
int run_database_write(const struct run_analysis *analysis, const char *path, struct error *err);

#endif
