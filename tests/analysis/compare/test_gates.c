// SPDX-License-Identifier: MIT
//
// Gates as they are written: what they come to, and what is said about wrong ones.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "analysis/compare/gates.h"

static int read_text(const char *text, struct gate_array *gates, struct error *err)
{
    struct document *source;
    *gates = (struct gate_array){0};
    int result = document_parse("g.yaml", text, strlen(text), &source, err);
    if (result < 0)
        return result;
    result = gates_read(source, node_child(document_root(source), "gates"), gates, err);
    document_free(source);
    return result;
}

static void refuse(const char *text, const char *sentence)
{
    struct gate_array gates;
    struct error err = {0};
    assert_int_equal(read_text(text, &gates, &err), -ERROR_INPUT);
    assert_string_equal(err.text, sentence);
    array_free(&gates);
}

static void every_kind_is_read(void **state)
{
    (void)state;
    struct gate_array gates;
    struct error err = {0};
    char words[120];
    assert_int_equal(read_text("gates:\n"
                               "  - {percentile: p99, max_increase: 5%}\n"
                               "  - {percentile: p99.9, max: 200us}\n"
                               "  - {cause: \"head-of-line blocking (A)\", max: 10us}\n"
                               "  - {cause: nginx (R), max_increase: 1ms}\n",
                               &gates, &err),
                     0);
    assert_int_equal(gates.count, 4);
    assert_true(gates.items[0].quantile == 0.99 && gates.items[0].value == 0.05);
    assert_true(fabs(gates.items[1].quantile - 0.999) < 1e-12 && gates.items[1].value == 200000);
    assert_string_equal(gates.items[2].subject->key, "cause");
    assert_true(gates.items[2].value == 10000);
    assert_true(gates.items[3].limit == GATE_MAX_INCREASE && gates.items[3].value == 1e6);
    assert_string_equal(gate_words(&gates.items[0], words, sizeof words), "p99 at most +5%");
    assert_string_equal(gate_words(&gates.items[2], words, sizeof words),
                        "head-of-line blocking (A) at most 10us");
    array_free(&gates);
    assert_int_equal(read_text("gates: [{percentile: p99, load: batch, max: 1us}]", &gates, &err),
                     0);
    assert_string_equal(gates.items[0].load, "batch");
    assert_string_equal(gate_words(&gates.items[0], words, sizeof words),
                        "p99 of load `batch` at most 1us");
    array_free(&gates);
    assert_int_equal(read_text("name: none\n", &gates, &err), 0);
    assert_int_equal(gates.count, 0);
}

// What is written into a run's experiment.json is read back as it was.
static void json_is_read_back(void **state)
{
    (void)state;
    struct gate_array gates, again;
    struct error err = {0};
    assert_int_equal(read_text("gates: [{cause: \"a \\\"b\\\" é (A)\", max: 0.5us}, {percentile: "
                               "p50, load: other, max_increase: 12.5 %}]",
                               &gates, &err),
                     0);
    json_t *document = json_pack("{s:o}", "gates", gates_json(&gates));
    char *text = json_dumps(document, JSON_INDENT(2));
    assert_int_equal(read_text(text, &again, &err), 0);
    assert_int_equal(again.count, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_string_equal(again.items[i].name, gates.items[i].name);
        assert_string_equal(again.items[i].load, gates.items[i].load);
        assert_true(again.items[i].value == gates.items[i].value);
        assert_int_equal(again.items[i].limit, gates.items[i].limit);
    }
    free(text);
    json_decref(document);
    array_free(&gates);
    array_free(&again);
}

