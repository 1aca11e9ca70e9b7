// SPDX-License-Identifier: MIT
//
// Packets between two machines whose clocks are known exactly: their records come into one time
// within the stated bound, in the order of the way, and what contradicts the link is counted.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "analysis/hops/hop_clocks.h"
#include "base/array.h"
#include "base/hash.h"

#define AHEAD_NS INT64_C(987654321987654)

enum { PACKETS = 4000, GAP_NS = 500000, TRIPS = 8, TRIP_NS = 800000 };
// Two interfaces here, one there: what goes out passes 1 and 2, and 4 on the other machine.
enum { HERE_IN, HERE_OUT, CARD_OUT, CARD_IN, THERE_IN, THERE_OUT, HOPS };

static const bool is_ingress[HOPS_MAX] = {[HERE_IN] = true, [CARD_IN] = true, [THERE_IN] = true};

struct scene {
    struct ARRAY_OF(struct hop_record) here, there;
    struct exchange trips[TRIPS];
    double rate;
    struct hop_recording first, other;
    struct hop_clock clock;
};

static int64_t other_clock(const struct scene *s, double t)
{
    return AHEAD_NS + (int64_t)llround(t * (1 + s->rate));
}

static double some(uint64_t number, double most)
{
    return most * (double)(hash64(number) % 1000) / 1000;
}

static void seen_here(struct scene *s, uint64_t number, unsigned hop, double t)
{
    struct hop_record record = {.time = (uint64_t)t,
                                .flow = number & 1,
                                .datagram = number,
                                .hop = (uint8_t)hop,
                                .protocol = 17};
    assert_int_equal(array_push(&s->here, record), 0);
}

static void seen_there(struct scene *s, uint64_t number, unsigned hop, double t)
{
    struct hop_record record = {.time = (uint64_t)other_clock(s, t),
                                .flow = number & 1,
                                .datagram = number,
                                .hop = (uint8_t)hop,
                                .protocol = 17};
    assert_int_equal(array_push(&s->there, record), 0);
}

// Even packets go there, odd ones come back; the network takes 20 to 120 us each way.
static void make(struct scene *s, bool both_ways, int64_t wrong_ns)
{
    for (uint64_t i = 0; i < PACKETS; i++) {
        double t = 1e9 + (double)i * GAP_NS, way = 20000 + some(i, 100000);
        if (i % 2 == 0) {
            seen_here(s, i, HERE_OUT, t);
            seen_here(s, i, CARD_OUT, t + 3000);
            seen_there(s, i, THERE_IN, t + 3000 + way);
        } else if (both_ways) {
            seen_there(s, i, THERE_OUT, t);
            seen_here(s, i, CARD_IN, t + way);
            seen_here(s, i, HERE_IN, t + way + 2000);
        }
    }
    for (int i = 0; i < TRIPS; i++) {
        double t = 1e9 + (double)i * PACKETS * GAP_NS / (TRIPS - 1);
        s->trips[i] = (struct exchange){.left_ns = (int64_t)t,
                                        .came_ns = other_clock(s, t + TRIP_NS / 2.0) + wrong_ns,
                                        .replied_ns = other_clock(s, t + TRIP_NS / 2.0) + wrong_ns,
                                        .back_ns = (int64_t)t + TRIP_NS};
    }
    s->first = (struct hop_recording){s->here.items, s->here.count, 1};
    s->other = (struct hop_recording){s->there.items, s->there.count, 1};
}

static void join(struct scene *s)
{
    struct error err = {0};
    assert_int_equal(
        hop_clocks_join(&s->first, &s->other, is_ingress, s->trips, TRIPS, &s->clock, &err), 0);
}

static void done(struct scene *s)
{
    array_free(&s->here);
    array_free(&s->there);
}

