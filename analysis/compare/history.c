// SPDX-License-Identifier: MIT
#include "analysis/compare/history.h"

#include <errno.h>
#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "analysis/export/database_row.h"
#include "base/json_numbers.h"
#include "base/text.h"
#include "base/units.h"

enum { BUSY_MS = 10000, SERIES_NAME_BYTES = sizeof((struct history_series *)0)->name };

struct history {
    sqlite3 *database;
    char path[4096];
};

static const char schema[] =
    "CREATE TABLE IF NOT EXISTS runs("
    " id INTEGER PRIMARY KEY, experiment TEXT NOT NULL, folder TEXT NOT NULL UNIQUE,"
    " label TEXT NOT NULL, added INTEGER NOT NULL, runs INTEGER NOT NULL, requests INTEGER NOT "
    "NULL,"
    " offered_rate REAL, taillight_version TEXT NOT NULL);"
    "CREATE TABLE IF NOT EXISTS measures("
    " run INTEGER NOT NULL REFERENCES runs(id), kind TEXT NOT NULL, name TEXT NOT NULL, us REAL,"
    " low_us REAL, high_us REAL, share REAL, PRIMARY KEY (run, kind, name)) WITHOUT ROWID;";

static int history_error(struct history *history, struct error *err)
{
    int code = sqlite3_errcode(history->database);
    bool theirs = code == SQLITE_NOTADB || code == SQLITE_CANTOPEN || code == SQLITE_READONLY ||
                  code == SQLITE_ERROR;
    return error_set(err, theirs ? ERROR_INPUT : ERROR_FAILED, "%s: %s", history->path,
                     sqlite3_errmsg(history->database));
}

int history_open(const char *path, bool make, struct history **out, struct error *err)
{
    struct history *history = *out = calloc(1, sizeof *history);
    if (!history)
        return error_set(err, ERROR_FAILED, "out of memory");
    snprintf(history->path, sizeof history->path, "%s", path);
    if (!make && access(path, F_OK) < 0 && errno == ENOENT)
        return error_set(
            err, ERROR_INPUT,
            "there is no history %s yet: taillight history add RUN begins it; --db FILE "
            "names another",
            path);
    int flags = SQLITE_OPEN_READWRITE | (make ? SQLITE_OPEN_CREATE : 0);
    if (sqlite3_open_v2(path, &history->database, flags, NULL) != SQLITE_OK)
        return history_error(history, err);
    sqlite3_busy_timeout(history->database, BUSY_MS);
    if (sqlite3_exec(history->database, schema, NULL, NULL, NULL) != SQLITE_OK)
        return history_error(history, err);
    return 0;
}

void history_close(struct history *history)
{
    if (!history)
        return;
    sqlite3_close(history->database);
    free(history);
}

// --- adding --------------------------------------------------------------------------------------

static int add_run(struct history *history, const struct comparison *run, const char *folder,
                   const char *label, int64_t *id)
{
    const struct run_set *set = run->sides[COMPARE_CANDIDATE];
    const char *slash = strrchr(folder, '/');
    uint64_t requests = 0;
    struct row row;
    for (size_t i = 0; i < set->latencies.count; i++)
        requests += set->latencies.items[i].count;
    if (row_prepare(&row, history->database,
                    "INSERT INTO runs(experiment, folder, label, added, runs, requests,"
                    " offered_rate, taillight_version) VALUES(?, ?, ?, ?, ?, ?, ?, ?)") < 0)
        return -1;
    ROW_ADD(&row, row_text(set->name), row_text(folder),
            row_text(label   ? label
                     : slash ? slash + 1
                             : folder),
            row_integer(time(NULL)), row_integer((int64_t)set->latencies.count),
            row_integer((int64_t)requests), row_real(set->offered_rate),
            row_text(TAILLIGHT_VERSION));
    *id = sqlite3_last_insert_rowid(history->database);
    return row_finish(&row);
}

// "p99", and of a load beside the first "p99 of load `batch`".
static const char *series_name(const char *what, const char *load, char out[SERIES_NAME_BYTES])
{
    snprintf(out, SERIES_NAME_BYTES, "%s%s%s%s", what, *load ? " of load `" : "", load,
             *load ? "`" : "");
    return out;
}

