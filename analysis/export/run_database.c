// SPDX-License-Identifier: MIT
#include "analysis/export/run_database.h"

#include <errno.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "analysis/export/database_row.h"
#include "analysis/lifetime/streams.h"
#include "analysis/run/result_fields.h"

static const char schema_format[] = // with the columns of diagnosis_fields and cause_fields
    "PRAGMA journal_mode = OFF;"    // the file gets its name only when it is whole
    "PRAGMA synchronous = OFF;"
    "BEGIN;"
    "CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL);"
    "CREATE TABLE categories("
    " position INTEGER PRIMARY KEY, file TEXT, pattern TEXT, category TEXT);"
    "CREATE TABLE requests("
    " id INTEGER PRIMARY KEY, connection INTEGER, operation INTEGER, status TEXT, state TEXT,"
    " latency_ns INTEGER, uncorrected_latency_ns INTEGER, thread INTEGER, batch INTEGER,"
    " batch_position INTEGER, sharing INTEGER, r_core INTEGER, a_core INTEGER,"
    " disordered INTEGER, fallback INTEGER,"
    " intended_ns INTEGER, send_ns INTEGER, client_tx_ns INTEGER, nic_ns INTEGER,"
    " handoff_ns INTEGER, application_ns INTEGER, reply_ns INTEGER, server_tx_ns INTEGER,"
    " client_rx_ns INTEGER, reply_read_ns INTEGER);"
    "CREATE TABLE stages("
    " request INTEGER PRIMARY KEY REFERENCES requests(id),"
    " client_queue_ns INTEGER, client_stack_ns INTEGER, network_to_server_ns INTEGER,"
    " r_core_ns INTEGER, a_core_ns INTEGER, application_ns INTEGER, server_stack_ns INTEGER,"
    " network_to_client_ns INTEGER, client_receive_ns INTEGER);"
    "CREATE TABLE diagnoses("
    " id INTEGER PRIMARY KEY, from_ns INTEGER, to_ns INTEGER,%s not_available TEXT,"
    " slice TEXT, request INTEGER, lifetime TEXT);"
    "CREATE TABLE causes("
    " diagnosis INTEGER REFERENCES diagnoses(id), cause INTEGER,%s PRIMARY KEY (diagnosis, cause)) "
    "WITHOUT ROWID;"
    "CREATE TABLE diagnosed("
    " diagnosis INTEGER REFERENCES diagnoses(id), request INTEGER REFERENCES requests(id),"
    " deviation_ns REAL, explained_ns REAL, PRIMARY KEY (diagnosis, request)) WITHOUT ROWID;"
    "CREATE TABLE attributions("
    " diagnosis INTEGER, request INTEGER, cause INTEGER, ns REAL,"
    " PRIMARY KEY (diagnosis, request, cause)) WITHOUT ROWID;";

static const char after[] = "CREATE INDEX requests_by_latency ON requests(latency_ns);"
                            "CREATE INDEX requests_by_intended ON requests(intended_ns);"
                            "COMMIT;";

