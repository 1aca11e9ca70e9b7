// SPDX-License-Identifier: MIT
//
// The rings between the schedule, load threads and totals, with this test as the load threads: all
// requests come, once, in the schedule's order and as it was drawn at once; what is open holds up
// no more than it must; and who is at fault for what came late is known.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/hash.h"
#include "base/tsc.h"
#include "loadgen/engine/sample_drain.h"

enum { SIZE = 1024, MOST_RINGS = 3 };
static const double rate = 100000;
static const uint64_t duration_ns = 500000000, seed = 5;
static const struct distribution poisson = {.kind = DISTRIBUTION_EXPONENTIAL, .first = 1};

struct lab {
    struct workload workload;
    struct schedule schedule; // drawn at once
    struct schedule_drawer *drawer;
    struct sample_totals *totals; // large enough to keep all
    struct sample_drain drain;
    uint64_t put[MOST_RINGS]; // of each load thread: the first it has not put
};

static struct lab *new_lab(uint32_t rings)
{
    struct lab *lab = calloc(1, sizeof *lab);
    struct error err;
    workload_defaults(&lab->workload);
    assert_int_equal(
        schedule_draw(&lab->workload, &poisson, rate, duration_ns, seed, &lab->schedule, &err), 0);
    assert_int_equal(
        schedule_drawer_open(&lab->workload, &poisson, rate, duration_ns, seed, &lab->drawer, &err),
        0);
    assert_int_equal(sample_totals_new(2 * lab->schedule.count * sizeof(struct sample), NULL,
                                       &lab->totals, &err),
                     0);
    assert_int_equal(sample_drain_open(&lab->drain, rings, lab->drawer, lab->totals, &err), 0);
    for (uint32_t i = 0; i < rings; i++) {
        lab->drain.rings[i].samples = calloc(SIZE, sizeof(struct sample));
        lab->drain.rings[i].mask = SIZE - 1;
    }
    sample_drain_fill(&lab->drain, 1);
    return lab;
}

static void free_lab(struct lab *lab)
{
    for (uint32_t i = 0; i < lab->drain.ring_count; i++)
        free(lab->drain.rings[i].samples);
    sample_drain_close(&lab->drain);
    sample_totals_free(lab->totals);
    schedule_drawer_close(lab->drawer);
    schedule_free(&lab->schedule);
    workload_free(&lab->workload);
    free(lab);
}

static uint64_t ready_of(struct lab *lab, uint32_t ring)
{
    return atomic_load(&lab->drain.rings[ring].drawn.ready);
}

// The load thread puts up to `most` requests, all answered at once.
static void answer(struct lab *lab, uint32_t ring, uint64_t most)
{
    struct sample_ring *own = &lab->drain.rings[ring];
    for (uint64_t *put = &lab->put[ring]; most && *put < ready_of(lab, ring); most--, ++*put) {
        struct sample *sample = sample_ring_at(own, *put);
        assert_int_equal(sample->status, SAMPLE_UNSENT); // not one that was not taken
        sample->status = SAMPLE_ANSWERED;
        sample->send_tsc = sample->sent_tsc = sample->intended_tsc;
        sample->reply_tsc = sample->intended_tsc + 1;
    }
    atomic_store(&own->sent.final, lab->put[ring]);
}

// What came is the schedule, or its beginning.
static void check_all_came(const struct lab *lab, size_t count)
{
    assert_int_equal(lab->totals->kept_count, count);
    for (size_t i = 0; i < count; i++) {
        const struct scheduled_request *request = &lab->schedule.items[i];
        const struct sample *sample = &lab->totals->kept[i];
        assert_int_equal(sample->intended_tsc, lab->drain.start_tsc + request->offset_ns);
        assert_int_equal(sample->key, request->key);
        assert_int_equal(sample->operation, request->operation);
    }
}

static void the_schedule_comes_as_it_was_drawn(void **state)
{
    (void)state;
    for (uint32_t rings = 1; rings <= MOST_RINGS; rings++) {
        struct lab *lab = new_lab(rings);
        for (unsigned turn = 0; lab->totals->counts.answered < lab->schedule.count; turn++) {
            assert_true(turn < 10000000);
            answer(lab, turn % rings, hash64(turn) % SIZE);
            sample_drain_look(&lab->drain);
        }
        for (uint32_t i = 0; i < rings; i++)
            assert_true(atomic_load(&lab->drain.rings[i].drawn.whole));
        sample_drain_end(&lab->drain, UINT64_MAX, UINT64_MAX);
        check_all_came(lab, lab->schedule.count);
        assert_int_equal(lab->totals->late_full + lab->totals->late_drawn, 0); // nothing has begun
        free_lab(lab);
    }
}

// It ends with everything open: all that was scheduled is counted, unless a person ended it.
static void what_was_not_sent_is_counted(void **state)
{
    (void)state;
    for (unsigned interrupted = 0; interrupted < 2; interrupted++) {
        struct lab *lab = new_lab(2);
        answer(lab, 0, 300);
        answer(lab, 1, 200);
        sample_drain_look(&lab->drain);
        size_t until = interrupted ? 3000 : lab->schedule.count; // some not even drawn
        sample_drain_end(&lab->drain,
                         interrupted ? lab->schedule.items[until - 1].offset_ns : UINT64_MAX,
                         UINT64_MAX);
        check_all_came(lab, until);
        assert_int_equal(lab->totals->counts.answered, 500);
        assert_int_equal(lab->totals->counts.unsent, until - 500);
        free_lab(lab);
    }
}

