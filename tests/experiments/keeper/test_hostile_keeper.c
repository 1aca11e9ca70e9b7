// SPDX-License-Identifier: MIT
//
// A keeper behind ssh that is not ours: what it answers is refused in words where it cannot be, and
// nobody reads past it. The link is a `cat` of what it is to say. With SAN=address,undefined this
// sees every byte that is read too far.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/process.h"
#include "experiments/keeper/keeper.h"
#include "experiments/keeper/keeper_request.h"

enum { TIMEOUT_MS = 20000, ANSWERS = 20 };

struct speech {
    char path[64];
    struct keeper_answer answers[ANSWERS];
};

static void say(struct speech *speech, struct keeper *keeper, int expected, struct error *err)
{
    const char *const argv[] = {"sh", "-c",         "cat \"$1\"; exec cat >/dev/null",
                                "sh", speech->path, NULL};
    const struct process_place place = {.pipe_input = true, .pipe_output = true};
    struct process link;
    snprintf(speech->path, sizeof speech->path, "/tmp/hostile-keeper-%d", (int)getpid());
    FILE *file = fopen(speech->path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(speech->answers, sizeof speech->answers, 1, file), 1);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(process_start(&link, argv, &place, err), 0);
    assert_int_equal(keeper_start_far(keeper, link, "/dev/null", "host far", TIMEOUT_MS, err),
                     expected);
}

static void stop(struct speech *speech, struct keeper *keeper)
{
    struct error ignored;
    keeper_end(keeper, &ignored);
    unlink(speech->path);
    free(speech);
}

// One that says these answers: the first is to VERB_READY.
static struct speech *speech_of(const char *text, size_t bytes)
{
    struct speech *speech = calloc(1, sizeof *speech);
    assert_non_null(speech);
    for (size_t i = 1; i < ANSWERS; i++)
        memcpy(speech->answers[i].text, text, bytes);
    return speech;
}

static void an_endless_text_is_refused_at_once(void **state)
{
    struct speech *speech = speech_of("", 1);
    struct keeper keeper;
    struct error err = {0};
    (void)state;
    speech->answers[0].number = 13;
    memset(speech->answers[0].text, 'A', KEEPER_TEXT_BYTES);
    say(speech, &keeper, -ERROR_INPUT, &err);
    assert_non_null(strstr(err.text, "host far answers cannot be"));
    assert_null(strstr(err.text, "AAA"));
    stop(speech, &keeper);
}

static void an_endless_text_is_refused_later(void **state)
{
    char text[KEEPER_TEXT_BYTES], out[KEEPER_TEXT_BYTES];
    int number;
    (void)state;
    memset(text, '7', sizeof text);
    for (int ask = 0; ask < 4; ask++) {
        struct speech *speech = speech_of(text, sizeof text);
        struct keeper keeper;
        struct error err = {0};
        int64_t offset_ns;
        uint64_t bound_ns;
        say(speech, &keeper, 0, &err);
        int result = ask == 0   ? keeper_facts(&keeper, "", out, &err)
                     : ask == 1 ? keeper_clock_offset(&keeper, &offset_ns, &bound_ns, &err)
                     : ask == 2 ? keeper_find(&keeper, "/sys/*", 0, out, &err)
                                : keeper_tune(&keeper, KEEPER_FILE, "/x", "1", out, &number, &err);
        assert_int_equal(result, -ERROR_INPUT);
        assert_non_null(strstr(err.text, "host far answers cannot be"));
        stop(speech, &keeper);
    }
}

static void a_clock_that_cannot_be_is_refused(void **state)
{
    static const char *const texts[] = {"",
                                        "x",
                                        "12x",
                                        "-1",
                                        "99999999999999999999999",
                                        "-9223372036854775808",
                                        "9223372036854775807"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct speech *speech = speech_of(texts[i], strlen(texts[i]) + 1);
        struct keeper keeper;
        struct error err = {0};
        int64_t offset_ns;
        uint64_t bound_ns;
        say(speech, &keeper, 0, &err);
        assert_int_equal(keeper_clock_offset(&keeper, &offset_ns, &bound_ns, &err), -ERROR_INPUT);
        assert_non_null(strstr(err.text, "what host far says of its clock cannot be"));
        stop(speech, &keeper);
    }
}

