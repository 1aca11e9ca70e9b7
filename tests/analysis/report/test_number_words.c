// SPDX-License-Identifier: MIT
//
// Numbers are put into words by the same rules everywhere: here are those of the terminal, each
// with what it must say, or of many values what it says, which test_report_page.sh shows to the
// page's.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "analysis/report/terminal/summary_pieces.h"
#include "base/text.h"
#include "base/units.h"

static void shares_are_never_rounded_to_all_or_nothing(void **state)
{
    (void)state;
    static const struct {
        double part, whole;
        int whole_percent;
        const char *percent;
    } cases[] = {
        {0, 7, 0, "0 %"},          {7, 7, 100, "100 %"},
        {1, 1e6, 1, "< 0.01 %"},   {4, 1000, 1, "0.40 %"},
        {5, 200, 3, "2.50 %"},     {999.4, 1000, 99, "99.94 %"},
        {995, 1000, 99, "99.5 %"}, {999999, 1000000, 100, "> 99.99 %"},
        {1, 3, 33, "33.3 %"},
    };
    char text[32];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(text_whole_percent(cases[i].part, cases[i].whole), cases[i].whole_percent);
        assert_string_equal(text_share(cases[i].part, cases[i].whole, text), cases[i].percent);
    }
    assert_int_equal(text_whole_percent(0, 0), 0);
    assert_string_equal(text_share(1, 0, text), "-");
}

static void changes_have_a_decimal_below_ten(void **state)
{
    (void)state;
    char text[TEXT_NUMBER_BYTES];
    assert_string_equal(text_percent(1.538, text), "+154");
    assert_string_equal(text_percent(-0.0125, text), "-1.3");
    assert_string_equal(text_percent(0.09949, text), "+9.9");
    assert_string_equal(text_percent(0.0996, text), "+10");
    assert_string_equal(text_percent(-0.125, text), "-13");
    assert_string_equal(text_percent(0, text), "+0.0");
    assert_string_equal(text_percent(12345.678, text), "+1234568");
}

static void halves_go_away_from_zero(void **state)
{
    (void)state;
    char text[32];
    assert_string_equal(units_format_ns(400500, text, sizeof text), "401 us");
    assert_string_equal(units_format_ns(-400500, text, sizeof text), "-401 us");
    assert_string_equal(units_format_ns(12250, text, sizeof text), "12.3 us");
    assert_string_equal(units_format_ns(1125, text, sizeof text), "1.13 us");
    assert_string_equal(units_format_ns(2.5, text, sizeof text), "3 ns");
}

static void what_rounds_to_a_thousand_is_one_of_the_next_unit(void **state)
{
    (void)state;
    static const struct {
        double ns;
        const char *text;
    } cases[] = {
        {999.4, "999 ns"},    {999.9, "1.00 us"},    {999.4e3, "999 us"},
        {999.9e3, "1.00 ms"}, {999.9e6, "1.00 s"},   {9.996e3, "10.0 us"},
        {99.96e3, "100 us"},  {4087.5e3, "4.09 ms"}, {-999.9e6, "-1.00 s"},
        {0, "0 ns"},          {3.6e12, "3600 s"},    {INFINITY, "never"},
        {NAN, "-"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(TEXT_NS(cases[i].ns), cases[i].text);
    assert_string_equal(TEXT_US(4087.5), "4.09 ms");
}

static void instants_are_exact_to_the_millisecond(void **state)
{
    (void)state;
    assert_string_equal(TEXT_INSTANT(0), "0 s");
    assert_string_equal(TEXT_INSTANT(3e9), "3 s");
    assert_string_equal(TEXT_INSTANT(2.9999996e9), "3 s");
    assert_string_equal(TEXT_INSTANT(12.3454e9), "12.345 s");
}

// Lines of JavaScript: [function, arguments, what the terminal says].
static void write_cases(void)
{
    // Ties, neighbours of borders, and what lies between, over ten decades.
    static const double steps[] = {1,     1.005, 1.115, 1.25,   1.995, 2.5,    3.375,   4.445,
                                   5.005, 6.25,  9.985, 9.9949, 9.995, 9.9951, 9.99949, 9.9996};
    char text[TEXT_NUMBER_BYTES];
    for (double decade = 1; decade < 1e11; decade *= 10)
        for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
            const double value = decade * steps[i], of = 1e11;
            printf("['duration', [%.17g], '%s'],\n", value,
                   units_format_ns(value, text, sizeof text));
            printf("['duration', [%.17g], '%s'],\n", -value,
                   units_format_ns(-value, text, sizeof text));
            printf("['seconds', [%.17g], '%s'],\n", value, TEXT_INSTANT(value));
            printf("['count', [%.17g], '%s'],\n", value,
                   text_count((uint64_t)llround(value), text));
            printf("['percent', [%.17g, %.17g], '%s'],\n", value, of, text_share(value, of, text));
            printf("['percent', [%.17g, %.17g], '%s'],\n", of - value, of,
                   text_share(of - value, of, text));
            printf("['signedPercent', [%.17g], '%s %%'],\n", value / 1e3,
                   text_percent(value / 1e3, text));
            printf("['signedPercent', [%.17g], '%s %%'],\n", -value / 1e3,
                   text_percent(-value / 1e3, text));
            printf("['wholePercent', [%.17g, %.17g], '%d'],\n", value, of,
                   text_whole_percent(value, of));
            printf("['wholePercent', [%.17g, %.17g], '%d'],\n", of - value, of,
                   text_whole_percent(of - value, of));
        }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_are_never_rounded_to_all_or_nothing),
        cmocka_unit_test(changes_have_a_decimal_below_ten),
        cmocka_unit_test(halves_go_away_from_zero),
        cmocka_unit_test(what_rounds_to_a_thousand_is_one_of_the_next_unit),
        cmocka_unit_test(instants_are_exact_to_the_millisecond),
    };
    if (argc == 2 && strcmp(argv[1], "--write") == 0) {
        write_cases();
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