static const char *const status_names[] = {
    [SAMPLE_ANSWERED] = "answered",       [SAMPLE_MISS] = "miss",
    [SAMPLE_ERROR_REPLY] = "error reply", [SAMPLE_UNSENT] = "unsent",
    [SAMPLE_TIMED_OUT] = "timed out",     [SAMPLE_LOST] = "lost",
};
static void put_request(struct row *row, const struct run_analysis *run,
                        const struct lifetime *life)
{
    row_put_integer(row, (int64_t)life->request);
    if (life->connection == NO_CONNECTION)
        row_put_null(row); // never sent
    else
        row_put_integer(row, life->connection);
    row_put_integer(row, life->operation);
    row_put_text(row, life->status <= SAMPLE_LOST ? status_names[life->status] : "?");
    row_put_text(row, lifetime_state_name((enum lifetime_state)life->state));
    row_put_whole(row, life->latency_ns);
    row_put_whole(row, life->uncorrected_latency_ns);
    row_put_integer(row, life->thread);
    row_put_integer(row, life->batch);
    row_put_integer(row, life->batch_position);
    row_put_integer(row, life->sharing);
    static const enum stamp_kind placed[] = {STAMP_HANDOFF, STAMP_APPLICATION};
    for (int i = 0; i < 2; i++) {
        if (life->stamp_core[placed[i]] == NO_CORE)
            row_put_null(row);
        else
            row_put_integer(row, life->stamp_core[placed[i]]);
    }
    row_put_integer(row, life->disordered);
    row_put_integer(row, life->fallback);
    for (int kind = 0; kind < STAMP_KINDS; kind++) {
        if (lifetime_has(life, (enum stamp_kind)kind))
            row_put_integer(row, life->stamp_ns[kind] - run->lifetimes.begin_ns);
        else
            row_put_null(row);
    }
    row_end(row);
}

static void put_stages(struct row *row, const struct run_analysis *run, const struct lifetime *life)
{
    (void)run;
    if (!isfinite(life->latency_ns))
        return;
    row_put_integer(row, (int64_t)life->request);
    for (int stage = STAMP_SEND; stage < STAGES; stage++) {
        if (life->merged >> stage & 1) // for want of a stamp: part of the next one
            row_put_null(row);
        else
            row_put_whole(row, life->stage_ns[stage]);
    }
    row_end(row);
}

static int database_error(sqlite3 *database, const char *path, struct error *err)
{
    return error_set(err, ERROR_FAILED, "cannot write %s: %s", path,
                     database ? sqlite3_errmsg(database) : "no memory");
}

typedef void lifetime_writer(struct row *row, const struct run_analysis *run,
                             const struct lifetime *life);

static int write_lifetimes(sqlite3 *database, const struct run_analysis *run, const char *insert,
                           lifetime_writer *write)
{
    struct row row;
    if (row_prepare(&row, database, insert) < 0)
        return -1;
    for (size_t i = 0; i < run->lifetimes.all.count && !row.failed; i++)
        write(&row, run, &run->lifetimes.all.items[i]);
    return row_finish(&row);
}

static int write_meta(sqlite3 *database, const struct run_analysis *run)
{
    struct row row;
    char begin[32], scheduled[32];
    snprintf(begin, sizeof begin, "%lld", (long long)run->lifetimes.begin_ns);
    snprintf(scheduled, sizeof scheduled, "%llu", (unsigned long long)run->lifetimes.scheduled);
    const char *const entries[][2] = {
        {"taillight_version", TAILLIGHT_VERSION},
        {"schema", "1"},
        {"run_dir", run->evidence.run_dir},
        {"name", run->evidence.name},
        {"verdict", run->findings.verdict},
        {"begin_host_ns", begin}, // all *_ns times count from here
        {"requests", scheduled},
    };
    if (row_prepare(&row, database, "INSERT INTO meta VALUES(?,?)") < 0)
        return -1;
    for (size_t i = 0; i < sizeof entries / sizeof *entries && !row.failed; i++) {
        row_put_text(&row, entries[i][0]);
        row_put_text(&row, entries[i][1]);
        row_end(&row);
    }
    return row_finish(&row);
}

// The patterns that came before the program's own.
static int write_categories(sqlite3 *database, const struct run_categories *categories)
{
    struct row row;
    int64_t position = 0;
    if (row_prepare(&row, database, "INSERT INTO categories VALUES(?,?,?,?)") < 0)
        return -1;
    for (size_t s = 0; s < categories->source_count; s++)
        for (size_t i = 0; i < categories->sources[s].rules && !row.failed; i++, position++) {
            row_put_integer(&row, position);
            row_put_text(&row, categories->sources[s].file);
            row_put_text(&row, categories->table.rules.items[position].pattern);
            row_put_text(&row, categories->table.rules.items[position].category);
            row_end(&row);
        }
    return row_finish(&row);
}

