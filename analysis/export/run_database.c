// SPDX-License-Identifier: MIT
#include "analysis/export/run_database.h"

#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "analysis/export/database_row.h"
#include "analysis/export/run_spans.h"
#include "analysis/calls/streams.h"
#include "analysis/run/run_culprits.h"
#include "analysis/run/result_fields.h"
#include "analysis/timeline/pauses.h"
#include "base/new_file.h"
#include "base/text.h"

static const char schema_format[] = // with the columns of the result_field tables
    "PRAGMA journal_mode = OFF;"    // the file gets its name only when it is whole
    "PRAGMA synchronous = OFF;"
    "BEGIN;"
    "CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL);"
    "CREATE TABLE categories("
    " position INTEGER PRIMARY KEY, file TEXT, pattern TEXT, category TEXT);"
    "CREATE TABLE operations(operation INTEGER PRIMARY KEY, name TEXT);"
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
    " PRIMARY KEY (diagnosis, request, cause)) WITHOUT ROWID;"
    "CREATE TABLE queue("
    " diagnosis INTEGER REFERENCES diagnoses(id), request INTEGER REFERENCES requests(id),"
    " kind TEXT, ahead INTEGER, ns REAL, PRIMARY KEY (diagnosis, request, kind)) WITHOUT ROWID;"
    "CREATE TABLE queue_summary("
    " diagnosis INTEGER REFERENCES diagnoses(id), kind TEXT, side TEXT, messages INTEGER,"
    "%s PRIMARY KEY (diagnosis, kind, side)) WITHOUT ROWID;"
    "CREATE TABLE core_contexts("
    " diagnosis INTEGER REFERENCES diagnoses(id),%s"
    " PRIMARY KEY (diagnosis, role, core, context)) WITHOUT ROWID;"
    "CREATE TABLE blocking("
    " diagnosis INTEGER REFERENCES diagnoses(id), request INTEGER REFERENCES requests(id),"
    " scope TEXT, role TEXT, messages INTEGER, ns REAL,"
    " PRIMARY KEY (diagnosis, request, scope)) WITHOUT ROWID;"
    "CREATE TABLE blockers("
    " diagnosis INTEGER REFERENCES diagnoses(id), request INTEGER REFERENCES requests(id),"
    " blocker INTEGER REFERENCES requests(id), scope TEXT, ns REAL, owner TEXT);"
    "CREATE INDEX blockers_of ON blockers(diagnosis, request);"
    "CREATE TABLE ordinary("
    " diagnosis INTEGER REFERENCES diagnoses(id), part TEXT, role TEXT, category TEXT,"
    " mean_ns REAL, fast_ns REAL, met REAL, concerns INTEGER);"
    "CREATE TABLE shared_traits("
    " trait TEXT, kind TEXT, value INTEGER, requests INTEGER, slow INTEGER, slow_share REAL,"
    " share REAL, odds_ratio REAL, odds_low REAL, median_ns REAL, other_median_ns REAL,"
    " rank_correlation REAL);"
    "CREATE TABLE time_budget("
    " thread INTEGER, name TEXT, state TEXT, wait TEXT, times INTEGER, ns REAL);";

enum { COLUMNS_BYTES = 600 }; // of one table of fields

static const char after[] =
    "CREATE INDEX requests_by_latency ON requests(latency_ns);"
    "CREATE INDEX requests_by_intended ON requests(intended_ns);"
    "CREATE VIEW slow AS SELECT d.request, o.name AS operation, r.connection,"
    " r.intended_ns / 1e9 AS second, r.latency_ns / 1e3 AS us, d.deviation_ns / 1e3 AS extra_us,"
    " c.name AS cause, c.role, c.category, max(a.ns) / 1e3 AS cause_us"
    " FROM diagnosed d JOIN requests r ON r.id = d.request"
    " LEFT JOIN operations o USING (operation)"
    " LEFT JOIN attributions a ON a.diagnosis = 0 AND a.request = d.request"
    " LEFT JOIN causes c ON c.diagnosis = 0 AND c.cause = a.cause"
    " WHERE d.diagnosis = 0 GROUP BY d.request;"
    "COMMIT;";

static const char *const status_names[] = {
    [SAMPLE_ANSWERED] = "answered",       [SAMPLE_MISS] = "miss",
    [SAMPLE_ERROR_REPLY] = "error reply", [SAMPLE_UNSENT] = "unsent",
    [SAMPLE_TIMED_OUT] = "timed out",     [SAMPLE_LOST] = "lost",
};

