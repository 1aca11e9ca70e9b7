// SPDX-License-Identifier: MIT
//
// Run folders that are damaged, or lack something, in every way that was thought of.
#include <math.h>

#include "analysis/analyze_command.h"
#include "analysis/export/run_summary.h"
#include "analysis/run/run_lede.h"
#include "analysis/run/run_verdict.h"
#include "tests/analysis/run/made_folder.h"

static void expect_refusal(const struct folder *f, const char *says)
{
    struct run_analysis run;
    struct error err;
    assert_int_equal(analyze(f, &run, &err), -ERROR_INPUT);
    if (!strstr(err.text, says))
        fail_msg("'%s' does not say '%s'", err.text, says);
}

static void flip_byte(const struct folder *f, const char *name, long offset)
{
    FILE *file = fopen(in_folder(f, name), "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, offset, SEEK_SET), 0);
    int byte = fgetc(file);
    assert_int_equal(fseek(file, offset, SEEK_SET), 0);
    assert_true(fputc(byte ^ 1, file) != EOF);
    fclose(file);
}

static void damaged_folders_are_refused(void **state)
{
    (void)state;
    struct folder f;
    make_folder(&f);
    write_text(&f, "experiment.json", "{\"name\": ");
    expect_refusal(&f, "experiment.json:1: not valid JSON");
    write_text(&f, "experiment.json", "{\"diagnose\": {\"slice\": \"p9x\"}}");
    expect_refusal(&f, "slice 'p9x'");
    write_text(&f, "experiment.json",
               "{\"diagnose\": {\"windows\": [{\"from_ns\": 5, \"to_ns\": 5}]}}");
    expect_refusal(&f, "experiment.json: diagnose.windows[0]");
    expect_refusal(&f, "; copy it again");
    write_text(&f, "experiment.json", "{\"diagnose\": {\"windows\": {}}}");
    expect_refusal(&f, "experiment.json: diagnose.windows must be an array; copy it again");
    expect_refusal(&f, f.path);
    write_text(&f, "experiment.json", "{\"load\": {\"name\": \"a\"}, \"loads\": {\"../b\": {}}}");
    expect_refusal(&f, "experiment.json: `loads`: `../b` is not a name; copy it again");
    expect_refusal(&f, f.path);
    write_text(&f, "experiment.json", "{}");
    flip_byte(&f, "server/events.tlog", 40 + 3); // its boot id
    expect_refusal(&f, "nothing relates their clocks");
    flip_byte(&f, "server/events.tlog", 43);
    flip_byte(&f, "server/calls.tlog", 0);
    expect_refusal(&f, "server/calls.tlog: not a Taillight log");
    flip_byte(&f, "server/calls.tlog", 0);
    assert_int_equal(truncate(in_folder(&f, "client/samples.tlog"), 128 + 96 * 10 + 5), 0);
    expect_refusal(&f, "truncated");
    assert_int_equal(truncate(in_folder(&f, "client/samples.tlog"), 50), 0);
    expect_refusal(&f, "too short");
    remove(in_folder(&f, "client/samples.tlog"));
    expect_refusal(&f, "neither the folder of a finished run nor a capture");
    remove_folder(&f);
}

// Of the same boot, but of a time in which nothing of this run was.
static void a_clock_log_of_another_run_is_refused(void **state)
{
    (void)state;
    enum { SECOND = 1000000000 };
    const int64_t end = SCENARIO_BEGIN_NS + (int64_t)20 * SECOND;
    struct folder f;
    make_folder(&f);
    write_clock_of(&f, "server/clock.tlog", end, end + SECOND);
    expect_refusal(&f, "server/clock.tlog is of another run than client/samples.tlog, all of which "
                       "is at least ");
    expect_refusal(&f, " before it: copy both from where they were");
    write_clock_of(&f, "server/clock.tlog", SCENARIO_BEGIN_NS / 10, SCENARIO_BEGIN_NS / 2);
    expect_refusal(&f, " after it: copy both from where they were");
    remove_folder(&f);
    make_folder(&f); // the client's own is as well
    flip_byte(&f, "client/samples.tlog", 40 + 3);
    write_clock_of(&f, "client/clock.tlog", end, end + SECOND);
    flip_byte(&f, "client/clock.tlog", 40 + 3);
    expect_refusal(&f, "client/clock.tlog is of another run than client/samples.tlog");
    remove_folder(&f);
}

// The same logs as if the client were another machine: of another boot, with a clock log of its
// own.
static void a_client_of_another_boot_needs_its_own_clock(void **state)
{
    (void)state;
    struct folder f;
    struct run_analysis run;
    struct error err;
    make_folder(&f);
    flip_byte(&f, "client/samples.tlog", 40 + 3);
    expect_refusal(&f, "client/clock.tlog: no such file");
    write_clock(&f, "client/clock.tlog");
    expect_refusal(&f, "nothing relates their clocks");
    flip_byte(&f, "client/clock.tlog", 40 + 3);
    assert_int_equal(analyze(&f, &run, &err), 0);
    assert_true(run.findings.verdict_available);
    json_t *summary = run_summary_json(&run), *hosts = json_object_get(summary, "hosts");
    assert_true(number_in(hosts, "exchanges") == 3999 && number_in(hosts, "unknown") == 0);
    assert_true(json_is_false(json_object_get(hosts, "both_ways")));
    assert_true(fabs(number_in(hosts, "offset_ns")) <= 1000 * number_in(hosts, "bound_p99_us"));
    assert_true(number_in(json_object_get(hosts, "round_trip_us"), "p50") > 4);
    assert_top_cause(json_array_get(json_object_get(summary, "windows"), 1), "yes", "A");
    json_decref(summary);
    assert_string_equal(run_stage_machine(&run, STAMP_SEND), "client");
    assert_string_equal(run_stage_machine(&run, STAMP_REPLY), "server");
    run_analysis_free(&run);
    write_text(&f, "experiment.json",
               "{\"load\": {\"from\": \"here\", \"to\": \"cache\"}, \"servers\": {\"cache\": "
               "{\"host\": \"there\"}}}");
    assert_int_equal(analyze(&f, &run, &err), 0);
    assert_string_equal(run_stage_machine(&run, STAMP_REPLY_READ), "here");
    assert_string_equal(run_stage_machine(&run, STAMP_NIC), "");
    assert_string_equal(run_stage_machine(&run, STAMP_HANDOFF), "there");
    run_analysis_free(&run);
    remove_folder(&f);
}

// What the capture's own limits cost stands in the verdict, though no record was dropped.
static void limits_are_said(void **state)
{
    (void)state;
    struct folder f;
    struct run_analysis run;
    struct error err;
    make_folder(&f);
    write_text(&f, "server/capture.json",
               "{\"shim\": {\"doubtful_connections\": 3, \"unseen_connections\": 0, "
               "\"incomplete_connections\": 7, \"closed_unseen\": 2}, \"events\": "
               "{\"sockets_dropped\": 4000, "
               "\"memory_full\": true}, \"intel_pt\": {\"on_ns\": 2100000000, \"ended\": "
               "{\"why\": \"perf was killed\", \"at_ns\": 5, \"broken\": true}}}");
    assert_int_equal(analyze(&f, &run, &err), 0);
    assert_null(strstr(run.findings.verdict, "nothing was dropped"));
    assert_non_null(strstr(run.findings.verdict,
                           "; the shim's byte counts of 3 connections are not the kernel's"));
    assert_non_null(strstr(run.findings.verdict, "socket calls are missing of 7 connections"));
    assert_non_null(strstr(run.findings.verdict, ", 2 descriptors were closed"));
    assert_non_null(strstr(run.findings.verdict, "had no room for 4,000 connections"));
    assert_non_null(strstr(run.findings.verdict, "the memory for kernel events was full"));
    assert_null(strstr(run.findings.verdict, "did not watch"));
    assert_non_null(strstr(run.findings.verdict, "the processor's trace ended early, after 2.10 s "
                                                 "(perf was killed)"));
    run_analysis_free(&run);
    remove_folder(&f);
}

// Whoever looks at the verdict, at the headline or at the exit code gets the same answer of a
// document that is not there; `says`: with this in its place.
static void check_without_load(const struct folder *f, const char *says, const char *words)
{
    struct run_analysis run;
    struct run_lede lede;
    struct error err;
    char begins[200];
    remove(in_folder(f, "client/load.json"));
    if (says)
        write_text(f, "client/load.json", says);
    assert_int_equal(analyze(f, &run, &err), 0);
    run_lede(&run, &lede);
    snprintf(begins, sizeof begins, "Inconclusive: client/load.json %s, so whether", words);
    assert_int_equal(strncmp(run.findings.verdict, begins, strlen(begins)), 0);
    assert_int_equal(strncmp(lede.text, begins, strlen(begins)), 0);
    assert_null(strstr(run.findings.verdict + 20, "client/load.json")); // said once
    assert_non_null(strstr(run_verdict_details(&run), "yes (A) explains"));
    assert_true(run_verdict_details(&run)[0] != 'I');
    assert_false(run_is_conclusive(&run));
    run_analysis_free(&run);
}

static void missing_documents_are_one_judgement(void **state)
{
    (void)state;
    struct folder f;
    struct run_analysis run;
    struct error err;
    make_folder(&f);
    write_text(&f, "experiment.yaml", "name: noisy\n");
    check_without_load(&f, NULL, "is missing");
    check_without_load(&f, "{}", "has no verdict");
    check_without_load(&f, "{\"verdict\": 7}", "has no verdict");
    check_without_load(&f, "{\"verdict\": \"x\"}", "has no verdict");
    write_text(&f, "client/load.json", "{\"verdict\": \"ok\"}");
    assert_int_equal(analyze(&f, &run, &err), 0);
    assert_true(run_is_conclusive(&run));
    assert_non_null(strstr(run.findings.verdict, "nothing was dropped"));
    run_analysis_free(&run);
    remove(in_folder(&f, "server/capture.json"));
    assert_int_equal(analyze(&f, &run, &err), 0);
    assert_null(strstr(run.findings.verdict, "nothing was dropped"));
    assert_non_null(strstr(run.findings.verdict, "; what the capture lost is not known: "
                                                 "server/capture.json is missing"));
    run_analysis_free(&run);
    write_text(&f, "server/capture.json", "{}");
    assert_int_equal(analyze(&f, &run, &err), 0);
    assert_null(strstr(run.findings.verdict, "nothing was dropped"));
    assert_non_null(strstr(run.findings.verdict, "; what the capture lost is not known: "
                                                 "server/capture.json does not say it"));
    run_analysis_free(&run);
    remove_folder(&f);
}

// Whole files, of another run than those beside them.
static void documents_of_other_runs_are_noticed(void **state)
{
    (void)state;
    struct folder f;
    struct run_analysis run;
    struct error err;
    char text[200];
    make_folder(&f);
    write_text(&f, "experiment.yaml", "name: noisy\n");
    write_text(&f, "client/load.json", "{\"verdict\": \"ok\", \"scheduled\": 4000}");
    for (int more = 0; more < 2; more++) {
        snprintf(text, sizeof text,
                 "{\"dropped\": {}, \"events\": {\"records\": %zu}, \"shim\": {\"calls\": %zu, "
                 "\"connections\": %zu, \"outgoing\": 1}}",
                 f.scenario.events.count + (size_t)more, f.scenario.calls.count,
                 f.scenario.shim.count - 1);
        write_text(&f, "server/capture.json", text);
        assert_int_equal(analyze(&f, &run, &err), 0);
        assert_true(run_is_conclusive(&run));
        assert_int_equal(strstr(run.findings.verdict, "nothing was dropped") == NULL, more);
        assert_int_equal(strstr(run.findings.verdict,
                                "capture.json is of another capture than server/events") != NULL,
                         more);
        run_analysis_free(&run);
    }
    write_text(&f, "client/load.json", "{\"verdict\": \"ok\", \"scheduled\": 3999}");
    assert_int_equal(analyze(&f, &run, &err), 0);
    assert_false(run_is_conclusive(&run));
    assert_non_null(strstr(run.findings.verdict, "load.json is of another load than samples.tlog"));
    run_analysis_free(&run);
    remove_folder(&f);
}

static void missing_captures_are_no_verdict(void **state)
{
    (void)state;
    struct folder f;
    struct run_analysis run;
    struct error err;
    make_folder(&f);
    remove(in_folder(&f, "server/calls.tlog"));
    assert_int_equal(analyze(&f, &run, &err), 0);
    assert_false(run.findings.verdict_available);
    assert_non_null(strstr(run.findings.verdict, "N/A: "));
    assert_non_null(strstr(run.findings.verdict, "no M(a) stamp"));
    assert_int_equal(run.lifetimes.states[LIFETIME_NO_APPLICATION], 3999);
    run_analysis_free(&run);
    remove(in_folder(&f, "server/events.tlog"));
    assert_int_equal(analyze(&f, &run, &err), 0);
    assert_false(run.findings.verdict_available);
    assert_true(run.lifetimes.latency.value_ns[0] > 0); // what the client saw still counts
    assert_int_equal(run.lifetimes.states[LIFETIME_NO_CONNECTION], 3999);
    assert_int_equal(run_analysis_write(&run, run.evidence.run_dir, &err), 0);
    run_analysis_free(&run);
    remove(in_folder(&f, "server/clock.tlog"));
    expect_refusal(&f, "clock.tlog");
    remove_folder(&f);
}

// What is not joined is named with its reason: here the capture's table lacks the
// last four, of which three carried requests.
static void connections_never_seen_are_named(void **state)
{
    (void)state;
    struct folder f;
    struct run_analysis run;
    struct error err;
    make_folder(&f);
    struct connection *sockets = f.scenario.sockets.items;
    size_t few = f.scenario.sockets.count - 4;
    assert_int_equal(log_write(in_folder(&f, "server/sockets.tlog"), LOG_CONNECTIONS, 1,
                               sizeof *sockets, sockets, few, 0, &err),
                     0);
    assert_int_equal(analyze(&f, &run, &err), 0);
    print_message("%s\n", run.findings.verdict);
    assert_non_null(
        strstr(run.findings.verdict, ": connection unknown to the capture of kernel events)"));
    assert_non_null(strstr(run.findings.verdict, "; the capture never saw 3 of 16 connections"));
    run_analysis_free(&run);
    remove_folder(&f);
}

// Any bytes in any record: no crash, and whatever comes out can be written.
static void hostile_logs_do_no_harm(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        size_t record;
    } logs[] = {{"client/samples.tlog", 96}, {"client/connections.tlog", 64},
                {"server/events.tlog", 32},  {"server/sockets.tlog", 64},
                {"server/calls.tlog", 64},   {"server/connections.tlog", 64}};
    for (int seed = 1; seed <= 6; seed++) {
        struct folder f;
        struct run_analysis run;
        struct error err;
        make_folder(&f);
        for (size_t l = 0; l < sizeof logs / sizeof *logs; l++) {
            struct stat status;
            assert_int_equal(stat(in_folder(&f, logs[l].name), &status), 0);
            FILE *file = fopen(in_folder(&f, logs[l].name), "r+b");
            for (int i = 0; i < 300; i++) {
                long at =
                    128 + (long)(scenario_random(&f.scenario) % (uint64_t)(status.st_size - 128));
                assert_int_equal(fseek(file, at, SEEK_SET), 0);
                fputc((int)(scenario_random(&f.scenario) & 0xff), file);
            }
            fclose(file);
        }
        if (analyze(&f, &run, &err) == 0) {
            assert_int_equal(run_analysis_write(&run, run.evidence.run_dir, &err), 0);
            run_analysis_free(&run);
        } else {
            assert_true(strlen(err.text) > 10);
        }
        remove_folder(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damaged_folders_are_refused),
        cmocka_unit_test(a_clock_log_of_another_run_is_refused),
        cmocka_unit_test(a_client_of_another_boot_needs_its_own_clock),
        cmocka_unit_test(limits_are_said),
        cmocka_unit_test(missing_documents_are_one_judgement),
        cmocka_unit_test(documents_of_other_runs_are_noticed),
        cmocka_unit_test(missing_captures_are_no_verdict),
        cmocka_unit_test(connections_never_seen_are_named),
        cmocka_unit_test(hostile_logs_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
