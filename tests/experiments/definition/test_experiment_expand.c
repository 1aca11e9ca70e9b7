// SPDX-License-Identifier: MIT
//
// extends and matrix: what documents come to, and that mistakes are placed in the file they are in.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "experiments/capture/capture_backend.h"
#include "experiments/definition/experiment_set.h"

#define BASE                                                                                       \
    "name: base\n"                                                                                 \
    "hosts: {client: {kind: local}, server: {kind: local}}\n"                                      \
    "servers: {cache: {threads: 1, options: [-R, \"20\"]}}\n"                                      \
    "load: {rate: 20k, connections: 16}\n"

// The files there are, by path.
static int open_file(const char *path, struct document **out, struct error *err)
{
    static const struct {
        const char *path, *text;
    } files[] = {
        {"dir/base.yaml", BASE},
        {"dir/middle.yaml", "extends: base.yaml\nload: {rate: 30k}\n"},
        {"dir/up.yaml", "extends: sub/x.yaml\n"},
        {"dir/sub/x.yaml", "extends: ../up.yaml\n"},
        {"dir/circle.yaml", "extends: me.yaml\n"},
        {"dir/wrong.yaml", "name: w\nload:\n  rate: 1\n  conections: 3\n"},
        {"dir/broken.yaml", "name: [\n"},
    };
    *out = NULL;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (strcmp(files[i].path, path) == 0)
            return document_parse(path, files[i].text, strlen(files[i].text), out, err);
    return error_set(err, ERROR_INPUT, "cannot read %s: no such file", path);
}

static void parse(const char *text, struct experiment_set *set)
{
    struct error err = {0};
    if (experiment_set_parse("dir/me.yaml", text, strlen(text), open_file, set, &err) < 0)
        fail_msg("%s", err.text);
}

static void refuse(const char *text, const char *beginning)
{
    struct experiment_set set;
    struct error err = {0};
    assert_int_equal(experiment_set_parse("dir/me.yaml", text, strlen(text), open_file, &set, &err),
                     -ERROR_INPUT);
    if (strncmp(err.text, beginning, strlen(beginning)) != 0)
        fail_msg("said: %s", err.text);
}

static void files_are_laid_over_each_other(void **state)
{
    (void)state;
    struct experiment_set set;
    parse("extends: ./middle.yaml\nname: mine\nservers: {cache: {options: [-v]}}\n"
          "load: {depth: 4}\n",
          &set);
    assert_int_equal(set.count, 1);
    const struct experiment *e = &set.items[0];
    assert_true(e->derived);
    assert_string_equal(e->name, "mine");
    assert_true(e->load.rate == 30000 && e->load.connections == 16 && e->load.depth == 4);
    assert_int_equal(e->servers.items[0].threads, 1);
    assert_int_equal(e->servers.items[0].options.count, 2); // a list is replaced; and NULL
    assert_string_equal(e->servers.items[0].options.items[0], "-v");
    experiment_set_free(&set);
}

static void mistakes_are_in_the_file_they_are_in(void **state)
{
    (void)state;
    refuse("extends: wrong.yaml\n",
           "dir/wrong.yaml:4:3: unknown key `conections`; did you mean `connections`?");
    refuse("extends: base.yaml\nload:\n  rtae: 1\n", "dir/me.yaml:3:3: unknown key `rtae`");
    refuse("extends: base.yaml\nload: {rate: fast}\n", "dir/me.yaml:2:14: rate: \"fast\"");
    refuse("extends: broken.yaml\n", "dir/me.yaml:1:10: extends: dir/broken.yaml:2:1: ");
    refuse("extends: none.yaml\n", "dir/me.yaml:1:10: extends: cannot read dir/none.yaml: no");
    refuse("extends: [a]\n", "dir/me.yaml:1:10: `extends` takes one file");
    refuse("extend: base.yaml\n", "dir/me.yaml:1:1: unknown key `extend`; did you mean `extends`?");
}

static void circles_are_refused(void **state)
{
    (void)state;
    refuse("extends: me.yaml\n", "dir/me.yaml:1:10: extends: dir/me.yaml extends itself");
    refuse("extends: circle.yaml\n",
           "dir/circle.yaml:1:10: extends: dir/me.yaml extends itself, through other files");
    refuse("extends: up.yaml\n", "dir/"); // a way no text comparison sees ends all the same
}

