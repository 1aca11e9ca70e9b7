// SPDX-License-Identifier: MIT
//
// The terminal summary: it fits, says what it must, stays plain where plain is asked for, and lets
// no process name speak to the terminal. `test_report_summary_text --print VARIANT` shows one.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "analysis/report/terminal/summary_text.h"
#include "base/text.h"
#include "tests/analysis/report/report_fixture.h"

static const struct fixture_options usual = {.requests = 4000, .rate = 20000};
static const struct fixture_options odd = {.requests = 4000, .rate = 20000, .odd = true};

static char *summary_of(const struct fixture_options *options, const struct summary_style *style)
{
    struct fixture fixture;
    char *text = NULL;
    size_t bytes;
    FILE *memory = open_memstream(&text, &bytes);
    assert_non_null(memory);
    fixture_build(&fixture, options);
    summary_text_write(&fixture.run, style, memory);
    fixture_free(&fixture);
    fclose(memory);
    return text;
}

// The widest line in columns, and how many lines.
static int measure(const char *text, int *lines)
{
    int widest = 0, at = 0;
    for (*lines = 0; *text; text++) {
        if (*text == '\n') {
            ++*lines;
            at = 0;
        } else if (((unsigned char)*text >> 6) != 2 && ++at > widest) {
            widest = at;
        }
    }
    return widest;
}

static void expect(const char *text, const char *const *needed, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!strstr(text, needed[i]))
            fail_msg("\"%s\" is missing in:\n%s", needed[i], text);
}

static void test_says_what_it_must(void **state)
{
    (void)state;
    static const char *const always[] = {"quickstart",
                                         "1 in 100 requests took 1",
                                         "\u2192 ",
                                         "20,000/s offered",
                                         "p99.9",
                                         "95 % from",
                                         "head-of-line blocking",
                                         "all of it in the second half",
                                         "explained",
                                         "nothing: every request was answered"};
    static const char *const in_full[] = {"wake-up latency",
                                          "60.0 % waiting for work",
                                          "10.0 % blocked in",
                                          "R core              R ",
                                          "each lifetime on the server",
                                          "no cause found",
                                          "from sent",
                                          "sent late by",
                                          "ahead, on average",
                                          "Windows",
                                          "replies of 400 kB or more",
                                          "fast end 2.70 us",
                                          "every 20.0 ms (98 % of 51 times)",
                                          "server stack        A "};
    for (int full = 0; full < 2; full++) {
        char *text = summary_of(
            &usual, &(struct summary_style){.unicode = true, .full = full, .width = 100});
        expect(text, always, sizeof always / sizeof *always);
        if (full)
            expect(text, in_full, sizeof in_full / sizeof *in_full);
        for (size_t i = 0; !full && i < sizeof in_full / sizeof *in_full; i++)
            if (strstr(text, in_full[i]))
                fail_msg("\"%s\" in the short form:\n%s", in_full[i], text);
        assert_true(full == !strstr(text, " --text --full")); // where the rest is
        free(text);
    }
}

// What of the application's stage was not its doing has a line where it matters.
static void test_what_did_not_run(void **state)
{
    (void)state;
    const struct summary_style style = {.width = 100, .full = true};
    for (int matters = 0; matters < 2; matters++) {
        struct fixture fixture;
        char *text = NULL;
        size_t bytes;
        FILE *memory = open_memstream(&text, &bytes);
        assert_non_null(memory);
        fixture_build(&fixture, &usual);
        struct run_lifetimes *lives = &fixture.run.lifetimes;
        lives->off_core_at_quantile_ns[2] =
            (matters ? 0.11 : 0.09) * lives->stage_at_quantile_ns[2][STAMP_REPLY];
        summary_text_write(&fixture.run, &style, memory);
        fixture_free(&fixture);
        fclose(memory);
        assert_int_equal(strstr(text, "    thread not running") != NULL, matters);
        free(text);
    }
}

