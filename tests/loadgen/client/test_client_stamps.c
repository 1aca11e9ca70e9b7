// SPDX-License-Identifier: MIT
//
// Stamps from made-up control messages, as the kernel lays them out, and their matching by offset.
#include <errno.h>
#include <time.h> // linux/errqueue.h needs it and does not say so
#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "loadgen/client/client_stamps.h"

struct made_message {
    struct msghdr header;
    char control[STAMP_CONTROL_BYTES] __attribute__((aligned(16)));
};

static void make(struct made_message *message)
{
    memset(message, 0, sizeof *message);
    message->header.msg_control = message->control;
}

static void add(struct made_message *message, int level, int type, const void *data, size_t bytes)
{
    size_t at = message->header.msg_controllen;
    struct cmsghdr *header = (void *)(message->control + at);
    assert_true(at + CMSG_SPACE(bytes) <= sizeof message->control);
    header->cmsg_level = level;
    header->cmsg_type = type;
    header->cmsg_len = CMSG_LEN(bytes);
    memcpy(CMSG_DATA(header), data, bytes);
    message->header.msg_controllen = at + CMSG_SPACE(bytes);
}

static void add_stamp(struct made_message *message, int64_t seconds, int64_t ns)
{
    const struct scm_timestamping64 stamps = {{{seconds, ns}, {0, 0}, {0, 0}}};
    add(message, SOL_SOCKET, SO_TIMESTAMPING_NEW, &stamps, sizeof stamps);
}

static void add_error(struct made_message *message, int level, int type, uint32_t origin,
                      uint32_t info, uint32_t data)
{
    const struct sock_extended_err what = {
        .ee_errno = ENOMSG, .ee_origin = (uint8_t)origin, .ee_info = info, .ee_data = data};
    add(message, level, type, &what, sizeof what);
}

static void receive_stamps_are_read(void **state)
{
    (void)state;
    struct made_message message;
    make(&message);
    assert_int_equal(client_stamps_receive(&message.header).ns, 0);
    add(&message, SOL_IP, IP_TTL, &(int){64}, sizeof(int));
    add_stamp(&message, 1700000000, 123456789);
    assert_true(client_stamps_receive(&message.header).ns == 1700000000123456789u);
    make(&message); // cut short
    add(&message, SOL_SOCKET, SO_TIMESTAMPING_NEW, &(int){1}, sizeof(int));
    assert_int_equal(client_stamps_receive(&message.header).ns, 0);
}

static void send_stamps_are_read(void **state)
{
    (void)state;
    struct made_message message;
    struct tx_stamp stamp;
    for (int six = 0; six < 2; six++) {
        make(&message);
        add_stamp(&message, 5, 7);
        add_error(&message, six ? SOL_IPV6 : SOL_IP, six ? IPV6_RECVERR : IP_RECVERR,
                  SO_EE_ORIGIN_TIMESTAMPING, SCM_TSTAMP_SND, 4711);
        assert_true(client_stamps_parse_error(&message.header, &stamp));
        assert_int_equal(stamp.last_byte, 4711);
        assert_true(stamp.at.ns == 5000000007u);
    }
    make(&message); // a stamp of the acknowledgement
    add_stamp(&message, 5, 7);
    add_error(&message, SOL_IP, IP_RECVERR, SO_EE_ORIGIN_TIMESTAMPING, SCM_TSTAMP_ACK, 1);
    assert_false(client_stamps_parse_error(&message.header, &stamp));
    make(&message); // an ICMP error
    add_error(&message, SOL_IP, IP_RECVERR, SO_EE_ORIGIN_ICMP, 0, 1);
    assert_false(client_stamps_parse_error(&message.header, &stamp));
    make(&message); // the name without the time
    add_error(&message, SOL_IP, IP_RECVERR, SO_EE_ORIGIN_TIMESTAMPING, SCM_TSTAMP_SND, 1);
    assert_false(client_stamps_parse_error(&message.header, &stamp));
    make(&message); // the time without the name
    add_stamp(&message, 5, 7);
    assert_false(client_stamps_parse_error(&message.header, &stamp));
    make(&message);
    assert_false(client_stamps_parse_error(&message.header, &stamp));
}

static void stamps_find_their_send(void **state)
{
    (void)state;
    struct stamp_waits waits = {0};
    for (uint64_t i = 0; i < 10; i++)
        stamp_waits_push(&waits, 100 * i + 99, i, 1, i);
    assert_int_equal(stamp_waits_count(&waits), 10);
    // The third and the first come before the second; the fourth never comes.
    static const unsigned order[] = {2, 0, 1, 4, 5, 6, 7, 8, 9};
    for (size_t i = 0; i < 9; i++) {
        const struct stamp_wait *wait = stamp_waits_match(&waits, order[i] * 100 + 99, true);
        assert_non_null(wait);
        assert_int_equal(wait->first_slot, order[i]);
    }
    assert_null(stamp_waits_match(&waits, 99, true)); // again: a retransmission
    assert_int_equal(stamp_waits_fate(&waits, 99, true), STAMP_DOUBLE);
    assert_null(stamp_waits_match(&waits, 98, true)); // not the last byte of any send
    assert_int_equal(stamp_waits_fate(&waits, 98, true), STAMP_UNKNOWN);
    assert_int_equal(stamp_waits_count(&waits), 7); // from the fourth on
    stamp_waits_forget_before(&waits, 4);
    assert_int_equal(stamp_waits_count(&waits), 6);    // those behind it were stamped, and go next
    assert_null(stamp_waits_match(&waits, 399, true)); // it was given up
    assert_int_equal(stamp_waits_fate(&waits, 399, true), STAMP_LATE);
    assert_int_equal(stamp_waits_fate(&waits, 499, true), STAMP_DOUBLE);
    assert_int_equal(stamp_waits_count(&waits), 0);
}