static void a_number_that_cannot_be_is_refused(void **state)
{
    static const int numbers[] = {-1, 4096, INT32_MIN, INT32_MAX};
    (void)state;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct speech *speech = speech_of("", 1);
        struct keeper keeper;
        struct error err = {0};
        speech->answers[0].number = numbers[i];
        say(speech, &keeper, -ERROR_INPUT, &err);
        assert_non_null(strstr(err.text, "host far answers cannot be"));
        stop(speech, &keeper);
    }
}

// A path without a slash, or of somewhere else, is no answer to a pattern.
static void what_was_not_asked_for_is_not_found(void **state)
{
    static const char *const texts[] = {"", "x", "/etc/passwd", "/sys/class/net/e/../../x"};
    char path[KEEPER_TEXT_BYTES];
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct speech *speech = speech_of(texts[i], strlen(texts[i]) + 1);
        struct keeper keeper;
        struct error err = {0};
        say(speech, &keeper, 0, &err);
        assert_int_equal(keeper_find(&keeper, "/sys/class/net/*", 0, path, &err), -ERROR_INPUT);
        assert_non_null(strstr(err.text, "host far"));
        stop(speech, &keeper);
    }
    struct speech *speech = speech_of("/sys/class/net/e", 17);
    struct keeper keeper;
    struct error err = {0};
    say(speech, &keeper, 0, &err);
    assert_int_equal(keeper_find(&keeper, "/sys/class/net/*", 0, path, &err), 1);
    assert_string_equal(path, "/sys/class/net/e");
    stop(speech, &keeper);
}

static void half_an_answer_is_none(void **state)
{
    static const char *const bytes[] = {"0", "1", "4", "515"};
    (void)state;
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++) {
        const char *const argv[] = {"head", "-c", bytes[i], "/dev/zero", NULL};
        const struct process_place place = {.pipe_input = true, .pipe_output = true};
        struct keeper keeper;
        struct process link;
        struct error err = {0};
        assert_int_equal(process_start(&link, argv, &place, &err), 0);
        assert_int_equal(keeper_start_far(&keeper, link, "/dev/null", "host far", TIMEOUT_MS, &err),
                         -ERROR_INPUT);
        assert_non_null(strstr(err.text, "the keeper of host far ended before"));
    }
}

// What it says commands no terminal.
static void control_characters_are_shown(void **state)
{
    char facts[KEEPER_TEXT_BYTES];
    struct speech *speech = speech_of("\033]0;owned\a\r\n\x9b", 14);
    struct keeper keeper;
    struct error err = {0};
    (void)state;
    say(speech, &keeper, 0, &err);
    assert_int_equal(keeper_facts(&keeper, "", facts, &err), 0);
    for (const char *at = facts; *at; at++)
        assert_true((unsigned char)*at >= ' ');
    stop(speech, &keeper);
}

// An error may be made of its own text.
static void an_error_is_made_of_itself(void **state)
{
    struct error err = {0};
    (void)state;
    error_set(&err, ERROR_FAILED, "the machine says: no");
    error_set(&err, ERROR_FAILED, "host x: %s", err.text);
    assert_string_equal(err.text, "host x: the machine says: no");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_endless_text_is_refused_at_once),
        cmocka_unit_test(an_endless_text_is_refused_later),
        cmocka_unit_test(a_clock_that_cannot_be_is_refused),
        cmocka_unit_test(a_number_that_cannot_be_is_refused),
        cmocka_unit_test(what_was_not_asked_for_is_not_found),
        cmocka_unit_test(half_an_answer_is_none),
        cmocka_unit_test(control_characters_are_shown),
        cmocka_unit_test(an_error_is_made_of_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
