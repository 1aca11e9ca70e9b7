// SPDX-License-Identifier: MIT
//
// Studies: their steps, what is laid over them, studies in studies, and what is no study.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "experiments/capture/capture_backend.h"
#include "experiments/definition/resolve.h"
#include "experiments/definition/study.h"

#define RUN                                                                                        \
    "hosts: {client: {kind: netns}, server: {kind: netns}}\nservers: {cache: {}}\n"                \
    "load: {rate: 20k, duration: 2s}\n"

// The files there are.
static const struct {
    const char *path, *text;
} files[] = {
    {"d/first.yaml", "name: first\n" RUN},
    {"d/second.yaml", "extends: first.yaml\nname: second\nload: {rate: 30k}\n"},
    {"d/matrix.yaml", "extends: first.yaml\nmatrix: {load.rate: [1, 2]}\n"},
    {"d/again.yaml", "extends: first.yaml\nrepetitions: {count: 2}\n"},
    {"d/study.yaml", "name: s\nrounds: 3\nsteps: {a: first.yaml, b: second.yaml}\n"
                     "with: {load: {duration: 9s}, capture: {backend: none}}\n"
                     "compare: {c: {base: a, candidate: b, slices: [p20-p30]}}\n"},
    {"d/more.yaml", "extends: study.yaml\nrounds: 4\nsteps: {c: first.yaml}\n"},
    {"d/nested.yaml", "name: n\nsteps: {inner: study.yaml, a: ../d/first.yaml}\n"},
    {"d/deep.yaml", "name: n\nsteps: {deeper: nested.yaml}\n"},
    {"d/circle.yaml", "name: n\nsteps: {self: circle.yaml}\n"},
    {"d/over.yaml", "name: n\nsteps: {a: study.yaml}\nwith: {load: {rate: 1}}\n"},
    {"d/gated.yaml", "extends: first.yaml\nname: gated\n"
                     "gates: [{percentile: p50, max: 1ms}, {percentile: p99, max_increase: 5%}]\n"},
    {"d/gates.yaml",
     "name: g\nsteps: {a: first.yaml, b: gated.yaml}\n"
     "compare: {own: {base: a, candidate: b, gates: [{percentile: p90, max: 1s}]},\n"
     "  theirs: {base: a, candidate: b}, none: {base: b, candidate: a}}\n"},
    {"d/all_gates.yaml", "extends: gates.yaml\ngates: [{percentile: p95, max_increase: 10%}]\n"},
    {"d/idle_gates.yaml", "name: g\nsteps: {a: first.yaml}\ngates: [{percentile: p95, max: 1s}]\n"},
    {"d/wrong_gates.yaml", "name: g\nsteps: {a: first.yaml, b: gated.yaml}\n"
                           "compare: {c: {base: a, candidate: b, gates: [{percentile: p9x}]}}\n"},
    {"d/unfit.yaml", "name: n\nsteps: {a: first.yaml}\nload: {rate: 1}\n"},
    {"d/wrong.yaml", "name: n\nsteps: {a: first.yaml}\nwith: {load: {rates: 1}}\n"},
    {"d/missing.yaml", "name: n\nsteps: {a: nowhere.yaml}\n"},
    {"d/varied.yaml", "name: n\nsteps: {a: matrix.yaml}\n"},
    {"d/repeated.yaml", "name: n\nsteps: {a: again.yaml}\n"},
    {"d/unknown.yaml", "name: n\nsteps: {a: first.yaml}\ncompare: {c: {base: a, candidate: aa}}\n"},
    {"d/none.yaml", "name: n\nsteps: {}\n"},
    {"d/stray.yaml", "name: x\nrounds: 2\n" RUN},
};

static int open_file(const char *path, struct document **out, struct error *err)
{
    const char *plain = strncmp(path, "d/../", 5) == 0 ? path + 5 : path;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (strcmp(files[i].path, plain) == 0)
            return document_parse(path, files[i].text, strlen(files[i].text), out, err);
    return error_set(err, ERROR_INPUT, "cannot open %s", path);
}

static void load(const char *path, struct study *study)
{
    struct error err = {0};
    int result = study_load(path, open_file, study, &err);
    if (result != 1)
        fail_msg("%d: %s", result, err.text);
}

static void refuse(const char *path, const char *sentence)
{
    struct study study;
    struct error err = {0};
    assert_int_equal(study_load(path, open_file, &study, &err), -ERROR_INPUT);
    assert_string_equal(err.text, sentence);
}

