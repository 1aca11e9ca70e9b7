// SPDX-License-Identifier: MIT
//
// Places of everything in a document, what is refused as a document, and documents made of others.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/document.h"
#include "base/folder.h"

static struct document *parse(const char *text)
{
    struct document *source;
    struct error err = {0};
    if (document_parse("x.yaml", text, strlen(text), &source, &err) < 0)
        fail_msg("%s", err.text);
    return source;
}

static void refuse(const char *text, size_t bytes, const char *beginning)
{
    struct document *source;
    struct error err = {0};
    assert_int_equal(document_parse("x.yaml", text, bytes, &source, &err), -ERROR_INPUT);
    assert_null(source);
    if (strncmp(err.text, beginning, strlen(beginning)) != 0)
        fail_msg("said: %s", err.text);
}

static void check_place(const struct node *node, unsigned line, unsigned column)
{
    unsigned at_line, at_column;
    assert_non_null(node);
    node_place(node, &at_line, &at_column);
    assert_int_equal(at_line, line);
    assert_int_equal(at_column, column);
}

static void everything_has_a_place(void **state)
{
    (void)state;
    struct document *s = parse("# note\nname: one\nlist:\n  - a\n  - {k: v}\nflow: [1, 22]\n");
    const struct node *root = document_root(s), *list = node_child(root, "list"),
                      *flow = node_child(root, "flow");
    check_place(root, 2, 1);
    check_place(node_key(root, "name"), 2, 1);
    check_place(node_child(root, "name"), 2, 7);
    check_place(node_entry(list, 0), 4, 5);
    check_place(node_key(node_entry(list, 1), "k"), 5, 6);
    check_place(node_child(node_entry(list, 1), "k"), 5, 9);
    check_place(node_entry(flow, 1), 6, 11);
    assert_string_equal(node_text(node_entry(flow, 1)), "22");
    assert_int_equal(node_count(root), 3);
    assert_int_equal(node_kind(list), NODE_LIST);
    document_free(s);
}

