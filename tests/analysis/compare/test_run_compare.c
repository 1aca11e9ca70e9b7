// SPDX-License-Identifier: MIT
//
// Runs of a scenario against each other: what differs is found, with about its true size; what
// does not differ is not; and the differences add up.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "analysis/compare/comparison_json.h"
#include "analysis/lifetime/join.h"
#include "analysis/report/page/report_compare.h"
#include "analysis/run/run_analysis.h"
#include "analysis/timeline/timeline.h"
#include "tests/analysis/diagnosis/scenario.h"

// What makes a request slow is that its pages are not there.
static void add_page_faults(struct host_timeline *host, const struct scenario *s)
{
    enum { EACH_NS = 10000, HANDLED_NS = 5000 };
    for (size_t i = 0; i < s->faults.count; i++)
        for (int64_t at = s->faults.items[i].begin; at < s->faults.items[i].end; at += EACH_NS)
            assert_int_equal(
                array_push(&host->faults, (struct thread_moment){.time_ns = at,
                                                                 .thread = SERVER_THREAD,
                                                                 .value = HANDLED_NS}),
                0);
}

static void build_run(struct run_analysis *run, const struct scenario_options *options,
                      const struct diagnosis_slice *slices, size_t count)
{
    struct scenario s;
    struct time_source clock = scenario_clock();
    struct error err = {0};
    uint64_t damaged;
    *run = (struct run_analysis){.evidence = {.has_events = true, .has_calls = true}};
    scenario_build(&s, options);
    assert_int_equal(application_calls_build(s.calls.items, s.calls.count, &clock,
                                             &run->evidence.calls, &damaged, &err),
                     0);
    assert_int_equal(
        host_timeline_build(s.events.items, s.events.count, &clock, &run->evidence.server, &err),
        0);
    if (options->fault == FAULT_SLOW)
        add_page_faults(&run->evidence.server, &s);
    struct join_input join = {.samples = s.samples.items,
                              .sample_count = s.samples.count,
                              .client_connections = s.client.items,
                              .client_connection_count = s.client.count,
                              .events = s.events.items,
                              .event_count = s.events.count,
                              .sockets = s.sockets.items,
                              .socket_count = s.sockets.count,
                              .calls = &run->evidence.calls,
                              .shim_connections = s.shim.items,
                              .shim_connection_count = s.shim.count,
                              .clock = clock};
    assert_int_equal(join_lifetimes(&join, &run->lifetimes.all, &run->lifetimes.holdups,
                                    &run->lifetimes.join, &err),
                     0);
    assert_int_equal(service_order_build(&run->lifetimes.order, run->lifetimes.all.items,
                                         run->lifetimes.all.count, &run->evidence.calls,
                                         &run->evidence.server),
                     0);
    run->evidence.application_threads = malloc(sizeof *run->evidence.application_threads);
    run->evidence.application_threads[0] = SERVER_THREAD;
    run->evidence.application_thread_count = 1;
    assert_int_equal(run_statistics(run), 0);
    struct diagnosis_input in;
    run_diagnosis_input(run, &in);
    for (size_t i = 0; i < count; i++) {
        struct diagnosis diagnosis;
        assert_int_equal(diagnose(&in, &slices[i], &diagnosis, &err), 0);
        assert_int_equal(array_push(&run->findings.diagnoses, diagnosis), 0);
    }
    scenario_free(&s);
}

static const struct scenario_options quiet = {.requests = 6000,
                                              .connections = 16,
                                              .gap_ns = 60000,
                                              .pipelined = 1,
                                              .faults = 150,
                                              .fault_ns = 100000,
                                              .seed = 11};
static const struct diagnosis_slice slices[] = {{.low = 0, .high = 1}, {.low = 0.4, .high = 0.6}};

static void read_categories(struct categories *out)
{
    static const char mine[] = "task yes,hogs";
    struct error err = {0};
    assert_int_equal(categories_init(out, &err), 0);
    assert_int_equal(categories_add(out, mine, sizeof mine - 1, "mine", &err), 0);
}

