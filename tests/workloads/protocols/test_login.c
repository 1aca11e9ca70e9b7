// SPDX-License-Identifier: MIT
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/workloads/protocols/codec_test.h"
#include "workloads/protocols/login.h"
#include "workloads/protocols/protocols.h"

#define WORDS(protocol, user, password, database, text, answers)                                   \
    check_words(&protocol##_protocol, &(struct login){user, password, database}, text,             \
                sizeof text - 1, answers)

static void check_words(const struct protocol *protocol, const struct login *login,
                        const char *text, size_t bytes, unsigned answers)
{
    struct login_words words;
    struct error err = {0};
    if (login_make_words(login, protocol, &words, &err) < 0)
        fail_msg("%s: %s", protocol->name, err.text);
    assert_int_equal(words.count, bytes);
    assert_memory_equal(words.bytes, text, bytes);
    assert_int_equal(words.answers, answers);
}

static void each_protocol_has_its_words(void **state)
{
    (void)state;
    WORDS(redis, "", "", 0, "", 0);
    WORDS(redis, "", "p w", 0, "*2\r\n$4\r\nAUTH\r\n$3\r\np w\r\n", 1);
    WORDS(redis_resp3, "me", "secret", 12,
          "*3\r\n$4\r\nAUTH\r\n$2\r\nme\r\n$6\r\nsecret\r\n*2\r\n$6\r\nSELECT\r\n$2\r\n12\r\n", 2);
    WORDS(redis, "open", "", 0, "*3\r\n$4\r\nAUTH\r\n$4\r\nopen\r\n$0\r\n\r\n", 1);
    WORDS(redis, "", "", 3, "*2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n", 1);
    WORDS(memcached_text, "me", "secret", 0, "set login 0 0 9\r\nme secret\r\n", 1);
    WORDS(memcached_meta, "me", "secret", 0, "set login 0 0 9\r\nme secret\r\n", 1);
    WORDS(memcached_binary, "me", "s t", 0,
          "\x80\x21\0\5\0\0\0\0\0\0\0\x0c\0\0\0\0\0\0\0\0\0\0\0\0PLAIN\0me\0s t", 1);
}

