// SPDX-License-Identifier: MIT
//
// The page as a file: whole, self-contained, safe whatever processes are called, and of bounded
// size. `test_report_html --write FILE VARIANT` only writes a page, for test_report_page.sh.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/stat.h>
#include <unistd.h>

#include "analysis/report/page/report_html.h"
#include "tests/analysis/report/page_read.h"
#include "tests/analysis/report/report_fixture.h"

static int write_variant(const char *path, const char *variant)
{
    struct fixture_options options = {.requests = 4000, .rate = 20000, .hops = true};
    options.everything = strcmp(variant, "everything") == 0;
    if (strcmp(variant, "large") == 0)
        options.requests = 200000;
    if (strcmp(variant, "small") == 0)
        options.requests = 2000;
    if (options.everything)
        options.requests = 100000;
    options.samples = options.everything || strcmp(variant, "usual") == 0;
    options.odd = strcmp(variant, "odd") == 0;
    options.no_causes = strcmp(variant, "no-causes") == 0;
    options.no_verdict = strcmp(variant, "no-verdict") == 0;
    if (strcmp(variant, "empty") == 0)
        options.requests = 0;
    struct fixture fixture;
    struct error err = {0};
    fixture_build(&fixture, &options);
    if (options.no_causes) { // as of a watch, whose clients are not ours
        fixture.run.evidence.without_client = true;
        fixture.run.evidence.turns_unanswered = 1;
    }
    int result = report_write_html(&fixture.run, path, &err);
    fixture_free(&fixture);
    return result < 0 ? error_report(&err) : 0;
}

static size_t occurrences(const char *text, const char *what)
{
    size_t count = 0;
    for (; (text = strstr(text, what)) != NULL; text += strlen(what))
        count++;
    return count;
}

static char *page_of(const char *variant, off_t *bytes)
{
    char path[] = "/tmp/test-report-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(write_variant(path, variant), 0);
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    *bytes = status.st_size;
    char *text = page_read(path);
    unlink(path);
    return text;
}

static void test_is_whole_and_fetches_nothing(void **state)
{
    (void)state;
    off_t bytes;
    char *page = page_of("usual", &bytes);
    assert_memory_equal(page, "<!doctype html>", 15);
    assert_non_null(strstr(page, "</html>"));
    assert_non_null(strstr(page, "head-of-line blocking (A) behind")); // without any script
    assert_int_equal(occurrences(page, "{{"), 0);
    assert_int_equal(occurrences(page, "</script"), 2);
    assert_int_equal(occurrences(page, "src="), 0);
    assert_int_equal(occurrences(page, "@import"), 0);
    assert_int_equal(occurrences(page, "https://"), 0);
    free(page);
}

// What slowed requests, and what helps, are there before the data is taken apart.
static void test_causes_are_seen_before_scripts_run(void **state)
{
    (void)state;
    off_t bytes;
    char *page = page_of("usual", &bytes), *data = strstr(page, "<script");
    char *bar = strstr(page, "<div class=\"bar\"><span class=\"part\"");
    char *words =
        strstr(page, " %</b><span>these requests stood behind others that the server was");
    char *remedy = strstr(page, "id=\"remedy\">\u2192 More threads, less load");
    assert_true(remedy && remedy < bar && bar < words && words < data);
    free(page);
    static const char *const without[] = {"no-causes", "no-verdict", "empty"};
    for (size_t i = 0; i < sizeof without / sizeof *without; i++) {
        page = page_of(without[i], &bytes);
        assert_null(strstr(page, "<div class=\"bar\">"));
        free(page);
    }
}

static void test_odd_names_stay_text(void **state)
{
    (void)state;
    off_t bytes;
    char *page = page_of("odd", &bytes);
    assert_int_equal(occurrences(page, "</script"), 2);
    assert_int_equal(occurrences(page, "<!--"), 0);
    assert_int_equal(occurrences(page, "\xe2\x80\xa8"), 0);
    assert_int_equal(occurrences(page, "\033"), 0);
    assert_int_equal(occurrences(page, "\xff"), 0);
    assert_non_null(strstr(page, "&lt;/script&gt;&lt;!--"));
    char *data = page_read_data(page);
    assert_non_null(strstr(data, "</script><!--"));
    free(data);
    free(page);
}

static void test_data_parses_back(void **state)
{
    (void)state;
    static const char *const variants[] = {"usual", "odd", "no-causes", "no-verdict", "empty"};
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
        off_t bytes;
        char *page = page_of(variants[i], &bytes);
        char *text = page_read_data(page);
        json_error_t error;
        json_t *data = json_loads(text, 0, &error);
        assert_non_null(data);
        assert_string_equal(json_string_value(json_object_get(data, "version")), TAILLIGHT_VERSION);
        json_decref(data);
        free(text);
        free(page);
    }
}

static void test_size_is_bounded(void **state)
{
    (void)state;
    off_t bytes;
    static const char *const variants[] = {"large", "everything"};
    for (size_t i = 0; i < 2; i++) {
        char *page = page_of(variants[i], &bytes);
        assert_true(bytes > 200 * 1024);
        assert_true(bytes < (i ? 3 : 1) * 1024 * 1024); // its data are compressed
        free(page);
    }
}

static void test_failure_leaves_nothing(void **state)
{
    (void)state;
    struct fixture fixture;
    struct error err = {0};
    fixture_build(&fixture, &(struct fixture_options){.requests = 100, .rate = 20000});
    assert_int_equal(report_write_html(&fixture.run, "/nowhere/report.html", &err), -ERROR_FAILED);
    assert_non_null(strstr(err.text, "/nowhere/report.html"));
    // A directory stands where the page should go: said before anything is written.
    char folder[] = "/tmp/test-report-XXXXXX", inside[64];
    assert_non_null(mkdtemp(folder));
    snprintf(inside, sizeof inside, "%s/report.html", folder);
    assert_int_equal(mkdir(inside, 0700), 0);
    assert_int_equal(report_write_html(&fixture.run, inside, &err), -ERROR_INPUT);
    assert_int_equal(rmdir(inside), 0);
    assert_int_equal(rmdir(folder), 0);
    // A full disk is an error, not a short page.
    if (access("/dev/full", W_OK) == 0)
        assert_int_equal(report_write_html(&fixture.run, "/dev/full", &err), -ERROR_FAILED);
    fixture_free(&fixture);
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "--write") == 0)
        return write_variant(argv[2], argv[3]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_is_whole_and_fetches_nothing),
        cmocka_unit_test(test_causes_are_seen_before_scripts_run),
        cmocka_unit_test(test_odd_names_stay_text),
        cmocka_unit_test(test_data_parses_back),
        cmocka_unit_test(test_size_is_bounded),
        cmocka_unit_test(test_failure_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
