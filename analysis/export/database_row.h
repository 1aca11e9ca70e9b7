// SPDX-License-Identifier: MIT
//
// Rows into a table of run.db, value after value. Header-only; the files that write run.db share
// it.
#ifndef ANALYSIS_EXPORT_DATABASE_ROW_H
#define ANALYSIS_EXPORT_DATABASE_ROW_H

#include <math.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// One prepared statement and the parameter that is bound next. After a failure nothing more is
// done; the error is SQLite's latest.
struct row {
    sqlite3_stmt *statement;
    int next;
    bool failed;
};

static inline void row_put_integer(struct row *row, int64_t value)
{
    row->failed |= sqlite3_bind_int64(row->statement, row->next++, value) != SQLITE_OK;
}

static inline void row_put_null(struct row *row)
{
    row->failed |= sqlite3_bind_null(row->statement, row->next++) != SQLITE_OK;
}

static inline void row_put_real(struct row *row, double value)
{
    if (isfinite(value))
        row->failed |= sqlite3_bind_double(row->statement, row->next++, value) != SQLITE_OK;
    else
        row_put_null(row);
}

// A number of whole nanoseconds; infinite and unknown ones are NULL.
static inline void row_put_whole(struct row *row, double value)
{
    if (isfinite(value))
        row_put_integer(row, (int64_t)value);
    else
        row_put_null(row);
}

static inline void row_put_text(struct row *row, const char *text)
{
    row->failed |=
        sqlite3_bind_text(row->statement, row->next++, text, -1, SQLITE_STATIC) != SQLITE_OK;
}

static inline void row_end(struct row *row)
{
    row->failed |= sqlite3_step(row->statement) != SQLITE_DONE;
    row->failed |= sqlite3_reset(row->statement) != SQLITE_OK;
    row->next = 1;
}

static inline int row_prepare(struct row *row, sqlite3 *database, const char *insert)
{
    *row = (struct row){.next = 1};
    return sqlite3_prepare_v2(database, insert, -1, &row->statement, NULL) == SQLITE_OK ? 0 : -1;
}

// Finalises; -1 when any row failed.
static inline int row_finish(struct row *row)
{
    int result = row->failed ? -1 : 0;
    return sqlite3_finalize(row->statement) == SQLITE_OK ? result : -1;
}

#endif
