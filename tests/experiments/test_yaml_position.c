// SPDX-License-Identifier: MIT
//
// Places of everything in a document, what is refused as a document, and what is written out.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "experiments/spec/yaml_position.h"

static struct yaml_source *parse(const char *text)
{
    struct yaml_source *source;
    struct error err = {0};
    if (yaml_source_parse("x.yaml", text, strlen(text), &source, &err) < 0)
        fail_msg("%s", err.text);
    return source;
}

static void refuse(const char *text, size_t bytes, const char *beginning)
{
    struct yaml_source *source;
    struct error err = {0};
    assert_int_equal(yaml_source_parse("x.yaml", text, bytes, &source, &err), -ERROR_INPUT);
    assert_null(source);
    if (strncmp(err.text, beginning, strlen(beginning)) != 0)
        fail_msg("said: %s", err.text);
}

static void check_place(const struct yaml_source *source, int node, unsigned line, unsigned column)
{
    unsigned at_line, at_column;
    assert_int_not_equal(node, 0);
    yaml_place(source, node, &at_line, &at_column);
    assert_int_equal(at_line, line);
    assert_int_equal(at_column, column);
}

static void everything_has_a_place(void **state)
{
    (void)state;
    struct yaml_source *s = parse("# note\nname: one\nlist:\n  - a\n  - {k: v}\nflow: [1, 22]\n");
    int root = yaml_root(s), list = yaml_child(s, root, "list"), flow = yaml_child(s, root, "flow");
    check_place(s, root, 2, 1);
    check_place(s, yaml_key(s, root, "name"), 2, 1);
    check_place(s, yaml_child(s, root, "name"), 2, 7);
    check_place(s, yaml_entry(s, list, 0), 4, 5);
    check_place(s, yaml_key(s, yaml_entry(s, list, 1), "k"), 5, 6);
    check_place(s, yaml_child(s, yaml_entry(s, list, 1), "k"), 5, 9);
    check_place(s, yaml_entry(s, flow, 1), 6, 11);
    assert_string_equal(yaml_text(s, yaml_entry(s, flow, 1)), "22");
    assert_int_equal(yaml_count(s, root), 3);
    assert_int_equal(yaml_kind(s, list), YAML_KIND_SEQUENCE);
    yaml_source_close(s);
}

static void nothing_is_found_below_nothing(void **state)
{
    (void)state;
    struct yaml_source *s = parse("a: 1\n");
    assert_int_equal(yaml_child(s, 0, "a"), 0);
    assert_int_equal(yaml_child(s, yaml_child(s, yaml_root(s), "a"), "b"), 0);
    assert_int_equal(yaml_entry(s, yaml_root(s), 1), 0);
    assert_int_equal(yaml_entry_key(s, yaml_child(s, yaml_root(s), "a"), 0), 0);
    assert_null(yaml_text(s, 0));
    assert_int_equal(yaml_kind(s, 99), YAML_KIND_NONE);
    struct error err;
    assert_int_equal(yaml_error(s, 0, &err, "wrong"), -ERROR_INPUT);
    assert_string_equal(err.text, "x.yaml:1:1: wrong");
    yaml_source_close(s);
}

static void what_is_no_document_is_refused(void **state)
{
    (void)state;
    char deep[200];
    refuse("", 0, "x.yaml:1:1: the file is empty");
    refuse("# only a note\n", 14, "x.yaml:1:1: the file is empty");
    refuse("a: 1\nb: [\n", 10, "x.yaml:3:1: did not find expected node content");
    refuse("a: 1\na: 2\n", 10, "x.yaml:2:1: key `a` is given twice");
    refuse("{[a]: 1}", 8, "x.yaml:1:2: a key must be a plain word");
    refuse("a: 1\n---\nb: 2\n", 14, "x.yaml:3:1: a second document begins here; one is all");
    refuse("a: \"\\0\"\n", 8, "x.yaml:1:4: a value must not contain a NUL byte");
    refuse("a: \xff\xfe", 5, "x.yaml: byte 3: ");
    memset(deep, '[', sizeof deep);
    refuse(deep, sizeof deep, "x.yaml:1:31: nested deeper than 30 levels");
}

// Nine levels of nine references each would be 400 million nodes.
static void references_cannot_explode(void **state)
{
    (void)state;
    char text[2000] = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
    for (int level = 1; level < 9; level++) {
        char line[200];
        snprintf(line, sizeof line,
                 "a%d: &a%d [*a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d]\n", level, level,
                 level - 1, level - 1, level - 1, level - 1, level - 1, level - 1, level - 1,
                 level - 1, level - 1);
        strcat(text, line);
    }
    refuse(text, strlen(text), "x.yaml:");
    refuse("a: &a [*a]\n", 11, "x.yaml:1:4: nested deeper than 30 levels");
}

static bool is_hosts(const char *path)
{
    return strcmp(path, "hosts") == 0 || strcmp(path, "list/0/map") == 0;
}

static void names_become_lists(void **state)
{
    (void)state;
    char *text;
    size_t bytes;
    struct error err = {0};
    struct yaml_source *s = parse("hosts: {a: {k: 1}, b: \"2\"}\nlist: [{map: {c: 3}}]\n");
    assert_int_equal(yaml_write(s, yaml_root(s), is_hosts, &text, &bytes, &err), 0);
    struct yaml_source *again = parse(text);
    int hosts = yaml_child(again, yaml_root(again), "hosts");
    assert_int_equal(yaml_kind(again, hosts), YAML_KIND_SEQUENCE);
    int first = yaml_entry(again, hosts, 0), second = yaml_entry(again, hosts, 1);
    assert_string_equal(yaml_text(again, yaml_child(again, first, "name")), "a");
    assert_string_equal(yaml_text(again, yaml_child(again, yaml_child(again, first, "value"), "k")),
                        "1");
    assert_string_equal(yaml_text(again, yaml_child(again, second, "value")), "2");
    int list = yaml_child(again, yaml_root(again), "list");
    int map = yaml_child(again, yaml_entry(again, list, 0), "map");
    assert_string_equal(yaml_text(again, yaml_child(again, yaml_entry(again, map, 0), "name")),
                        "c");
    yaml_source_close(again);
    yaml_source_close(s);
    free(text);
}

static void files_are_read(void **state)
{
    (void)state;
    struct yaml_source *source;
    struct error err = {0};
    assert_int_equal(yaml_source_open("/nonexistent/x.yaml", &source, &err), -ERROR_INPUT);
    assert_string_equal(err.text, "cannot read /nonexistent/x.yaml: No such file or directory");
    assert_int_equal(yaml_source_open("/dev/zero", &source, &err), -ERROR_INPUT);
    assert_string_equal(err.text, "/dev/zero: larger than 1048576 bytes");
    assert_int_equal(yaml_source_open("/tmp", &source, &err), -ERROR_INPUT);
    assert_string_equal(err.text, "cannot read /tmp: Is a directory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_has_a_place),
        cmocka_unit_test(nothing_is_found_below_nothing),
        cmocka_unit_test(what_is_no_document_is_refused),
        cmocka_unit_test(references_cannot_explode),
        cmocka_unit_test(names_become_lists),
        cmocka_unit_test(files_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