static void wrong_ones_are_placed(void **state)
{
    (void)state;
    refuse("gates: [{percentile: p99, max: 1us, load: \"\"}]",
           "g.yaml:1:43: load: `` is not a load's name");
    refuse("gates: [{percentile: p99, max: 1us, load: a23456789b123456789c123456789d12}]",
           "g.yaml:1:43: load: `a23456789b123456789c123456789d12` is not a load's name");
    refuse("gates: {}", "g.yaml:1:8: `gates` takes a list: [{...}, {...}], not keys with values");
    refuse("gates: [p99]", "g.yaml:1:9: `gates` takes keys with values, not a single value, "
                           "e.g. `{percentile: p99, max_increase: 5%}` or `{cause: "
                           "\"head-of-line blocking (A)\", max: 10us}`");
    refuse("gates: [{percentil: p99, max: 1us}]",
           "g.yaml:1:10: unknown key `percentil`; did you mean `percentile`?");
    refuse("gates: [{percentile: [p99], max: 1us}]",
           "g.yaml:1:22: `percentile` takes a single value, not a list");
    refuse("gates: [{percentile: p100, max: 1us}]",
           "g.yaml:1:22: percentile: `p100` is not a percentile, like p99.9");
    refuse("gates: [{percentile: p99}]", "g.yaml:1:9: a gate has `max` or `max_increase`, one of "
                                         "them; write two gates for both");
    refuse("gates: [{percentile: p99, max: 1}]",
           "g.yaml:1:32: max: \"1\" is not a duration (write it like 10us, 250ms or 10s)");
    refuse("gates: [{percentile: p99, max: 0us}]", "g.yaml:1:32: max: a limit of 0 cannot be kept");
    refuse("gates: [{percentile: p99, max_increase: 5us}]",
           "g.yaml:1:41: max_increase: `5us` is not a share above 0, like 5%; that nothing at all "
           "was added cannot be shown");
    refuse("gates: [{percentile: p99, max_increase: 0%}]",
           "g.yaml:1:41: max_increase: `0%` is not a share above 0, like 5%; that nothing at all "
           "was added cannot be shown");
    refuse("gates: [{cause: nginx, max: 1us}]",
           "g.yaml:1:17: cause: `nginx` is not a cause with its role, as the summary and the "
           "comparison name them, like \"nginx (A)\"");
}

static void missing_causes_are_named(void **state)
{
    static const struct {
        const char *name;
        enum gate_outcome outcome;
        const char *words;
    } cases[] = {
        {"nginx (A)", GATE_PASSED,
         "no message of p99-p100 has any of `nginx (A)`, in no run, nor of anything of a similar "
         "name"},
        {"head-of-line blockin (A)", GATE_PASSED,
         "no message of p99-p100 has any of `head-of-line blockin (A)`, in no run; there is "
         "`head-of-line blocking (A)`"},
        {"blocked in write to a pipe: logger (A)", GATE_PASSED,
         "no message of p99-p100 has any of `blocked in write to a pipe: logger (A)`, in no run; "
         "there is `blocked in write to a pipe (A)`"},
        {"head-of-line blocking: page faults (A)", GATE_INCONCLUSIVE,
         "no cause is called so: that is a part of `head-of-line blocking (A)`; name that instead; "
         "there is `head-of-line blocking (A)`"},
    };
    struct cause_shift causes[] = {{.name = "head-of-line blocking", .role = ROLE_A},
                                   {.name = "blocked in write to a pipe", .role = ROLE_A}};
    struct compared_slice slice = {.shift = {.words = "p99-p100",
                                             .available = true,
                                             .runs = {0, 3},
                                             .causes = {.items = causes, .count = 2}}};
    struct run_set candidate = {.name = "guard"};
    const struct comparison comparison = {.sides = {NULL, &candidate},
                                          .shifts = {.items = &slice, .count = 1}};
    struct error err = {0};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[200];
        struct gate_array gates;
        struct gate_result_array results = {0};
        snprintf(text, sizeof text, "gates: [{cause: \"%s\", max: 10us}]", cases[i].name);
        assert_int_equal(read_text(text, &gates, &err), 0);
        assert_int_equal(gates_judge(&gates, &comparison, 1, &results, &err), 0);
        assert_int_equal(results.count, 1);
        assert_string_equal(results.items[0].words, cases[i].words);
        assert_int_equal(results.items[0].outcome, cases[i].outcome);
        array_free(&results);
        array_free(&gates);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_is_read),
        cmocka_unit_test(json_is_read_back),
        cmocka_unit_test(wrong_ones_are_placed),
        cmocka_unit_test(missing_causes_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
