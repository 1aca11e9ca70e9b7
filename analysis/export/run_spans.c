// SPDX-License-Identifier: MIT
#include "analysis/export/run_spans.h"

#include <stdio.h>

#include "analysis/export/database_row.h"

const char run_spans_schema[] =
    "CREATE TABLE spans("
    " request INTEGER REFERENCES requests(id), core INTEGER, depth INTEGER, kind TEXT, name TEXT,"
    " thread INTEGER, server INTEGER, from_ns INTEGER, to_ns INTEGER, ns INTEGER);"
    "CREATE INDEX spans_of ON spans(request);"
    "CREATE VIEW lives AS SELECT s.request, max(s.from_ns - r.intended_ns, 0) / 1e3 AS at_us,"
    " s.ns / 1e3 AS us, s.core, s.depth, s.kind, s.name, s.thread, s.server"
    " FROM spans s JOIN requests r ON r.id = s.request;";

// The part of a core's timeline within a message's life.
struct stretch {
    const struct core_timeline *core;
    size_t first, end; // of its spans
    struct time_range life;
};

static struct stretch stretch_of(const struct host_timeline *host, uint16_t core,
                                 struct time_range life)
{
    struct stretch stretch = {.core = host_timeline_core(host, core), .life = life};
    if (!stretch.core)
        return stretch;
    const struct span_array *spans = &stretch.core->spans;
    stretch.first = core_timeline_from(stretch.core, life.begin_ns);
    stretch.end =
        array_bound(stretch.first, spans->count, at, spans->items[at].begin_ns < life.end_ns);
    return stretch;
}

static void put_stretch(struct row *row, const struct run_analysis *run, uint64_t request,
                        const struct stretch *stretch)
{
    const struct name_array *names = &run->evidence.server.names;
    const int64_t begin_ns = run->lifetimes.begin_ns;
    for (size_t i = stretch->first; i < stretch->end && !row->failed; i++) {
        const struct span *span = &stretch->core->spans.items[i];
        const int64_t from =
            span->begin_ns > stretch->life.begin_ns ? span->begin_ns : stretch->life.begin_ns;
        const int64_t to =
            span->end_ns < stretch->life.end_ns ? span->end_ns : stretch->life.end_ns;
        const bool task = span->kind == SPAN_TASK;
        if (to <= from)
            continue;
        ROW_ADD(row, row_integer((int64_t)request), row_integer(stretch->core->core),
                row_integer(span->depth), row_text(span_kind_word(span->kind)),
                row_text(span->name < names->count ? names->items[span->name] : NULL),
                task ? row_integer(span->id) : row_null(),
                row_integer(task && application_of_thread(&run->lifetimes.applications, span->id) !=
                                        NO_APPLICATION),
                row_integer(span->begin_ns - begin_ns), row_integer(span->end_ns - begin_ns),
                row_integer(to - from));
    }
}

// Returns how many spans it has, and writes them if they are no more than `most`.
static size_t put_message(struct row *row, const struct run_analysis *run,
                          const struct lifetime *life, size_t most)
{
    uint16_t cores[LIFETIME_CORES];
    struct stretch stretches[LIFETIME_CORES];
    const size_t count = lifetime_cores(life, cores);
    size_t spans = 0;
    for (size_t i = 0; i < count; i++) {
        stretches[i] = stretch_of(&run->evidence.server, cores[i], lifetime_extent(life));
        spans += stretches[i].end - stretches[i].first;
    }
    for (size_t i = 0; i < count && spans <= most; i++)
        put_stretch(row, run, life->request, &stretches[i]);
    return spans;
}

static int put_counts(sqlite3 *database, size_t with, size_t without)
{
    struct row row;
    char numbers[2][24];
    snprintf(numbers[0], sizeof numbers[0], "%zu", with);
    snprintf(numbers[1], sizeof numbers[1], "%zu", without);
    if (row_prepare_table(&row, database, "meta") < 0)
        return -1;
    ROW_ADD(&row, row_text("messages_with_spans"), row_text(numbers[0]));
    ROW_ADD(&row, row_text("messages_without_room_for_spans"), row_text(numbers[1]));
    return row_finish(&row);
}

int run_spans_write(sqlite3 *database, const struct run_analysis *run)
{
    const struct diagnosis_array *diagnoses = &run->findings.diagnoses;
    const bool any =
        diagnoses->count && !diagnoses->items[0].not_available && run_has_server_events(run);
    size_t left = RUN_SPANS_MOST, with = 0, without = 0;
    struct row row;
    if (row_prepare_table(&row, database, "spans") < 0)
        return -1;
    for (size_t i = 0; any && i < diagnoses->items[0].messages.count && !row.failed; i++) {
        const uint64_t at = diagnoses->items[0].messages.items[i].lifetime;
        // Behind the first one without room all are: who looks for the slowest finds the slowest.
        const size_t spans =
            without ? 0 : put_message(&row, run, &run->lifetimes.all.items[at], left);
        if (without || spans > left) {
            without++;
        } else {
            with += spans > 0;
            left -= spans;
        }
    }
    return row_finish(&row) < 0 ? -1 : put_counts(database, with, without);
}
