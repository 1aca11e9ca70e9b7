// SPDX-License-Identifier: MIT
//
// run.db's tables of queues, core contexts and head-of-line blocking.
#include "analysis/export/database_row.h"
#include "analysis/run/run_internal.h"

static const char schema[] =
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

enum table { QUEUE, QUEUE_SUMMARY, CORE_CONTEXTS, BLOCKING, BLOCKERS, TABLES };

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

static void put_message(struct row rows[TABLES], int64_t number, const struct run_analysis *run,
                        const struct diagnosis *diagnosis, size_t at)
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

int run_database_views(sqlite3 *database, const struct run_analysis *run)
{
    static const char *const inserts[TABLES] = {
        [QUEUE] = "INSERT INTO queue VALUES(?,?,?,?,?)",
        [QUEUE_SUMMARY] = "INSERT INTO queue_summary VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
        [CORE_CONTEXTS] = "INSERT INTO core_contexts VALUES(?,?,?,?,?,?,?,?)",
        [BLOCKING] = "INSERT INTO blocking VALUES(?,?,?,?,?,?)",
        [BLOCKERS] = "INSERT INTO blockers VALUES(?,?,?,?,?)",
    };
    struct row rows[TABLES] = {0};
    int result = sqlite3_exec(database, schema, NULL, NULL, NULL) == SQLITE_OK ? 0 : -1;
    for (int t = 0; t < TABLES && result == 0; t++)
        result = row_prepare(&rows[t], database, inserts[t]);
    for (size_t d = 0; d < run->findings.diagnoses.count && result == 0; d++) {
        const struct diagnosis *diagnosis = &run->findings.diagnoses.items[d];
        if (!diagnosis->views.available)
            continue;
        put_queue_summary(&rows[QUEUE_SUMMARY], (int64_t)d, &diagnosis->views);
        put_contexts(&rows[CORE_CONTEXTS], (int64_t)d, &diagnosis->views);
        for (size_t i = 0; i < diagnosis->views.messages.count; i++)
            put_message(rows, (int64_t)d, run, diagnosis, i);
    }
    for (int t = 0; t < TABLES; t++)
        if (row_finish(&rows[t]) < 0)
            result = -1;
    return result;
}
