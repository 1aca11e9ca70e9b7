// SPDX-License-Identifier: MIT
//
// What fuzzers have been given once, they are given again: fuzz_*.corpus beside a fuzzer holds its
// inputs, a line of base64 each. The first were made of the fuzzers' words, of examples and of
// random bytes; `make corpora` puts in their place what reaches the most of the code with the
// fewest bytes, of what `make fuzz` has found. What once broke something is added by hand. The
// fuzzers abort where they find fault, and this test with them; the line is named before. Runs
// beside others: it only computes.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// FUZZER(name, path) of each, written by the Makefile. Their entry points bear their names here.
#define FUZZER(name, path) int name(const uint8_t *data, size_t size);
#include "tests/fuzzers.inc"
#undef FUZZER

static const struct {
    int (*run)(const uint8_t *data, size_t size);
    const char *path;
} fuzzers[] = {
#define FUZZER(name, path) {name, path},
#include "tests/fuzzers.inc"
#undef FUZZER
};
enum { FUZZERS = sizeof fuzzers / sizeof *fuzzers };

static int base64_digit(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

// Decodes a line; returns how many bytes, or -1.
static long base64_read(const char *line, uint8_t *out)
{
    long count = 0;
    uint32_t bits = 0;
    int held = 0;
    for (; *line && *line != '\n' && *line != '='; line++) {
        int digit = base64_digit(*line);
        if (digit < 0)
            return -1;
        bits = bits << 6 | (uint32_t)digit;
        held += 6;
        if (held >= 8) {
            held -= 8;
            out[count++] = (uint8_t)(bits >> held);
        }
    }
    return count;
}

static void every_input_is_survived(void **state)
{
    size_t inputs = 0, room = 0;
    char *line = NULL;
    (void)state;
    for (int i = 0; i < FUZZERS; i++) {
        char path[256];
        snprintf(path, sizeof path, "%s.corpus", fuzzers[i].path);
        FILE *file = fopen(path, "re");
        if (!file)
            fail_msg("%s: %s; every fuzzer has one", path, strerror(errno));
        for (unsigned number = 1; getline(&line, &room, file) > 0; number++) {
            uint8_t *bytes = malloc(strlen(line));
            assert_non_null(bytes);
            long count = base64_read(line, bytes);
            if (count < 0)
                fail_msg("%s:%u: no base64", path, number);
            fprintf(stderr, "%s:%u\n", path, number);
            uint8_t *exact = malloc((size_t)count + 1); // so that sanitizers see what lies beyond
            memcpy(exact, bytes, (size_t)count);
            free(bytes);
            fuzzers[i].run(exact, (size_t)count);
            free(exact);
            inputs++;
        }
        fclose(file);
    }
    free(line);
    printf("%d fuzzers, %zu inputs\n", FUZZERS, inputs);
    assert_true(inputs >= (size_t)FUZZERS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_input_is_survived)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