// load: "" of the first.
static int add_measures(struct history *history, const struct comparison *run, const char *load,
                        int64_t id)
{
    struct row row;
    char series[SERIES_NAME_BYTES];
    if (row_prepare(&row, history->database,
                    "INSERT OR REPLACE INTO measures VALUES(?, ?, ?, ?, ?, ?, ?)") < 0)
        return -1;
    for (size_t i = 0; i < run->percentiles.count; i++) {
        const struct compared_percentile *percentile = &run->percentiles.items[i];
        const struct percentile_shift *shift = &percentile->shift;
        const struct resample_interval *interval = &shift->ns_interval[COMPARE_CANDIDATE];
        ROW_ADD(&row, row_integer(id), row_text("percentile"),
                row_text(series_name(percentile->name, load, series)),
                row_real(shift->ns[COMPARE_CANDIDATE] / 1000),
                shift->known ? row_real(interval->low / 1000) : row_null(),
                shift->known ? row_real(interval->high / 1000) : row_null(), row_null());
    }
    const struct cause_shift_array *causes = &run->shifts.items[run->gate_slice].shift.causes;
    for (size_t i = 0; i < causes->count; i++) {
        const struct cause_shift *cause = &causes->items[i];
        struct resample_interval interval =
            resample_single(cause->mean_ns[COMPARE_CANDIDATE], &cause->spread[COMPARE_CANDIDATE],
                            COMPARE_CONFIDENCE);
        char name[100];
        ROW_ADD(&row, row_integer(id), row_text("cause"),
                row_text(series_name(cause_shift_name(cause, name, sizeof name), load, series)),
                row_real(cause->mean_ns[COMPARE_CANDIDATE] / 1000), row_real(interval.low / 1000),
                row_real(interval.high / 1000), row_real(cause->share[COMPARE_CANDIDATE]));
    }
    return row_finish(&row);
}

