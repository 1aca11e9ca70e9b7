// SPDX-License-Identifier: MIT
//
// What a watch says of an interval in the terminal and as JSON is one thing (metrics:
// openmetrics.py): each number of the JSON stands in the terminal's words as those round it, and
// what one keeps back the other does.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "analysis/run/run_verdict.h"
#include "base/text.h"
#include "base/units.h"
#include "experiments/watch/watch_interval.h"
#include "tests/analysis/report/report_fixture.h"

struct told {
    char *terminal;
    json_t *json;
};

static struct told tell_within(const struct fixture_options *options, size_t answers, int width)
{
    const struct summary_style style = {.unicode = true, .width = width};
    struct fixture fixture;
    struct watch_servers servers = {0};
    const struct answer_array all = {.count = answers}; // of which is an excerpt; 0: all is there
    struct told told = {0};
    size_t bytes;
    FILE *memory = open_memstream(&told.terminal, &bytes);
    assert_non_null(memory);
    fixture_build(&fixture, options);
    fixture.run.lifetimes.join.spared = 1234;
    const struct watch_interval interval = {.run = &fixture.run,
                                            .servers = &servers,
                                            .answers = &all,
                                            .problem = "",
                                            .ended = {1700000000, 0},
                                            .seconds = 0.2,
                                            .recorded = 0.125,
                                            .taken = 0.4,
                                            .passed_over = 1,
                                            .own_share = 0.0774};
    watch_interval_line(&interval, NULL, memory);
    watch_interval_details(&interval, &style, memory);
    told.json = watch_interval_json(&interval);
    assert_non_null(told.json);
    watch_servers_free(&servers);
    fixture_free(&fixture);
    fclose(memory);
    return told;
}

// On a page on which no sentence needs a second line.
static struct told tell(const struct fixture_options *options, size_t answers)
{
    return tell_within(options, answers, 1000);
}

static void forget(struct told *told)
{
    free(told->terminal);
    json_decref(told->json);
}

static double number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_number(value))
        fail_msg("the JSON has no %s", key);
    return json_number_value(value);
}

static void expect(const struct told *told, const char *format, ...)
{
    char wanted[200];
    va_list args;
    va_start(args, format);
    vsnprintf(wanted, sizeof wanted, format, args);
    va_end(args);
    if (!strstr(told->terminal, wanted))
        fail_msg("the terminal does not say \"%s\": %s", wanted, told->terminal);
}

static char *micros(double us, char out[32])
{
    return units_format_ns(us * 1000, out, 32);
}

static void expect_percentiles(const struct told *told)
{
    static const char *const names[] = {"p50", "p99", "p99.9", "max"};
    const json_t *latency = json_object_get(told->json, "latency_us");
    char text[32];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const json_t *value = json_object_get(latency, names[i]);
        expect(told, "  %s %s", names[i],
               json_is_null(value) ? "never"
               : value             ? micros(json_number_value(value), text)
                                   : "-");
    }
}

static void expect_causes(const struct told *told)
{
    char text[32], share[32];
    size_t i;
    const json_t *cause;
    const double messages = number(told->json, "slice_messages");
    const double extra = number(told->json, "extra_us");
    expect(told, "the slowest 1 %%, %.0f requests, against %s of an ordinary one", messages,
           micros(number(told->json, "ordinary_us"), text));
    json_array_foreach(json_object_get(told->json, "causes"), i, cause)
    {
        if (i == 5) // the terminal's
            break;
        const double total = number(cause, "total_us");
        const char *after =
            strstr(told->terminal, json_string_value(json_object_get(cause, "cause")));
        assert_non_null(after);
        micros(total / messages, text);
        text_share(total, extra, share);
        const char *time = strstr(after, text), *end = strchr(after, '\n');
        if (!time || !end || time > end || !strstr(time, share) || strstr(time, share) > end)
            fail_msg("cause %zu: not %s and %s: %s", i, text, share, told->terminal);
    }
    assert_true(i > 1);
}

