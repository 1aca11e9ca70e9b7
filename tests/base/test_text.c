// SPDX-License-Identifier: MIT
//
// Sentences in lines: as wide as allowed, broken at spaces, never between a number and its unit.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/text.h"

static void wraps_to(const char *text, int indent, int width, const char *wanted)
{
    char *lines = NULL;
    size_t bytes;
    FILE *memory = open_memstream(&lines, &bytes);
    assert_non_null(memory);
    text_wrap(memory, text, indent, width);
    fclose(memory);
    assert_string_equal(lines, wanted);
    free(lines);
}

static void lines_end_at_spaces(void **state)
{
    (void)state;
    wraps_to("", 0, 10, "\n");
    wraps_to("one two three", 0, 80, "one two three\n");
    wraps_to("one two three", 0, 8, "one two\nthree\n");
    wraps_to("one two three", 2, 8, "one\n  two\n  three\n");
    wraps_to("one  longer-than-a-line two", 0, 8, "one\nlonger-than-a-line\ntwo\n");
    wraps_to("µµµ µµµ", 0, 7, "µµµ µµµ\n"); // columns, not bytes
}

static void units_stay_with_their_numbers(void **state)
{
    (void)state;
    wraps_to("another 15 % of it", 0, 10, "another\n15 % of it\n");
    wraps_to("another 1.05 ms, then", 0, 12, "another\n1.05 ms,\nthen\n");
    wraps_to("another (3.89 us) then", 0, 14, "another\n(3.89 us) then\n");
    wraps_to("in all 1,234 s", 0, 13, "in all\n1,234 s\n");
    wraps_to("for 3 seconds", 0, 6, "for 3\nseconds\n");  // no unit
    wraps_to("the p s of it", 0, 6, "the p\ns of\nit\n"); // no number
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_end_at_spaces),
        cmocka_unit_test(units_stay_with_their_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