static void put_request(struct row *row, const struct run_analysis *run,
                        const struct lifetime *life)
{
    static const enum stamp_kind placed[] = {STAMP_HANDOFF, STAMP_APPLICATION};
    bool sent = life->connection != NO_CONNECTION;
    ROW_PUT(row, row_integer((int64_t)life->request),
            sent ? row_integer(life->connection) : row_null(), row_integer(life->operation),
            row_text(life->status <= SAMPLE_LOST ? status_names[life->status] : "?"),
            row_text(lifetime_state_name((enum lifetime_state)life->state)),
            row_whole(life->latency_ns), row_whole(life->uncorrected_latency_ns),
            row_integer(life->thread), row_integer(life->batch), row_integer(life->batch_position),
            row_integer(life->sharing));
    for (int i = 0; i < 2; i++) {
        uint16_t core = life->stamp_core[placed[i]];
        row_put(row, core == NO_CORE ? row_null() : row_integer(core));
    }
    ROW_PUT(row, row_integer(life->disordered), row_integer(life->fallback));
    for (int kind = 0; kind < STAMP_KINDS; kind++)
        row_put(row, lifetime_has(life, (enum stamp_kind)kind)
                         ? row_integer(life->stamp_ns[kind] - run->lifetimes.begin_ns)
                         : row_null());
    row_end(row);
}

static void put_stages(struct row *row, const struct run_analysis *run, const struct lifetime *life)
{
    (void)run;
    if (!isfinite(life->latency_ns))
        return;
    row_put(row, row_integer((int64_t)life->request));
    for (int stage = STAMP_SEND; stage < STAGES; stage++) // without a stamp it is part of the next
        row_put(row, life->merged >> stage & 1 ? row_null() : row_whole(life->stage_ns[stage]));
    row_end(row);
}

static int database_error(sqlite3 *database, const char *path, struct error *err)
{
    return error_set(err, ERROR_FAILED, "cannot write %s: %s", path,
                     database ? sqlite3_errmsg(database) : "no memory");
}

typedef void lifetime_writer(struct row *row, const struct run_analysis *run,
                             const struct lifetime *life);

static int write_lifetimes(sqlite3 *database, const struct run_analysis *run, const char *table,
                           lifetime_writer *write)
{
    struct row row;
    if (row_prepare_table(&row, database, table) < 0)
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
    if (row_prepare_table(&row, database, "meta") < 0)
        return -1;
    for (size_t i = 0; i < sizeof entries / sizeof *entries && !row.failed; i++)
        ROW_ADD(&row, row_text(entries[i][0]), row_text(entries[i][1]));
    return row_finish(&row);
}

// By their places in the mix, which requests have; none where nobody knows the mix.
static int write_operations(sqlite3 *database, const struct run_analysis *run)
{
    struct row row;
    const char *name;
    if (row_prepare_table(&row, database, "operations") < 0)
        return -1;
    for (uint64_t i = 0; !row.failed && (name = run_operation_name(run, 0, i)); i++)
        ROW_ADD(&row, row_integer((int64_t)i), row_text(name));
    return row_finish(&row);
}

// The patterns that came before the program's own.
static int write_categories(sqlite3 *database, const struct run_categories *categories)
{
    struct row row;
    int64_t position = 0;
    if (row_prepare_table(&row, database, "categories") < 0)
        return -1;
    for (size_t s = 0; s < categories->source_count; s++)
        for (size_t i = 0; i < categories->sources[s].rules && !row.failed; i++, position++) {
            const struct category_rule *rule = &categories->table.rules.items[position];
            ROW_ADD(&row, row_integer(position), row_text(categories->sources[s].file),
                    row_text(rule->pattern), row_text(rule->category));
        }
    return row_finish(&row);
}

static struct row_value request_of(const struct run_analysis *run, uint64_t lifetime)
{
    return row_integer((int64_t)run->lifetimes.all.items[lifetime].request);
}

// The diagnoses of whole lifetimes come first, then those of their parts.
static const struct diagnosis *numbered_diagnosis(const struct run_analysis *run, size_t number)
{
    size_t whole = run->findings.diagnoses.count;
    return number < whole ? &run->findings.diagnoses.items[number]
                          : &run->findings.part_diagnoses.items[number - whole];
}

