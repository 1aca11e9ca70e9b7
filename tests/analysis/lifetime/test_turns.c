// SPDX-License-Identifier: MIT
//
// Requests found in a capture alone: on synthetic runs the same messages as the load's own samples
// say, with the same stamps on the server; and what takes no turns is counted.
#include "tests/analysis/lifetime/joined.h"

#include "analysis/lifetime/turns.h"

static void join_turns(struct joined *j, struct turns *turns, struct lifetime_array *lives,
                       struct holdup_array *holdups)
{
    struct join_input input = {0};
    struct join_counts counts;
    struct error err = {0};
    input = input_of(j);
    const struct turns_input in = {.calls = &j->calls,
                                   .connections = j->scenario.shim.items,
                                   .connection_count = j->scenario.shim.count};
    assert_int_equal(turns_find(&in, turns), 0);
    input.samples = turns->samples.items;
    input.sample_count = turns->samples.count;
    input.sample_clock = HOST_CLOCK_RAW;
    input.without_client = true;
    input.client_connections = turns->connections.items;
    input.client_connection_count = turns->connections.count;
    assert_int_equal(join_lifetimes(&input, lives, holdups, &counts, &err), 0);
    assert_int_equal(turns_order(turns, lives, holdups), 0);
}

// By the server's stamps, which no two requests share here.
static const struct lifetime *same_message(const struct joined *j, const struct lifetime *life)
{
    for (size_t i = 0; i < j->lives.count; i++)
        if (j->lives.items[i].stamp_ns[STAMP_NIC] == life->stamp_ns[STAMP_NIC] &&
            j->lives.items[i].thread == life->thread)
            return &j->lives.items[i];
    return NULL;
}

static void the_messages_are_the_loads(void **state)
{
    (void)state;
    struct joined j;
    struct turns turns;
    struct lifetime_array lives;
    struct holdup_array holdups;
    build(&j, &plain);
    array_free(&j.calls);
    join_turns(&j, &turns, &lives, &holdups);
    assert_int_equal(lives.count, j.lives.count);
    assert_int_equal(turns.unanswered, 0);
    assert_int_equal(turns.unasked, 0);
    for (size_t i = 0; i < lives.count; i++) {
        const struct lifetime *life = &lives.items[i], *loads = same_message(&j, life);
        assert_non_null(loads);
        assert_int_equal(life->state, LIFETIME_WHOLE);
        assert_int_equal(life->request, i);
        for (int stamp = STAMP_NIC; stamp <= STAMP_SERVER_TX; stamp++)
            assert_true(life->stamp_ns[stamp] == loads->stamp_ns[stamp]);
        assert_true(life->latency_ns ==
                    (double)(loads->stamp_ns[STAMP_SERVER_TX] - loads->stamp_ns[STAMP_NIC]));
        assert_true(i == 0 || life->stamp_ns[STAMP_NIC] >= life[-1].stamp_ns[STAMP_NIC]);
        assert_true(life->stage_ns[STAMP_NIC] == 0 && life->stage_ns[STAMP_CLIENT_RX] == 0);
    }
    turns_free(&turns);
    array_free(&lives);
    array_free(&holdups);
    release(&j);
}

static struct application_call call(enum call_kind kind, uint64_t offset, uint32_t length,
                                    int64_t at_ns)
{
    return (struct application_call){.entry_ns = at_ns,
                                     .exit_ns = at_ns + 5,
                                     .offset = offset,
                                     .length = length,
                                     .connection = 7,
                                     .thread = 1,
                                     .kind = (uint8_t)kind};
}

static void find_among(struct application_call *calls, size_t count, uint64_t opened_time,
                       const struct event *events, size_t event_count, struct turns *out)
{
    const struct connection one = {.id = 7, .protocol = CONNECTION_TCP, .opened_time = opened_time};
    const struct application_calls all = {.items = calls, .count = count};
    const struct turns_input in = {.calls = &all,
                                   .connections = &one,
                                   .connection_count = 1,
                                   .events = events,
                                   .event_count = event_count};
    assert_int_equal(turns_find(&in, out), 0);
}

