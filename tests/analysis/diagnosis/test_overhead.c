// SPDX-License-Identifier: MIT
//
// What the tool itself costs, as an estimate from its own figures, and that it is taken off what
// else the message's time went to: the shares still add up.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analysis/decomposition/decompose.h"
#include "tests/analysis/diagnosis/synthetic.h"

static void same(double found, double wanted, double within)
{
    assert_true(fabs(found - wanted) <= within);
}

static void figures_come_from_the_capture(void **state)
{
    (void)state;
    json_t *capture =
        json_loads("{\"events\": {\"programs\": {"
                   " \"sched_switch\": {\"attached\": true, \"runs\": 100, \"mean_ns\": 200.0},"
                   " \"softirq_entry\": {\"attached\": true, \"runs\": 300, \"mean_ns\": 100.0},"
                   " \"softirq_exit\": {\"attached\": true},"
                   " \"local_timer_exit\": {\"runs\": 1, \"mean_ns\": 1e300},"
                   " \"local_timer_entry\": {\"runs\": 1e308, \"mean_ns\": 200},"
                   " \"tcp_probe\": {\"runs\": 10, \"mean_ns\": 250.0},"
                   " \"sk_data_ready\": {\"runs\": 10, \"mean_ns\": 110.5},"
                   " \"sched_waking\": {\"runs\": 0, \"mean_ns\": 1.0}}}}",
                   0, NULL);
    assert_non_null(capture);
    struct overhead overhead = overhead_of_capture(capture, true);
    same(overhead.record_ns, 125, 1e-9);
    same(overhead.packet_ns, 360.5, 1e-9);
    assert_true(overhead.call_ns > 10 && overhead.call_ns < 200);
    // One that did not run while the sample was taken takes what others do, if it is there.
    json_t *programs = json_object_get(json_object_get(capture, "events"), "programs");
    json_object_set_new(programs, "tcp_sendmsg_locked", json_pack("{s:b}", "attached", 1));
    json_object_set_new(programs, "sock_send_length", json_pack("{s:b}", "attached", 0));
    json_object_set_new(programs, "sched_waking", json_pack("{s:b}", "attached", 1));
    overhead = overhead_of_capture(capture, false);
    same(overhead.call_ns, 125, 1e-9);
    same(overhead.packet_ns, 360.5 + 125, 1e-9);
    json_decref(capture);
    overhead = overhead_of_capture(NULL, false);
    same(overhead.record_ns + overhead.packet_ns + overhead.call_ns, 0, 1e-9);
}

struct sums {
    double latency, shares, overhead, overhead_r;
};

static struct sums decompose_all(const struct synthetic *s, struct overhead overhead)
{
    struct diagnosis_input input = synthetic_input(s);
    struct component_table table;
    struct decomposer decomposer;
    struct component_share_array shares = {0};
    struct sums sums = {0};
    input.overhead = overhead;
    assert_int_equal(component_table_init(&table, input.server, NULL, NULL), 0);
    decomposer_init(&decomposer, &input, &table);
    for (size_t i = 0; i < s->lives.count; i++) {
        shares.count = 0;
        assert_int_equal(decompose(&decomposer, i, &shares, NULL), 0);
        sums.latency += s->lives.items[i].latency_ns;
        for (size_t k = 0; k < shares.count; k++) {
            assert_true(shares.items[k].ns > 0);
            sums.shares += shares.items[k].ns;
            if (shares.items[k].component == COMPONENT_OVERHEAD_A)
                sums.overhead += shares.items[k].ns;
            if (shares.items[k].component == COMPONENT_OVERHEAD_R)
                sums.overhead_r += shares.items[k].ns;
        }
    }
    array_free(&shares);
    decomposer_fini(&decomposer);
    component_table_fini(&table);
    return sums;
}

static void it_is_taken_off_the_rest(void **state)
{
    (void)state;
    struct synthetic_options options = {
        .seed = 3, .messages = 1000, .gap_ns = 60000, .noise = 0.05, .regular = true};
    const double count = 1000;
    struct synthetic s;
    synthetic_build(&s, &options);
    struct sums none = decompose_all(&s, (struct overhead){0});
    same(none.shares, none.latency, 1);
    same(none.overhead + none.overhead_r, 0, 1e-9);
    // Each message: its receive and its send call, of which the entry of the latter is its end.
    struct sums calls = decompose_all(&s, (struct overhead){.call_ns = 35});
    same(calls.shares, calls.latency, 1);
    same(calls.overhead, 35 * count, 0.05 * 35 * count);
    // The softirq in which its segment came.
    struct sums packets = decompose_all(&s, (struct overhead){.packet_ns = 400});
    same(packets.shares, packets.latency, 1);
    same(packets.overhead_r, 400 * count, 0.05 * 400 * count);
    // The interrupt, the softirq on the one core; the switch to the thread on the other.
    struct sums records = decompose_all(&s, (struct overhead){.record_ns = 100});
    same(records.shares, records.latency, 1);
    assert_true(records.overhead >= 90 * count && records.overhead <= 310 * count);
    assert_true(records.overhead_r >= 90 * count && records.overhead_r <= 310 * count);
    synthetic_free(&s);
}

static void functions_show_it_themselves(void **state)
{
    (void)state;
    struct synthetic_options options = {.seed = 3,
                                        .messages = 300,
                                        .gap_ns = 60000,
                                        .noise = 0.05,
                                        .regular = true,
                                        .functions = true};
    struct synthetic s;
    synthetic_build(&s, &options);
    struct sums sums =
        decompose_all(&s, (struct overhead){.record_ns = 100, .packet_ns = 400, .call_ns = 35});
    same(sums.shares, sums.latency, 1);
    assert_true(sums.overhead + sums.overhead_r < 0.1 * 100 * 300);
    synthetic_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_come_from_the_capture),
        cmocka_unit_test(it_is_taken_off_the_rest),
        cmocka_unit_test(functions_show_it_themselves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