// Runs of the scenario, as many a side, each with a seed of its own, with the slices and the p99.
static void make(struct comparison *comparison,
                 const struct scenario_options options[COMPARE_SIDES], size_t runs,
                 const struct diagnosis_slice *wanted, size_t count)
{
    struct error err = {0};
    const struct compared_percentile p99 = {.name = "p99", .shift = {.quantile = 0.99}};
    *comparison = (struct comparison){.has_base = true, .asked = count};
    assert_int_equal(array_push(&comparison->percentiles, p99), 0);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(array_push(&comparison->slices, wanted[i]), 0);
    for (int side = 0; side < COMPARE_SIDES; side++) {
        comparison->sides[side] = &comparison->read[side];
        assert_int_equal(run_set_want(&comparison->read[side], &comparison->slices, &err), 0);
        for (size_t r = 0; r < runs; r++) {
            struct run_analysis run;
            struct scenario_options mine = options[side];
            mine.seed += r;
            build_run(&run, &mine, wanted, count);
            read_categories(&run.findings.categories.table);
            assert_int_equal(run_set_add(&comparison->read[side], &run, &err), 0);
            run_analysis_free(&run);
        }
    }
}

static void compare(struct comparison *comparison, enum fault base, enum fault candidate)
{
    struct scenario_options options[COMPARE_SIDES] = {quiet, quiet};
    struct error err = {0};
    options[COMPARE_BASE].fault = base;
    options[COMPARE_CANDIDATE].fault = candidate;
    options[COMPARE_CANDIDATE].seed++;
    make(comparison, options, 1, slices, 2);
    assert_int_equal(comparison_finish(comparison, &err), 0);
    assert_int_equal(comparison->shifts.count, 2);
    for (size_t s = 0; s < 2; s++) {
        const struct slice_shift *slice = &comparison->shifts.items[s].shift;
        assert_true(slice->available);
        double sum = 0;
        for (size_t i = 0; i < slice->causes.count; i++) {
            const struct cause_shift *cause = &slice->causes.items[i];
            sum += cause->difference_ns;
            assert_true(cause->interval.low <= cause->difference_ns + 1);
            assert_true(cause->interval.high >= cause->difference_ns - 1);
            assert_false(cause->interval.between_runs);
        }
        assert_true(fabs(sum - slice->latency.difference_ns) < 5);
        for (size_t i = 0; i < slice->categories.count; i++)
            sum -= slice->categories.items[i].difference_ns;
        assert_true(fabs(sum) < 1);
    }
}

static const struct cause_shift *find(const struct slice_shift *slice, const char *name,
                                      enum core_role role)
{
    for (size_t i = 0; i < slice->causes.count; i++)
        if (strcmp(slice->causes.items[i].name, name) == 0 && slice->causes.items[i].role == role)
            return &slice->causes.items[i];
    return NULL;
}

static void a_new_cause_appears_and_an_old_one_is_gone(void **state)
{
    (void)state;
    struct comparison comparison;
    compare(&comparison, FAULT_NONE, FAULT_HOG);
    const struct slice_shift *all = &comparison.shifts.items[0].shift;
    const char *verdict = comparison.shifts.items[0].verdict;
    const struct cause_shift *hog = find(all, "yes", ROLE_A);
    print_message("%s\n", verdict);
    assert_non_null(hog);
    assert_int_equal(hog->kind, CHANGE_APPEARED);
    assert_true(hog->mean_ns[COMPARE_BASE] == 0 && hog->longer[COMPARE_BASE] == 0);
    assert_true(hog->longer[COMPARE_CANDIDATE] > 0.01 && hog->longer[COMPARE_CANDIDATE] < 0.5);
    assert_ptr_equal(hog, &all->causes.items[0]);
    assert_int_equal(all->latency.kind, CHANGE_GREW);
    assert_non_null(strstr(verdict, "yes (A) appeared: +"));
    assert_string_equal(hog->category, "hogs");
    assert_string_equal(all->categories.items[0].category, "hogs");
    comparison_free(&comparison);
    compare(&comparison, FAULT_HOG, FAULT_NONE);
    hog = find(&comparison.shifts.items[0].shift, "yes", ROLE_A);
    assert_int_equal(hog->kind, CHANGE_GONE);
    assert_int_equal(comparison.shifts.items[0].shift.latency.kind, CHANGE_SHRANK);
    comparison_free(&comparison);
}

static void a_cause_that_was_there_grows(void **state)
{
    (void)state;
    struct comparison comparison;
    compare(&comparison, FAULT_NONE, FAULT_NETWORK);
    const struct cause_shift *network =
        find(&comparison.shifts.items[0].shift, "network to server", ROLE_NETWORK);
    assert_int_equal(network->kind, CHANGE_GREW);
    // 150 of 6,000 requests come 100 us late: 2.5 us on average.
    assert_true(fabs(network->difference_ns - 2500) < 500);
    assert_true(network->interval.low > 0 && network->interval.high < 6000);
    comparison_free(&comparison);
}