static void what_cannot_be_said_is_refused(void **state)
{
    (void)state;
    static const struct {
        const struct protocol *protocol;
        struct login login;
        const char *said;
    } bad[] = {
        {&http_protocol, {.user = "me"}, "http knows no login"},
        {&lab_protocol, {.password = "x"}, "lab knows no login"},
        {&memcached_text_protocol, {.user = "me"}, "both a user and a password"},
        {&memcached_meta_protocol, {.password = "x"}, "both a user and a password"},
        {&memcached_binary_protocol, {.user = "me"}, "both a user and a password"},
        {&memcached_text_protocol, {"me", "a b", 0}, "a blank in it"},
        {&memcached_text_protocol, {"m\te", "b", 0}, "a blank in it"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct login_words words;
        struct error err = {0};
        assert_int_equal(login_make_words(&bad[i].login, bad[i].protocol, &words, &err),
                         -ERROR_INPUT);
        if (!strstr(err.text, bad[i].said))
            fail_msg("%s: said %s", bad[i].protocol->name, err.text);
    }
}

// The longest of both fit, whatever the protocol.
static void the_longest_fit(void **state)
{
    (void)state;
    struct login login = {.database = UINT32_MAX};
    memset(login.user, 'u', sizeof login.user - 1);
    memset(login.password, 'p', sizeof login.password - 1);
    for (size_t i = 0; i < PROTOCOLS; i++) {
        struct login_words words;
        struct error err;
        if (protocols[i]->log_in)
            assert_int_equal(login_make_words(&login, protocols[i], &words, &err), 0);
        if (protocols[i]->log_in)
            assert_true(words.count > 1000 && words.count <= sizeof words.bytes);
    }
}

static enum reply_kind answer(const struct protocol *protocol, bool login, const char *bytes,
                              size_t count)
{
    struct reply_parser parser = {.login = login};
    struct reply reply = {.kind = REPLY_KINDS};
    size_t found = 0;
    for (size_t used = 0; used < count && !found;)
        used += reply_parse(protocol, &parser, bytes + used, 1, &reply, 1, &found);
    return found ? reply.kind : REPLY_KINDS;
}
#define ANSWER(protocol, login, text) answer(&protocol##_protocol, login, text, sizeof text - 1)

// What a login is answered, and what that answer would be to a request.
static void answers_are_told_from_replies(void **state)
{
    (void)state;
    static const char sasl[] =
        "\x81\x21\0\0\0\0\0\0\0\0\0\x0d\0\0\0\0\0\0\0\0\0\0\0\0Authenticated";
    static const char sasl_refused[] =
        "\x81\x21\0\0\0\0\0\x20\0\0\0\x0d\0\0\0\0\0\0\0\0\0\0\0\0Auth failure.";
    assert_int_equal(ANSWER(memcached_binary, true, sasl), REPLY_STORED);
    assert_int_equal(ANSWER(memcached_binary, false, sasl), REPLY_MALFORMED);
    assert_int_equal(ANSWER(memcached_binary, true, sasl_refused), REPLY_CLIENT_ERROR);
    assert_int_equal(ANSWER(memcached_meta, true, "STORED\r\n"), REPLY_STORED);
    assert_int_equal(ANSWER(memcached_meta, false, "STORED\r\n"), REPLY_MALFORMED);
    assert_int_equal(ANSWER(memcached_text, true, "CLIENT_ERROR authentication failure\r\n"),
                     REPLY_CLIENT_ERROR);
    assert_int_equal(ANSWER(redis_resp3, true, "+OK\r\n"), REPLY_STORED); // no greeting's
    assert_int_equal(ANSWER(redis_resp3, false, "+OK\r\n"), REPLY_KINDS);
}

static int take(const char *text, size_t bytes, struct login *login, struct error *err)
{
    char path[] = "/tmp/test-login-XXXXXX";
    int fd = mkstemp(path);
    assert_int_equal(write(fd, text, bytes), bytes);
    close(fd);
    int status = login_take_password(login, path, err);
    unlink(path);
    return status;
}

static void the_password_is_the_first_line(void **state)
{
    (void)state;
    struct login login = {.user = ""};
    struct error err = {0};
    char longest[LOGIN_PASSWORD_BYTES + 1];
    memset(longest, 'x', sizeof longest);
    setenv(LOGIN_PASSWORD_VARIABLE, "of the environment", 1);
    assert_int_equal(take("p w\r\nnot this\n", 13, &login, &err), 0);
    assert_string_equal(login.password, "p w");
    assert_int_equal(take("p", 1, &login, &err), 0);
    assert_string_equal(login.password, "p");
    assert_int_equal(take(longest, sizeof longest - 2, &login, &err), 0);
    assert_int_equal(take(longest, sizeof longest, &login, &err), -ERROR_INPUT);
    assert_int_equal(take("\nlate\n", 6, &login, &err), -ERROR_INPUT);
    assert_int_equal(take("", 0, &login, &err), -ERROR_INPUT);
    assert_int_equal(login_take_password(&login, "/nowhere/at/all", &err), -ERROR_INPUT);
    assert_int_equal(login_take_password(&login, "/tmp", &err), -ERROR_INPUT);
    assert_int_equal(login_take_password(&login, NULL, &err), 0);
    assert_string_equal(login.password, "of the environment");
    setenv(LOGIN_PASSWORD_VARIABLE, "", 1);
    assert_int_equal(login_take_password(&login, NULL, &err), -ERROR_INPUT);
    unsetenv(LOGIN_PASSWORD_VARIABLE);
    login = (struct login){.user = ""};
    assert_int_equal(login_take_password(&login, NULL, &err), 0);
    assert_string_equal(login.password, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_protocol_has_its_words),
        cmocka_unit_test(what_cannot_be_said_is_refused),
        cmocka_unit_test(the_longest_fit),
        cmocka_unit_test(answers_are_told_from_replies),
        cmocka_unit_test(the_password_is_the_first_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