static void find(struct application_call *calls, size_t count, uint64_t opened_time,
                 struct turns *out)
{
    find_among(calls, count, opened_time, NULL, 0, out);
}

// What comes and goes in pieces is one message; the last one has no answer yet.
static void pieces_are_one_message(void **state)
{
    (void)state;
    struct turns turns;
    struct application_call calls[] = {
        call(CALL_RECEIVE, 0, 10, 100),  call(CALL_RECEIVE, 10, 5, 200),
        call(CALL_SEND, 0, 1000, 300),   call(CALL_SEND, 1000, 24, 400),
        call(CALL_RECEIVE, 15, 15, 500), call(CALL_SEND, 1024, 6, 600),
        call(CALL_RECEIVE, 30, 15, 700),
    };
    find(calls, sizeof calls / sizeof *calls, 50, &turns);
    assert_int_equal(turns.samples.count, 2);
    const struct sample *first = &turns.samples.items[0], *second = &turns.samples.items[1];
    assert_true(first->request_begin == 0 && first->request_end == 15);
    assert_true(first->reply_begin == 0 && first->reply_end == 1024);
    assert_true(first->intended_tsc == 205 && first->reply_tsc == 405);
    assert_true(second->request_begin == 15 && second->request_end == 30);
    assert_true(second->reply_begin == 1024 && second->reply_end == 1030);
    assert_int_equal(turns.unanswered, 1);
    assert_int_equal(turns.unasked, 0);
    turns_free(&turns);
}

// A greeting was not asked for; what an older connection sends first may have been.
static void what_nobody_asked_for_is_counted(void **state)
{
    (void)state;
    struct turns turns;
    struct application_call calls[] = {call(CALL_SEND, 0, 20, 100), call(CALL_RECEIVE, 0, 5, 200),
                                       call(CALL_SEND, 20, 5, 300)};
    find(calls, 3, 50, &turns);
    assert_int_equal(turns.samples.count, 1);
    assert_int_equal(turns.unasked, 1);
    turns_free(&turns);
    find(calls, 3, 0, &turns);
    assert_int_equal(turns.samples.count, 1);
    assert_int_equal(turns.unasked, 0);
    turns_free(&turns);
}

static struct event frame(uint8_t flags, uint64_t end, uint64_t bytes, uint32_t number)
{
    return (struct event){.kind = EVENT_FRAMED,
                          .flags = flags,
                          .id = 7,
                          .payload = {.a = end, .b = bytes << 32 | number}};
}

// Two requests in one call, each with the call that its own answer ended in; a third one across
// calls, behind one to which no answer comes; what no frame covers takes turns.
static void requests_that_came_together_are_told_apart(void **state)
{
    (void)state;
    struct turns turns;
    struct application_call calls[] = {
        call(CALL_RECEIVE, 0, 25, 100), call(CALL_SEND, 0, 8, 300),
        call(CALL_SEND, 8, 8, 400),     call(CALL_RECEIVE, 25, 15, 500),
        call(CALL_SEND, 16, 4, 600),    call(CALL_RECEIVE, 40, 10, 700),
        call(CALL_SEND, 20, 10, 800),
    };
    const struct event events[] = {
        frame(0, 10, 10, 4),
        frame(0, 20, 10, 5),
        frame(FRAMED_UNANSWERED, 28, 8, 0),
        frame(0, 40, 12, 6),
        frame(FRAMED_REPLY, 5, 5, 4),
        frame(FRAMED_REPLY, 16, 11, 5),
        frame(FRAMED_REPLY, 20, 4, 6),
        {.kind = EVENT_SENT, .id = 7},
    };
    find_among(calls, sizeof calls / sizeof *calls, 1, events, sizeof events / sizeof *events,
               &turns);
    assert_int_equal(turns.samples.count, 4);
    assert_int_equal(turns.framed.count, 3);
    static const struct {
        uint64_t begin, end, received, reply_begin, reply_end, answered;
    } wanted[] = {{0, 10, 105, 0, 5, 305},
                  {10, 20, 105, 5, 16, 405},
                  {28, 40, 505, 16, 20, 605},
                  {40, 50, 705, 20, 30, 805}};
    for (size_t i = 0; i < 4; i++) {
        const struct sample *sample = &turns.samples.items[i];
        assert_true(sample->request_begin == wanted[i].begin);
        assert_true(sample->request_end == wanted[i].end);
        assert_true(sample->send_tsc == wanted[i].received);
        assert_true(sample->reply_begin == wanted[i].reply_begin);
        assert_true(sample->reply_end == wanted[i].reply_end);
        assert_true(sample->reply_tsc == wanted[i].answered);
    }
    assert_int_equal(turns.unanswered + turns.unasked, 0);
    assert_int_equal(turns_keep(&turns, 305, 700), 0);
    assert_int_equal(turns.samples.count, 2);
    assert_int_equal(turns.earlier.count, 1);
    assert_int_equal(turns.earlier.items[0].reply_tsc, 305);
    assert_int_equal(turns.framed.count, 2);
    turns_free(&turns);
}