// How far the moved times are from the truth, at most; and whether packets are in order of the way.
static double worst_error(const struct scene *s)
{
    double worst = 0;
    for (size_t i = 0; i < s->other.count; i++) {
        const struct hop_record *record = &s->other.records[i];
        uint64_t number = record->datagram;
        double t = 1e9 + (double)number * GAP_NS, way = 20000 + some(number, 100000);
        worst = fmax(worst, fabs((double)record->time - (number % 2 == 0 ? t + 3000 + way : t)));
    }
    return worst;
}

static size_t out_of_order(const struct scene *s)
{
    size_t wrong = 0;
    for (size_t i = 0; i < s->other.count; i++)
        for (size_t k = 0; k < s->first.count; k++) {
            const struct hop_record *there = &s->other.records[i], *here = &s->first.records[k];
            if (there->datagram == here->datagram)
                wrong += there->datagram % 2 == 0 ? there->time <= here->time
                                                  : there->time >= here->time;
        }
    return wrong;
}

static void packets_relate_clocks_closer_than_the_link(void **state)
{
    (void)state;
    struct scene s = {.rate = 37e-6};
    make(&s, true, 0);
    join(&s);
    assert_int_equal(s.clock.crossings, PACKETS);
    assert_int_equal(s.clock.trips, TRIPS);
    assert_true(s.clock.packet_bound_p99_ns < 40000);
    assert_true(s.clock.link_bound_p99_ns >= TRIP_NS / 2);
    assert_true(s.clock.bound_p99_ns == s.clock.packet_bound_p99_ns);
    assert_true(fabs(s.clock.rate - 37e-6) < 5e-6);
    assert_int_equal(s.clock.compared, PACKETS);
    assert_int_equal(s.clock.disagreeing + s.clock.backwards + s.clock.unrelated, 0);
    assert_true(worst_error(&s) <= 45000);
    assert_int_equal(out_of_order(&s), 0);
    done(&s);
}

static void one_way_leaves_the_link(void **state)
{
    (void)state;
    struct scene s = {.rate = -20e-6};
    make(&s, false, 0);
    join(&s);
    assert_int_equal(s.clock.crossings, PACKETS / 2);
    assert_true(isinf(s.clock.packet_bound_p99_ns));
    assert_true(s.clock.bound_p99_ns == s.clock.link_bound_p99_ns);
    assert_int_equal(s.clock.compared, 0);
    assert_true(worst_error(&s) <= s.clock.bound_p99_ns + 1000);
    assert_int_equal(out_of_order(&s), 0);
    done(&s);
}

// A link whose two ways are more unlike than its round trip allows is impossible: a clock lies.
static void a_link_that_contradicts_the_packets_is_counted(void **state)
{
    (void)state;
    struct scene s = {.rate = 0};
    make(&s, true, 3 * TRIP_NS);
    join(&s);
    assert_int_equal(s.clock.disagreeing, s.clock.compared);
    assert_true(s.clock.compared > 0);
    done(&s);
}

// A datagram like one before says nothing of the clocks: which of the two was where is not known.
static void what_came_twice_relates_nothing(void **state)
{
    (void)state;
    struct scene s = {.rate = 0};
    make(&s, true, 0);
    seen_there(&s, 0, THERE_IN, 5e9);
    s.other = (struct hop_recording){s.there.items, s.there.count, 1};
    join(&s);
    assert_int_equal(s.clock.crossings, PACKETS - 1);
    done(&s);
}

static void no_records_are_no_failure(void **state)
{
    (void)state;
    struct scene s = {.rate = 0};
    make(&s, true, 0);
    s.other.count = 0;
    join(&s);
    assert_int_equal(s.clock.crossings, 0);
    assert_true(s.clock.bound_p99_ns == s.clock.link_bound_p99_ns &&
                isfinite(s.clock.bound_p99_ns));
    done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packets_relate_clocks_closer_than_the_link),
        cmocka_unit_test(one_way_leaves_the_link),
        cmocka_unit_test(a_link_that_contradicts_the_packets_is_counted),
        cmocka_unit_test(what_came_twice_relates_nothing),
        cmocka_unit_test(no_records_are_no_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