static void numbers_of_an_interval_are_one(void **state)
{
    (void)state;
    struct told told = tell(&(struct fixture_options){.requests = 4000, .rate = 20000}, 0);
    char text[TEXT_NUMBER_BYTES], of[32];
    expect_percentiles(&told);
    expect_causes(&told);
    expect(&told, "%s/s", text_rate(number(told.json, "rate"), text));
    expect(&told, "joined %s of %s", text_count((uint64_t)number(told.json, "joined"), text),
           text_count((uint64_t)number(told.json, "looked_at"), of));
    assert_true(number(told.json, "looked_at") == number(told.json, "requests"));
    char taken[32], share[32];
    expect(&told, "explained %s, against %s of %s ordinary ones;",
           text_share(number(told.json, "coverage_total"), 1, share),
           text_count((uint64_t)number(told.json, "ordinary_taken"), taken),
           text_count((uint64_t)number(told.json, "ordinary_messages"), of));
    expect(&told, "%s records dropped", text_count((uint64_t)number(told.json, "dropped"), text));
    expect(&told, "%s without hand-offs, departures and softirqs",
           text_count((uint64_t)number(told.json, "spared"), text));
    expect(&told, "the capture took %s of a core",
           text_share(number(told.json, "own_share"), 1, text));
    expect(&told, "all of the watch %s", text_share(number(told.json, "watch_share"), 1, text));
    expect(&told, "  1 interval before it was passed over: ");
    expect(&told, "recorded for %s of the time: all of it would take %s of a core",
           text_share(number(told.json, "recorded"), 1, text),
           text_share(number(told.json, "watch_share"), number(told.json, "recorded"), share));
    expect(&told, "slowest%s, %s: ",
           number(json_object_get(told.json, "slowest"), "latency_us") <
                   number(json_object_get(told.json, "latency_us"), "max")
               ? " with every stamp"
               : "",
           micros(number(json_object_get(told.json, "slowest"), "latency_us"), text));
    forget(&told);
}

// The rate is of all requests, and how many were taken apart is said.
static void an_excerpt_is_said_in_both(void **state)
{
    (void)state;
    struct told told = tell(&(struct fixture_options){.requests = 4000, .rate = 20000}, 41000);
    char text[TEXT_NUMBER_BYTES], of[32];
    assert_true(number(told.json, "requests") == 41000);
    assert_true(number(told.json, "looked_at") == 4000);
    expect(&told, "%s/s", text_rate(number(told.json, "rate"), text));
    expect(&told, "joined %s of %s", text_count((uint64_t)number(told.json, "joined"), text),
           text_count(4000, of));
    expect(&told, "causes and stages are of 4,000 of 41,000 requests");
    forget(&told);
}

static void no_line_is_wider_than_the_page(void **state)
{
    (void)state;
    struct told wide = tell(&(struct fixture_options){.requests = 4000, .rate = 20000}, 41000);
    for (int width = 80; width <= 120; width += 20) {
        struct told told =
            tell_within(&(struct fixture_options){.requests = 4000, .rate = 20000}, 41000, width);
        size_t lines = 0, lines_wide = 0;
        for (char *rest = told.terminal, *line; (line = strsep(&rest, "\n"));)
            if (text_columns(line) > width)
                fail_msg("%d columns of %d: %s", text_columns(line), width, line);
            else
                lines += line[strspn(line, " ")] != '\0';
        for (const char *at = wide.terminal; (at = strchr(at, '\n')); at++)
            lines_wide++;
        assert_true(lines > lines_wide);
        forget(&told);
    }
    forget(&wide);
}

static void what_too_few_requests_reach_is_kept_back_in_both(void **state)
{
    (void)state;
    static const size_t counts[] = {1, 60, 400, 999, 1000, 1500};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        struct told told = tell(&(struct fixture_options){.requests = counts[i], .rate = 20000}, 0);
        expect_percentiles(&told);
        forget(&told);
    }
}

static void what_was_never_answered_is_so_in_both(void **state)
{
    (void)state;
    struct told told =
        tell(&(struct fixture_options){.requests = 4000, .rate = 20000, .odd = true}, 0);
    assert_true(json_is_null(json_object_get(json_object_get(told.json, "latency_us"), "max")));
    expect_percentiles(&told);
    forget(&told);
}

static void no_verdict_has_one_reason(void **state)
{
    (void)state;
    struct told told =
        tell(&(struct fixture_options){.requests = 4000, .rate = 20000, .no_verdict = true}, 0);
    expect(&told, "N/A: %s\n", json_string_value(json_object_get(told.json, "reason")));
    expect(&told, "explained -;");
    assert_true(json_is_null(json_object_get(told.json, "coverage_total")));
    forget(&told);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_of_an_interval_are_one),
        cmocka_unit_test(an_excerpt_is_said_in_both),
        cmocka_unit_test(no_line_is_wider_than_the_page),
        cmocka_unit_test(what_too_few_requests_reach_is_kept_back_in_both),
        cmocka_unit_test(what_was_never_answered_is_so_in_both),
        cmocka_unit_test(no_verdict_has_one_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
