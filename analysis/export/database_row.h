// SPDX-License-Identifier: MIT
//
// Rows into a table of an SQLite database: run.db, the history. Header-only.
#ifndef ANALYSIS_EXPORT_DATABASE_ROW_H
#define ANALYSIS_EXPORT_DATABASE_ROW_H

#include <math.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/text.h"

// One prepared statement and the parameter that is bound next. After a failure nothing more is
// done; the error is SQLite's latest.
struct row {
    sqlite3_stmt *statement;
    int next;
    bool failed;
};

struct row_value {
    enum { ROW_NULL, ROW_INTEGER, ROW_REAL, ROW_TEXT } kind;
    union {
        int64_t integer;
        double real;
        const char *text;
    };
};

static inline struct row_value row_null(void)
{
    return (struct row_value){.kind = ROW_NULL};
}

static inline struct row_value row_integer(int64_t value)
{
    return (struct row_value){.kind = ROW_INTEGER, .integer = value};
}

// Infinite and unknown numbers become NULL. row_whole takes a number of whole nanoseconds.
static inline struct row_value row_real(double value)
{
    return isfinite(value) ? (struct row_value){.kind = ROW_REAL, .real = value} : row_null();
}

static inline struct row_value row_whole(double value)
{
    return isfinite(value) ? row_integer((int64_t)value) : row_null();
}

// NULL becomes NULL. The caller keeps the text alive until the row ends.
static inline struct row_value row_text(const char *text)
{
    return text ? (struct row_value){.kind = ROW_TEXT, .text = text} : row_null();
}

static inline void row_put(struct row *row, struct row_value value)
{
    sqlite3_stmt *statement = row->statement;
    int at = row->next++, result = SQLITE_OK; // a parameter that is not bound is NULL
    if (value.kind == ROW_INTEGER)
        result = sqlite3_bind_int64(statement, at, value.integer);
    else if (value.kind == ROW_REAL)
        result = sqlite3_bind_double(statement, at, value.real);
    else if (value.kind == ROW_TEXT)
        result = sqlite3_bind_text(statement, at, value.text, -1, SQLITE_STATIC);
    row->failed |= result != SQLITE_OK;
}

static inline void row_end(struct row *row)
{
    row->failed |= sqlite3_step(row->statement) != SQLITE_DONE;
    row->failed |= sqlite3_reset(row->statement) != SQLITE_OK;
    row->failed |= sqlite3_clear_bindings(row->statement) != SQLITE_OK;
    row->next = 1;
}

static inline void row_put_all(struct row *row, const struct row_value *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        row_put(row, values[i]);
}

// Puts these values; ROW_ADD: a whole row of them.
#define ROW_PUT(row, ...)                                                                          \
    row_put_all(row, (const struct row_value[]){__VA_ARGS__},                                      \
                sizeof((const struct row_value[]){__VA_ARGS__}) / sizeof(struct row_value))
#define ROW_ADD(row, ...) (ROW_PUT(row, __VA_ARGS__), row_end(row))

static inline int row_prepare(struct row *row, sqlite3 *database, const char *insert)
{
    *row = (struct row){.next = 1};
    return sqlite3_prepare_v2(database, insert, -1, &row->statement, NULL) == SQLITE_OK ? 0 : -1;
}

// For rows with a value for each column of the table.
static inline int row_prepare_table(struct row *row, sqlite3 *database, const char *table)
{
    char statement[200];
    sqlite3_stmt *columns = NULL;
    *row = (struct row){.next = 1};
    snprintf(statement, sizeof statement, "SELECT * FROM %s", table);
    if (sqlite3_prepare_v2(database, statement, -1, &columns, NULL) != SQLITE_OK)
        return -1;
    snprintf(statement, sizeof statement, "INSERT INTO %s VALUES(?", table);
    for (int i = 1; i < sqlite3_column_count(columns); i++)
        text_append(statement, sizeof statement, ",?");
    text_append(statement, sizeof statement, ")");
    sqlite3_finalize(columns);
    return row_prepare(row, database, statement);
}

// Finalises; -1 when any row failed.
static inline int row_finish(struct row *row)
{
    int result = row->failed ? -1 : 0;
    return sqlite3_finalize(row->statement) == SQLITE_OK ? result : -1;
}

#endif