static void steps_are_read(void **state)
{
    (void)state;
    struct study study;
    load("d/study.yaml", &study);
    assert_string_equal(study.name, "s");
    assert_int_equal(study.rounds, 3);
    assert_int_equal(study.steps.count, 2);
    const struct study_step *b = &study.steps.items[1];
    assert_string_equal(b->name, "b");
    assert_string_equal(b->experiment.name, "second");
    assert_true(b->experiment.load.rate == 30000);
    assert_true(b->experiment.load.duration_ns == 9000000000);
    assert_string_equal(capture_choice_name(b->experiment.backend), "none");
    assert_true(b->experiment.derived);
    assert_int_equal(study.comparisons.count, 1);
    assert_int_equal(study.comparisons.items[0].candidate, 1);
    assert_string_equal(study.comparisons.items[0].slices.items[0], "p20-p30");
    study_free(&study);
}

static void a_study_extends_and_holds_others(void **state)
{
    (void)state;
    struct study study;
    load("d/more.yaml", &study);
    assert_int_equal(study.rounds, 4);
    assert_int_equal(study.steps.count, 3);
    study_free(&study);
    load("d/nested.yaml", &study);
    assert_int_equal(study.steps.count, 2);
    assert_int_equal(study.steps.items[0].study->rounds, 3);
    assert_null(study.steps.items[1].study);
    study_free(&study);
}

static void expect_gates(const struct study *study, size_t comparison, const char *words)
{
    char text[120] = "";
    const struct gate_array *gates = &study->comparisons.items[comparison].gates;
    for (size_t i = 0; i < gates->count; i++)
        gate_words(&gates->items[i], text, sizeof text);
    assert_int_equal(gates->count, words[0] != '\0');
    assert_string_equal(text, words);
}

// Its own, else the study's, else those of an increase of the candidate's experiment.
static void comparisons_have_gates(void **state)
{
    (void)state;
    struct study study;
    load("d/gates.yaml", &study);
    expect_gates(&study, 0, "p90 at most 1s");
    expect_gates(&study, 1, "p99 at most +5%");
    expect_gates(&study, 2, "");
    study_free(&study);
    load("d/all_gates.yaml", &study);
    expect_gates(&study, 0, "p90 at most 1s");
    expect_gates(&study, 1, "p95 at most +10%");
    expect_gates(&study, 2, "p95 at most +10%");
    study_free(&study);
    refuse("d/idle_gates.yaml", "d/idle_gates.yaml:3:8: gates: a study judges them in its "
                                "comparisons, and has none; name some under `compare`, or give the "
                                "steps gates by `with`");
    refuse("d/wrong_gates.yaml", "d/wrong_gates.yaml:3:46: a gate has `max` or `max_increase`, "
                                 "one of them; write two gates for both");
}

static void what_is_no_study_is_told(void **state)
{
    (void)state;
    struct study study;
    struct error err = {0};
    assert_int_equal(study_load("d/first.yaml", open_file, &study, &err), 0);
    refuse("d/deep.yaml", "d/nested.yaml:2:16: steps: d/study.yaml is a study itself, which has no "
                          "place so deep");
    refuse("d/circle.yaml", "d/circle.yaml:2:15: steps: d/circle.yaml is a study itself, which has "
                            "no place so deep");
    refuse("d/over.yaml", "d/over.yaml:2:12: steps: d/study.yaml is a study itself, which has no "
                          "place below a `with`");
    refuse("d/unfit.yaml", "d/unfit.yaml:3:1: `load` has no place in a study, whose `steps` are "
                           "experiments; what all of them have in common goes into `with`");
    refuse("d/wrong.yaml", "d/wrong.yaml:3:15: unknown key `rates`; did you mean `rate`?");
    refuse("d/missing.yaml", "d/missing.yaml:2:12: steps: cannot open d/nowhere.yaml");
    refuse("d/varied.yaml", "d/varied.yaml:2:12: steps: d/matrix.yaml has a `matrix`; a step is "
                            "one configuration");
    refuse("d/repeated.yaml", "d/repeated.yaml:2:12: steps: d/again.yaml has `repetitions`; a "
                              "study repeats its steps by `rounds`");
    refuse("d/unknown.yaml", "d/unknown.yaml:3:35: candidate: no step that is a run is called "
                             "`aa`; it may be: a");
    refuse("d/none.yaml", "d/none.yaml:2:8: steps: name one file at least, e.g. `steps: {first: "
                          "first.yaml}`");
}

static void a_run_has_no_rounds(void **state)
{
    (void)state;
    struct experiment experiment;
    struct document *source;
    struct error err = {0};
    assert_int_equal(open_file("d/stray.yaml", &source, &err), 0);
    assert_int_equal(experiment_resolve(source, "d/stray.yaml", "", &experiment, &err),
                     -ERROR_INPUT);
    assert_string_equal(err.text, "d/stray.yaml:2:1: `rounds` is for a study, which has `steps`");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_are_read),
        cmocka_unit_test(a_study_extends_and_holds_others),
        cmocka_unit_test(comparisons_have_gates),
        cmocka_unit_test(what_is_no_study_is_told),
        cmocka_unit_test(a_run_has_no_rounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