// The diagnoses of parts of the lifetimes follow those of whole ones.
static const struct diagnosis *numbered_diagnosis(const struct run_analysis *run, size_t number)
{
    size_t whole = run->findings.diagnoses.count;
    return number < whole ? &run->findings.diagnoses.items[number]
                          : &run->findings.part_diagnoses.items[number - whole];
}

static void put_fields(struct row *row, const struct result_field *field, const void *record)
{
    for (; field->summary || field->column || field->page; field++) {
        if (!field->column)
            continue;
        if (field->form == RESULT_NS || field->form == RESULT_SHARE)
            row_put_real(row, result_number(field, record));
        else if (field->form == RESULT_COUNT || field->form == RESULT_FLAG)
            row_put_integer(row, result_whole(field, record));
        else
            row_put_text(row, result_text(field, record));
    }
}

static void put_diagnosis(struct row *row, const struct run_analysis *run, size_t number)
{
    const struct diagnosis *diagnosis = numbered_diagnosis(run, number);
    char words[96];
    bool bounded = diagnosis->slice.from_ns != diagnosis->slice.to_ns;
    row_put_integer(row, (int64_t)number);
    row_put_integer(row, bounded ? diagnosis->slice.from_ns - run->lifetimes.begin_ns : 0);
    row_put_integer(row, (bounded ? diagnosis->slice.to_ns : run->lifetimes.end_ns) -
                             run->lifetimes.begin_ns);
    put_fields(row, diagnosis_fields, diagnosis);
    if (diagnosis->not_available)
        row_put_text(row, diagnosis->reason);
    else
        row_put_null(row);
    row_put_text(row, diagnosis_slice_words(&diagnosis->slice, words, sizeof words));
    if (diagnosis->slice.one)
        row_put_integer(row, (int64_t)diagnosis->slice.request);
    else
        row_put_null(row);
    row_put_text(row, lifetime_part_name(diagnosis->part));
    row_end(row);
}

static void put_cause(struct row *row, size_t diagnosis, size_t number, const struct cause *cause)
{
    row_put_integer(row, (int64_t)diagnosis);
    row_put_integer(row, (int64_t)number);
    put_fields(row, cause_fields, cause);
    row_end(row);
}

static void put_messages(struct row *diagnosed, struct row *attributed,
                         const struct run_analysis *run, size_t number)
{
    const struct diagnosis *diagnosis = numbered_diagnosis(run, number);
    for (size_t i = 0; i < diagnosis->messages.count && !diagnosed->failed; i++) {
        const struct diagnosed_message *message = &diagnosis->messages.items[i];
        if (diagnosis->not_available)
            break; // picked, but not compared with anything
        row_put_integer(diagnosed, (int64_t)number);
        row_put_integer(diagnosed, (int64_t)run->lifetimes.all.items[message->lifetime].request);
        row_put_real(diagnosed, message->deviation_ns);
        row_put_real(diagnosed, message->explained_ns);
        row_end(diagnosed);
    }
    for (size_t i = 0; i < diagnosis->attributions.count && !attributed->failed; i++) {
        const struct attribution *attribution = &diagnosis->attributions.items[i];
        row_put_integer(attributed, (int64_t)number);
        row_put_integer(attributed,
                        (int64_t)run->lifetimes.all.items[attribution->lifetime].request);
        row_put_integer(attributed, attribution->cause);
        row_put_real(attributed, attribution->ns);
        row_end(attributed);
    }
}

