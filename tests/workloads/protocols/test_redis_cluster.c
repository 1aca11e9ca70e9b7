// SPDX-License-Identifier: MIT
//
// Redis Cluster's slots, by known answers, and what nodes say of where a key is, right and wrong.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "workloads/protocols/protocols.h"
#include "workloads/protocols/redis.h"
#include "workloads/protocols/redis_cluster.h"

static unsigned slot(const char *key)
{
    return cluster_slot(key, strlen(key));
}

// "123456789" is the check value of CRC-16/XMODEM, 0x31c3; the others are what redis-server 7.0
// answers to CLUSTER KEYSLOT.
static void slots_are_redis_own(void **state)
{
    (void)state;
    assert_int_equal(slot("123456789"), 0x31c3);
    assert_int_equal(slot(""), 0);
    assert_int_equal(slot("foo"), 12182);
    assert_int_equal(slot("bar"), 5061);
    assert_int_equal(slot("somekey"), 11058);
    assert_int_equal(slot("hash:000017"), 11635);
    assert_int_equal(cluster_slot("a\0b", 3), 8383);
}

static void a_hash_tag_stands_for_its_key(void **state)
{
    (void)state;
    assert_int_equal(slot("{user1000}.following"), slot("user1000"));
    assert_int_equal(slot("foo{hash_tag}"), slot("hash_tag"));
    assert_int_equal(slot("foo{}{bar}"), 8363); // the first braces hold nothing: the whole key
    assert_int_equal(slot("foo{{bar}}zap"), slot("{bar"));
    assert_int_equal(slot("foo{bar}{zap}"), slot("bar"));
    assert_int_equal(slot("}foo{bar}"), slot("bar"));
    assert_int_not_equal(slot("foo{bar"), slot("bar"));
}

static unsigned slot_of(const struct protocol *protocol, unsigned operation, const char *key)
{
    return protocol->slot(
        &(struct request){.operation = operation, .key = key, .key_bytes = strlen(key)});
}

static void an_operation_has_the_slot_of_its_whole_key(void **state)
{
    (void)state;
    assert_int_equal(slot_of(&redis_protocol, REDIS_GET, "000017"), slot("000017"));
    assert_int_equal(slot_of(&redis_protocol, REDIS_INCR, "000017"), slot("counter:000017"));
    assert_int_equal(slot_of(&redis_resp3_protocol, REDIS_HGET, "000017"), slot("hash:000017"));
    char longest[WORKLOAD_KEY_BYTES_MAX + 1] = {0};
    memset(longest, '7', WORKLOAD_KEY_BYTES_MAX);
    assert_true(slot_of(&redis_protocol, REDIS_INCR, longest) < CLUSTER_SLOTS);
    assert_null(memcached_text_protocol.slot);
}

static void check_target(const char *said, enum redirection_kind kind, unsigned slot_number,
                         const char *host, unsigned port)
{
    struct redirection found = redirection_parse(said);
    assert_int_equal(found.kind, kind);
    assert_int_equal(found.slot, slot_number);
    assert_string_equal(found.host, host);
    assert_int_equal(found.port, port);
}

static void redirections_name_a_node(void **state)
{
    (void)state;
    check_target("-MOVED 3999 127.0.0.1:6381", REDIRECTION_MOVED, 3999, "127.0.0.1", 6381);
    check_target("MOVED 0 a.example:1", REDIRECTION_MOVED, 0, "a.example", 1); // RESP3's "!"
    check_target("-ASK 16383 ::1:65535", REDIRECTION_ASK, 16383, "::1", 65535);
    check_target("-MOVED 5 :6381", REDIRECTION_MOVED, 5, "", 6381);
}

static void others_are_to_be_tried_later(void **state)
{
    (void)state;
    static const char *const words[] = {
        "-TRYAGAIN Multiple keys request during rehashing of slot",
        "-CLUSTERDOWN The cluster is down", "-LOADING Redis is loading the dataset in memory",
        "-READONLY You can't write against a read only replica.",
        "-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        assert_int_equal(redirection_parse(words[i]).kind, REDIRECTION_LATER);
}

static void nonsense_is_an_error_like_any_other(void **state)
{
    (void)state;
    static const char *const words[] = {"",
                                        "-",
                                        "-ERR no",
                                        "-MOVED",
                                        "-MOVED ",
                                        "-MOVEDX 1 a:1",
                                        "-MOVED 16384 a:1",
                                        "-MOVED -1 a:1",
                                        "-MOVED 99999999999999999999 a:1",
                                        "-MOVED x a:1",
                                        "-MOVED 1",
                                        "-MOVED 1 ",
                                        "-MOVED 1 a",
                                        "-MOVED 1 a:",
                                        "-MOVED 1 a:0",
                                        "-MOVED 1 a:65536",
                                        "-MOVED 1 a:1x",
                                        "-MOVED 1 a:-1",
                                        "-MOVED 1 a b:1",
                                        "-ASK 1 a:99999999999999999999",
                                        "-ASKING",
                                        "--MOVED 1 a:1",
                                        "-moved 1 a:1"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (redirection_parse(words[i]).kind != REDIRECTION_NONE)
            fail_msg("\"%s\" is taken for a redirection", words[i]);
}

// Of a host's name that is so long that it was cut off nobody knows the end.
static void a_name_that_was_cut_off_is_not_guessed(void **state)
{
    (void)state;
    char said[REPLY_SAID_BYTES];
    int used = snprintf(said, sizeof said, "-MOVED 77 ");
    memset(said + used, 'a', sizeof said - 1 - (size_t)used);
    said[sizeof said - 1] = '\0';
    check_target(said, REDIRECTION_MOVED, 77, "", 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slots_are_redis_own),
        cmocka_unit_test(a_hash_tag_stands_for_its_key),
        cmocka_unit_test(an_operation_has_the_slot_of_its_whole_key),
        cmocka_unit_test(redirections_name_a_node),
        cmocka_unit_test(others_are_to_be_tried_later),
        cmocka_unit_test(nonsense_is_an_error_like_any_other),
        cmocka_unit_test(a_name_that_was_cut_off_is_not_guessed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
