// SPDX-License-Identifier: MIT
//
// Records of packets whose ways and times are known, in any order, joined.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/array.h"
#include "base/hash.h"
#include "profiler/capsule/packet_join.h"

enum { HOPS = 5, SECOND = 1000000000, UDP = 17, TCP = 6 };

struct records ARRAY_OF(struct hop_record);

struct joined {
    struct records records;
    struct packet_join join;
};

static void datagram(struct joined *j, uint64_t flow, uint64_t number, unsigned hop, uint64_t time)
{
    struct hop_record record = {
        .time = time, .flow = flow, .datagram = number, .hop = (uint8_t)hop, .protocol = UDP};
    assert_int_equal(array_push(&j->records, record), 0);
}

static void segment(struct joined *j, uint32_t first, uint32_t end, unsigned hop, uint64_t time)
{
    struct hop_record record = {
        .time = time, .flow = 1, .first = first, .end = end, .hop = (uint8_t)hop, .protocol = TCP};
    assert_int_equal(array_push(&j->records, record), 0);
}

// Joins what entered within the first hour, in an order in which no ring would have it.
static void join(struct joined *j)
{
    struct hop_record *items = j->records.items;
    for (size_t i = j->records.count; i > 1; i--) {
        size_t other = hash64(i) % i;
        struct hop_record swapped = items[i - 1];
        items[i - 1] = items[other];
        items[other] = swapped;
    }
    assert_int_equal(
        packet_join_records(items, j->records.count, 1, 3600 * (uint64_t)SECOND, &j->join, NULL),
        0);
}

static void done(struct joined *j)
{
    packet_join_free(&j->join);
    array_free(&j->records);
}

static double sum(const struct delay_array *delays)
{
    double all = 0;
    for (size_t i = 0; i < delays->count; i++)
        all += delays->items[i];
    return all;
}

static void requests_and_replies_are_two_routes(void **state)
{
    (void)state;
    struct joined j = {.records.count = 0};
    for (uint64_t n = 0; n < 1000; n++)
        for (unsigned hop = 0; hop < HOPS; hop++) {
            datagram(&j, 1, n, hop, 1000 + n * 10000 + hop * (100 + n));
            if (n < 900)
                datagram(&j, 2, n, HOPS - 1 - hop, 6000 + n * 10000 + hop * 50);
        }
    join(&j);
    assert_int_equal(j.join.route_count, 2);
    assert_int_equal(j.join.packets, 1900);
    struct packet_route *there = &j.join.routes[0], *back = &j.join.routes[1];
    assert_int_equal(there->complete, 1000);
    assert_int_equal(there->packets, 1000);
    assert_int_equal(back->complete, 900);
    for (unsigned hop = 0; hop < HOPS; hop++) {
        assert_int_equal(there->hops[hop], hop);
        assert_int_equal(back->hops[hop], HOPS - 1 - hop);
    }
    for (unsigned hop = 1; hop < HOPS; hop++) {
        assert_int_equal(there->delays[hop].count, 1000);
        assert_true(sum(&there->delays[hop]) == 100 * 1000 + 999 * 1000 / 2);
        assert_true(sum(&back->delays[hop]) == 50 * 900);
    }
    for (size_t i = 0; i < 1000; i++) {
        double hops = 0;
        for (unsigned hop = 1; hop < HOPS; hop++)
            hops += there->delays[hop].items[i];
        assert_true(hops == there->delays[0].items[i]);
    }
    assert_int_equal(j.join.rare + j.join.outside + j.join.pieces + j.join.repeated, 0);
    done(&j);
}

// A queue is a part of the time to the next hop, of packets that were seen to leave it; those that
// were not are no gaps. A packet that travels on in another was in the queue as long as that.
static void times_in_queues_are_those_of_the_records(void **state)
{
    (void)state;
    enum { PACKETS = 100, QUEUE = 1 };
    struct joined j = {.records.count = 0};
    for (uint32_t n = 0; n < PACKETS; n++)
        for (unsigned hop = 0; hop < 3; hop++) {
            datagram(&j, 2, n, hop, 1000 + n * 10000 + hop * 5000);
            struct hop_record *record = &j.records.items[j.records.count - 1];
            if (hop == QUEUE && n % 4)
                record->queued_ns = 3000 + n;
            if (hop >= QUEUE) // nobody has seen one behind the last hop
                record->flags |= n % 8 ? HOP_FOLLOWED : HOP_FOLLOWED | HOP_DIVISIBLE;
        }
    join(&j);
    const struct packet_route *route = &j.join.routes[0];
    assert_int_equal(route->complete, PACKETS);
    assert_int_equal(route->gaps, 0);
    assert_int_equal(route->queued[0].count + route->queued[2].count, 0);
    assert_int_equal(route->queued[QUEUE].count, PACKETS * 3 / 4);
    assert_int_equal(route->divided[QUEUE], 13);
    assert_int_equal(route->unwatched[QUEUE], 12);
    assert_int_equal(route->divided[2] + route->unwatched[2], 0);
    assert_true(sum(&route->queued[QUEUE]) == 75 * 3000 + 99 * 100 / 2 - 4 * (24 * 25 / 2));
    done(&j);
    segment(&j, 0, 100, 0, 10);
    segment(&j, 100, 200, 0, 20);
    segment(&j, 0, 200, QUEUE, 30);
    j.records.items[j.records.count - 1].queued_ns = 7;
    segment(&j, 0, 200, 2, 40);
    join(&j);
    assert_int_equal(j.join.routes[0].merged, 1);
    assert_true(sum(&j.join.routes[0].queued[QUEUE]) == 14);
    done(&j);
}