static void put_fields(struct row *row, const struct result_field *field, const void *record)
{
    for (; !result_field_ends(field); field++) {
        enum result_matter matter = result_matter(field->form);
        if (!field->column)
            continue;
        if (matter == RESULT_OF_TEXT)
            row_put(row, row_text(result_text(field, record)));
        else if (matter == RESULT_OF_INTEGER)
            row_put(row, row_integer(result_whole(field, record)));
        else if (matter == RESULT_OF_REAL)
            row_put(row, row_real(result_number(field, record)));
        else
            for (size_t i = 0; i < SPREAD_NUMBERS; i++)
                row_put(row, row_real(spread_number(result_spread(field, record), i)));
    }
}

static void put_diagnosis(struct row *row, const struct run_analysis *run, size_t number)
{
    const struct diagnosis *diagnosis = numbered_diagnosis(run, number);
    const struct diagnosis_slice *slice = &diagnosis->slice;
    char words[96];
    bool bounded = slice->from_ns != slice->to_ns;
    int64_t begin = run->lifetimes.begin_ns, end = run->lifetimes.end_ns;
    ROW_PUT(row, row_integer((int64_t)number), row_integer(bounded ? slice->from_ns - begin : 0),
            row_integer((bounded ? slice->to_ns : end) - begin));
    put_fields(row, diagnosis_fields, diagnosis);
    ROW_ADD(row, row_text(diagnosis->not_available ? diagnosis->reason : NULL),
            row_text(diagnosis_slice_words(slice, words, sizeof words)),
            slice->one ? row_integer((int64_t)slice->request) : row_null(),
            row_text(lifetime_part_name(diagnosis->part)));
}

static void put_messages(struct row *diagnosed, struct row *attributed,
                         const struct run_analysis *run, size_t number)
{
    const struct diagnosis *diagnosis = numbered_diagnosis(run, number);
    for (size_t i = 0; i < diagnosis->messages.count && !diagnosed->failed; i++) {
        const struct diagnosed_message *message = &diagnosis->messages.items[i];
        if (diagnosis->not_available)
            break; // its messages were chosen, but not compared with anything
        ROW_ADD(diagnosed, row_integer((int64_t)number), request_of(run, message->lifetime),
                row_real(message->deviation_ns), row_real(message->explained_ns));
    }
    for (size_t i = 0; i < diagnosis->attributions.count && !attributed->failed; i++) {
        const struct attribution *attribution = &diagnosis->attributions.items[i];
        ROW_ADD(attributed, row_integer((int64_t)number), request_of(run, attribution->lifetime),
                row_integer(attribution->cause), row_real(attribution->ns));
    }
}

static int write_diagnoses(sqlite3 *database, const struct run_analysis *run)
{
    enum { DIAGNOSES, CAUSES, DIAGNOSED, ATTRIBUTIONS, TABLES };
    static const char *const names[TABLES] = {"diagnoses", "causes", "diagnosed", "attributions"};
    struct row rows[TABLES] = {0};
    int result = 0;
    for (int t = 0; t < TABLES && result == 0; t++)
        result = row_prepare_table(&rows[t], database, names[t]);
    size_t count = run->findings.diagnoses.count + run->findings.part_diagnoses.count;
    for (size_t d = 0; d < count && result == 0; d++) {
        const struct cause_array *causes = &numbered_diagnosis(run, d)->causes;
        put_diagnosis(&rows[DIAGNOSES], run, d);
        for (size_t c = 0; c < causes->count; c++) {
            ROW_PUT(&rows[CAUSES], row_integer((int64_t)d), row_integer((int64_t)c));
            put_fields(&rows[CAUSES], cause_fields, &causes->items[c]);
            row_end(&rows[CAUSES]);
        }
        put_messages(&rows[DIAGNOSED], &rows[ATTRIBUTIONS], run, d);
    }
    for (int t = 0; t < TABLES; t++)
        if (row_finish(&rows[t]) < 0)
            result = -1;
    return result;
}

static int write_ordinary(sqlite3 *database, const struct diagnosis_array *diagnoses)
{
    struct row row;
    if (row_prepare_table(&row, database, "ordinary") < 0)
        return -1;
    for (size_t d = 0; d < diagnoses->count; d++)
        for (size_t i = 0; i < diagnoses->items[d].ordinary.count && !row.failed; i++) {
            const struct ordinary_part *part = &diagnoses->items[d].ordinary.items[i];
            ROW_ADD(&row, row_integer((int64_t)d), row_text(part->name),
                    row_text(role_name(part->role)), row_text(part->category),
                    row_real(part->mean_ns), row_real(part->fast_ns), row_real(part->met),
                    row_integer(part->concerns));
        }
    return row_finish(&row);
}