// Too many to draw them: how many there are is known by the rate, a Poisson process' number within
// six of its standard deviations.
// But of a load that is told to end the unsent ones that had been drawn are counted, too, and no
// more; what was sent is kept.
static void what_is_too_much_to_draw_is_counted_by_the_rate(void **state)
{
    (void)state;
    for (unsigned interrupted = 0; interrupted < 2; interrupted++) {
        struct lab *lab = new_lab(1);
        const struct sample_counts *counts = &lab->totals->counts;
        answer(lab, 0, 500);
        sample_drain_look(&lab->drain);
        const uint64_t drawn = ready_of(lab, 0), half = duration_ns / 2;
        struct sample *open = sample_ring_at(&lab->drain.rings[0], drawn - 1);
        open->sent_tsc = open->send_tsc = open->intended_tsc;
        open->status = SAMPLE_TIMED_OUT;
        sample_drain_end(&lab->drain, interrupted ? half : UINT64_MAX, 0);
        if (interrupted) {
            assert_int_equal(lab->totals->kept_count, 501);
            assert_int_equal(lab->totals->kept[500].status, SAMPLE_TIMED_OUT);
        } else {
            check_all_came(lab, drawn);
        }
        assert_int_equal(counts->scheduled, lab->totals->kept_count + lab->totals->undrawn);
        assert_int_equal(counts->timed_out, 1);
        assert_int_equal(counts->unsent, counts->scheduled - 501);
        assert_int_equal(histogram_count(&lab->totals->latency.histogram), counts->scheduled);
        assert_int_equal(lab->totals->slow_left_out,
                         counts->unsent + 1 - (interrupted ? 1 : TOTALS_SLOWEST));
        const double expected = rate * (double)(interrupted ? half : duration_ns) / 1e9;
        assert_true(fabs((double)counts->scheduled - expected) < 6 * sqrt(expected));
        free_lab(lab);
    }
}

// A thread without connections ends early: the others go on.
static void a_thread_that_ended_holds_up_nobody(void **state)
{
    (void)state;
    struct lab *lab = new_lab(2);
    answer(lab, 1, 100);
    atomic_store(&lab->drain.rings[1].sent.ended, true);
    for (unsigned turn = 0; lab->drain.has_next; turn++) {
        assert_true(turn < 10000000);
        answer(lab, 0, SIZE);
        sample_drain_look(&lab->drain);
    }
    answer(lab, 0, SIZE);
    sample_drain_end(&lab->drain, UINT64_MAX, UINT64_MAX);
    check_all_came(lab, lab->schedule.count);
    assert_int_equal(lab->totals->counts.answered, (lab->schedule.count + 1) / 2 + 100);
    free_lab(lab);
}

// The first request stays open: nothing behind it is taken, and what waits for it is counted. It is
// answered: all goes on.
static void an_open_request_fills_the_memory(void **state)
{
    (void)state;
    struct lab *lab = new_lab(1);
    struct sample_ring *ring = &lab->drain.rings[0];
    lab->drain.start_tsc = tsc_now() - 2 * duration_ns; // all is due
    answer(lab, 0, SIZE);
    atomic_store(&ring->sent.final, 0);
    sample_drain_look(&lab->drain);
    assert_int_equal(lab->totals->counts.scheduled, 0);
    assert_int_equal(ready_of(lab, 0), SIZE);
    atomic_store(&ring->sent.final, SIZE);
    sample_drain_look(&lab->drain);
    assert_int_equal(lab->totals->counts.scheduled, SIZE);
    assert_int_equal(ready_of(lab, 0), 2 * SIZE);
    assert_int_equal(lab->totals->late_full, SIZE);
    assert_int_equal(lab->totals->late_drawn, 0);
    free_lab(lab);
}

// All is answered as it comes, but nobody looks in time.
static void who_looks_too_seldom_is_told(void **state)
{
    (void)state;
    struct lab *lab = new_lab(1);
    lab->drain.start_tsc = tsc_now() - 2 * duration_ns;
    for (unsigned look = 1; look <= 3; look++) {
        answer(lab, 0, SIZE);
        sample_drain_look(&lab->drain);
        assert_int_equal(lab->totals->late_drawn, look * SIZE);
    }
    assert_int_equal(lab->totals->late_full, 0);
    free_lab(lab);
}

// What the thread does by itself, beside a load thread that does not wait for it.
static void the_thread_keeps_up(void **state)
{
    (void)state;
    struct lab *lab = new_lab(1);
    struct error err;
    const uint64_t start = tsc_now() + 100000000;
    for (uint64_t i = 0; i < SIZE; i++) // as a load thread does with what was ready before
        lab->drain.rings[0].samples[i].intended_tsc += start;
    assert_int_equal(sample_drain_begin(&lab->drain, start, NULL, &err), 0);
    while (lab->put[0] < lab->schedule.count)
        answer(lab, 0, SIZE);
    atomic_store(&lab->drain.rings[0].sent.ended, true);
    sample_drain_end(&lab->drain, UINT64_MAX, UINT64_MAX);
    check_all_came(lab, lab->schedule.count);
    assert_int_equal(lab->totals->counts.answered, lab->schedule.count);
    free_lab(lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_schedule_comes_as_it_was_drawn),
        cmocka_unit_test(what_was_not_sent_is_counted),
        cmocka_unit_test(what_is_too_much_to_draw_is_counted_by_the_rate),
        cmocka_unit_test(a_thread_that_ended_holds_up_nobody),
        cmocka_unit_test(an_open_request_fills_the_memory),
        cmocka_unit_test(who_looks_too_seldom_is_told),
        cmocka_unit_test(the_thread_keeps_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