static void test_hops(void **state)
{
    (void)state;
    const struct fixture_options options = {.requests = 4000, .rate = 20000, .hops = true};
    static const char *const rows[] = {"Hop by hop", "to2@client -> to0@switch",
                                       "all of the way to server"};
    char *text = summary_of(&options, &(struct summary_style){.width = 100});
    expect(text, rows, sizeof rows / sizeof *rows);
    free(text);
}

// What slow messages waited for between two hops is below their row, and no other hops' there.
static void test_hop_waits(void **state)
{
    (void)state;
    const struct fixture_options options = {.requests = 4000, .rate = 20000, .hops = true};
    const struct cause causes[] = {
        {.name = "hop to2@client -> to0@switch, behind hog", .messages = 3, .total_ns = 358e6},
        {.name = "hop to2@client -> to1@switch, behind cc1", .messages = 3, .total_ns = 358e6}};
    static const char *const rows[] = {"to2@client -> to0@switch",
                                       "    358 ms of slow messages: behind hog (3 of them)",
                                       "all of the way to server"};
    struct fixture fixture;
    size_t bytes;
    char *text;
    FILE *memory = open_memstream(&text, &bytes);
    fixture_build(&fixture, &options);
    struct hop_place *places = fixture.run.lifetimes.hops.places;
    snprintf(places[0].name, sizeof places[0].name, "to2@client");
    snprintf(places[1].name, sizeof places[1].name, "to0@switch");
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(array_push(&fixture.run.findings.diagnoses.items[0].causes, causes[i]), 0);
    summary_text_write(&fixture.run, &(struct summary_style){.width = 100}, memory);
    fixture_free(&fixture);
    fclose(memory);
    expect(text, rows, sizeof rows / sizeof *rows);
    assert_null(strstr(text, "of slow messages: behind cc1"));
    free(text);
}

static void test_fits(void **state)
{
    (void)state;
    const struct fixture_options *const runs[] = {&usual, &odd};
    for (size_t i = 0; i < 16; i++) {
        int lines, most = (i & 4 ? 79 : i & 1 ? 49 : 34) + (i & 8 ? 10 : 0);
        struct summary_style style = {.unicode = i & 2, .full = i & 4, .width = i & 8 ? 80 : 100};
        char *text = summary_of(runs[i & 1], &style);
        if (measure(text, &lines) > style.width)
            fail_msg("wider than %d:\n%s", style.width, text);
        assert_in_range(lines, 1, most);
        free(text);
    }
}

static void test_plain_is_ascii_without_escapes(void **state)
{
    (void)state;
    char *text = summary_of(&odd, &(struct summary_style){.full = true, .width = 80});
    for (const char *at = text; *at; at++)
        assert_true((*at >= ' ' && *at <= '~') || *at == '\n');
    assert_non_null(strstr(text, "</script>"));
    assert_non_null(strstr(text, "12 kernel events dropped"));
    assert_non_null(strstr(text, "never"));
    assert_non_null(strstr(text, "Beware  some requests had to wait"));
    assert_non_null(strstr(text, "  set      sysctl on server: 0, was 1 (/proc/sys/kernel/"));
    assert_non_null(strstr(text, "  not set  governor on server: performance: No such file"));
    assert_non_null(strstr(text, "Neighbour web: 5,000/s asked for, 4,999/s answered, p50 144 us"));
    free(text);
}

static void test_names_cannot_command_the_terminal(void **state)
{
    (void)state;
    char *text = summary_of(&odd, &(struct summary_style){.unicode = true, .width = 100});
    assert_null(strchr(text, '\033'));
    assert_null(strstr(text, "\xe2\x80\xae"));         // right-to-left override
    assert_non_null(strstr(text, "\xe2\x90\x9b[31m")); // the picture of ESC
    free(text);
}

static void test_colour_returns_to_normal(void **state)
{
    (void)state;
    char *text =
        summary_of(&usual, &(struct summary_style){.unicode = true, .colour = true, .width = 100});
    const char *last = NULL;
    for (const char *at = text; (at = strstr(at, "\033[")) != NULL; at++)
        last = at;
    assert_non_null(last);
    assert_memory_equal(last, "\033[0m", 4);
    free(text);
}

