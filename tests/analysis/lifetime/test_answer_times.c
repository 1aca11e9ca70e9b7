// SPDX-License-Identifier: MIT
//
// When requests were answered, from the records of sockets alone: whose arrival counts, which
// moment is the answer's, and that nothing is told twice or lost between segments of a capture.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "analysis/lifetime/answer_times.h"

enum { REALTIME_AHEAD = 1000000, HOST_AHEAD = 7, MOST = 64 };

static int64_t convert(const void *context, enum host_clock clock, uint64_t value)
{
    (void)context;
    return (int64_t)value + HOST_AHEAD - (clock == HOST_CLOCK_REALTIME ? REALTIME_AHEAD : 0);
}

static const struct time_source clocks = {.convert = convert};

struct records {
    struct event all[MOST];
    size_t count;
};

static void add(struct records *records, uint64_t time, enum event_kind kind, uint32_t id,
                uint64_t a, uint64_t b)
{
    records->all[records->count++] =
        (struct event){.time = time, .kind = (uint8_t)kind, .id = id, .payload = {{a, b}}};
}

static void segment(struct records *records, uint64_t time, uint64_t end)
{
    add(records, time, EVENT_SEGMENT, 1, end, time - 2 + REALTIME_AHEAD);
}

static void call(struct records *records, uint64_t time, enum event_kind kind, uint64_t end,
                 uint64_t bytes)
{
    add(records, time, kind, 1, end, bytes << 32 | 42);
}

static void expect(struct answer_times *times, const struct records *records, size_t count,
                   const int64_t (*expected)[2])
{
    struct answer_array out = {0};
    assert_int_equal(answer_times_add(times, records->all, records->count, &clocks, &out), 0);
    assert_int_equal(out.count, count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(out.items[i].arrived_ns, expected[i][0] + HOST_AHEAD);
        assert_int_equal(out.items[i].answered_ns, expected[i][1] + HOST_AHEAD);
        assert_int_equal(out.items[i].time, expected[i][1]);
    }
    array_free(&out);
}

static void an_answer_ends_as_it_leaves_or_is_sent(void **state)
{
    struct records records = {.count = 0};
    struct answer_times times = {0};
    (void)state;
    segment(&records, 100, 10);
    call(&records, 110, EVENT_RECEIVED, 10, 10);
    call(&records, 150, EVENT_SENT, 5, 5); // no departure is recorded
    segment(&records, 200, 20);
    call(&records, 210, EVENT_RECEIVED, 20, 10);
    call(&records, 245, EVENT_TRANSMIT, 10, 5);
    call(&records, 250, EVENT_SENT, 10, 5);
    segment(&records, 300, 30);
    call(&records, 310, EVENT_RECEIVED, 30, 10);
    call(&records, 350, EVENT_SENT, 15, 5); // held back
    call(&records, 390, EVENT_TRANSMIT, 15, 5);
    add(&records, 395, EVENT_ARRIVAL, 1, 40, 0); // the link says it before TCP does
    segment(&records, 400, 40);
    call(&records, 410, EVENT_RECEIVED, 40, 10);
    call(&records, 420, EVENT_SENT, 20, 5);
    call(&records, 430, EVENT_SENT, 25, 5); // the rest of that answer
    expect(&times, &records, 4,
           (const int64_t[][2]){{98, 150}, {198, 245}, {298, 390}, {395, 430}});
    answer_times_free(&times);
}

static void what_lay_unread_longest_counts(void **state)
{
    struct records records = {.count = 0};
    struct answer_times times = {0};
    (void)state;
    segment(&records, 100, 10);
    segment(&records, 120, 20);
    segment(&records, 140, 30);
    call(&records, 150, EVENT_RECEIVED, 20, 20);
    call(&records, 160, EVENT_SENT, 5, 5);
    call(&records, 170, EVENT_RECEIVED, 25, 5); // a part of the third
    call(&records, 175, EVENT_RECEIVED, 30, 5); // and the rest
    call(&records, 180, EVENT_SENT, 10, 5);
    call(&records, 190, EVENT_RECEIVED, 40, 10); // whose arrival is not known
    call(&records, 195, EVENT_SENT, 15, 5);
    expect(&times, &records, 3, (const int64_t[][2]){{98, 160}, {138, 180}, {190, 195}});
    answer_times_free(&times);
}

static void segments_of_a_capture_go_on(void **state)
{
    struct records first = {.count = 0}, second = {.count = 0};
    struct answer_times times = {0};
    (void)state;
    call(&first, 50, EVENT_SENT, 5, 5); // of what was asked before
    segment(&first, 100, 10);
    call(&first, 110, EVENT_RECEIVED, 10, 10);
    call(&second, 900, EVENT_SENT, 10, 5);
    expect(&times, &first, 0, NULL);
    expect(&times, &second, 1, (const int64_t[][2]){{98, 900}});
    second.count = 0;
    call(&second, 910, EVENT_SENT, 15, 5); // more of it: it has been told
    expect(&times, &second, 0, NULL);
    answer_times_free(&times);
}

// Those of several cores lie one behind the other, and a request may be of two.
static void cores_are_put_together(void **state)
{
    struct records records = {.count = 0};
    struct answer_times times = {0};
    (void)state;
    call(&records, 110, EVENT_RECEIVED, 10, 10);
    call(&records, 150, EVENT_SENT, 5, 5);
    call(&records, 210, EVENT_RECEIVED, 20, 10);
    call(&records, 220, EVENT_SENT, 10, 5);
    segment(&records, 100, 10);
    segment(&records, 200, 20);
    expect(&times, &records, 2, (const int64_t[][2]){{98, 150}, {198, 220}});
    assert_false(times.framed);
    records.count = 0;
    add(&records, 300, EVENT_FRAMED, 1, 30, 0);
    expect(&times, &records, 0, NULL);
    assert_true(times.framed);
    answer_times_free(&times);
}

// Connections come and go for as long as a watch stays.
static void quiet_connections_are_forgotten(void **state)
{
    struct answer_times times = {0};
    (void)state;
    for (uint32_t id = 1; id <= 20000; id++) {
        struct records records = {.count = 0};
        struct answer_array out = {0};
        add(&records, id * 100ull, EVENT_RECEIVED, id, 10, 10ull << 32);
        add(&records, id * 100ull + 10, EVENT_SENT, id, 5, 5ull << 32);
        add(&records, id * 100ull + 10, EVENT_RECEIVED, 0, id, 1ull << 32); // never answered
        assert_int_equal(answer_times_add(&times, records.all, records.count, &clocks, &out), 0);
        assert_int_equal(out.count, 1);
        assert_true(times.conversations.count < 5000);
        array_free(&out);
    }
    answer_times_free(&times);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_ends_as_it_leaves_or_is_sent),
        cmocka_unit_test(what_lay_unread_longest_counts),
        cmocka_unit_test(segments_of_a_capture_go_on),
        cmocka_unit_test(cores_are_put_together),
        cmocka_unit_test(quiet_connections_are_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