int history_add(struct history *history, const struct comparison *loads, size_t count,
                const char *folder, const char *label, int64_t *id, struct error *err)
{
    if (sqlite3_exec(history->database, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK)
        return history_error(history, err);
    int added = add_run(history, &loads[0], folder, label, id);
    for (size_t i = 0; i < count && added == 0; i++)
        added =
            add_measures(history, &loads[i], i ? loads[i].sides[COMPARE_CANDIDATE]->load : "", *id);
    if (added == 0 && sqlite3_exec(history->database, "COMMIT", NULL, NULL, NULL) == SQLITE_OK)
        return 0;
    int result =
        sqlite3_errcode(history->database) == SQLITE_CONSTRAINT
            ? error_set(err, ERROR_INPUT, "%s: %s is in there already", history->path, folder)
            : history_error(history, err);
    sqlite3_exec(history->database, "ROLLBACK", NULL, NULL, NULL);
    return result;
}

// --- reading -------------------------------------------------------------------------------------

static void copy_column(sqlite3_stmt *statement, int column, char *out, size_t out_bytes)
{
    const char *text = (const char *)sqlite3_column_text(statement, column);
    snprintf(out, out_bytes, "%s", text ? text : "");
}

static double real_column(sqlite3_stmt *statement, int column)
{
    bool known = sqlite3_column_type(statement, column) != SQLITE_NULL;
    return known ? sqlite3_column_double(statement, column) : (double)NAN;
}

static struct history_series *series_of(sqlite3_stmt *statement, struct history_series_array *all)
{
    struct history_series series = {.unknown = 0};
    copy_column(statement, 0, series.experiment, sizeof series.experiment);
    copy_column(statement, 1, series.kind, sizeof series.kind);
    copy_column(statement, 2, series.name, sizeof series.name);
    struct history_series *last = all->count ? &all->items[all->count - 1] : NULL;
    if (last && strcmp(last->experiment, series.experiment) == 0 &&
        strcmp(last->kind, series.kind) == 0 && strcmp(last->name, series.name) == 0)
        return last;
    return array_push(all, series) < 0 ? NULL : &all->items[all->count - 1];
}

static int take_row(sqlite3_stmt *statement, struct history_series_array *all)
{
    struct history_series *series = series_of(statement, all);
    struct history_point point = {.run = sqlite3_column_int64(statement, 3),
                                  .us = sqlite3_column_double(statement, 5),
                                  .low_us = real_column(statement, 6),
                                  .high_us = real_column(statement, 7)};
    if (!series)
        return -1;
    copy_column(statement, 4, point.label, sizeof point.label);
    if (sqlite3_column_type(statement, 5) == SQLITE_NULL) {
        series->unknown++;
        return 0;
    }
    return array_push(&series->points, point);
}

static int find_changes(struct history_series *series)
{
    double *values = malloc((series->points.count + 1) * sizeof *values);
    int result = values ? 0 : -1;
    for (size_t i = 0; i < series->points.count && result == 0; i++)
        values[i] = series->points.items[i].us;
    if (result == 0)
        result = change_points_find(values, series->points.count, &series->changes);
    free(values);
    return result;
}

// A cause that a run does not list took no time in it. If the run lists no causes at all, the
// cause's time is unknown.
static const char select_text[] =
    "SELECT n.experiment, n.kind, n.name, r.id, r.label,"
    " CASE WHEN m.run IS NULL AND n.kind = 'cause' AND EXISTS"
    "  (SELECT 1 FROM measures WHERE run = r.id AND kind = 'cause') THEN 0 ELSE m.us END,"
    " m.low_us, m.high_us"
    " FROM (SELECT DISTINCT experiment, kind, name FROM runs JOIN measures ON run = id) n"
    " JOIN runs r ON r.experiment = n.experiment"
    " LEFT JOIN measures m ON m.run = r.id AND m.kind = n.kind AND m.name = n.name"
    " WHERE (?1 IS NULL OR n.experiment = ?1) AND (?2 IS NULL OR n.name = ?2 OR substr(n.name, 1, "
    "length(?2) + 10) = ?2 || ' of load `')"
    " ORDER BY n.experiment, n.kind DESC, length(n.name), n.name, r.id";

int history_read(struct history *history, const char *experiment, const char *name,
                 struct history_series_array *out, struct error *err)
{
    sqlite3_stmt *statement = NULL;
    int result = 0, step = SQLITE_DONE;
    *out = (struct history_series_array){0};
    if (sqlite3_prepare_v2(history->database, select_text, -1, &statement, NULL) != SQLITE_OK ||
        sqlite3_bind_text(statement, 1, experiment, -1, SQLITE_STATIC) != SQLITE_OK ||
        sqlite3_bind_text(statement, 2, name, -1, SQLITE_STATIC) != SQLITE_OK) {
        result = history_error(history, err);
        goto out;
    }
    while (result == 0 && (step = sqlite3_step(statement)) == SQLITE_ROW)
        result = take_row(statement, out);
    if (result == 0 && step != SQLITE_DONE) {
        result = history_error(history, err);
        goto out;
    }
    for (size_t i = 0; i < out->count && result == 0; i++)
        result = find_changes(&out->items[i]);
    if (result < 0)
        error_set(err, ERROR_FAILED, "out of memory for the history");
out:
    sqlite3_finalize(statement);
    return result < 0 ? -(int)err->kind : 0;
}

void history_series_free(struct history_series_array *series)
{
    for (size_t i = 0; i < series->count; i++) {
        array_free(&series->items[i].points);
        array_free(&series->items[i].changes);
    }
    array_free(series);
}

// --- output --------------------------------------------------------------------------------------

enum { BAR_COLUMNS = 40, STEADY_CAUSES = 5 };

static const char *format_duration(double us, char out[32])
{
    return units_format_ns(us * 1000, out, 32);
}

// "+38 % since #12 v1.4 (100 us -> 138 us, p 0.002)".
static void write_change(const struct history_series *series, const struct change_point *change,
                         FILE *out)
{
    char before[32], after[32], label[200], percent[TEXT_NUMBER_BYTES];
    const struct history_point *point = &series->points.items[change->first];
    if (change->before > 0)
        fprintf(out, "%s %% ", text_percent(change->after / change->before - 1, percent));
    fprintf(out, "since #%lld %s (%s -> %s, p %.3f)", (long long)point->run,
            text_clean(point->label, false, label, sizeof label),
            format_duration(change->before, before), format_duration(change->after, after),
            change->p);
}

static double latest_us(const struct history_series *series)
{
    return series->points.count ? series->points.items[series->points.count - 1].us : 0;
}

static bool is_steady_cause(const struct history_series *series)
{
    return strcmp(series->kind, "cause") == 0 && series->changes.count == 0;
}

// Whether it is one of an experiment's causes whose level has not changed, of which so many are
// larger at present.
static bool is_small(const struct history_series_array *all, size_t index)
{
    const struct history_series *series = &all->items[index];
    size_t larger = 0;
    for (size_t i = 0; i < all->count && is_steady_cause(series); i++) {
        const struct history_series *other = &all->items[i];
        larger += is_steady_cause(other) && strcmp(other->experiment, series->experiment) == 0 &&
                  (latest_us(other) > latest_us(series) ||
                   (i < index && !(latest_us(other) < latest_us(series))));
    }
    return larger >= STEADY_CAUSES;
}

static void list_series(const struct history_series *series, FILE *out)
{
    char name[300], value[32];
    fprintf(out, "  %-44s %4s run%s", text_clean(series->name, false, name, sizeof name),
            TEXT_COUNT(series->points.count), text_plural((double)series->points.count));
    if (series->points.count)
        fprintf(out, ", now %s", format_duration(latest_us(series), value));
    if (series->unknown)
        fprintf(out, ", not known in %s", TEXT_COUNT(series->unknown));
    for (size_t c = 0; c < series->changes.count; c++) {
        fputs(c ? "; " : ": ", out);
        write_change(series, &series->changes.items[c], out);
    }
    fputc('\n', out);
}

void history_list(const struct history_series_array *all, bool whole, FILE *out)
{
    size_t left_out = 0;
    char name[300];
    for (size_t i = 0; i < all->count; i++) {
        const struct history_series *series = &all->items[i];
        if (i == 0 || strcmp(series->experiment, all->items[i - 1].experiment) != 0)
            fprintf(out, "%s%s\n", i ? "\n" : "",
                    text_clean(series->experiment, false, name, sizeof name));
        if (whole || !is_small(all, i))
            list_series(series, out);
        else
            left_out++;
        if (left_out && (i + 1 == all->count ||
                         strcmp(series->experiment, all->items[i + 1].experiment) != 0)) {
            fprintf(out, "  and %s smaller cause%s whose level has not changed (--full)\n",
                    TEXT_COUNT(left_out), text_plural((double)left_out));
            left_out = 0;
        }
    }
}

void history_plot(const struct history_series *series, bool unicode, FILE *out)
{
    char text[300], value[32];
    double most = 0;
    size_t change = 0;
    for (size_t i = 0; i < series->points.count; i++)
        most = fmax(most, series->points.items[i].us);
    fprintf(out, "%s: ", text_clean(series->experiment, false, text, sizeof text));
    fprintf(out, "%s\n", text_clean(series->name, false, text, sizeof text));
    for (size_t i = 0; i < series->points.count; i++) {
        const struct history_point *point = &series->points.items[i];
        if (change < series->changes.count && series->changes.items[change].first == i) {
            fputs("  ---- ", out);
            write_change(series, &series->changes.items[change++], out);
            fputc('\n', out);
        }
        text_clean(point->label, false, text, sizeof text);
        fprintf(out, "  #%-5lld %-20.20s %10s ", (long long)point->run, text,
                format_duration(point->us, value));
        for (int bar = (int)lround(BAR_COLUMNS * point->us / fmax(most, 1e-9)); bar > 0; bar--)
            fputs(unicode ? "\u2588" : "#", out);
        fputc('\n', out);
    }
    if (series->unknown)
        fprintf(out, "  not known in %s run%s\n", TEXT_COUNT(series->unknown),
                text_plural((double)series->unknown));
}

// Labels and the names of experiments and causes may contain any characters.
static json_t *text_json(const char *text)
{
    char clean[400];
    return json_string(text_clean(text, false, clean, sizeof clean));
}

static json_t *point_json(const struct history_point *point)
{
    return json_pack("{s:I, s:o, s:o, s:o, s:o}", "run", (json_int_t)point->run, "label",
                     text_json(point->label), "us", json_number_or_null(point->us), "low_us",
                     json_number_or_null(point->low_us), "high_us",
                     json_number_or_null(point->high_us));
}

static json_t *series_json(const struct history_series *series)
{
    json_t *points = json_array(), *changes = json_array();
    for (size_t i = 0; i < series->points.count; i++)
        json_array_append_new(points, point_json(&series->points.items[i]));
    for (size_t i = 0; i < series->changes.count; i++) {
        const struct change_point *change = &series->changes.items[i];
        json_array_append_new(
            changes, json_pack("{s:I, s:f, s:f, s:f}", "run",
                               (json_int_t)series->points.items[change->first].run, "before_us",
                               change->before, "after_us", change->after, "p", change->p));
    }
    return json_pack("{s:o, s:o, s:o, s:I, s:o, s:o}", "experiment", text_json(series->experiment),
                     "kind", text_json(series->kind), "name", text_json(series->name), "unknown",
                     (json_int_t)series->unknown, "points", points, "changes", changes);
}

json_t *history_json(const struct history_series_array *all)
{
    json_t *list = json_array();
    for (size_t i = 0; i < all->count; i++)
        json_array_append_new(list, series_json(&all->items[i]));
    return json_pack("{s:s, s:f, s:i, s:i, s:o}", "taillight_version", TAILLIGHT_VERSION,
                     "significance", CHANGE_POINT_SIGNIFICANCE, "permutations",
                     CHANGE_POINT_PERMUTATIONS, "seed", CHANGE_POINT_SEED, "series", list);
}