static int write_diagnoses(sqlite3 *database, const struct run_analysis *run)
{
    enum { DIAGNOSES, CAUSES, DIAGNOSED, ATTRIBUTIONS, TABLES };
    static const char *const inserts[TABLES] = {
        "INSERT INTO diagnoses VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
        "INSERT INTO causes VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
        "INSERT INTO diagnosed VALUES(?,?,?,?)",
        "INSERT INTO attributions VALUES(?,?,?,?)",
    };
    struct row rows[TABLES] = {0};
    int result = 0;
    for (int t = 0; t < TABLES && result == 0; t++)
        result = row_prepare(&rows[t], database, inserts[t]);
    size_t count = run->findings.diagnoses.count + run->findings.part_diagnoses.count;
    for (size_t d = 0; d < count && result == 0; d++) {
        const struct cause_array *causes = &numbered_diagnosis(run, d)->causes;
        put_diagnosis(&rows[DIAGNOSES], run, d);
        for (size_t c = 0; c < causes->count; c++)
            put_cause(&rows[CAUSES], d, c, &causes->items[c]);
        put_messages(&rows[DIAGNOSED], &rows[ATTRIBUTIONS], run, d);
    }
    for (int t = 0; t < TABLES; t++)
        if (row_finish(&rows[t]) < 0)
            result = -1;
    return result;
}

// --- queues, core contexts and head-of-line blocking
// ----------------------------------------------

static const char views_schema[] =
    "CREATE TABLE queue("
    " diagnosis INTEGER REFERENCES diagnoses(id), request INTEGER REFERENCES requests(id),"
    " kind TEXT, ahead INTEGER, ns REAL, PRIMARY KEY (diagnosis, request, kind)) WITHOUT ROWID;"
    "CREATE TABLE queue_summary("
    " diagnosis INTEGER REFERENCES diagnoses(id), kind TEXT, side TEXT, messages INTEGER,"
    " ahead_mean REAL, ahead_min REAL, ahead_p25 REAL, ahead_median REAL, ahead_p75 REAL,"
    " ahead_max REAL, ns_mean REAL, ns_min REAL, ns_p25 REAL, ns_median REAL, ns_p75 REAL,"
    " ns_max REAL, PRIMARY KEY (diagnosis, kind, side)) WITHOUT ROWID;"
    "CREATE TABLE core_contexts("
    " diagnosis INTEGER REFERENCES diagnoses(id), role TEXT, core INTEGER, context TEXT,"
    " slice_ns REAL, reference_ns REAL, slice_share REAL, reference_share REAL,"
    " PRIMARY KEY (diagnosis, role, core, context)) WITHOUT ROWID;"
    "CREATE TABLE blocking("
    " diagnosis INTEGER REFERENCES diagnoses(id), request INTEGER REFERENCES requests(id),"
    " scope TEXT, role TEXT, messages INTEGER, ns REAL,"
    " PRIMARY KEY (diagnosis, request, scope)) WITHOUT ROWID;"
    "CREATE TABLE blockers("
    " diagnosis INTEGER REFERENCES diagnoses(id), request INTEGER REFERENCES requests(id),"
    " blocker INTEGER REFERENCES requests(id), scope TEXT, ns REAL,"
    " PRIMARY KEY (diagnosis, request, blocker, scope)) WITHOUT ROWID;";

enum view_table { QUEUE, QUEUE_SUMMARY, CORE_CONTEXTS, BLOCKING, BLOCKERS, VIEW_TABLES };

static void put_spread(struct row *row, const struct spread *spread)
{
    const double values[] = {spread->mean,   spread->min, spread->p25,
                             spread->median, spread->p75, spread->max};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        row_put_real(row, values[i]);
}

static void put_queue_summary(struct row *row, int64_t number, const struct diagnosis_views *views)
{
    for (int kind = 0; kind < QUEUE_KINDS; kind++)
        for (int side = 0; side < VIEW_SIDES; side++) {
            row_put_integer(row, number);
            row_put_text(row, queue_kind_name((enum queue_kind)kind));
            row_put_text(row, side == VIEW_SLICE ? "slice" : "reference");
            row_put_integer(row, (int64_t)(side == VIEW_SLICE ? views->messages.count
                                                              : views->reference_messages));
            put_spread(row, &views->queue[kind].ahead[side]);
            put_spread(row, &views->queue[kind].ns[side]);
            row_end(row);
        }
}

