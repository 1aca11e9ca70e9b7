// SPDX-License-Identifier: MIT
//
// The hops of two machines, whose clocks the packets relate.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "tests/analysis/hops/seen.h"

// The same where OUT and SERVER are on the server's machine and the others on the client's, whose
// clock is behind the server's by that, and its hops by `late_ns` more than its requests say.
static void find_apart(struct seen *s, int64_t behind_ns, int64_t late_ns)
{
    struct ARRAY_OF(struct hop_record) parts[HOP_MACHINES] = {0};
    array_sort(&s->records, by_time);
    for (size_t i = 0; i < s->records.count; i++) {
        struct hop_record record = s->records.items[i];
        bool on_client = record.hop < OUT;
        record.hop = (uint8_t)(record.hop % OUT);
        record.time -= on_client ? (uint64_t)(behind_ns - late_ns) : 0;
        SCENARIO_PUSH(&parts[on_client], record);
    }
    for (size_t i = 0; i < s->joined.lives.count; i++)
        s->joined.lives.items[i].client_moved_ns = behind_ns;
    const struct hop_machine machines[HOP_MACHINES] = {{.records = parts[0].items,
                                                        .record_count = parts[0].count,
                                                        .hop_count = OUT,
                                                        .flow_key = KEY,
                                                        .one_in = 1,
                                                        .clock = scenario_clock()},
                                                       {.records = parts[1].items,
                                                        .record_count = parts[1].count,
                                                        .first_hop = OUT,
                                                        .hop_count = OUT,
                                                        .flow_key = KEY,
                                                        .one_in = 1,
                                                        .clock = scenario_clock(),
                                                        .is_client = true}};
    find_among(s, machines, HOP_MACHINES);
    array_free(&parts[0]);
    array_free(&parts[1]);
}

// Whatever the clocks of two machines are apart, their hops divide the ways as one machine's do,
// and the packets show the offset; where they contradict the requests, that is counted.
static void machines_are_put_together(void **state)
{
    (void)state;
    for (int wrong = 0; wrong < 2; wrong++) {
        const int64_t behind_ns = 5000000000;
        struct seen s = {.one_in = 0};
        make(&s, &plain);
        for (size_t i = 0; i < plain.requests; i++) {
            pass_there(&s, i, OUT);
            pass_back(&s, i);
        }
        find_apart(&s, behind_ns, wrong ? 4000 : 0);
        const struct packet_clock *clock = &s.stays.clock;
        assert_int_equal(clock->exchanges, plain.requests);
        assert_int_equal(clock->compared, plain.requests);
        if (wrong) {
            assert_int_equal(s.stays.backwards, plain.requests);
            assert_int_equal(clock->disagreeing, plain.requests);
            assert_true(clock->difference_p50_ns > 3000 && clock->difference_max_ns < 5000);
        } else {
            assert_int_equal(s.stays.divided[WAY_TO_SERVER], plain.requests);
            assert_int_equal(s.stays.divided[WAY_TO_CLIENT], plain.requests);
            assert_int_equal(s.stays.all.count, 6 * (size_t)plain.requests);
            assert_int_equal(s.stays.backwards + clock->disagreeing, 0);
            assert_true(clock->bound_p99_ns < 1000);
            assert_true(llabs(clock->offset_ns - behind_ns) <= (int64_t)clock->bound_p99_ns);
        }
        finish(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(machines_are_put_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