// Two that asked to be kept waiting, of which one still is: they are no requests, nor unanswered,
// and their calls take no turns; what comes between them is one.
static void who_asked_to_wait_is_no_request(void **state)
{
    (void)state;
    struct turns turns;
    struct application_call calls[] = {
        call(CALL_RECEIVE, 0, 10, 100),    call(CALL_SEND, 0, 5, 90000),
        call(CALL_RECEIVE, 10, 10, 90100), call(CALL_SEND, 5, 5, 90200),
        call(CALL_RECEIVE, 20, 10, 90300),
    };
    const struct event events[] = {
        frame(FRAMED_WAITS, 10, 10, 0), frame(FRAMED_REPLY, 5, 5, 0),   frame(0, 20, 10, 1),
        frame(FRAMED_REPLY, 10, 5, 1),  frame(FRAMED_WAITS, 30, 10, 2),
    };
    find_among(calls, sizeof calls / sizeof *calls, 1, events, sizeof events / sizeof *events,
               &turns);
    assert_int_equal(turns.samples.count, 1);
    assert_int_equal(turns.samples.items[0].request_begin, 10);
    assert_int_equal(turns.framed.count, 1);
    assert_int_equal(turns.kept_waiting.count, 1);
    assert_int_equal(turns.unanswered + turns.unasked, 0);
    assert_int_equal(turns_keep(&turns, 90100, 90300), 0);
    assert_int_equal(turns.kept_waiting.count, 0);
    turns_free(&turns);
}

// Between two framed requests those of a call whose answers' ends could not be seen: they take
// turns and are not unanswered. After the last answer there is one that is.
static void requests_passed_over_take_turns(void **state)
{
    (void)state;
    struct turns turns;
    struct application_call calls[] = {
        call(CALL_RECEIVE, 0, 10, 100),  call(CALL_SEND, 0, 5, 200),
        call(CALL_RECEIVE, 10, 30, 300), call(CALL_SEND, 5, 500, 400),
        call(CALL_RECEIVE, 40, 10, 500), call(CALL_SEND, 505, 5, 600),
        call(CALL_RECEIVE, 50, 10, 700),
    };
    const struct event events[] = {
        frame(0, 10, 10, 0), frame(FRAMED_REPLY, 5, 5, 0), frame(0, 20, 10, 1),
        frame(0, 30, 10, 2), frame(0, 50, 10, 4),          frame(FRAMED_REPLY, 510, 5, 4),
        frame(0, 60, 10, 5),
    };
    find_among(calls, sizeof calls / sizeof *calls, 1, events, sizeof events / sizeof *events,
               &turns);
    assert_int_equal(turns.samples.count, 3);
    assert_int_equal(turns.framed.count, 2);
    const struct sample *turn = &turns.samples.items[1];
    assert_int_equal(turn->request_begin, 10);
    assert_int_equal(turn->request_end, 40);
    assert_int_equal(turn->reply_end, 505);
    assert_int_equal(turn->reply_tsc, 405);
    assert_int_equal(turns.unanswered, 1);
    assert_int_equal(turns.unasked, 0);
    turns_free(&turns);
}

