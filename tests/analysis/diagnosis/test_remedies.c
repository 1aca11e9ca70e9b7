// SPDX-License-Identifier: MIT
//
// Every category that the program can give a cause has a row in remedies.tbl.h, and the rows can be
// put into words: nothing in braces but what stands for something, no jargon.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "analysis/decomposition/categories.h"
#include "analysis/diagnosis/remedies.h"

static const struct remedy rows[] = {
#define REMEDY(category, expected, happened, helps) {category, expected, happened, helps},
#include "analysis/diagnosis/remedies.tbl.h"
};
enum { ROWS = sizeof rows / sizeof *rows };

static void needs(const char *category, const char *whose)
{
    if (!remedy_of(category))
        fail_msg("%s: category `%s` has no row in remedies.tbl.h", whose, category);
}

static void every_category_has_a_remedy(void **state)
{
    (void)state;
    static const char *const of_components[] = {
#define COMPONENT(NAME, name, ROLE, CLASS, explains, functions, category, means) category,
#include "analysis/decomposition/causes.tbl.h"
    };
    // Which the code gives by itself: components.c, attribution.c.
    static const char *const of_code[] = {
        "another host or server", "queueing discipline",   "kernel",
        "kernel locks",           "application",           "other",
        "client's cores",         "the server's own work", "forked child",
        "connections to servers", "connection pool"};
    struct categories own;
    struct error err = {0};
    assert_int_equal(categories_init(&own, &err), 0);
    for (size_t i = 0; i < sizeof of_components / sizeof *of_components; i++)
        needs(of_components[i], "causes.tbl.h");
    for (size_t i = 0; i < sizeof of_code / sizeof *of_code; i++)
        needs(of_code[i], "the code");
    for (size_t i = 0; i < own.rules.count; i++)
        needs(own.rules.items[i].category, own.rules.items[i].pattern);
    categories_free(&own);
    assert_null(remedy_of("somebody's own"));
}

// Only what run_cause_words() fills in stands in braces.
static void braces_stand_for_something(void **state)
{
    (void)state;
    static const char *const known[] = {"{server}", "{core}",    "{cause}",
                                        "{group}",  "{refusal}", "{rules}"};
    for (size_t i = 0; i < ROWS; i++)
        for (const char *at = rows[i].happened; (at = strchr(at, '{')) != NULL; at++) {
            bool is_known = false;
            for (size_t k = 0; k < sizeof known / sizeof *known; k++)
                is_known |= strncmp(at, known[k], strlen(known[k])) == 0;
            if (!is_known)
                fail_msg("%s: what is \"%s\"?", rows[i].category, at);
        }
}

static void rows_are_clauses_of_their_own(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS; i++) {
        const char *happened = rows[i].happened, *helps = rows[i].helps;
        assert_string_equal(remedy_of(rows[i].category)->happened, happened); // no second one
        if (happened[strlen(happened) - 1] == '.' || helps[strlen(helps) - 1] == '.')
            fail_msg("%s: the sentence goes on, or ends elsewhere", rows[i].category);
        if (strstr(happened, "M(") || strstr(happened, "core A") || strstr(happened, "core R"))
            fail_msg("%s: jargon", rows[i].category);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_category_has_a_remedy),
        cmocka_unit_test(braces_stand_for_something),
        cmocka_unit_test(rows_are_clauses_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