static void put_contexts(struct row *row, int64_t number, const struct diagnosis_views *views)
{
    for (size_t i = 0; i < views->contexts.count; i++) {
        const struct core_context *context = &views->contexts.items[i];
        row_put_integer(row, number);
        row_put_text(row, role_name(context->role));
        row_put_integer(row, context->core);
        row_put_text(row, context->name);
        for (int side = 0; side < VIEW_SIDES; side++)
            row_put_real(row, context->ns[side]);
        for (int side = 0; side < VIEW_SIDES; side++)
            row_put_real(row, context->ns[side] / views->context_ns[side]);
        row_end(row);
    }
}

static void put_message_views(struct row rows[VIEW_TABLES], int64_t number,
                              const struct run_analysis *run, const struct diagnosis *diagnosis,
                              size_t at)
{
    const struct diagnosis_views *views = &diagnosis->views;
    const struct message_view *view = &views->messages.items[at];
    int64_t request =
        (int64_t)run->lifetimes.all.items[diagnosis->messages.items[at].lifetime].request;
    for (int kind = 0; kind < QUEUE_KINDS; kind++) {
        if (view->ahead[kind] == 0)
            continue;
        row_put_integer(&rows[QUEUE], number);
        row_put_integer(&rows[QUEUE], request);
        row_put_text(&rows[QUEUE], queue_kind_name((enum queue_kind)kind));
        row_put_integer(&rows[QUEUE], view->ahead[kind]);
        row_put_real(&rows[QUEUE], (double)view->ahead_ns[kind]);
        row_end(&rows[QUEUE]);
    }
    for (int scope = 0; scope < BLOCKING_SCOPES; scope++) {
        if (view->blocked_by[scope] == 0)
            continue;
        row_put_integer(&rows[BLOCKING], number);
        row_put_integer(&rows[BLOCKING], request);
        row_put_text(&rows[BLOCKING], blocking_scope_name((enum blocking_scope)scope));
        row_put_text(&rows[BLOCKING], role_name(blocking_scope_role((enum blocking_scope)scope)));
        row_put_integer(&rows[BLOCKING], view->blocked_by[scope]);
        row_put_real(&rows[BLOCKING], (double)view->blocked_ns[scope]);
        row_end(&rows[BLOCKING]);
    }
    for (size_t i = 0; i < view->blockers; i++) {
        const struct blocker *blocker = &views->blockers.items[view->first_blocker + i];
        row_put_integer(&rows[BLOCKERS], number);
        row_put_integer(&rows[BLOCKERS], request);
        row_put_integer(&rows[BLOCKERS],
                        (int64_t)run->lifetimes.all.items[blocker->lifetime].request);
        row_put_text(&rows[BLOCKERS], blocking_scope_name((enum blocking_scope)blocker->scope));
        row_put_real(&rows[BLOCKERS], (double)blocker->ns);
        row_end(&rows[BLOCKERS]);
    }
}

