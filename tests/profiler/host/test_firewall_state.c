// SPDX-License-Identifier: MIT
//
// Rules are counted in the kernel's answer as it comes, in parts, and packets without a connection
// over all cores.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/host/firewall_state.h"
#include "tests/skip.h"

enum { NEW_RULE = NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWRULE };

static size_t append(char *answer, size_t at, uint16_t type, uint32_t bytes)
{
    struct nlmsghdr header = {.nlmsg_len = NLMSG_HDRLEN + bytes, .nlmsg_type = type};
    memcpy(answer + at, &header, sizeof header);
    return at + NLMSG_ALIGN(header.nlmsg_len);
}

static void rules_come_in_parts(void **state)
{
    (void)state;
    _Alignas(struct nlmsghdr) char answer[1024] = {0};
    struct firewall_state found = {0};
    size_t bytes = append(answer, 0, NEW_RULE, 101);
    bytes = append(answer, bytes, NEW_RULE, 40);
    assert_false(firewall_rules_in(answer, bytes, &found));
    assert_int_equal(found.rules, 2);
    assert_false(found.known);
    bytes = append(answer, 0, NEW_RULE, 12);
    bytes = append(answer, bytes, NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWTABLE, 12);
    bytes = append(answer, bytes, NLMSG_DONE, 4);
    assert_true(firewall_rules_in(answer, bytes, &found));
    assert_int_equal(found.rules, 3);
    assert_true(found.known);
}

static void an_error_is_no_answer(void **state)
{
    (void)state;
    _Alignas(struct nlmsghdr) char answer[256] = {0};
    struct firewall_state found = {0};
    assert_true(firewall_rules_in(answer, append(answer, 0, NLMSG_ERROR, 20), &found));
    assert_false(found.known);
    // A message that is cut off counts for nothing.
    (void)append(answer, 0, NEW_RULE, 200);
    assert_false(firewall_rules_in(answer, 100, &found));
    assert_int_equal(found.rules, 0);
}

static void a_column_is_summed_over_cores(void **state)
{
    (void)state;
    static const char text[] =
        "entries  clashres found insert_failed drop early_drop icmp_error  expect_new\n"
        "0000000b  00000000 00000000 00000002 00000010 00000000 00000000  00000000\n"
        "0000000b  00000000 00000000 00000000 0000000a 00000007 00000000  00000000\n";
    assert_int_equal(firewall_column_sum(text, "drop"), 26);
    assert_int_equal(firewall_column_sum(text, "early_drop"), 7);
    assert_int_equal(firewall_column_sum(text, "entries"), 22);
    assert_int_equal(firewall_column_sum(text, "early"), 0);
    assert_int_equal(firewall_column_sum("", "drop"), 0);
}

// With rules of its own, where that is allowed.
static void the_kernels_rules_are_counted(void **state)
{
    (void)state;
    struct firewall_state before, after;
    if (unshare(CLONE_NEWNET) < 0 || system("PATH=$PATH:/usr/sbin; command -v nft >/dev/null") != 0)
        skip_case("there is no nft, or no network namespace of its own");
    firewall_state_read(&before);
    assert_true(before.known);
    assert_int_equal(before.rules, 0);
    if (system(
            "PATH=$PATH:/usr/sbin; { echo add table ip a; echo add chain ip a b; "
            "for i in $(seq 700); do echo add rule ip a b tcp dport $i drop; done; } | nft -f -"))
        skip_case("nft makes no rules here");
    firewall_state_read(&after);
    assert_int_equal(after.rules, 700);
    json_t *moved = firewall_state_moved(&before);
    assert_int_equal(json_integer_value(json_object_get(moved, "rules")), 700);
    json_decref(moved);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_come_in_parts),
        cmocka_unit_test(an_error_is_no_answer),
        cmocka_unit_test(a_column_is_summed_over_cores),
        cmocka_unit_test(the_kernels_rules_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