// The truth is drawn: each packet is lost after a hop, misses a record, or comes through.
static void losses_and_delays_are_where_they_were(void **state)
{
    (void)state;
    enum { PACKETS = 20000 };
    struct joined j = {.records.count = 0};
    uint64_t lost[HOPS] = {0}, gaps = 0, complete = 0;
    double slow[HOPS] = {0};
    for (uint64_t n = 0; n < PACKETS; n++) {
        uint64_t time = 1000 + n * 500, draw = hash_pair(n, 1) % 1000;
        unsigned last = draw < 40 ? (unsigned)(hash_pair(n, 2) % (HOPS - 1)) : HOPS - 1;
        unsigned missing = draw >= 40 && draw < 60 ? 1 + (unsigned)(hash_pair(n, 3) % 3) : HOPS;
        unsigned delayed = 1 + (unsigned)(hash_pair(n, 4) % (HOPS - 1));
        for (unsigned hop = 0; hop <= last; hop++) {
            time += hop == delayed ? 1000200 : 200;
            if (hop != missing)
                datagram(&j, 9, n, hop, time);
        }
        if (last < HOPS - 1)
            lost[last]++;
        else if (missing < HOPS)
            gaps++;
        else {
            complete++;
            slow[delayed]++;
        }
    }
    join(&j);
    assert_int_equal(j.join.route_count, 1);
    struct packet_route *route = &j.join.routes[0];
    assert_int_equal(route->packets, PACKETS);
    assert_int_equal(route->complete, complete);
    assert_int_equal(route->gaps, gaps);
    for (unsigned hop = 0; hop < HOPS; hop++)
        assert_int_equal(route->lost_after[hop], hop < HOPS - 1 ? lost[hop] : 0);
    for (unsigned hop = 1; hop < HOPS; hop++) {
        double seen = 0;
        for (size_t i = 0; i < route->delays[hop].count; i++)
            seen += route->delays[hop].items[i] > 500000;
        assert_true(seen == slow[hop]);
    }
    done(&j);
}

static void a_packet_counts_where_it_entered(void **state)
{
    (void)state;
    struct joined j = {.records.count = 0};
    uint64_t last = 3600 * (uint64_t)SECOND - 1; // of the window, which begins at 1
    for (unsigned hop = 0; hop < 3; hop++) {
        datagram(&j, 1, 1, hop, hop); // entered before it, passed the others in it
        datagram(&j, 1, 2, hop, 1 + hop);
        datagram(&j, 1, 3, hop, last + hop);
        datagram(&j, 1, 4, hop, last + 1 + hop);
    }
    join(&j);
    assert_int_equal(j.join.outside, 2);
    assert_int_equal(j.join.packets, 2);
    assert_int_equal(j.join.routes[0].complete, 2);
    done(&j);
}

static void what_comes_again_is_another_packet(void **state)
{
    (void)state;
    struct joined j = {.records.count = 0};
    for (uint64_t n = 0; n < 200; n++) // complete, and the same number again after a while
        for (unsigned hop = 0; hop < 3; hop++) {
            datagram(&j, 1, n, hop, 100 + n * 100 + hop);
            datagram(&j, 1, n, hop, SECOND + n * 100 + hop);
            datagram(&j, 1, n, hop, (uint64_t)10 * SECOND + n * 100 + hop);
        }
    datagram(&j, 1, 5000, 0, 100); // lost, and sent again
    datagram(&j, 1, 5000, 1, 110);
    for (unsigned hop = 0; hop < 3; hop++)
        datagram(&j, 1, 5000, hop, 5000 + hop);
    join(&j);
    assert_int_equal(j.join.route_count, 1);
    assert_int_equal(j.join.routes[0].complete, 601);
    assert_int_equal(j.join.routes[0].lost_after[1], 1);
    assert_int_equal(j.join.repeated, 1);
    assert_true(j.join.routes[0].delays[0].items[0] == 2);
    done(&j);
}

