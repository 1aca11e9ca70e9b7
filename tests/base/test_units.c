// SPDX-License-Identifier: MIT
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/units.h"

static void numbers_with_suffixes(void **state)
{
    (void)state;
    double value;
    uint64_t count;
    assert_int_equal(units_parse_number("20k", &value, NULL), 0);
    assert_true(value == 20000);
    assert_int_equal(units_parse_number("1.5M", &value, NULL), 0);
    assert_true(value == 1500000);
    assert_int_equal(units_parse_count("100k", &count, NULL), 0);
    assert_int_equal(count, 100000);
    assert_int_equal(units_parse_count("1e6", &count, NULL), 0);
    assert_int_equal(count, 1000000);
    assert_int_equal(units_parse_share("5%", &value, NULL), 0);
    assert_true(value > 0.0499999 && value < 0.0500001);
    assert_int_equal(units_parse_share("0.25", &value, NULL), 0);
    assert_true(value == 0.25);
    assert_int_equal(units_parse_share("5 %", &value, NULL), -ERROR_INPUT);
}

static void what_is_no_number_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"",    "k",  "-1",    "+1",   "1 k", "1kk", "0x10", "inf",
                                      "nan", "1e", "1e999", "12,5", " 1",  "1 ",  "1K",   "."};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct error err = {0};
        double value;
        if (units_parse_number(bad[i], &value, &err) != -ERROR_INPUT)
            fail_msg("\"%s\" was taken as %g", bad[i], value);
        assert_non_null(strstr(err.text, bad[i][0] == '-' ? "is negative" : "not a number"));
    }
    uint64_t count;
    assert_int_equal(units_parse_count("1.5", &count, NULL), -ERROR_INPUT);
    assert_int_equal(units_parse_count("1e17", &count, NULL), -ERROR_INPUT);
}

static void durations_need_a_unit(void **state)
{
    (void)state;
    uint64_t ns;
    assert_int_equal(units_parse_duration_ns("10us", &ns, NULL), 0);
    assert_int_equal(ns, 10000);
    assert_int_equal(units_parse_duration_ns("1.5s", &ns, NULL), 0);
    assert_int_equal(ns, 1500000000);
    assert_int_equal(units_parse_duration_ns("2min", &ns, NULL), 0);
    assert_int_equal(ns, 120000000000);
    assert_int_equal(units_parse_duration_ns("0", &ns, NULL), 0);
    assert_int_equal(ns, 0);
    struct error err = {0};
    assert_int_equal(units_parse_duration_ns("10", &ns, &err), -ERROR_INPUT);
    assert_non_null(strstr(err.text, "10us, 250ms or 10s"));
    assert_int_equal(units_parse_duration_ns("1e12h", &ns, &err), -ERROR_INPUT);
}

static void sizes_in_bytes(void **state)
{
    (void)state;
    uint64_t bytes;
    assert_int_equal(units_parse_bytes("256MiB", &bytes, NULL), 0);
    assert_int_equal(bytes, 256u << 20);
    assert_int_equal(units_parse_bytes("200", &bytes, NULL), 0);
    assert_int_equal(bytes, 200);
    assert_int_equal(units_parse_bytes("1kB", &bytes, NULL), 0);
    assert_int_equal(bytes, 1000);
    assert_int_equal(units_parse_bytes("1.3B", &bytes, NULL), -ERROR_INPUT);
    assert_int_equal(units_parse_bytes("1Mib", &bytes, NULL), -ERROR_INPUT);
}

static void core_lists_go_both_ways(void **state)
{
    (void)state;
    cpu_set_t cores;
    char text[100];
    assert_int_equal(units_parse_cores("0-2,5", &cores, NULL), 0);
    assert_int_equal(CPU_COUNT(&cores), 4);
    assert_true(CPU_ISSET(5, &cores) && !CPU_ISSET(3, &cores));
    assert_string_equal(units_format_cores(&cores, text, sizeof text), "0-2,5");
    assert_int_equal(units_parse_cores("7", &cores, NULL), 0);
    assert_string_equal(units_format_cores(&cores, text, sizeof text), "7");
    static const char *const bad[] = {"", "a", "1-", "-1", "3-1", "1,", "1,,2", "99999", "1 2"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (units_parse_cores(bad[i], &cores, NULL) != -ERROR_INPUT)
            fail_msg("\"%s\" was taken as cores", bad[i]);
}

static void durations_for_people(void **state)
{
    (void)state;
    static const struct {
        double ns;
        const char *text;
    } cases[] = {{0, "0 ns"},        {999, "999 ns"},     {1234, "1.23 us"}, {56789, "56.8 us"},
                 {312000, "312 us"}, {4.56e6, "4.56 ms"}, {2.5e9, "2.50 s"}, {-1234, "-1.23 us"}};
    char text[30];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(units_format_ns(cases[i].ns, text, sizeof text), cases[i].text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_with_suffixes),   cmocka_unit_test(what_is_no_number_is_refused),
        cmocka_unit_test(durations_need_a_unit),   cmocka_unit_test(sizes_in_bytes),
        cmocka_unit_test(core_lists_go_both_ways), cmocka_unit_test(durations_for_people),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