// Those behind a heavy request waited for it, whatever it did meanwhile.
static void a_part_of_a_cause_is_that_causes(void **state)
{
    (void)state;
    struct comparison comparison;
    compare(&comparison, FAULT_NONE, FAULT_SLOW);
    const struct slice_shift *all = &comparison.shifts.items[0].shift;
    const struct cause_shift *own = find(all, "page faults", ROLE_A);
    const struct cause_shift *behind = find(all, "head-of-line blocking", ROLE_A);
    assert_true(own && own->mean_ns[COMPARE_CANDIDATE] > 0);
    assert_true(behind && behind->mean_ns[COMPARE_CANDIDATE] > behind->mean_ns[COMPARE_BASE]);
    assert_null(find(all, "head-of-line blocking: page faults", ROLE_A));
    assert_null(find(all, "head-of-line blocking (same connection): page faults", ROLE_A));
    comparison_free(&comparison);
}

static void alike_runs_are_alike(void **state)
{
    (void)state;
    struct comparison comparison;
    compare(&comparison, FAULT_NONE, FAULT_NONE);
    for (size_t s = 0; s < 2; s++) {
        const struct slice_shift *slice = &comparison.shifts.items[s].shift;
        for (size_t i = 0; i < slice->causes.count; i++)
            assert_int_equal(slice->causes.items[i].kind, CHANGE_NONE);
        assert_int_equal(slice->latency.kind, CHANGE_NONE);
        assert_non_null(strstr(comparison.shifts.items[s].verdict, "No cause changed"));
    }
    json_t *document = comparison_json(&comparison);
    assert_int_equal(json_array_size(json_object_get(document, "slices")), 2);
    json_t *first = json_array_get(json_object_get(document, "slices"), 0);
    assert_true(json_array_size(json_object_get(first, "changes")) > 5);
    assert_int_equal(json_array_size(json_object_get(json_object_get(first, "base"), "queue")),
                     QUEUE_KINDS);
    json_t *curve = json_object_get(json_object_get(document, "base"), "curve");
    assert_true(json_array_size(curve) > 50 && json_array_size(curve) < 400);
    double above = 2, longer = 0;
    for (size_t i = 0; i < json_array_size(curve); i++) {
        const json_t *point = json_array_get(curve, i);
        double slower = json_number_value(json_array_get(point, 0));
        double us = json_number_value(json_array_get(point, 1));
        assert_true(slower < above && us >= longer);
        above = slower;
        longer = us;
    }
    assert_true(above < 0.0003 && longer > 0); // down to one of 6,000
    json_decref(document);
    comparison_free(&comparison);
}

// A slice of one request: its difference is shown, but no change is claimed.
static void too_few_messages_claim_nothing(void **state)
{
    (void)state;
    struct comparison comparison;
    struct error err = {0};
    const struct diagnosis_slice one = {.high = 1, .one = true, .request = 100};
    const struct scenario_options options[COMPARE_SIDES] = {quiet, quiet};
    make(&comparison, options, 1, &one, 1);
    comparison.read[COMPARE_CANDIDATE].profiles.items[0].slices.items[0].values.items[0].ns += 5e6f;
    assert_int_equal(comparison_finish(&comparison, &err), 0);
    const struct slice_shift *slice = &comparison.shifts.items[0].shift;
    const char *verdict = comparison.shifts.items[0].verdict;
    assert_true(slice->available);
    assert_int_equal(slice->causes.items[0].kind, CHANGE_NONE);
    assert_true(isinf(slice->causes.items[0].interval.low));
    assert_true(isinf(slice->causes.items[0].interval.high));
    assert_non_null(strstr(verdict, "too few messages"));
    assert_non_null(strstr(verdict, "The largest difference is"));
    assert_null(strstr(verdict, "No cause changed"));
    comparison_free(&comparison);
}

