// SPDX-License-Identifier: MIT
//
// Which word is near enough to be what was meant.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/suggestion.h"

static const char *const words[] = {"connections", "rate", "depth", "duration", "to"};

static const char *nearest(const char *written)
{
    const char *found = suggestion_nearest(written, words, 5);
    return found ? found : "(none)";
}

static void near_words_are_found(void **state)
{
    (void)state;
    assert_string_equal(nearest("conections"), "connections"); // a letter left out
    assert_string_equal(nearest("raet"), "rate");              // two swapped
    assert_string_equal(nearest("dpeth"), "depth");
    assert_string_equal(nearest("durations"), "duration"); // one too many
    assert_string_equal(nearest("rete"), "rate");          // one wrong
    assert_string_equal(nearest("rate"), "rate");
}

static void beginnings_are_found(void **state)
{
    (void)state;
    assert_string_equal(nearest("dur"), "duration");
    assert_string_equal(nearest("co"), "connections");
    assert_string_equal(nearest("d"), "(none)"); // depth, too
    assert_string_equal(nearest("c"), "(none)"); // says too little
    const char *const alike[] = {"core", "cores", "count"};
    assert_null(suggestion_nearest("co", alike, 3));
}

static void far_words_are_not(void **state)
{
    (void)state;
    assert_string_equal(nearest("speed"), "(none)");
    assert_string_equal(nearest(""), "(none)");
    assert_string_equal(nearest("x"), "(none)");
    char longest[200];
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    assert_string_equal(nearest(longest), "(none)");
    assert_null(suggestion_nearest("rate", words, 0));
}

static void hints_are_sentences(void **state)
{
    (void)state;
    char out[100], small[12];
    assert_string_equal(suggestion_write("rat", words, 5, out, sizeof out),
                        "; did you mean `rate`?");
    assert_string_equal(suggestion_write("zzz", words, 2, out, sizeof out),
                        "; it may be: connections, rate");
    assert_string_equal(suggestion_write("zzz", words, 0, out, sizeof out), "");
    suggestion_write("zzz", words, 5, small, sizeof small);
    assert_true(strlen(small) < sizeof small);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(near_words_are_found),
        cmocka_unit_test(beginnings_are_found),
        cmocka_unit_test(far_words_are_not),
        cmocka_unit_test(hints_are_sentences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