static void nothing_is_found_below_nothing(void **state)
{
    (void)state;
    struct document *s = parse("a: 1\n");
    assert_null(node_child(NULL, "a"));
    assert_null(node_child(node_child(document_root(s), "a"), "b"));
    assert_null(node_entry(document_root(s), 1));
    assert_null(node_entry_key(node_child(document_root(s), "a"), 0));
    assert_null(node_text(NULL));
    assert_int_equal(node_kind(NULL), NODE_NONE);
    struct error err;
    assert_int_equal(document_error(s, NULL, &err, "wrong"), -ERROR_INPUT);
    assert_string_equal(err.text, "x.yaml:1:1: wrong");
    document_free(s);
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

static void check_text(const struct node *node, const char *text)
{
    assert_non_null(node);
    assert_string_equal(node_text(node), text);
}

static void documents_are_laid_over_each_other(void **state)
{
    (void)state;
    struct error err = {0};
    struct document *base = parse("a: {b: 1, c: [1, 2]}\nd: 4\nextends: x\n"), *over, *merged;
    assert_int_equal(document_parse("y.yaml", "a:\n  c: [3]\n  e: 5\n", 19, &over, &err), 0);
    const char *const dropped[] = {"extends", NULL};
    assert_int_equal(
        document_merge(document_root(base), document_root(over), dropped, &merged, &err), 0);
    document_free(base);
    document_free(over);
    const struct node *root = document_root(merged), *a = node_child(root, "a");
    assert_int_equal(node_count(root), 2);
    check_text(node_child(a, "b"), "1");
    check_text(node_entry(node_child(a, "c"), 0), "3");
    assert_int_equal(node_count(node_child(a, "c")), 1);
    document_error(merged, node_child(a, "b"), &err, "old");
    assert_string_equal(err.text, "x.yaml:1:8: old");
    document_error(merged, node_child(a, "e"), &err, "new");
    assert_string_equal(err.text, "y.yaml:3:6: new");
    struct document *nested;
    assert_int_equal(document_nest(node_key(a, "e"), a, &nested, &err), 0);
    check_text(node_child(node_child(document_root(nested), "e"), "b"), "1");
    document_free(nested);
    document_free(merged);
    struct document *dotted = parse("a.b.c: {d: e}\n");
    root = document_root(dotted);
    assert_int_equal(document_nest(node_entry_key(root, 0), node_entry(root, 0), &nested, &err), 0);
    const struct node *b = node_child(node_child(document_root(nested), "a"), "b");
    check_text(node_child(node_child(b, "c"), "d"), "e");
    check_place(node_key(b, "c"), 1, 1);
    document_free(nested);
    document_free(dotted);
}

static void what_is_written_reads_as_the_same(void **state)
{
    (void)state;
    struct error err = {0};
    char *text, *again;
    size_t bytes, again_bytes;
    struct document *s = parse("{a: [1, 'two \\n', \"3\\n\"], b: {c: \xc3\xa4}}\n");
    assert_int_equal(document_write(s, &text, &bytes, &err), 0);
    document_free(s);
    s = parse(text);
    check_text(node_entry(node_child(document_root(s), "a"), 2), "3\n");
    check_text(node_child(node_child(document_root(s), "b"), "c"), "\xc3\xa4");
    assert_int_equal(document_write(s, &again, &again_bytes, &err), 0);
    assert_string_equal(text, again);
    document_free(s);
    free(text);
    free(again);
}

static void aliases_are_what_they_name(void **state)
{
    (void)state;
    struct document *s = parse("a: &x {b: [1]}\nc: *x\nd: &y 7\ne: *y\n");
    check_text(node_entry(node_child(node_child(document_root(s), "c"), "b"), 0), "1");
    check_text(node_child(document_root(s), "e"), "7");
    document_free(s);
    refuse("a: *b\n", 6, "x.yaml:1:4: found undefined alias");
}

static void files_are_read(void **state)
{
    (void)state;
    struct document *source;
    struct error err = {0};
    assert_int_equal(document_open("/nonexistent/x.yaml", &source, &err), -ERROR_INPUT);
    assert_string_equal(err.text, "cannot read /nonexistent/x.yaml: No such file or directory");
    assert_int_equal(document_open("/dev/zero", &source, &err), -ERROR_INPUT);
    assert_string_equal(err.text, "/dev/zero: larger than 1048576 bytes");
}

static void of_a_folder_its_documents_are_named(void **state)
{
    (void)state;
    struct document *source;
    struct error err = {0};
    char folder[] = "/tmp/test-document-XXXXXX", path[100], wanted[300];
    assert_non_null(mkdtemp(folder));
    assert_int_equal(document_open(folder, &source, &err), -ERROR_INPUT);
    snprintf(wanted, sizeof wanted,
             "%s is a folder where a YAML file is to be; there is none in it", folder);
    assert_string_equal(err.text, wanted);
    for (char name = 'i'; name >= 'a'; name--) {
        snprintf(path, sizeof path, "%s/%c.%s", folder, name, name == 'c' ? "txt" : "yaml");
        fclose(fopen(path, "w"));
    }
    assert_int_equal(document_open(folder, &source, &err), -ERROR_INPUT);
    snprintf(wanted, sizeof wanted,
             "%s is a folder where a YAML file is to be; in it: a.yaml, b.yaml, d.yaml, e.yaml, "
             "f.yaml, g.yaml and 2 more",
             folder);
    assert_string_equal(err.text, wanted);
    folder_remove(folder);
}

static void arguments_have_no_place(void **state)
{
    (void)state;
    static const char *const texts[] = {"a: [1", "a: 1\na: 2", "a: *b", "{a: 1}: 2"};
    struct document *source;
    struct error err = {0};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_int_equal(
            document_parse_argument("--set x", texts[i], strlen(texts[i]), &source, &err),
            -ERROR_INPUT);
        if (strncmp(err.text, "--set x: ", 9) != 0)
            fail_msg("said: %s", err.text);
    }
    assert_int_equal(document_parse_argument("--set x", "a: 1", 4, &source, &err), 0);
    check_place(document_root(source), 0, 0);
    document_error(source, NULL, &err, "wrong");
    assert_string_equal(err.text, "--set x: wrong");
    document_free(source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_has_a_place),
        cmocka_unit_test(of_a_folder_its_documents_are_named),
        cmocka_unit_test(arguments_have_no_place),
        cmocka_unit_test(nothing_is_found_below_nothing),
        cmocka_unit_test(what_is_no_document_is_refused),
        cmocka_unit_test(references_cannot_explode),
        cmocka_unit_test(what_is_written_reads_as_the_same),
        cmocka_unit_test(aliases_are_what_they_name),
        cmocka_unit_test(documents_are_laid_over_each_other),
        cmocka_unit_test(files_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