// Three segments of 100 bytes are one packet from the second hop on.
static void merged_segments_are_found_in_the_larger_one(void **state)
{
    (void)state;
    struct joined j = {.records.count = 0};
    uint32_t begin = UINT32_MAX - 3000; // the numbers begin again at 0 on the way
    for (uint32_t n = 0; n < 60; n++) {
        uint32_t at = begin + n * 300;
        for (uint32_t part = 0; part < 3; part++)
            segment(&j, at + part * 100, at + part * 100 + 100, 0, 1000 + n * 10000 + part * 10);
        segment(&j, at, at + 300, 1, 1000 + n * 10000 + 500);
        segment(&j, at, at + 300, 2, 1000 + n * 10000 + 600);
    }
    join(&j);
    assert_int_equal(j.join.route_count, 1);
    struct packet_route *route = &j.join.routes[0];
    assert_int_equal(route->packets, 180);
    assert_int_equal(route->complete, 180);
    assert_int_equal(route->merged, 120);
    assert_true(sum(&route->delays[1]) == 60 * (500 + 490 + 480));
    assert_true(sum(&route->delays[2]) == 180 * 100);
    assert_int_equal(j.join.pieces, 0);
    done(&j);
}

// The other way around: one large packet, and three from the second hop on.
static void divided_packets_count_once(void **state)
{
    (void)state;
    struct joined j = {.records.count = 0};
    for (uint32_t n = 0; n < 60; n++) {
        segment(&j, n * 300, n * 300 + 300, 0, 1000 + n * 10000);
        for (uint32_t hop = 1; hop < 4; hop++)
            for (uint32_t part = 0; part < 3; part++)
                segment(&j, n * 300 + part * 100, n * 300 + part * 100 + 100, hop,
                        1000 + n * 10000 + hop * 100 + part);
    }
    join(&j);
    assert_int_equal(j.join.packets, 60);
    assert_int_equal(j.join.routes[0].complete, 60);
    assert_int_equal(j.join.pieces, 120);
    assert_true(sum(&j.join.routes[0].delays[1]) == 60 * 102); // until its last byte is there
    done(&j);
}

static void what_only_covers_is_no_packet(void **state)
{
    (void)state;
    struct joined j = {.records.count = 0};
    segment(&j, 0, 100, 0, 10);
    segment(&j, 0, 300, 1, 20);
    j.records.items[1].flags = HOP_ONLY_COVERS;
    segment(&j, 300, 400, 0, 30);
    segment(&j, 300, 400, 1, 40);
    for (unsigned hop = 0; hop < 2; hop++) { // nor is what opens a stream
        segment(&j, 1, 1, hop, 10 + hop);
        j.records.items[j.records.count - 1].flags = HOP_OPENS;
    }
    join(&j);
    assert_int_equal(j.join.packets, 2);
    assert_int_equal(j.join.routes[0].complete, 2);
    assert_int_equal(j.join.routes[0].merged, 1);
    done(&j);
}

static void a_retransmission_is_another_packet(void **state)
{
    (void)state;
    struct joined j = {.records.count = 0};
    for (uint32_t n = 0; n < 50; n++)
        for (unsigned hop = 0; hop < 3; hop++)
            segment(&j, n * 100, n * 100 + 100, hop, 1000 + n * 1000 + hop);
    segment(&j, 9000, 9100, 0, 100000);
    for (unsigned hop = 0; hop < 3; hop++)
        segment(&j, 9000, 9100, hop, 200000000 + hop);
    join(&j);
    assert_int_equal(j.join.routes[0].complete, 51);
    assert_int_equal(j.join.routes[0].lost_after[0], 1);
    assert_int_equal(j.join.repeated, 1);
    done(&j);
}

static void rare_ways_are_counted(void **state)
{
    (void)state;
    struct joined j = {.records.count = 0};
    for (uint64_t n = 0; n < 5000; n++)
        for (unsigned hop = 0; hop < 3; hop++)
            datagram(&j, 1, n, hop, 100 + n * 100 + hop);
    for (unsigned hop = 0; hop < 3; hop++) // against the stream
        datagram(&j, 2, 1, 2 - hop, 100 + hop);
    join(&j);
    assert_int_equal(j.join.route_count, 1);
    assert_int_equal(j.join.packets, 5000);
    assert_int_equal(j.join.rare, 1);
    done(&j);
}

static void nothing_is_nothing(void **state)
{
    (void)state;
    struct joined j = {.records.count = 0};
    join(&j);
    assert_int_equal(j.join.route_count + j.join.packets, 0);
    datagram(&j, 1, 1, 3, 5);
    join(&j);
    assert_int_equal(j.join.route_count, 1); // one hop is a way of its own
    assert_int_equal(j.join.routes[0].complete, 1);
    assert_int_equal(j.join.routes[0].delays[0].count, 0);
    done(&j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_and_replies_are_two_routes),
        cmocka_unit_test(times_in_queues_are_those_of_the_records),
        cmocka_unit_test(losses_and_delays_are_where_they_were),
        cmocka_unit_test(a_packet_counts_where_it_entered),
        cmocka_unit_test(what_comes_again_is_another_packet),
        cmocka_unit_test(merged_segments_are_found_in_the_larger_one),
        cmocka_unit_test(divided_packets_count_once),
        cmocka_unit_test(what_only_covers_is_no_packet),
        cmocka_unit_test(a_retransmission_is_another_packet),
        cmocka_unit_test(rare_ways_are_counted),
        cmocka_unit_test(nothing_is_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