static void what_cannot_be_compared_says_why(void **state)
{
    (void)state;
    struct comparison comparison;
    struct error err = {0};
    struct scenario_options options[COMPARE_SIDES] = {quiet, quiet};
    options[COMPARE_BASE].requests = 40; // too few for a verdict
    options[COMPARE_CANDIDATE].requests = 400;
    make(&comparison, options, 1, slices, 1);
    assert_int_equal(comparison_finish(&comparison, &err), 0);
    const struct slice_shift *slice = &comparison.shifts.items[0].shift;
    const char *verdict = comparison.shifts.items[0].verdict;
    assert_false(slice->available);
    assert_int_equal(slice->causes.count, 0);
    assert_non_null(strstr(verdict, "N/A: the base: only 40 requests of the window"));
    comparison_free(&comparison);
}

// Three runs a side, of which the candidate's have the fault.
static void compare_sets(struct comparison *comparison, enum fault fault)
{
    struct scenario_options options[COMPARE_SIDES] = {quiet, quiet};
    struct error err = {0};
    options[COMPARE_CANDIDATE].fault = fault;
    options[COMPARE_CANDIDATE].seed += 3;
    make(comparison, options, 3, slices, 1);
    assert_int_equal(comparison_finish(comparison, &err), 0);
}

static void causes_of_sets_of_runs(void **state)
{
    (void)state;
    struct comparison comparison;
    compare_sets(&comparison, FAULT_HOG);
    const struct slice_shift *shift = &comparison.shifts.items[0].shift;
    assert_true(shift->available && shift->runs[COMPARE_BASE] == 3);
    assert_int_equal(shift->messages[COMPARE_CANDIDATE], 3 * 6000);
    double sum = 0;
    for (size_t i = 0; i < shift->causes.count; i++)
        sum += shift->causes.items[i].difference_ns;
    double whole = shift->mean_ns[COMPARE_CANDIDATE] - shift->mean_ns[COMPARE_BASE];
    assert_true(fabs(sum - whole) < 5);
    const struct cause_shift *hog = &shift->causes.items[0];
    assert_string_equal(hog->name, "yes");
    assert_string_equal(hog->category, "hogs");
    assert_true(hog->interval.between_runs && hog->interval.low > 0);
    assert_true(hog->share[COMPARE_BASE] == 0 && isnan(hog->spread_ns[COMPARE_BASE].median));
    assert_true(hog->share[COMPARE_CANDIDATE] > 0.01 &&
                hog->spread_ns[COMPARE_CANDIDATE].median > 1000);
    // One document, whether a side is one run or several; what is of one run only is left out.
    json_t *document = comparison_json(&comparison);
    json_t *side = json_object_get(json_array_get(json_object_get(document, "slices"), 0), "base");
    assert_int_equal(json_integer_value(json_object_get(side, "runs")), 3);
    assert_true(json_array_size(json_object_get(side, "contexts")) > 1);
    assert_null(json_object_get(side, "queue"));
    json_decref(document);
    comparison_free(&comparison);
    compare_sets(&comparison, FAULT_NONE);
    shift = &comparison.shifts.items[0].shift;
    for (size_t i = 0; i < shift->causes.count; i++) {
        const struct cause_shift *cause = &shift->causes.items[i];
        assert_true(cause->interval.low <= 0 && cause->interval.high >= 0);
    }
    comparison_free(&comparison);
}

// `test_run_compare --write FILE RUNS` only writes a comparison's page, of one run a side or of
// three that are in doubt, for test_report_page.sh.
int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "--write") == 0) {
        struct comparison comparison;
        struct error err = {0};
        if (argv[3][0] == '1') {
            compare(&comparison, FAULT_NONE, FAULT_HOG);
        } else {
            compare_sets(&comparison, FAULT_HOG);
            ((struct run_set *)comparison.sides[COMPARE_BASE])->inconclusive = 1;
            snprintf(comparison.warning, sizeof comparison.warning,
                     "Inconclusive: the base's load cannot be trusted in 1 of 3 runs");
        }
        int result = report_compare_html(&comparison, argv[2], &err);
        comparison_free(&comparison);
        return result < 0 ? error_report(&err) : 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_cause_appears_and_an_old_one_is_gone),
        cmocka_unit_test(a_cause_that_was_there_grows),
        cmocka_unit_test(a_part_of_a_cause_is_that_causes),
        cmocka_unit_test(alike_runs_are_alike),
        cmocka_unit_test(too_few_messages_claim_nothing),
        cmocka_unit_test(what_cannot_be_compared_says_why),
        cmocka_unit_test(causes_of_sets_of_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
