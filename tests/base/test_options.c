// SPDX-License-Identifier: MIT
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/options.h"

struct values {
    const char *server;
    uint64_t connections;
    uint64_t duration_ns;
    double rate;
    bool json;
    struct option_list pages;
};

static const struct option_spec options[] = {
    OPTION_STRING("server", 's', "HOST:PORT", struct values, server, "whom to load"),
    OPTION_COUNT("connections", 'c', "N", struct values, connections, "how many"),
    OPTION_DURATION("duration", 0, "TIME", struct values, duration_ns, "how long"),
    OPTION_PERIOD("every", 0, "TIME", struct values, duration_ns, "how often"),
    OPTION_NUMBER("rate", 0, "R", struct values, rate, "how fast"),
    OPTION_LIST("page", 0, "FILE", struct values, pages, "which pages"),
    OPTION_FLAG("json", 0, struct values, json, "for scripts"),
    OPTION_END,
};
static const struct option_elsewhere elsewhere[] = {{" --clients -n ", "--connections N"},
                                                    {NULL, NULL}};
static const struct command_usage usage = {"load", "[options]", "Loads.", NULL, options, elsewhere};

static int parse(struct values *values, int argc, char **argv, int *positional, struct error *err)
{
    bool help;
    memset(values, 0, sizeof *values);
    return options_parse(&usage, argc, argv, values, positional, &help, err);
}

#define ARGUMENTS(...)                                                                             \
    char *argv[] = {(char *)"load", __VA_ARGS__, NULL};                                            \
    int argc = (int)(sizeof argv / sizeof *argv) - 1

static void every_form_of_an_option_is_taken(void **state)
{
    (void)state;
    ARGUMENTS("first", "--server=a:1", "-c", "16", "--duration", "10s", "--json", "second", "--",
              "--third");
    struct values values;
    struct error err = {0};
    int positional;
    assert_int_equal(parse(&values, argc, argv, &positional, &err), 0);
    assert_string_equal(values.server, "a:1");
    assert_int_equal(values.connections, 16);
    assert_int_equal(values.duration_ns, 10000000000);
    assert_true(values.json);
    assert_int_equal(positional, 3);
    assert_string_equal(argv[1], "first");
    assert_string_equal(argv[2], "second");
    assert_string_equal(argv[3], "--third");
}

static void a_list_takes_every_value_in_order(void **state)
{
    (void)state;
    ARGUMENTS("--page", "a", "--json", "--page=b", "x", "--page", "c");
    struct values values;
    struct error err = {0};
    int positional;
    assert_int_equal(parse(&values, argc, argv, &positional, &err), 0);
    assert_int_equal(values.pages.count, 3);
    assert_string_equal(values.pages.items[0], "a");
    assert_string_equal(values.pages.items[1], "b");
    assert_string_equal(values.pages.items[2], "c");
    assert_int_equal(positional, 1);
    array_free(&values.pages);
}

static void a_bare_duration_is_seconds(void **state)
{
    (void)state;
    ARGUMENTS("--duration", "2.5");
    struct values values;
    struct error err = {0};
    int positional;
    assert_int_equal(parse(&values, argc, argv, &positional, &err), 0);
    assert_int_equal(values.duration_ns, 2500000000);
}

static void both_forms_ask_for_help(void **state)
{
    (void)state;
    static const char *const forms[] = {"-h", "--help"};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        ARGUMENTS((char *)(uintptr_t)forms[i]);
        struct values values = {0};
        struct error err = {0};
        int positional;
        bool help;
        assert_int_equal(options_parse(&usage, argc, argv, &values, &positional, &help, &err), 0);
        assert_true(help);
    }
}

static void expect_refusal(const char *word, const char *value, const char *reason)
{
    ARGUMENTS((char *)(uintptr_t)word, (char *)(uintptr_t)value);
    argc -= value == NULL;
    struct values values;
    struct error err = {0};
    int positional;
    assert_int_equal(parse(&values, argc, argv, &positional, &err), -ERROR_INPUT);
    if (!strstr(err.text, reason))
        fail_msg("%s %s: \"%s\" does not say \"%s\"", word, value ? value : "", err.text, reason);
}

static void bad_options_are_named(void **state)
{
    (void)state;
    expect_refusal("--sever", "x", "--sever: unknown option; did you mean `--server`?");
    expect_refusal("--every", "0s", "--every: must be more than 0");
    expect_refusal("--sever=x", NULL, "--sever=x: unknown option; did you mean `--server`?");
    expect_refusal("--quite-another", NULL, "--quite-another: unknown option; see taillight load");
    expect_refusal("--clients", "50",
                   "--clients: unknown option; what others call so is "
                   "--connections N");
    expect_refusal("--clients=50", NULL, "what others call so is --connections N");
    expect_refusal("-n", "1000", "-n: unknown option; what others call so is --connections N");
    expect_refusal("--client", NULL, "--client: unknown option; see taillight load");
    expect_refusal("-x", NULL, "-x: unknown option");
    expect_refusal("--s", NULL, "unknown option");
    expect_refusal("--server", NULL, "--server needs a value: HOST:PORT");
    expect_refusal("--duration", "10x", "--duration: \"10x\" is not a duration");
    expect_refusal("--duration", "1.2.3", "--duration: \"1.2.3s\" is not a duration");
    expect_refusal("--connections=1.5", NULL, "--connections: \"1.5\" is not a whole number");
    expect_refusal("--json=yes", NULL, "--json takes no value");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form_of_an_option_is_taken),
        cmocka_unit_test(a_list_takes_every_value_in_order),
        cmocka_unit_test(a_bare_duration_is_seconds),
        cmocka_unit_test(both_forms_ask_for_help),
        cmocka_unit_test(bad_options_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
