// SPDX-License-Identifier: MIT
//
// Two runs of random servers against each other whose functions are known: the one that got slower
// is found, with about its true size; the time in functions adds up; one run without functions says
// so. And sampled: their call stacks are added up by the names in them.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "analysis/compare/comparison_json.h"
#include "analysis/report/page/report_compare.h"
#include "tests/analysis/diagnosis/synthetic.h"

static const struct diagnosis_slice slices[] = {{.low = 0, .high = 1}, {.low = 0.9, .high = 1}};

// 100 samples of the base, in the one order; 200 of the candidate, in the other.
static void sample(struct sample_profile *profile, bool candidate)
{
    static const char *const names[2][3] = {{"memcached", "assoc_find", "out_string"},
                                            {"out_string", "assoc_find", "memcached"}};
    static const struct sample_node nodes[2][4] = {
        {{0, 0, 0, 100}, {0, 0, 0, 100}, {1, 1, 40, 40}, {1, 2, 60, 60}},
        {{0, 0, 0, 200}, {0, 2, 0, 200}, {1, 0, 60, 60}, {1, 1, 140, 140}}};
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(array_push(&profile->names, strdup(names[candidate][i])), 0);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(array_push(&profile->nodes, nodes[candidate][i]), 0);
}

static void take(struct run_set *out, unsigned causes, uint64_t seed, bool functions)
{
    const struct synthetic_options options = {.seed = seed,
                                              .messages = 3000,
                                              .gap_ns = 60000,
                                              .causes = causes,
                                              .hits = 300,
                                              .noise = 0.1,
                                              .functions = functions};
    struct synthetic s;
    struct error err = {0};
    uint32_t thread = SYNTHETIC_THREAD;
    synthetic_build(&s, &options);
    struct run_analysis run = {
        .evidence = {.name = "synthetic", .has_events = true, .has_calls = true}};
    memcpy(&run.lifetimes.all, &s.lives, sizeof run.lifetimes.all);
    run.evidence.server = s.server;
    memcpy(&run.evidence.calls, &s.calls, sizeof run.evidence.calls);
    run.evidence.application_threads = &thread;
    run.evidence.application_thread_count = 1;
    run.lifetimes.begin_ns = s.lives.items[0].stamp_ns[STAMP_INTENDED];
    run.lifetimes.end_ns = s.lives.items[s.lives.count - 1].stamp_ns[STAMP_INTENDED];
    struct diagnosis_input in = synthetic_input(&s);
    for (size_t i = 0; i < 2; i++) {
        struct diagnosis diagnosis;
        assert_int_equal(diagnose(&in, &slices[i], &diagnosis, &err), 0);
        assert_int_equal(array_push(&run.findings.diagnoses, diagnosis), 0);
    }
    sample(&run.evidence.samples.profile, causes != 0);
    assert_int_equal(run_set_add(out, &run, &err), 0);
    run_samples_free(&run.evidence.samples);
    for (size_t i = 0; i < 2; i++)
        diagnosis_free(&run.findings.diagnoses.items[i]);
    array_free(&run.findings.diagnoses);
    synthetic_free(&s);
}

static void compare(struct comparison *comparison, unsigned causes, bool base_functions)
{
    struct error err = {0};
    *comparison = (struct comparison){.has_base = true, .asked = 2};
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(array_push(&comparison->slices, slices[i]), 0);
    for (int side = 0; side < COMPARE_SIDES; side++) {
        comparison->sides[side] = &comparison->read[side];
        assert_int_equal(run_set_want(&comparison->read[side], &comparison->slices, &err), 0);
    }
    take(&comparison->read[COMPARE_BASE], 0, 7, base_functions);
    take(&comparison->read[COMPARE_CANDIDATE], causes, 8, true);
    assert_int_equal(comparison_finish(comparison, &err), 0);
}