static void test_no_verdict_and_no_causes_are_said(void **state)
{
    (void)state;
    struct fixture_options options = usual;
    options.no_verdict = true;
    char *text = summary_of(&options, &(struct summary_style){.width = 80});
    assert_non_null(strstr(text, "N/A: no verdict"));
    assert_non_null(strstr(text, "N/A: only 4000 of 4000"));
    free(text);
    options = usual;
    options.no_causes = true;
    text = summary_of(&options, &(struct summary_style){.width = 80});
    assert_non_null(strstr(text, "no cause found"));
    free(text);
    options.requests = 0;
    text = summary_of(&options, &(struct summary_style){.width = 80});
    assert_non_null(strstr(text, "0 requests"));
    free(text);
}

static void test_clean_text(void **state)
{
    (void)state;
    static const struct {
        const char *in, *unicode, *ascii;
    } cases[] = {
        {"plain", "plain", "plain"},
        {"a\tb\x7f",
         "a\xe2\x90\x89"
         "b\xe2\x90\xa1",
         "a?b?"},
        {"gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f", "gr??"},
        {"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80", "?"},
        {"\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd", "??"},                  // overlong
        {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd", "???"}, // a surrogate
        {"\xe2\x82", "\xef\xbf\xbd\xef\xbf\xbd", "??"},                  // cut short
        {"\xe2\x81\xa6x", "\xef\xbf\xbdx", "?x"},                        // bidirectional isolate
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char out[64];
        assert_string_equal(text_clean(cases[i].in, false, out, sizeof out), cases[i].unicode);
        assert_string_equal(text_clean(cases[i].in, true, out, sizeof out), cases[i].ascii);
    }
    char tight[4]; // never cut inside a character
    assert_string_equal(text_clean("ab\xc3\xbc", false, tight, sizeof tight), "ab");
}

static void test_labels_and_counts(void **state)
{
    (void)state;
    char out[160], number[32];
    struct diagnosis_slice slice = {.low = 0.99, .high = 1};
    assert_string_equal(diagnosis_slice_label(&slice, 0, out, sizeof out), "p99-p100, whole run");
    slice = (struct diagnosis_slice){
        .low = 0.999, .high = 1, .from_ns = 5000000000, .to_ns = 10000000000};
    assert_string_equal(diagnosis_slice_label(&slice, 0, out, sizeof out),
                        "p99.9-p100, 5 s to 10 s");
    slice = (struct diagnosis_slice){.low = 0, .high = 1, .min_latency_ns = 500000};
    assert_string_equal(diagnosis_slice_label(&slice, 0, out, sizeof out),
                        "over 500 us, whole run");
    slice = (struct diagnosis_slice){.low = 0, .high = 1};
    assert_string_equal(diagnosis_slice_label(&slice, 0, out, sizeof out),
                        "every message, whole run");
    assert_string_equal(text_count(0, number), "0");
    assert_string_equal(text_count(999, number), "999");
    assert_string_equal(text_count(1000, number), "1,000");
    assert_string_equal(text_count(UINT64_MAX, number), "18,446,744,073,709,551,615");
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--print") == 0) {
        struct summary_style style = summary_style_for(stdout);
        char *text = summary_of(strcmp(argv[2], "odd") == 0 ? &odd : &usual, &style);
        fputs(text, stdout);
        free(text);
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_says_what_it_must),
        cmocka_unit_test(test_what_did_not_run),
        cmocka_unit_test(test_hops),
        cmocka_unit_test(test_hop_waits),
        cmocka_unit_test(test_fits),
        cmocka_unit_test(test_plain_is_ascii_without_escapes),
        cmocka_unit_test(test_names_cannot_command_the_terminal),
        cmocka_unit_test(test_colour_returns_to_normal),
        cmocka_unit_test(test_no_verdict_and_no_causes_are_said),
        cmocka_unit_test(test_clean_text),
        cmocka_unit_test(test_labels_and_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