// A window with few has the latest of before, of each server; one with enough has none.
static void few_are_compared_with_those_before(void **state)
{
    (void)state;
    enum { MESSAGES = 3 * TURNS_ENOUGH };
    struct application_call *calls = calloc(2 * MESSAGES, sizeof *calls);
    assert_non_null(calls);
    for (int i = 0; i < MESSAGES; i++) { // answered at 1002, 2002, ...
        calls[2 * i] = call(CALL_RECEIVE, 10 * (uint64_t)i, 10, 1000 * (i + 1) - 50);
        calls[2 * i + 1] = call(CALL_SEND, 5 * (uint64_t)i, 5, 1000 * (i + 1));
    }
    const struct {
        int64_t after_ns;
        size_t kept, earlier;
    } windows[] = {{1000 * (MESSAGES - 10) + 500, 10, TURNS_ENOUGH - 10},
                   {1000 * (MESSAGES - TURNS_ENOUGH) + 500, TURNS_ENOUGH, 0},
                   {1000 * 7 + 500, MESSAGES - 7, 0}};
    for (size_t i = 0; i < sizeof windows / sizeof *windows; i++) {
        struct turns turns;
        find(calls, 2 * MESSAGES, 50, &turns);
        assert_int_equal(turns.samples.count, MESSAGES);
        assert_int_equal(turns_keep(&turns, windows[i].after_ns, INT64_MAX), 0);
        assert_int_equal(turns.samples.count, windows[i].kept);
        assert_int_equal(turns.earlier.count, windows[i].earlier);
        if (windows[i].earlier) { // all up to the window
            const struct sample *last = &turns.earlier.items[windows[i].earlier - 1];
            assert_true((int64_t)last->reply_tsc <= windows[i].after_ns &&
                        (int64_t)last->reply_tsc > windows[i].after_ns - 1000);
        }
        turns_free(&turns);
    }
    free(calls);
}

// Of two servers of one port, in two network namespaces, the busy one does not speak for the other.
static void servers_of_one_port_are_two(void **state)
{
    (void)state;
    enum { BUSY = 2 * TURNS_ENOUGH, QUIET = 20 };
    struct application_call *calls = calloc(2 * (BUSY + QUIET), sizeof *calls);
    assert_non_null(calls);
    for (int i = 0; i < BUSY + QUIET; i++) {
        const bool quiet = i % (BUSY / QUIET + 1) == 0;
        const uint64_t number = (uint64_t)(quiet ? i / (BUSY / QUIET + 1) : i);
        calls[2 * i] = call(CALL_RECEIVE, 10 * number, 10, 1000 * (i + 1) - 50);
        calls[2 * i + 1] = call(CALL_SEND, 5 * number, 5, 1000 * (i + 1));
        if (quiet)
            calls[2 * i].connection = calls[2 * i + 1].connection = 8;
    }
    const struct connection both[] = {
        {.id = 7, .protocol = CONNECTION_TCP, .local_port = 80, .namespace = 1},
        {.id = 8, .protocol = CONNECTION_TCP, .local_port = 80, .namespace = 2}};
    const struct application_calls all = {.items = calls, .count = 2 * (BUSY + QUIET)};
    const struct turns_input in = {.calls = &all, .connections = both, .connection_count = 2};
    struct turns turns;
    assert_int_equal(turns_find(&in, &turns), 0);
    assert_int_equal(turns_keep(&turns, 1000 * (BUSY + QUIET) / 2, INT64_MAX), 0);
    assert_int_equal(turns.earlier.count, QUIET / 2);
    for (size_t i = 0; i < turns.earlier.count; i++)
        assert_int_equal(turns.earlier.items[i].connection, 8);
    turns_free(&turns);
    free(calls);
}