static void a_matrix_is_every_combination(void **state)
{
    (void)state;
    struct experiment_set set;
    parse(BASE "matrix:\n"
               "  load.rate: [10k, 40k]\n"
               "  watched:\n"
               "    no: {servers: {cache: {shim: false}}, capture: {backend: none}}\n"
               "    yes: {}\n"
               "  servers.cache.options: [[-R, \"2\"]]\n",
          &set);
    assert_int_equal(set.count, 4);
    assert_string_equal(set.items[0].configuration, "rate=10k, watched=no, options=-R 2");
    assert_string_equal(set.items[1].configuration, "rate=10k, watched=yes, options=-R 2");
    assert_string_equal(set.items[2].configuration, "rate=40k, watched=no, options=-R 2");
    assert_true(set.items[1].load.rate == 10000 && set.items[2].load.rate == 40000);
    assert_false(set.items[2].servers.items[0].shim);
    assert_true(set.items[3].servers.items[0].shim);
    assert_string_equal(capture_choice_name(set.items[2].backend), "none");
    assert_string_equal(capture_choice_name(set.items[3].backend), "auto");
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(set.items[i].load.connections, 16);
        assert_string_equal(set.items[i].servers.items[0].options.items[1], "2");
    }
    experiment_set_free(&set);
    parse("extends: base.yaml\nmatrix: {load.depth: [1, 2, 3]}\n", &set);
    assert_int_equal(set.count, 3);
    assert_int_equal(set.items[2].load.depth, 3);
    experiment_set_free(&set);
}

static int assign(const char *text, const char *assignment, struct document **document,
                  struct error *err)
{
    assert_int_equal(document_parse("me.yaml", text, strlen(text), document, err), 0);
    return experiment_assign(document, assignment, err);
}

static void a_key_is_assigned(void **state)
{
    (void)state;
    struct document *document;
    struct error err = {0};
    assert_int_equal(assign(BASE, "load.rate=50k", &document, &err), 0);
    assert_int_equal(experiment_assign(&document, "load.depth=7", &err), 0);
    const struct node *load = node_child(document_root(document), "load");
    assert_string_equal(node_text(node_child(load, "rate")), "50k");
    assert_string_equal(node_text(node_child(load, "depth")), "7");
    assert_non_null(node_child(document_root(document), "name")); // the rest is as it was
    assert_int_equal(experiment_assign(&document, "tuning.server=[{sysctl: {a.b: 1}}]", &err), 0);
    assert_int_equal(
        node_count(node_child(node_child(document_root(document), "tuning"), "server")), 1);
    document_free(document);
}

static void impossible_assignments_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *assignment, *said;
    } wrong[] = {
        {"load.rate", "--set load.rate: a key and its value"},
        {"=5", "--set =5: a key and its value"},
        {"load.rate=[1", "--set load.rate=[1: did not find"},
        {"load.depth=3", "--set load.depth=3: the experiment's matrix varies `load.depth`"},
        {"a=1\nb: 2", "--set a=1\nb: 2: one key and its value"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct document *document;
        struct error err = {0};
        assert_int_equal(
            assign(BASE "matrix: {load.depth: [1, 2]}\n", wrong[i].assignment, &document, &err),
            -ERROR_INPUT);
        if (strncmp(err.text, wrong[i].said, strlen(wrong[i].said)) != 0)
            fail_msg("said: %s", err.text);
        document_free(document);
    }
}

static void impossible_matrices_are_placed(void **state)
{
    (void)state;
    refuse(BASE "matrix: [1]\n", "dir/me.yaml:5:9: matrix: keys with lists of values");
    refuse(BASE "matrix: {load.rate: 1}\n", "dir/me.yaml:5:21: matrix: `load.rate` takes a list");
    refuse(BASE "matrix: {load.rate: []}\n", "dir/me.yaml:5:21: matrix: `load.rate` takes a list");
    refuse(BASE "matrix: {load.rtae: [1]}\n",
           "dir/me.yaml:5:10: unknown key `load.rtae`; did you mean `load.rate`?");
    refuse(BASE "matrix: {load.rate: [1, fast]}\n", "dir/me.yaml:5:25: rate: \"fast\"");
    refuse(BASE "matrix: {how: {a: 1}}\n", "dir/me.yaml:5:19: matrix: a variant is a part");
    refuse(BASE "matrix: {how: {a: {lod: {}}}}\n",
           "dir/me.yaml:5:20: unknown key `lod`; did you mean `load`?");
    refuse(BASE "matrix:\n"
                "  load.rate: [1, 2, 3, 4, 5]\n"
                "  load.depth: [1, 2, 3, 4, 5]\n"
                "  load.seed: [1, 2, 3, 4, 5]\n",
           "dir/me.yaml:6:3: matrix: more than 64 configurations");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_are_laid_over_each_other),
        cmocka_unit_test(mistakes_are_in_the_file_they_are_in),
        cmocka_unit_test(circles_are_refused),
        cmocka_unit_test(a_matrix_is_every_combination),
        cmocka_unit_test(a_key_is_assigned),
        cmocka_unit_test(impossible_assignments_are_refused),
        cmocka_unit_test(impossible_matrices_are_placed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
