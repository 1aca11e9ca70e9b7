// SPDX-License-Identifier: MIT
//
// A whole run folder, analyzed, and what comes out read back from summary.json's document and
// run.db.
#include <errno.h>
#include <math.h>
#include <sqlite3.h>

#include "analysis/analyze_command.h"
#include "analysis/export/run_database.h"
#include "analysis/export/run_summary.h"
#include "analysis/run/run_lede.h"
#include "analysis/run/run_verdict.h"
#include "base/text.h"
#include "tests/analysis/run/made_folder.h"

static void check_summary(const struct folder *f, const struct run_analysis *run)
{
    json_t *summary = run_summary_json(run);
    assert_non_null(summary);
    assert_string_equal(json_string_value(json_object_get(summary, "run_dir")), f->path);
    assert_string_equal(json_string_value(json_object_get(summary, "name")), "noisy");
    assert_string_equal(json_string_value(json_object_get(summary, "verdict")),
                        run->findings.verdict);
    assert_true(number_in(summary, "requests") == 4000 && number_in(summary, "joined") == 3999);
    assert_true(number_in(summary, "order_violations") == 0);
    json_t *dropped = json_object_get(summary, "dropped");
    assert_true(number_in(dropped, "events") == 0 && number_in(dropped, "calls") == 0);
    json_t *stages = json_object_get(summary, "stages"), *stage;
    size_t at;
    json_array_foreach(stages, at, stage) assert_int_equal(
        json_object_get(stage, "not_running_us") != NULL,
        strcmp(json_string_value(json_object_get(stage, "stage")), "application") == 0);
    json_t *latency = json_object_get(summary, "latency_us");
    assert_true(number_in(latency, "p50") > 10 && number_in(latency, "p99") > 100);
    assert_true(number_in(latency, "p99") <= number_in(latency, "p99.9"));
    assert_true(json_is_null(json_object_get(latency, "max"))); // one was never answered
    assert_true(number_in(summary, "achieved_rate") > 10000);
    assert_true(number_in(summary, "coverage_median") > 0.9);
    assert_top_cause(summary, "yes", "A");
    json_t *windows = json_object_get(summary, "windows");
    assert_int_equal(json_array_size(windows), 2);
    assert_top_cause(json_array_get(windows, 1), "yes", "A");
    json_t *quiet = json_object_get(json_array_get(windows, 0), "causes"), *cause;
    size_t index;
    json_array_foreach(quiet, index, cause)
        assert_string_not_equal(json_string_value(json_object_get(cause, "cause")), "yes");
    assert_true(number_in(json_object_get(summary, "unmatched"), "unanswered") == 1);
    json_decref(summary);
}

