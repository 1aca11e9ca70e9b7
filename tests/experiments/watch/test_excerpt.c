// SPDX-License-Identifier: MIT
//
// Which part of a busy interval is taken apart, and when all of it is.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log_file.h"
#include "experiments/watch/excerpt.h"
#include "profiler/clock/clock_log.h"

enum { REQUESTS = 10000, APART_NS = 100000, SEGMENTS = 2 }; // a second in each segment

static char folder[] = "/tmp/taillight-excerpt-XXXXXX";

static void the_slowest_are_in_it(void **state)
{
    struct answer_array answers = {0};
    (void)state;
    for (int64_t i = 0; i < 1000; i++) // one answer a microsecond
        assert_int_equal(array_push(&answers, (struct answer){i * 1000 - 100 - i % 7, i * 1000, 0}),
                         0);
    answers.items[100].arrived_ns -= 5000;
    for (size_t i = 700; i < 705; i++)
        answers.items[i].arrived_ns -= 2000; // longer, together
    const size_t first = excerpt_choose(&answers, 50);
    assert_true(first <= 700 && first + 50 > 704);
    answers.items[3].arrived_ns -= 50000;
    assert_true(excerpt_choose(&answers, 50) <= 3);
    answers.items[999].arrived_ns -= 90000;
    assert_int_equal(excerpt_choose(&answers, 50), 950);
    array_free(&answers);
}

static void write_clock(void)
{
    struct clock_reading readings[6];
    char path[100];
    struct error err;
    for (size_t i = 0; i < 6; i++) {
        const uint64_t ns = i < 3 ? 0 : 100000000000;
        readings[i] =
            (struct clock_reading){(uint32_t)(HOST_CLOCK_RAW + i % 3), 10, ns + 1000, (int64_t)ns};
    }
    snprintf(path, sizeof path, "%s/clock.tlog", folder);
    assert_int_equal(
        log_write(path, LOG_CLOCK, CLOCK_LOG_VERSION, sizeof *readings, readings, 6, 0, &err), 0);
}

static uint64_t time_of(unsigned segment, size_t request)
{
    return 1000000000ull * segment + APART_NS * (uint64_t)request;
}

// A request in each tenth of a millisecond takes 20 us, and number `slow` 8 ms.
static void write_segment(unsigned number, size_t slow)
{
    struct event *events = calloc(REQUESTS * 3, sizeof *events);
    char path[100];
    struct error err;
    for (size_t i = 0; i < REQUESTS; i++) {
        const uint64_t at = time_of(number, i), end = (number * REQUESTS + i + 1) * 10;
        events[3 * i] = (struct event){.time = at - (i == slow ? 8000000 : 20000),
                                       .kind = EVENT_SEGMENT,
                                       .id = 1,
                                       .payload = {{end, 0}}};
        events[3 * i + 1] = (struct event){
            .time = at - 10000, .kind = EVENT_RECEIVED, .id = 1, .payload = {{end, 10ull << 32}}};
        events[3 * i + 2] = (struct event){
            .time = at, .kind = EVENT_SENT, .id = 1, .payload = {{end, 10ull << 32}}};
        if (i == slow)
            events[3 * i].id = events[3 * i + 1].id = events[3 * i + 2].id = 2;
    }
    snprintf(path, sizeof path, "%s/events-%06u.tlog", folder, number);
    assert_int_equal(log_write(path, LOG_EVENTS, EVENT_LOG_VERSION, sizeof *events, events,
                               REQUESTS * 3, 0, &err),
                     0);
    free(events);
}

static struct run_request whole(unsigned segment)
{
    return (struct run_request){.run_dir = folder,
                                .segments = {.first = 1, .last = segment},
                                .answered_after_ns = (int64_t)time_of(segment, 0) - 1,
                                .answered_until_ns = (int64_t)time_of(segment + 1, 0) - 1};
}

static void a_busy_interval_has_one(void **state)
{
    struct excerpt excerpt = {.rate = 3000};
    struct run_request request = whole(2);
    (void)state;
    assert_true(excerpt_take(&excerpt, 2, &request));
    assert_int_equal(excerpt.answers.count, REQUESTS);
    const int64_t slow = (int64_t)time_of(2, 7000);
    assert_true(request.answered_after_ns < slow && request.answered_until_ns >= slow);
    assert_int_equal(request.answered_until_ns - request.answered_after_ns, 3000ll * APART_NS);
    // all of the slowest request's life, and of what threads did twice as much
    assert_true((int64_t)request.segments.events_from <= request.answered_after_ns - 2 * 8000000);
    assert_true((int64_t)request.segments.events_until > request.answered_until_ns);
    // The next one goes on from there.
    request = whole(2);
    assert_false(excerpt_take(&excerpt, 3, &request));
    excerpt_free(&excerpt);
}

static void what_is_few_is_looked_at_whole(void **state)
{
    const uint64_t rates[] = {0, 20000, REQUESTS};
    (void)state;
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
        struct excerpt excerpt = {.rate = rates[i]};
        const struct run_request before = whole(1);
        struct run_request request = before;
        assert_false(excerpt_take(&excerpt, 1, &request));
        assert_int_equal(excerpt.answers.count, 0);
        assert_memory_equal(&request, &before, sizeof request);
        excerpt_free(&excerpt);
    }
}

static void a_segment_that_is_gone_tells_nothing(void **state)
{
    struct excerpt excerpt = {.rate = 3000};
    struct run_request request = whole(2);
    (void)state;
    request.segments.last = 3;
    assert_false(excerpt_take(&excerpt, 2, &request));
    assert_int_equal(excerpt.answers.count, 0);
    excerpt_free(&excerpt);
}

static int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    write_clock();
    write_segment(1, REQUESTS);
    write_segment(2, 7000);
    return 0;
}

static int remove_folder(void **state)
{
    static const char *const names[] = {"clock.tlog", "events-000001.tlog", "events-000002.tlog"};
    char path[100];
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_slowest_are_in_it),
        cmocka_unit_test(a_busy_interval_has_one),
        cmocka_unit_test(what_is_few_is_looked_at_whole),
        cmocka_unit_test(a_segment_that_is_gone_tells_nothing),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