static void offsets_beyond_32_bits_match(void **state)
{
    (void)state;
    struct stamp_waits waits = {0};
    stamp_waits_push(&waits, 0xfffffff0u, 0, 1, 0);
    stamp_waits_push(&waits, 0x100000010u, 1, 2, 0);
    assert_int_equal(stamp_waits_match(&waits, 0x10, true)->first_slot, 1);
    assert_int_equal(stamp_waits_match(&waits, 0xfffffff0u, true)->first_slot, 0);
}

static void overflow_gives_up_the_oldest(void **state)
{
    (void)state;
    struct stamp_waits waits = {0};
    for (uint64_t i = 0; i < STAMP_WAITS + 5; i++)
        stamp_waits_push(&waits, i, i, 1, 0);
    assert_int_equal(stamp_waits_count(&waits), STAMP_WAITS);
    assert_null(stamp_waits_match(&waits, 4, true));
    assert_int_equal(stamp_waits_fate(&waits, 4, true), STAMP_UNKNOWN); // too long ago
    assert_non_null(stamp_waits_match(&waits, 5, true));
    stamp_waits_forget_before(&waits, UINT64_MAX);
    assert_int_equal(stamp_waits_count(&waits), 0);
}

static void the_nics_stamp_follows_the_kernels(void **state)
{
    (void)state;
    struct stamp_waits waits = {0};
    stamp_waits_push(&waits, 9, 0, 1, 0);
    stamp_waits_push(&waits, 19, 1, 1, 0);
    assert_int_equal(stamp_waits_match(&waits, 9, false)->first_slot, 0);
    assert_int_equal(stamp_waits_count(&waits), 2);   // the NIC's is to come
    assert_null(stamp_waits_match(&waits, 9, false)); // the kernel's again: a retransmission
    assert_int_equal(stamp_waits_fate(&waits, 9, false), STAMP_DOUBLE);
    assert_int_equal(stamp_waits_match(&waits, 9, true)->first_slot, 0);
    assert_int_equal(stamp_waits_count(&waits), 1);
    assert_int_equal(stamp_waits_match(&waits, 19, true)->first_slot,
                     1); // and without the kernel's
    assert_int_equal(stamp_waits_count(&waits), 0);
    stamp_waits_push(&waits, 29, 2, 1, 0);
    assert_non_null(stamp_waits_match(&waits, 29, false));
    stamp_waits_forget_before(&waits, 3);
    assert_int_equal(stamp_waits_fate(&waits, 29, true), STAMP_LATE); // the NIC's, after all
}

// What lies on the error queue counts, not what waits for it: calls with many requests use the
// slots up, and their waits are forgotten, long before many calls were made.
static void stamps_are_urgent_before_they_do_harm(void **state)
{
    (void)state;
    enum { SLOTS = 512, REQUESTS = 16 };
    struct stamp_waits waits = {0};
    uint64_t put = 0;
    unsigned calls = 0;
    assert_false(stamp_waits_urgent(&waits, 0, SLOTS));
    for (; !stamp_waits_urgent(&waits, put, SLOTS); calls++, put += REQUESTS)
        stamp_waits_push(&waits, put, put, REQUESTS, 0);
    assert_int_equal(calls, SLOTS / 2 / REQUESTS);
    stamp_waits_forget_before(&waits, put);
    assert_true(stamp_waits_urgent(&waits, put, SLOTS));
    stamp_waits_note_empty(&waits, put);
    for (calls = 0; !stamp_waits_urgent(&waits, put, SLOTS); calls++, put++)
        stamp_waits_push(&waits, put, put, 1, 0); // and none ever comes
    assert_int_equal(calls, 64);
    stamp_waits_note_empty(&waits, put);
    assert_false(stamp_waits_urgent(&waits, put, SLOTS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(receive_stamps_are_read),
        cmocka_unit_test(send_stamps_are_read),
        cmocka_unit_test(stamps_find_their_send),
        cmocka_unit_test(offsets_beyond_32_bits_match),
        cmocka_unit_test(overflow_gives_up_the_oldest),
        cmocka_unit_test(the_nics_stamp_follows_the_kernels),
        cmocka_unit_test(stamps_are_urgent_before_they_do_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