static double query(sqlite3 *database, const char *sql)
{
    sqlite3_stmt *statement;
    assert_int_equal(sqlite3_prepare_v2(database, sql, -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    double value = sqlite3_column_double(statement, 0);
    sqlite3_finalize(statement);
    return value;
}

static void check_database(const struct folder *f, const struct run_analysis *run)
{
    sqlite3 *db;
    assert_int_equal(sqlite3_open_v2(in_folder(f, "run.db"), &db, SQLITE_OPEN_READONLY, NULL),
                     SQLITE_OK);
    assert_true(query(db, "SELECT count(*) FROM requests") == 4000);
    assert_true(query(db, "SELECT count(*) FROM requests WHERE latency_ns IS NULL") == 1);
    assert_true(query(db, "SELECT count(*) FROM requests WHERE state='whole'") == 3999);
    assert_true(
        query(db, "SELECT max(abs(r.latency_ns - (client_queue_ns + client_stack_ns + "
                  "network_to_server_ns + r_core_ns + a_core_ns + s.application_ns + "
                  "server_stack_ns + network_to_client_ns + client_receive_ns))) FROM requests r "
                  "JOIN stages s ON s.request = r.id") == 0);
    assert_true(query(db, "SELECT count(*) FROM diagnoses WHERE lifetime = 'whole'") == 3);
    assert_true(query(db, "SELECT count(*) FROM diagnoses WHERE lifetime = 'receive' AND id >= 3 "
                          "AND latency_low_ns > 0") == 3);
    assert_true(query(db, "SELECT count(*) FROM causes WHERE name = 'yes' AND diagnosis = "
                          "(SELECT min(id) FROM diagnoses WHERE lifetime = 'receive')") == 1);
    assert_true(query(db, "SELECT name = 'yes' AND role = 'A' FROM causes WHERE diagnosis = 0 "
                          "ORDER BY total_ns DESC LIMIT 1") == 1);
    assert_true(query(db, "SELECT count(*) FROM causes WHERE diagnosis=1 AND name='yes'") == 0);
    assert_true(query(db, "SELECT max(abs(c.total_ns - t.ns)) FROM causes c JOIN (SELECT diagnosis,"
                          " cause, sum(ns) AS ns FROM attributions GROUP BY 1, 2) t USING "
                          "(diagnosis, cause)") < 1);
    assert_true(query(db, "SELECT count(*) FROM diagnosed WHERE diagnosis = 0") ==
                (double)run->findings.diagnoses.items[0].messages.count);
    assert_true(query(db, "SELECT count(*) FROM meta WHERE key='verdict' AND length(value) > 50") ==
                1);
    assert_true(query(db, "SELECT max(nic_ns - client_tx_ns) < 10000 FROM requests") == 1);
    // The sums are those of the messages, and those of the summary.
    assert_true(
        query(db, "SELECT sum(ahead) FROM queue WHERE diagnosis = 0 AND kind = 'app send'") > 0);
    assert_true(query(db, "SELECT max(abs(s.ahead_mean * s.messages - ifnull(q.ahead, 0))) FROM "
                          "queue_summary s LEFT JOIN (SELECT diagnosis, kind, sum(ahead) AS ahead "
                          "FROM queue GROUP BY 1, 2) q USING (diagnosis, kind) "
                          "WHERE s.side = 'slice'") < 1e-6);
    assert_true(query(db, "SELECT min(ahead) FROM queue") > 0);
    assert_true(query(db, "SELECT abs(sum(slice_share) - 1) < 1e-6 AND "
                          "abs(sum(reference_share) - 1) < 1e-6 FROM core_contexts "
                          "WHERE diagnosis = 0") == 1);
    assert_true(query(db, "SELECT context = 'yes' FROM core_contexts WHERE diagnosis = 0 AND role "
                          "= 'A' ORDER BY slice_ns DESC LIMIT 1") == 1);
    assert_true(query(db, "SELECT count(*) FROM blockers b JOIN requests r ON r.id = b.blocker "
                          "WHERE b.diagnosis = 0 AND b.request <> b.blocker") > 10);
    assert_true(query(db, "SELECT count(*) FROM queue_summary WHERE diagnosis = 0") == 10);
    assert_true(query(db, "SELECT slice = 'p99-p100' AND request IS NULL FROM diagnoses "
                          "WHERE id = 0") == 1);
    assert_true(query(db, "SELECT count(*) FROM operations WHERE name = 'set' AND operation = 1") ==
                1);
    // The view has each slow message once, with the largest of what its causes added.
    assert_true(query(db, "SELECT count(*) FROM slow WHERE operation = 'get' AND us > extra_us") ==
                (double)run->findings.diagnoses.items[0].messages.count);
    assert_true(query(db,
                      "SELECT max(abs(s.cause_us * 1e3 - t.ns)) FROM slow s JOIN (SELECT "
                      "request, max(ns) AS ns FROM attributions WHERE diagnosis = 0 GROUP BY 1) t "
                      "USING (request)") < 1e-3);
    assert_true(query(db,
                      "SELECT cause = 'yes' FROM slow GROUP BY cause ORDER BY sum(cause_us) DESC "
                      "LIMIT 1") == 1);
    // All of a slow message's life is on record, at both its cores, and `yes` in the middle of it.
    assert_true(query(db, "SELECT value FROM meta WHERE key = 'messages_with_spans'") ==
                (double)run->findings.diagnoses.items[0].messages.count);
    assert_true(query(db, "SELECT value FROM meta WHERE key = "
                          "'messages_without_room_for_spans'") == 0);
    assert_true(query(db, "SELECT max(abs(sum_ns - r.reply_read_ns + r.intended_ns)) < 2 FROM "
                          "(SELECT request, core, sum(ns) AS sum_ns FROM spans WHERE depth = 0 "
                          "GROUP BY 1, 2) JOIN requests r ON r.id = request") == 1);
    assert_true(query(db, "SELECT name = 'yes' AND kind = 'task' AND server = 0 FROM spans JOIN "
                          "requests r ON r.id = request AND r.a_core = core WHERE depth = 0 "
                          "GROUP BY name ORDER BY sum(ns) DESC LIMIT 1") == 1);
    assert_true(query(db, "SELECT count(*) > 0 AND min(name = 'memcached') FROM spans WHERE "
                          "server") == 1);
    assert_true(query(db, "SELECT min(at_us) >= 0 AND min(l.us) > 0 AND max(at_us + l.us - s.us) < "
                          "0.01 FROM lives l JOIN slow s USING (request)") == 1);
    sqlite3_close(db);
}

static void a_run_is_analyzed(void **state)
{
    (void)state;
    struct folder f;
    struct run_analysis run;
    struct error err;
    make_folder(&f);
    assert_int_equal(analyze(&f, &run, &err), 0);
    print_message("%s\n", run.findings.verdict);
    assert_true(run.findings.verdict_available);
    assert_non_null(strstr(run.findings.verdict, "yes (A) explains"));
    assert_non_null(strstr(run.findings.verdict,
                           "3,999 of 4,000 requests joined, 1 never answered; "
                           "nothing was dropped."));
    assert_true(run.lifetimes.worst_stage_sum_error_ns < 1);
    assert_true(run.evidence.clock_error_ns > 0 && run.evidence.clock_error_ns < 100);
    assert_int_equal(run.evidence.application_thread_count, 1);
    assert_true(run.lifetimes.latency.interval_ns[0].known);
    assert_true(run.lifetimes.latency.interval_ns[0].low <= run.lifetimes.latency.value_ns[0]);
    // The stages at the median add up to about the median.
    double sum = 0;
    for (int stage = 0; stage < STAGES; stage++)
        sum += run.lifetimes.stage_at_quantile_ns[0][stage];
    assert_true(fabs(sum - run.lifetimes.latency.value_ns[0]) <
                0.02 * run.lifetimes.latency.value_ns[0]);
    check_summary(&f, &run);
    assert_int_equal(run_analysis_write(&run, run.evidence.run_dir, &err), 0);
    check_database(&f, &run);
    json_t *written = json_load_file(in_folder(&f, "summary.json"), 0, NULL);
    assert_non_null(written);
    json_decref(written);
    run_analysis_free(&run);
    remove_folder(&f);
}

// Segments come to the same as one log; those that are left of a capture that was killed, or that
// kept only its latest, say so, and only what they have is looked at.
static void both_names(const struct folder *f, const char *one, const char *other,
                       char out[2][4400])
{
    snprintf(out[0], sizeof out[0], "%s", in_folder(f, one));
    snprintf(out[1], sizeof out[1], "%s", in_folder(f, other));
}

// Either may be missing.
static void swap_files(const struct folder *f, const char *one, const char *other)
{
    char names[2][4400], aside[4410];
    both_names(f, one, other, names);
    snprintf(aside, sizeof aside, "%s.aside", names[0]);
    rename(names[0], aside);
    rename(names[1], names[0]);
    rename(aside, names[1]);
}

static int link_file(const struct folder *f, const char *from, const char *to)
{
    char names[2][4400];
    both_names(f, from, to, names);
    return link(names[0], names[1]);
}

static void segments_are_one_log(void **state)
{
    (void)state;
    struct folder f;
    struct run_analysis whole, run;
    struct error err;
    char text[300];
    make_folder(&f);
    assert_int_equal(analyze(&f, &whole, &err), 0);
    assert_null(strstr(whole.findings.verdict, "missing"));
    for (unsigned n = 0; n <= SEGMENTS; n++)
        split_logs(&f, n);
    split_sockets(&f);
    snprintf(text, sizeof text,
             "{\"dropped\": {}, \"segments\": {\"first\": 1, \"count\": %d, \"from_ns\": 0, "
             "\"until_ns\": 0, "
             "\"ended\": true}}",
             SEGMENTS);
    write_text(&f, "server/capture.json", text);
    assert_int_equal(analyze(&f, &run, &err), 0);
    assert_string_equal(run.findings.verdict, whole.findings.verdict);
    assert_int_equal(run.lifetimes.all.count, whole.lifetimes.all.count);
    for (size_t i = 0; i < run.lifetimes.all.count; i++)
        assert_memory_equal(run.lifetimes.all.items[i].stamp_ns,
                            whole.lifetimes.all.items[i].stamp_ns,
                            sizeof run.lifetimes.all.items[i].stamp_ns);
    run_analysis_free(&run);
    // Whose files were swapped, and of which one is there twice.
    swap_files(&f, "server/events-000001.tlog", "server/events-000002.tlog");
    assert_int_equal(analyze(&f, &run, &err), 0);
    assert_string_equal(run.findings.verdict, whole.findings.verdict);
    run_analysis_free(&run);
    swap_files(&f, "server/events-000001.tlog", "server/events-000002.tlog");
    swap_files(&f, "server/events-000002.tlog", "aside");
    assert_int_equal(link_file(&f, "server/events-000001.tlog", "server/events-000002.tlog"), 0);
    assert_int_equal(analyze(&f, &run, &err), -ERROR_INPUT);
    assert_non_null(strstr(err.text, "events-000002.tlog has the same records as"));
    run_analysis_free(&run);
    remove(in_folder(&f, "server/events-000002.tlog"));
    swap_files(&f, "server/events-000002.tlog", "aside");
    // Without a log of connections that ended.
    snprintf(text, sizeof text,
             "{\"dropped\": {}, \"segments\": {\"first\": 1, \"count\": %d, \"sockets\": [2, 3], "
             "\"ended\": true}}",
             SEGMENTS);
    write_text(&f, "server/capture.json", text);
    assert_int_equal(analyze(&f, &run, &err), 0);
    assert_null(strstr(run.findings.verdict, "sockets-000002.tlog"));
    assert_non_null(strstr(run.findings.verdict, "sockets-000003.tlog is missing"));
    run_analysis_free(&run);
    swap_files(&f, segment_name(2, "sockets"), "aside");
    assert_int_equal(analyze(&f, &run, &err), 0);
    assert_non_null(strstr(run.findings.verdict,
                           "what the capture lost is not known: server/sockets-000002.tlog and 1 "
                           "more of its kind are missing"));
    assert_null(strstr(run.findings.verdict, "never saw"));
    assert_null(strstr(run.findings.verdict, "nothing was dropped"));
    run_analysis_free(&run);
    swap_files(&f, segment_name(2, "sockets"), "aside");
    // Killed in the third segment; the first is no longer kept.
    snprintf(text, sizeof text,
             "{\"segments\": {\"first\": 2, \"count\": 1, \"from_ns\": %lld, \"until_ns\": %lld, "
             "\"ended\": false, \"why\": \"it was so\"}}",
             (long long)SCENARIO_BEGIN_NS + SEGMENT_NS,
             (long long)SCENARIO_BEGIN_NS + 2 * SEGMENT_NS);
    write_text(&f, "server/capture.json", text);
    assert_int_equal(analyze(&f, &run, &err), 0);
    assert_in_range(run.lifetimes.all.count, SEGMENT_NS / 60000 / 2, SEGMENT_NS / 60000 * 2);
    assert_non_null(strstr(run.findings.verdict, "begins 0.070 s and ends 0.140 s"));
    assert_non_null(strstr(run.findings.verdict, "of 4,000 requests are looked at; it was so."));
    size_t joined = 0;
    for (size_t i = 0; i < run.lifetimes.all.count; i++)
        joined += run.lifetimes.all.items[i].state == LIFETIME_WHOLE;
    assert_true(joined * 100 > run.lifetimes.all.count * 95);
    run_analysis_free(&run);
    // None of its requests, a segment that is missing, and numbers that cannot be.
    write_text(&f, "server/capture.json",
               "{\"segments\": {\"first\": 1, \"count\": 1, \"until_ns\": 5}}");
    assert_int_equal(analyze(&f, &run, &err), -ERROR_INPUT);
    assert_non_null(strstr(err.text, "nothing to analyze"));
    run_analysis_free(&run);
    write_text(&f, "server/capture.json", "{\"segments\": {\"first\": 3, \"count\": 2}}");
    assert_int_equal(analyze(&f, &run, &err), -ERROR_INPUT);
    assert_non_null(strstr(err.text, "events-000004.tlog"));
    run_analysis_free(&run);
    write_text(&f, "server/capture.json", "{\"segments\": {\"first\": -1, \"count\": 2}}");
    assert_int_equal(analyze(&f, &run, &err), -ERROR_INPUT);
    assert_non_null(strstr(err.text, "cannot be"));
    run_analysis_free(&run);
    write_text(&f, "server/capture.json",
               "{\"segments\": {\"first\": 1, \"count\": 1, \"from_ns\": -5, \"until_ns\": 5}}");
    assert_int_equal(analyze(&f, &run, &err), -ERROR_INPUT);
    assert_non_null(strstr(err.text, "segments from -5 to 5 ns cannot be"));
    run_analysis_free(&run);
    run_analysis_free(&whole);
    remove_folder(&f);
}

static off_t bytes_of(const struct folder *f, const char *name)
{
    struct stat status;
    assert_int_equal(stat(in_folder(f, name), &status), 0);
    return status.st_size;
}

// Of a capture with more than is to be looked at, the stretch is where most of the slowest requests
// of the whole load were due (make_folder: after 130 ms), not the last; each that it takes is
// joined.
static void the_slowest_part_is_looked_at(void **state)
{
    (void)state;
    struct folder f;
    struct run_analysis run;
    struct error err = {0};
    struct progress progress;
    char text[400];
    size_t there = 0, slowest = 0, joined = 0;
    make_folder(&f);
    for (unsigned n = 0; n <= SEGMENTS; n++)
        split_logs(&f, n);
    snprintf(text, sizeof text,
             "{\"dropped\": {}, \"segments\": {\"first\": 1, \"count\": %d, \"from_ns\": 0, "
             "\"until_ns\": 0, "
             "\"ends_ns\": [%lld, %lld, %lld], \"ended\": true}}",
             SEGMENTS, (long long)SCENARIO_BEGIN_NS + SEGMENT_NS,
             (long long)SCENARIO_BEGIN_NS + 2 * SEGMENT_NS,
             (long long)SCENARIO_BEGIN_NS + 3 * SEGMENT_NS);
    write_text(&f, "server/capture.json", text);
    const struct run_request request = {
        .run_dir = f.path,
        .segments = {.most_bytes = (uint64_t)(bytes_of(&f, segment_name(3, "events")) +
                                              bytes_of(&f, segment_name(3, "calls")))}};
    progress_init(&progress, true);
    assert_int_equal(run_analyze(&request, &progress, &run, &err), 0);
    const char *says = strstr(run.findings.verdict, "begins 0.140 s and ends 0.210 s");
    assert_non_null(says);
    says = strstr(says, "of the load's slowest 1 %, ");
    assert_non_null(says);
    assert_int_equal(
        sscanf(says, "of the load's slowest 1 %%, %zu of %zu are in it", &there, &slowest), 2);
    assert_in_range(slowest, 40, 60);
    assert_true(there * 2 > slowest);
    for (size_t i = 0; i < run.lifetimes.all.count; i++)
        joined += run.lifetimes.all.items[i].state == LIFETIME_WHOLE;
    assert_in_range(run.lifetimes.all.count, SEGMENT_NS / 60000 / 2, SEGMENT_NS / 60000 * 2);
    assert_true(joined * 100 > run.lifetimes.all.count * 95);
    run_analysis_free(&run);
    // A capture of before, and ends that cannot be: the last part.
    static const char *const others[] = {"", "\"ends_ns\": [1, 2], ", "\"ends_ns\": [3, 2, 4], ",
                                         "\"ends_ns\": [-1, \"a\", null], "};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        snprintf(text, sizeof text,
                 "{\"segments\": {\"first\": 1, \"count\": %d, \"from_ns\": 0, "
                 "\"until_ns\": 0, %s\"ended\": true}}",
                 SEGMENTS, others[i]);
        write_text(&f, "server/capture.json", text);
        assert_int_equal(run_analyze(&request, &progress, &run, &err), 0);
        assert_non_null(strstr(run.findings.verdict, "What came before is too much"));
        run_analysis_free(&run);
    }
    remove_folder(&f);
}

// The kernel's events of the shim's calls.
static void add_kernel_calls(struct scenario *s)
{
    for (size_t i = 0; i < s->calls.count; i++) {
        const struct call *call = &s->calls.items[i];
        const struct connection *shim = NULL, *socket = NULL;
        for (size_t k = 0; k < s->shim.count; k++)
            if (s->shim.items[k].id == call->connection)
                shim = &s->shim.items[k];
        for (size_t k = 0; shim && k < s->sockets.count; k++)
            if (s->sockets.items[k].peer_port == shim->peer_port)
                socket = &s->sockets.items[k];
        if (!socket || call->length == 0)
            continue;
        struct event *event = scenario_event(
            s, (int64_t)(call->exit_tsc / CYCLES_PER_NS),
            call->kind == CALL_RECEIVE ? EVENT_RECEIVED : EVENT_SENT, call->exit_core, socket->id);
        event->payload.a = call->offset + call->length;
        event->payload.b = (uint64_t)call->length << 32 | call->thread;
    }
}

// So it is of a capture alone, whose requests are those that its events show; the folder is the
// capture's own.
static void the_slowest_part_of_a_capture_alone_is_looked_at(void **state)
{
    (void)state;
    struct folder f, alone;
    struct run_analysis run;
    struct error err = {0};
    struct progress progress;
    char text[400];
    size_t there = 0, slowest = 0;
    make_folder(&f);
    add_kernel_calls(&f.scenario);
    for (unsigned n = 0; n <= SEGMENTS; n++)
        split_logs(&f, n);
    for (unsigned n = 1; n <= SEGMENTS; n++)
        remove(in_folder(&f, segment_name(n, "calls")));
    remove(in_folder(&f, "server/calls.tlog"));
    remove(in_folder(&f, "server/connections.tlog"));
    alone = f;
    text_append(alone.path, sizeof alone.path, "/server");
    snprintf(
        text, sizeof text,
        "{\"dropped\": {}, \"kernel_calls\": true, \"segments\": {\"first\": 1, \"count\": %d, "
        "\"from_ns\": 0, \"until_ns\": 0, \"ends_ns\": [%lld, %lld, %lld], \"ended\": true}}",
        SEGMENTS, (long long)SCENARIO_BEGIN_NS + SEGMENT_NS,
        (long long)SCENARIO_BEGIN_NS + 2 * SEGMENT_NS,
        (long long)SCENARIO_BEGIN_NS + 3 * SEGMENT_NS);
    write_text(&f, "server/capture.json", text);
    const struct run_request request = {
        .run_dir = alone.path,
        .segments = {.most_bytes = (uint64_t)bytes_of(&f, segment_name(3, "events"))}};
    progress_init(&progress, true);
    assert_int_equal(run_analyze(&request, &progress, &run, &err), 0);
    const char *says = strstr(run.findings.verdict, "what was answered from 0.141 s to 0.211 s");
    assert_non_null(says);
    says = strstr(says, "of the slowest 1 % of all, ");
    assert_non_null(says);
    assert_int_equal(
        sscanf(says, "of the slowest 1 %% of all, %zu of %zu are in it", &there, &slowest), 2);
    assert_in_range(slowest, 30, 60);
    assert_true(there * 2 > slowest);
    assert_in_range(run.lifetimes.all.count, SEGMENT_NS / 60000 / 2, SEGMENT_NS / 60000 * 2);
    run_analysis_free(&run);
    remove_folder(&f);
}

static void assert_written(const struct folder *f, const char *key, const char *says)
{
    json_t *summary = json_load_file(in_folder(f, "summary.json"), 0, NULL);
    assert_non_null(summary);
    const char *text = json_string_value(json_object_get(summary, key));
    assert_non_null(text);
    if (!strstr(text, says))
        fail_msg("'%s' does not say '%s'", text, says);
    json_decref(summary);
}

// After --slice p20-p30 --slice >200us --message 9.
static void check_several(const struct folder *f)
{
    json_t *summary = json_load_file(in_folder(f, "summary.json"), 0, NULL);
    assert_non_null(summary);
    json_t *first = json_object_get(summary, "diagnosis");
    json_t *more = json_object_get(summary, "windows");
    assert_int_equal(json_array_size(more), 2);
    json_t *slow = json_array_get(more, 0), *one = json_array_get(more, 1);
    assert_string_equal(json_string_value(json_object_get(first, "slice")), "p20-p30");
    assert_string_equal(json_string_value(json_object_get(slow, "slice")), "over 200 us");
    assert_string_equal(json_string_value(json_object_get(one, "slice")), "request 9");
    assert_true(json_is_null(json_object_get(first, "request")));
    assert_int_equal(number_in(one, "request"), 9);
    assert_int_equal(number_in(one, "messages"), 1);
    assert_true(number_in(one, "latency_low_us") == number_in(one, "latency_high_us"));
    assert_true(number_in(slow, "latency_low_us") >= 200);
    assert_true(number_in(first, "messages") > 390 && number_in(first, "messages") < 410);
    assert_top_cause(slow, "yes", "A");
    json_decref(summary);
}

// What a command without --quiet says on stderr, with exit code 2.
static void refused_with(int count, char **arguments, const char *folder, char *said, size_t bytes)
{
    char path[400];
    snprintf(path, sizeof path, "%s/said", folder);
    int stderr_fd = dup(STDERR_FILENO);
    fflush(stderr);
    assert_non_null(freopen(path, "w", stderr));
    int result = analyze_command(count, arguments);
    fflush(stderr);
    assert_true(dup2(stderr_fd, STDERR_FILENO) >= 0);
    close(stderr_fd);
    assert_int_equal(result, ERROR_INPUT);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    said[fread(said, 1, bytes - 1, file)] = '\0';
    fclose(file);
    unlink(path);
}

static void what_is_not_in_a_run_is_refused_at_once(void **state)
{
    (void)state;
    struct folder f;
    char said[2000];
    make_folder(&f);
    char *beyond[] = {"analyze", f.path, "--from", "5s", NULL};
    refused_with(4, beyond, f.path, said, sizeof said);
    assert_non_null(strstr(said, "ends before that, its requests were due from 0 to 0.24"));
    assert_null(strstr(said, "joining"));
    char *absent[] = {"analyze", f.path, "--message", "4000", NULL};
    refused_with(4, absent, f.path, said, sizeof said);
    assert_non_null(strstr(said, "there is no request 4000 in"));
    assert_null(strstr(said, "joining"));
    remove_folder(&f);
}

static void the_command_takes_slices(void **state)
{
    (void)state;
    struct folder f;
    make_folder(&f);
    fflush(stdout);
    char *slice[] = {"analyze", f.path, "--slice", ">300us", "--from", "130ms", "--quiet", NULL};
    assert_int_equal(analyze_command(7, slice), 0);
    char *narrow[] = {"analyze", f.path, "--to", "1ms", "-q", NULL};
    assert_int_equal(analyze_command(5, narrow), ERROR_INCONCLUSIVE);
    char *beyond[] = {"analyze", f.path, "--from", "5s", "-q", NULL};
    assert_int_equal(analyze_command(5, beyond), ERROR_INPUT);
    // A view is printed and nothing else.
    assert_int_equal(access(in_folder(&f, "summary.json"), F_OK), -1);
    assert_int_equal(access(in_folder(&f, "run.db"), F_OK), -1);
    char *several[] = {"analyze", f.path, "-s",    "p20-p30", "-s", ">200us",
                       "-m",      "9",    "--out", f.path,    "-q", NULL};
    assert_int_equal(analyze_command(11, several), 0);
    check_several(&f);
    char *unanswered[] = {"analyze", f.path, "--message", "7", "--out", f.path, "-q", NULL};
    assert_int_equal(analyze_command(7, unanswered), ERROR_INCONCLUSIVE);
    assert_written(&f, "verdict", "N/A: request 7 could not be followed (unanswered)");
    char *absent[] = {"analyze", f.path, "--message", "4000", "-q", NULL};
    assert_int_equal(analyze_command(5, absent), ERROR_INPUT);
    char *unnumbered[] = {"analyze", f.path, "--message", "7us", "-q", NULL};
    assert_int_equal(analyze_command(5, unnumbered), ERROR_INPUT);
    char *bad[] = {"analyze", f.path, "--slice", "fast", "-q", NULL};
    assert_int_equal(analyze_command(5, bad), ERROR_INPUT);
    char *backwards[] = {"analyze", f.path, "--from", "2s", "--to", "1s", NULL};
    assert_int_equal(analyze_command(6, backwards), ERROR_INPUT);
    char *none[] = {"analyze", NULL};
    assert_int_equal(analyze_command(1, none), ERROR_INPUT);
    remove_folder(&f);
}

// The category of the cause `yes`, as run.db has it, and how many patterns came before the
// program's.
static void assert_categories(const struct folder *f, const char *category, double patterns)
{
    sqlite3 *db;
    char sql[200];
    assert_int_equal(sqlite3_open_v2(in_folder(f, "run.db"), &db, SQLITE_OPEN_READONLY, NULL),
                     SQLITE_OK);
    snprintf(sql, sizeof sql,
             "SELECT category = '%s' FROM causes WHERE diagnosis = 0 AND name = 'yes'", category);
    assert_true(query(db, sql) == 1);
    assert_true(query(db, "SELECT count(*) FROM categories") == patterns);
    if (patterns > 0)
        assert_true(query(db, "SELECT pattern = 'task yes' AND file LIKE '%.csv' FROM categories "
                              "WHERE position = 0") == 1);
    sqlite3_close(db);
}

static void categories_of_the_run_and_those_asked_for(void **state)
{
    (void)state;
    struct folder f;
    char own[400];
    make_folder(&f);
    fflush(stdout);
    char *plain[] = {"analyze", f.path, "-q", NULL};
    assert_int_equal(analyze_command(3, plain), 0);
    assert_categories(&f, "other programs", 0);
    write_text(&f, "categories.csv", "task yes,hogs\nsoftirq NET_RX,the network\n");
    assert_int_equal(analyze_command(3, plain), 0);
    assert_categories(&f, "hogs", 2);
    write_text(&f, "own.csv", "task yes,neighbours\n");
    snprintf(own, sizeof own, "%s", in_folder(&f, "own.csv"));
    char *viewed[] = {"analyze", f.path, "--categories", own, "-q", NULL};
    assert_int_equal(analyze_command(5, viewed), 0);
    assert_categories(&f, "hogs", 2);
    char *asked[] = {"analyze", f.path, "--categories", own, "--out", f.path, "-q", NULL};
    assert_int_equal(analyze_command(7, asked), 0);
    assert_categories(&f, "neighbours", 3);
    json_t *summary = json_load_file(in_folder(&f, "summary.json"), 0, NULL);
    json_t *first = json_array_get(json_object_get(summary, "categories"), 0);
    assert_string_equal(json_string_value(json_object_get(first, "file")), own);
    assert_true(number_in(first, "patterns") == 1);
    json_decref(summary);
    write_text(&f, "categories.csv", "task yes\n");
    assert_int_equal(analyze_command(3, plain), ERROR_INPUT);
    remove_folder(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(segments_are_one_log),
        cmocka_unit_test(the_slowest_part_is_looked_at),
        cmocka_unit_test(the_slowest_part_of_a_capture_alone_is_looked_at),
        cmocka_unit_test(a_run_is_analyzed),
        cmocka_unit_test(what_is_not_in_a_run_is_refused_at_once),
        cmocka_unit_test(the_command_takes_slices),
        cmocka_unit_test(categories_of_the_run_and_those_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
