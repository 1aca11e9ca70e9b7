// SPDX-License-Identifier: MIT
//
// With which command a request begins, as each protocol writes it, and that nothing else is taken
// for one.
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/command_words.h"

// The word that is found in a text, "" for none.
static const char *found(const char *bytes, size_t length)
{
    char exact[64]; // so that a sanitizer sees what is read beyond
    const char *name;
    assert_true(length <= sizeof exact);
    memcpy(exact + sizeof exact - length, bytes, length);
    name = command_word_name(command_word_of(exact + sizeof exact - length, length));
    return name ? name : "";
}
#define FOUND(text) found(text, sizeof text - 1)

static void rows_are_ordered_and_numbered_once(void **state)
{
    (void)state;
    bool taken[256] = {true}; // 0 is none
    for (size_t i = 0; i < COMMAND_WORDS; i++) {
        assert_true(i == 0 || strcmp(command_words[i - 1].word, command_words[i].word) < 0);
        assert_int_equal(command_words[i].word[COMMAND_WORD_BYTES - 1], 0);
        assert_false(taken[command_words[i].number]);
        taken[command_words[i].number] = true;
        char line[64];
        int length = snprintf(line, sizeof line, "%s \r\n", command_words[i].word);
        assert_int_equal(command_word_of(line, (size_t)length), command_words[i].number);
    }
}

static void each_protocol_has_its_own_begin(void **state)
{
    (void)state;
    assert_string_equal(FOUND("*4\r\n$6\r\nLRANGE\r\n$1\r\na\r\n$1\r\n0\r\n$2\r\n-1\r\n"),
                        "lrange");
    assert_string_equal(FOUND("*2\r\n$3\r\ndel\r\n$4\r\nhuge\r\n"), "del");
    assert_string_equal(FOUND("EVAL \"return 1\" 0\r\n"), "eval");
    assert_string_equal(FOUND("lru_crawler metadump all\r\n"), "lru_crawler");
    assert_string_equal(FOUND("version\r\n"), "version");
    assert_string_equal(FOUND("GET /secret HTTP/1.1\r\n"), "get");
    assert_string_equal(FOUND("Q\0\0\0\x0eselect 1;\0"), "select");
    assert_string_equal(FOUND("P\0\0\0\x15name\0UPDATE t SET\0"), "update");
    assert_string_equal(FOUND("Q\0\0\0\x0b"
                              "commit\0"),
                        "commit");
}

static void what_is_no_command_has_no_name(void **state)
{
    (void)state;
    assert_string_equal(found("", 0), "");
    assert_string_equal(FOUND("get"), ""); // the line goes on
    assert_string_equal(FOUND("getting on\r\n"), "");
    assert_string_equal(FOUND("hunter2 is my password\r\n"), "");
    assert_string_equal(FOUND("password\r\n"), "");
    assert_string_equal(FOUND("a_word_that_is_longer_than_any \r\n"), "");
    assert_string_equal(FOUND(" get a\r\n"), "");
    assert_string_equal(FOUND("*"), "");
    assert_string_equal(FOUND("*1"), "");
    assert_string_equal(FOUND("*1\r"), "");
    assert_string_equal(FOUND("*1\r\n"), "");
    assert_string_equal(FOUND("*1\r\n$"), "");
    assert_string_equal(FOUND("*1\r\n$3\r\n"), "");
    assert_string_equal(FOUND("*1\r\n$3\r\nGET"), "");
    assert_string_equal(FOUND("*1\r\n:3\r\nGET\r\n"), "");
    assert_string_equal(FOUND("*x\r\n$3\r\nGET\r\n"), "");
    assert_string_equal(FOUND("P\0\0\0\x15name"), "");
    assert_string_equal(FOUND("Q\0\0\0\x04"), "");
    assert_string_equal(FOUND("\x80\0\0\x04"), "");
    assert_null(command_word_name(0));
    assert_null(command_word_name(255));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_ordered_and_numbered_once),
        cmocka_unit_test(each_protocol_has_its_own_begin),
        cmocka_unit_test(what_is_no_command_has_no_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