static int write_shared(sqlite3 *database, const struct run_analysis *run)
{
    struct row row;
    if (row_prepare_table(&row, database, "shared_traits") < 0)
        return -1;
    for (size_t i = 0; i < run->findings.shared.count && !row.failed; i++) {
        const struct shared_trait *trait = &run->findings.shared.items[i];
        char words[100];
        shared_trait_words(trait, run_operation_name(run, 0, trait->value), words, sizeof words);
        ROW_ADD(&row, row_text(words), row_text(trait_kind_name(trait->kind)),
                row_integer((int64_t)trait->value), row_integer((int64_t)trait->requests),
                row_integer((int64_t)trait->slow), row_real(trait->slow_share),
                row_real(trait->share), row_real(trait->odds_ratio), row_real(trait->odds_low),
                row_real(trait->median_ns), row_real(trait->other_median_ns),
                row_real(trait->rank_correlation));
    }
    return row_finish(&row);
}

static void put_budget(struct row *row, const struct thread_budget *budget)
{
    struct row_value thread = row_integer(budget->thread), name = row_text(budget->name);
    for (int state = 0; state < BUDGET_STATES; state++)
        if (state != BUDGET_BLOCKED && budget->ns[state] > 0)
            ROW_ADD(row, thread, name, row_text(budget_state_name((enum budget_state)state)),
                    row_null(), row_null(), row_real(budget->ns[state]));
    for (size_t i = 0; i < budget->waits.count; i++) {
        const struct budget_wait *wait = &budget->waits.items[i];
        char words[64];
        pause_name(wait->pause, words, sizeof words);
        ROW_ADD(row, thread, name, row_text(budget_state_name(BUDGET_BLOCKED)), row_text(words),
                row_integer((int64_t)wait->times), row_real(wait->ns));
    }
}

static int write_budget(sqlite3 *database, const struct time_budget *budget)
{
    struct row row;
    if (row_prepare_table(&row, database, "time_budget") < 0)
        return -1;
    for (size_t i = 0; i < budget->threads.count && !row.failed; i++)
        put_budget(&row, &budget->threads.items[i]);
    return row_finish(&row);
}

// --- queues, core contexts and head-of-line blocking ---------------------------------------

enum view_table { QUEUE, QUEUE_SUMMARY, CORE_CONTEXTS, BLOCKING, BLOCKERS, VIEW_TABLES };

static void put_queue_summary(struct row *row, int64_t number, const struct diagnosis_views *views)
{
    const size_t messages[VIEW_SIDES] = {views->messages.count, views->reference_messages};
    for (int kind = 0; kind < QUEUE_KINDS; kind++)
        for (int side = 0; side < VIEW_SIDES; side++) {
            ROW_PUT(row, row_integer(number), row_text(queue_kind_name((enum queue_kind)kind)),
                    row_text(side == VIEW_SLICE ? "slice" : "reference"),
                    row_integer((int64_t)messages[side]));
            put_fields(row, queue_side_fields, &views->queue[kind].sides[side]);
            row_end(row);
        }
}

static void put_contexts(struct row *row, int64_t number, const struct diagnosis_views *views)
{
    for (size_t i = 0; i < views->contexts.count; i++) {
        row_put(row, row_integer(number));
        put_fields(row, context_fields, &views->contexts.items[i]);
        row_end(row);
    }
}