static void the_slower_function_is_found(void **state)
{
    (void)state;
    struct comparison comparison;
    compare(&comparison, 1u << CAUSED_BY_SLOW_USER, true);
    const struct slice_shift *slice = &comparison.shifts.items[0].shift;
    assert_true(slice->available && slice->functions.count);
    assert_int_equal(slice->function_messages[COMPARE_BASE], 3000);
    const struct cause_shift *first = &slice->functions.items[0];
    print_message("%s: %+.0f ns a message\n", first->name, first->difference_ns);
    assert_string_equal(first->name, "assoc_find");
    assert_int_equal(first->role, ROLE_A);
    assert_int_equal(first->kind, CHANGE_GREW);
    // What the functions themselves took more on core A is what the application took more.
    double functions = 0, application = 0;
    for (size_t i = 0; i < slice->functions.count; i++)
        functions +=
            slice->functions.items[i].role == ROLE_A ? slice->functions.items[i].difference_ns : 0;
    for (size_t i = 0; i < slice->causes.count; i++)
        if (strcmp(slice->causes.items[i].name, "application time") == 0)
            application = slice->causes.items[i].difference_ns;
    assert_true(application > 0);
    assert_true(fabs(functions - application) < 0.3 * application);
    // Nothing else of any size grew.
    for (size_t i = 1; i < slice->functions.count; i++)
        assert_true(fabs(slice->functions.items[i].difference_ns) < 0.5 * first->difference_ns);
    comparison_free(&comparison);
}

static void functions_of_one_run_are_not_compared(void **state)
{
    (void)state;
    struct comparison comparison;
    compare(&comparison, 1u << CAUSED_BY_SLOW_USER, false);
    const struct slice_shift *slice = &comparison.shifts.items[0].shift;
    assert_true(slice->available);
    assert_int_equal(slice->functions.count, 0);
    json_t *document = comparison_json(&comparison);
    json_t *functions =
        json_object_get(json_array_get(json_object_get(document, "slices"), 0), "functions");
    assert_true(json_is_false(json_object_get(functions, "available")));
    assert_int_equal(json_integer_value(json_object_get(functions, "base")), 0);
    assert_int_equal(json_integer_value(json_object_get(functions, "candidate")), 3000);
    json_decref(document);
    comparison_free(&comparison);
}

static void stacks_are_added_up_by_their_names(void **state)
{
    (void)state;
    struct sample_stacks both = {0};
    struct comparison comparison;
    compare(&comparison, 1u << CAUSED_BY_SLOW_USER, true);
    for (unsigned side = 0; side < COMPARE_SIDES; side++) {
        assert_int_equal(comparison.read[side].stacks.nodes.count, 4);
        for (int twice = 0; twice < 2; twice++)
            assert_int_equal(sample_stacks_join(&both, side, &comparison.read[side].stacks), 0);
    }
    assert_int_equal(both.nodes.count, 4);
    for (size_t i = 0; i < 4; i++) {
        const struct stack_node *node = &both.nodes.items[i];
        const char *name = i ? name_pool_text(both.names, node->name) : "";
        bool found = strcmp(name, "assoc_find") == 0, out = strcmp(name, "out_string") == 0;
        assert_int_equal(node->total[COMPARE_BASE], found ? 80 : out ? 120 : 200);
        assert_int_equal(node->total[COMPARE_CANDIDATE], found ? 280 : out ? 120 : 400);
        assert_true(i == 0 || node->parent < i);
    }
    sample_stacks_free(&both);
    comparison_free(&comparison);
}

// `test_run_compare_functions --write FILE` only writes the page, for test_report_page.sh.
int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--write") == 0) {
        struct comparison comparison;
        struct error err = {0};
        compare(&comparison, 1u << CAUSED_BY_SLOW_USER | 1u << CAUSED_BY_TASK_A, true);
        int result = report_compare_html(&comparison, argv[2], &err);
        if (result == 0)
            report_compare_text(&comparison, stdout);
        comparison_free(&comparison);
        return result < 0 ? error_report(&err) : 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_slower_function_is_found),
        cmocka_unit_test(functions_of_one_run_are_not_compared),
        cmocka_unit_test(stacks_are_added_up_by_their_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
