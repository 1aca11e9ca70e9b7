// SPDX-License-Identifier: MIT
//
// Trailers as the hops write them: found to be theirs, and nothing else is; and transparent to the
// checksums of TCP and UDP.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "profiler/bpf/capsule_trailer.h"

enum { KEY = 12345, RUN = 777, FLOW = 99 };

struct whole {
    struct capsule_trailer head;
    uint64_t stamps[TRAILER_STAMPS_MAX];
};

static struct whole carried(unsigned stamps, uint64_t seed)
{
    struct whole out;
    memset(&out, 0, sizeof out);
    for (unsigned i = 0; i < stamps; i++) {
        out.stamps[i] = trailer_stamp(hash64(seed + i) >> 8, i % 16);
        if (i == 0)
            out.head = trailer_begin(KEY, RUN, 0x7fff, TRAILER_STAMPS_MAX, FLOW, out.stamps[0]);
        else
            trailer_append(&out.head, out.stamps[i]);
    }
    return out;
}

// The checksum of RFC 1071 over bytes that may end in the middle of a word.
static uint16_t checksum(const uint8_t *bytes, size_t count)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += i % 2 ? bytes[i] : (uint32_t)bytes[i] << 8;
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)~sum;
}

static void checksums_stay_what_they_are(void **state)
{
    (void)state;
    uint8_t packet[600];
    for (size_t payload = 1; payload < 200; payload++)
        for (unsigned stamps = 1; stamps <= TRAILER_STAMPS_MAX; stamps++) {
            struct whole trailer = carried(stamps, payload * 100 + stamps);
            for (size_t i = 0; i < payload; i++)
                packet[i] = (uint8_t)hash64(payload * 1000 + i);
            memcpy(packet + payload, &trailer, sizeof trailer);
            assert_int_equal(checksum(packet, payload), checksum(packet, payload + sizeof trailer));
        }
}

static void stamps_come_back(void **state)
{
    (void)state;
    struct whole trailer = carried(TRAILER_STAMPS_MAX, 5);
    assert_int_equal(trailer_count(&trailer.head), TRAILER_STAMPS_MAX);
    assert_int_equal(trailer_room(&trailer.head), TRAILER_STAMPS_MAX);
    uint64_t chain = trailer_chain(KEY, RUN, 0x7fff, FLOW);
    for (unsigned i = 0; i < TRAILER_STAMPS_MAX; i++) {
        assert_int_equal(trailer_stamp_hop(trailer.stamps[i]), i);
        assert_int_equal(trailer_stamp_time(trailer.stamps[i]),
                         (hash64(5 + i) >> 8) & UINT64_MAX >> 4);
        chain = trailer_link(chain, trailer.stamps[i]);
    }
    assert_int_equal(chain, trailer.head.chain);
}

// Each bit of a trailer of three stamps changed: seen at the head, or by the chain.
static void no_bit_can_be_changed(void **state)
{
    (void)state;
    enum {
        STAMPS = 3,
        BYTES = sizeof(struct whole),
        USED = sizeof(struct capsule_trailer) + 8 * STAMPS
    };
    for (unsigned bit = 0; bit < 8 * USED; bit++) {
        struct whole trailer = carried(STAMPS, 8);
        ((uint8_t *)&trailer)[bit / 8] ^= (uint8_t)(1u << bit % 8);
        bool is_balance = bit / 16 == offsetof(struct capsule_trailer, balance) / 2;
        bool is_room = bit / 4 == offsetof(struct capsule_trailer, counts) * 2 + 1;
        if (is_balance || is_room || !trailer_is_ours(&trailer.head, RUN, BYTES))
            continue; // neither the balance nor the room is part of the chain
        uint64_t chain = trailer_chain(KEY, RUN, trailer.head.asked, FLOW);
        for (unsigned i = 0; i < trailer_count(&trailer.head); i++)
            chain = trailer_link(chain, trailer.stamps[i]);
        if (chain == trailer.head.chain)
            fail_msg("bit %u is not missed", bit);
    }
}

static void what_others_wrote_is_not_ours(void **state)
{
    (void)state;
    struct whole trailer = carried(2, 8);
    uint32_t bytes = sizeof trailer;
    assert_true(trailer_is_ours(&trailer.head, RUN, bytes));
    assert_true(trailer_is_ours(&trailer.head, RUN, bytes + 30)); // a frame that was filled up
    assert_false(trailer_is_ours(&trailer.head, RUN, bytes - 1));
    assert_false(trailer_is_ours(&trailer.head, RUN + 1, bytes));
    trailer.head.counts = TRAILER_STAMPS_MAX << 4;
    assert_false(trailer_is_ours(&trailer.head, RUN, bytes));
    trailer.head.counts = (TRAILER_STAMPS_MAX + 1) << 4 | 1;
    assert_false(trailer_is_ours(&trailer.head, RUN, 65535));
    trailer.head.counts = 2 << 4 | 3;
    assert_false(trailer_is_ours(&trailer.head, RUN, 65535));
    // The same trailer behind a packet of another flow, and of another run's key.
    assert_int_not_equal(trailer_chain(KEY, RUN, 3, FLOW), trailer_chain(KEY, RUN, 3, FLOW + 1));
    assert_int_not_equal(trailer_chain(KEY, RUN, 3, FLOW), trailer_chain(KEY + 1, RUN, 3, FLOW));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checksums_stay_what_they_are),
        cmocka_unit_test(stamps_come_back),
        cmocka_unit_test(no_bit_can_be_changed),
        cmocka_unit_test(what_others_wrote_is_not_ours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