static void put_message_views(struct row rows[VIEW_TABLES], int64_t number,
                              const struct run_analysis *run, const struct diagnosis *diagnosis,
                              size_t at)
{
    const struct diagnosis_views *views = &diagnosis->views;
    const struct message_view *view = &views->messages.items[at];
    const struct row_value of = row_integer(number),
                           request = request_of(run, diagnosis->messages.items[at].lifetime);
    for (int kind = 0; kind < QUEUE_KINDS; kind++)
        if (view->ahead[kind])
            ROW_ADD(&rows[QUEUE], of, request, row_text(queue_kind_name((enum queue_kind)kind)),
                    row_integer(view->ahead[kind]), row_real((double)view->ahead_ns[kind]));
    for (int scope = 0; scope < BLOCKING_SCOPES; scope++)
        if (view->blocked_by[scope])
            ROW_ADD(&rows[BLOCKING], of, request,
                    row_text(blocking_scope_name((enum blocking_scope)scope)),
                    row_text(role_name(blocking_scope_role((enum blocking_scope)scope))),
                    row_integer(view->blocked_by[scope]),
                    row_real((double)view->blocked_ns[scope]));
    for (size_t i = 0; i < view->blockers; i++) {
        const struct blocker *blocker = &views->blockers.items[view->first_blocker + i];
        char words[160];
        const char *owner =
            run_blocker_owner(run, blocker->lifetime, blocker->service, words, sizeof words);
        ROW_ADD(&rows[BLOCKERS], of, request,
                owner ? row_null() : request_of(run, blocker->lifetime),
                row_text(blocking_scope_name((enum blocking_scope)blocker->scope)),
                row_real((double)blocker->ns), row_text(owner));
    }
}

static int write_views(sqlite3 *database, const struct run_analysis *run)
{
    static const char *const names[VIEW_TABLES] = {"queue", "queue_summary", "core_contexts",
                                                   "blocking", "blockers"};
    struct row rows[VIEW_TABLES] = {0};
    int result = 0;
    for (int t = 0; t < VIEW_TABLES && result == 0; t++)
        result = row_prepare_table(&rows[t], database, names[t]);
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

// --- the whole -----------------------------------------------------------------------------------

// " name TEXT, messages INTEGER," and so on.
static const char *columns_of(const struct result_field *field, char out[COLUMNS_BYTES])
{
    static const char *const types[] = {"TEXT", "INTEGER", "REAL"};
    for (out[0] = '\0'; !result_field_ends(field); field++) {
        enum result_matter matter = result_matter(field->form);
        if (field->column && matter != RESULT_OF_SPREAD)
            text_append(out, COLUMNS_BYTES, " %s %s,", field->column, types[matter]);
        for (size_t i = 0; field->column && matter == RESULT_OF_SPREAD && i < SPREAD_NUMBERS; i++)
            text_append(out, COLUMNS_BYTES, " %s_%s REAL,", field->column, spread_names[i]);
    }
    return out;
}

static int create_tables(sqlite3 *database)
{
    char schema[sizeof schema_format + 4 * COLUMNS_BYTES], diagnosis[COLUMNS_BYTES],
        cause[COLUMNS_BYTES], queue[COLUMNS_BYTES], context[COLUMNS_BYTES];
    snprintf(schema, sizeof schema, schema_format, columns_of(diagnosis_fields, diagnosis),
             columns_of(cause_fields, cause), columns_of(queue_side_fields, queue),
             columns_of(context_fields, context));
    return sqlite3_exec(database, schema, NULL, NULL, NULL) == SQLITE_OK &&
                   sqlite3_exec(database, run_spans_schema, NULL, NULL, NULL) == SQLITE_OK
               ? 0
               : -1;
}

static int fill_database(sqlite3 *database, const struct run_analysis *run)
{
    if (create_tables(database) < 0 || write_meta(database, run) < 0 ||
        write_operations(database, run) < 0 ||
        write_categories(database, &run->findings.categories) < 0 ||
        write_lifetimes(database, run, "requests", put_request) < 0 ||
        write_lifetimes(database, run, "stages", put_stages) < 0 ||
        write_shared(database, run) < 0 || write_budget(database, &run->findings.budget) < 0 ||
        write_ordinary(database, &run->findings.diagnoses) < 0 ||
        write_diagnoses(database, run) < 0 || write_views(database, run) < 0 ||
        run_spans_write(database, run) < 0 ||
        sqlite3_exec(database, after, NULL, NULL, NULL) != SQLITE_OK)
        return -1;
    return 0;
}

int run_database_write(const struct run_analysis *analysis, const char *path, struct error *err)
{
    struct new_file out; // SQLite takes an empty file for a new database
    sqlite3 *database = NULL;
    int result = new_file_open(&out, path, err);
    if (result < 0)
        return result;
    if (!out.partial)
        result = error_set(err, ERROR_INPUT, "%s: a database can only be a file", path);
    else if (sqlite3_open(out.partial, &database) != SQLITE_OK ||
             fill_database(database, analysis) < 0)
        result = database_error(database, out.partial, err);
    if (sqlite3_close(database) != SQLITE_OK && result == 0)
        result = database_error(database, out.partial, err);
    return new_file_finish(&out, result, err);
}