static struct event segment(uint32_t connection, uint8_t flags, uint64_t end)
{
    return (struct event){
        .kind = EVENT_SEGMENT, .flags = flags, .id = connection, .payload = {.a = end}};
}

// A server stood still while a client sent three requests: the first of them is what waited for it.
// Pieces that were read one by one end with the last.
static void what_lay_unread_for_the_longest_is_the_message(void **state)
{
    (void)state;
    struct turns turns;
    struct application_call calls[] = {
        call(CALL_RECEIVE, 0, 30, 100),  call(CALL_SEND, 0, 6, 300),
        call(CALL_RECEIVE, 30, 10, 400), call(CALL_RECEIVE, 40, 10, 500),
        call(CALL_SEND, 6, 6, 600),      call(CALL_RECEIVE, 50, 10, 700),
        call(CALL_SEND, 12, 6, 800),
    };
    // Of an older one that came twice, of another connection, and of a datagram: none of theirs.
    const struct event events[] = {
        segment(7, 0, 30), segment(7, 0, 20),  segment(7, 0, 10),
        segment(7, 0, 40), segment(7, 0, 10),  segment(7, 0, 45),
        segment(7, 0, 50), segment(8, 0, 55),  segment(7, EVENT_OF_DATAGRAM, 52),
        segment(7, 0, 60), segment(7, 0, 100),
    };
    find_among(calls, sizeof calls / sizeof *calls, 1, events, sizeof events / sizeof *events,
               &turns);
    assert_int_equal(turns.samples.count, 3);
    static const uint64_t begins[] = {0, 30, 50}, ends[] = {10, 45, 60};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(turns.samples.items[i].request_begin, begins[i]);
        assert_int_equal(turns.samples.items[i].request_end, ends[i]);
    }
    assert_int_equal(turns.piecewise.count, 2);
    assert_int_equal(turns.piecewise.items[0], 305);
    assert_int_equal(turns.piecewise.items[1], 605);
    assert_int_equal(turns_keep(&turns, 305, INT64_MAX), 0);
    assert_int_equal(turns.piecewise.count, 1);
    assert_int_equal(turns.piecewise.items[0], 605);
    turns_free(&turns);
}

// A long request comes in several segments, too; all but its last are full.
static void what_was_written_at_once_is_not_piecewise(void **state)
{
    (void)state;
    struct turns turns;
    struct application_call calls[] = {
        call(CALL_RECEIVE, 0, 4000, 100),
        call(CALL_RECEIVE, 4000, 1000, 200),
        call(CALL_SEND, 0, 6, 300),
    };
    const struct event events[] = {segment(7, 0, 1448), segment(7, 0, 1448), segment(7, 0, 2896),
                                   segment(7, 0, 4344), segment(7, 0, 5000), segment(7, 0, 5010)};
    find_among(calls, sizeof calls / sizeof *calls, 1, events, sizeof events / sizeof *events,
               &turns);
    assert_int_equal(turns.samples.count, 1);
    assert_int_equal(turns.piecewise.count, 0);
    turns_free(&turns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_messages_are_the_loads),
        cmocka_unit_test(pieces_are_one_message),
        cmocka_unit_test(requests_that_came_together_are_told_apart),
        cmocka_unit_test(who_asked_to_wait_is_no_request),
        cmocka_unit_test(requests_passed_over_take_turns),
        cmocka_unit_test(what_nobody_asked_for_is_counted),
        cmocka_unit_test(few_are_compared_with_those_before),
        cmocka_unit_test(servers_of_one_port_are_two),
        cmocka_unit_test(what_lay_unread_for_the_longest_is_the_message),
        cmocka_unit_test(what_was_written_at_once_is_not_piecewise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