static int write_views(sqlite3 *database, const struct run_analysis *run)
{
    static const char *const inserts[VIEW_TABLES] = {
        [QUEUE] = "INSERT INTO queue VALUES(?,?,?,?,?)",
        [QUEUE_SUMMARY] = "INSERT INTO queue_summary VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
        [CORE_CONTEXTS] = "INSERT INTO core_contexts VALUES(?,?,?,?,?,?,?,?)",
        [BLOCKING] = "INSERT INTO blocking VALUES(?,?,?,?,?,?)",
        [BLOCKERS] = "INSERT INTO blockers VALUES(?,?,?,?,?)",
    };
    struct row rows[VIEW_TABLES] = {0};
    int result = sqlite3_exec(database, views_schema, NULL, NULL, NULL) == SQLITE_OK ? 0 : -1;
    for (int t = 0; t < VIEW_TABLES && result == 0; t++)
        result = row_prepare(&rows[t], database, inserts[t]);
    for (size_t d = 0; d < run->findings.diagnoses.count && result == 0; d++) {
        const struct diagnosis *diagnosis = &run->findings.diagnoses.items[d];
        if (!diagnosis->views.available)
            continue;
        put_queue_summary(&rows[QUEUE_SUMMARY], (int64_t)d, &diagnosis->views);
        put_contexts(&rows[CORE_CONTEXTS], (int64_t)d, &diagnosis->views);
        for (size_t i = 0; i < diagnosis->views.messages.count; i++)
            put_message_views(rows, (int64_t)d, run, diagnosis, i);
    }
    for (int t = 0; t < VIEW_TABLES; t++)
        if (row_finish(&rows[t]) < 0)
            result = -1;
    return result;
}

// --- the whole
// ------------------------------------------------------------------------------------

// " name TEXT, messages INTEGER," and so on.
static const char *columns_of(const struct result_field *field, char *out, size_t bytes)
{
    size_t used = 0;
    for (out[0] = '\0'; field->summary || field->column || field->page; field++) {
        bool real = field->form == RESULT_NS || field->form == RESULT_SHARE;
        bool whole = field->form == RESULT_COUNT || field->form == RESULT_FLAG;
        if (field->column && used < bytes)
            used += (size_t)snprintf(out + used, bytes - used, " %s %s,", field->column,
                                     real    ? "REAL"
                                     : whole ? "INTEGER"
                                             : "TEXT");
    }
    return out;
}

static int create_tables(sqlite3 *database)
{
    char schema[sizeof schema_format + 1200], of_diagnosis[600], of_cause[600];
    snprintf(schema, sizeof schema, schema_format,
             columns_of(diagnosis_fields, of_diagnosis, sizeof of_diagnosis),
             columns_of(cause_fields, of_cause, sizeof of_cause));
    return sqlite3_exec(database, schema, NULL, NULL, NULL) == SQLITE_OK ? 0 : -1;
}

static int fill(sqlite3 *database, const struct run_analysis *run)
{
    if (create_tables(database) < 0 || write_meta(database, run) < 0 ||
        write_categories(database, &run->findings.categories) < 0 ||
        write_lifetimes(database, run,
                        "INSERT INTO requests "
                        "VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
                        put_request) < 0 ||
        write_lifetimes(database, run, "INSERT INTO stages VALUES(?,?,?,?,?,?,?,?,?,?)",
                        put_stages) < 0 ||
        write_diagnoses(database, run) < 0 || write_views(database, run) < 0 ||
        sqlite3_exec(database, after, NULL, NULL, NULL) != SQLITE_OK)
        return -1;
    return 0;
}

int run_database_write(const struct run_analysis *analysis, const char *path, struct error *err)
{
    char partial[4400];
    sqlite3 *database = NULL;
    if ((size_t)snprintf(partial, sizeof partial, "%s.partial", path) >= sizeof partial)
        return error_set(err, ERROR_INPUT, "%.80s...: path too long for a database", path);
    if (unlink(partial) < 0 && errno != ENOENT)
        return error_set_errno(err, ERROR_FAILED, "cannot replace %s", partial);
    int result = 0;
    if (sqlite3_open(partial, &database) != SQLITE_OK || fill(database, analysis) < 0)
        result = database_error(database, partial, err);
    if (sqlite3_close(database) != SQLITE_OK && result == 0)
        result = database_error(database, partial, err);
    if (result == 0 && rename(partial, path) < 0)
        result = error_set_errno(err, ERROR_FAILED, "cannot rename %s to %s", partial, path);
    if (result < 0)
        unlink(partial);
    return result;
}
