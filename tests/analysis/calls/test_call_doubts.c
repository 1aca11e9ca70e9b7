// SPDX-License-Identifier: MIT
//
// A server's socket calls beside the kernel's events of the same sockets: what agrees stays, what
// cannot be is taken out from the last point on at which both agreed.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analysis/calls/call_doubts.h"

enum { ROUNDS = 100, REQUEST = 30, REPLY = 50, ROUND_NS = 100000, SOCKETS = 2 };

struct talk {
    struct call_doubts_input in;
    struct application_call calls[SOCKETS * ROUNDS * 2 + 1];
    struct event events[SOCKETS * ROUNDS * 2];
    struct connection connections[SOCKETS];
    struct application_calls working;
    size_t call_count, event_count;
};

static int64_t plain_time(const void *context, enum host_clock clock, uint64_t value)
{
    (void)context;
    (void)clock;
    return (int64_t)value;
}

static struct application_call call(uint8_t kind, uint32_t connection, int64_t entry_ns,
                                    uint64_t offset, uint32_t length)
{
    return (struct application_call){.entry_ns = entry_ns,
                                     .exit_ns = entry_ns + 3000,
                                     .offset = offset,
                                     .length = length,
                                     .connection = connection,
                                     .thread = 7,
                                     .kind = kind};
}

// Requests of 30 bytes, each handed over, received, and answered with 50 bytes, which are
// transmitted within the call.
static void talk_make(struct talk *talk)
{
    *talk = (struct talk){0};
    for (uint32_t s = 0; s < SOCKETS; s++)
        talk->connections[s] = (struct connection){.id = s + 1, .cookie = s + 1};
    for (uint64_t r = 0; r < ROUNDS; r++)
        for (uint32_t s = 1; s <= SOCKETS; s++) {
            uint64_t at = 1000000 + r * ROUND_NS + s * 40000;
            talk->events[talk->event_count++] =
                (struct event){.time = at,
                               .kind = EVENT_HANDOFF,
                               .id = s,
                               .payload = {{.a = (r + 1) * REQUEST, .b = r * REQUEST}}};
            talk->calls[talk->call_count++] =
                call(CALL_RECEIVE, s, (int64_t)at + 5000, r * REQUEST, REQUEST);
            talk->calls[talk->call_count++] =
                call(CALL_SEND, s, (int64_t)at + 15000, r * REPLY, REPLY);
            talk->events[talk->event_count++] =
                (struct event){.time = at + 16000,
                               .kind = EVENT_TRANSMIT,
                               .id = s,
                               .payload = {{.a = (r + 1) * REPLY, .b = REPLY}}};
        }
}

static struct call_doubts talk_settle(struct talk *talk)
{
    struct call_doubts doubts;
    talk->in = (struct call_doubts_input){.connections = talk->connections,
                                          .connection_count = SOCKETS,
                                          .events = talk->events,
                                          .event_count = talk->event_count,
                                          .sockets = talk->connections,
                                          .socket_count = SOCKETS,
                                          .clock = {.convert = plain_time, .error_ns = 100}};
    talk->working = (struct application_calls){.items = talk->calls, .count = talk->call_count};
    assert_int_equal(call_doubts_settle(&talk->working, &talk->in, &doubts), 0);
    assert_int_equal(talk->working.count + doubts.calls, talk->call_count);
    return doubts;
}

static size_t left_of(const struct talk *talk, uint32_t connection, uint8_t kind)
{
    size_t count = 0;
    for (size_t i = 0; i < talk->working.count; i++)
        count +=
            talk->working.items[i].connection == connection && talk->working.items[i].kind == kind;
    return count;
}

static void what_agrees_stays(void **state)
{
    (void)state;
    struct talk talk;
    talk_make(&talk);
    struct call_doubts doubts = talk_settle(&talk);
    assert_int_equal(doubts.sockets, 0);
    assert_int_equal(doubts.calls, 0);
}

// From the 60th request on the shim missed 5 bytes.
static void missed_bytes_are_found(void **state)
{
    (void)state;
    struct talk talk;
    talk_make(&talk);
    for (size_t i = 0; i < talk.call_count; i++) {
        struct application_call *one = &talk.calls[i];
        if (one->connection == 1 && one->kind == CALL_RECEIVE && one->offset >= 60 * REQUEST)
            one->offset -= 5;
    }
    struct call_doubts doubts = talk_settle(&talk);
    assert_int_equal(doubts.sockets, 1);
    assert_in_range(left_of(&talk, 1, CALL_RECEIVE), 59, 60);
    assert_int_equal(left_of(&talk, 1, CALL_SEND), ROUNDS);
    assert_int_equal(left_of(&talk, 2, CALL_RECEIVE), ROUNDS);
}

// The shim missed a whole reply, and all are of one length: where a transmit comes after the next
// call has begun, the counts agree by chance, now and then.
static void agreement_by_chance_proves_nothing(void **state)
{
    (void)state;
    struct talk talk;
    talk_make(&talk);
    for (size_t i = 0; i < talk.call_count; i++) {
        struct application_call *one = &talk.calls[i];
        if (one->connection == 1 && one->kind == CALL_SEND && one->offset >= 60 * REPLY)
            one->offset -= REPLY;
    }
    for (size_t i = 0; i < talk.event_count; i++) {
        struct event *event = &talk.events[i];
        if (event->kind == EVENT_TRANSMIT && event->id == 1 && event->payload.a % (5 * REPLY) == 0)
            event->time += ROUND_NS;
    }
    talk_settle(&talk);
    assert_in_range(left_of(&talk, 1, CALL_SEND), 59, 61);
}

static void missed_replies_are_found(void **state)
{
    (void)state;
    struct talk talk;
    talk_make(&talk);
    for (size_t i = 0; i < talk.call_count; i++) {
        struct application_call *one = &talk.calls[i];
        if (one->connection == 2 && one->kind == CALL_SEND && one->offset >= 60 * REPLY)
            one->offset -= 7;
    }
    struct call_doubts doubts = talk_settle(&talk);
    assert_int_equal(doubts.sockets, 1);
    assert_in_range(left_of(&talk, 2, CALL_SEND), 59, 60);
    assert_int_equal(left_of(&talk, 2, CALL_RECEIVE), ROUNDS);
}

// From the 60th reply on the shim counted bytes of something else before it: no transmit goes
// beyond what was sent, but all stop short of it, by as much.
static void bytes_never_sent_are_found(void **state)
{
    (void)state;
    struct talk talk;
    talk_make(&talk);
    for (size_t i = 0; i < talk.call_count; i++) {
        struct application_call *one = &talk.calls[i];
        if (one->connection == 2 && one->kind == CALL_SEND && one->offset >= 60 * REPLY)
            one->offset += 7;
    }
    struct call_doubts doubts = talk_settle(&talk);
    assert_int_equal(doubts.sockets, 1);
    assert_in_range(left_of(&talk, 2, CALL_SEND), 59, 60);
    assert_int_equal(left_of(&talk, 2, CALL_RECEIVE), ROUNDS);
}

// A full send queue: the kernel is always behind, and cuts what it sends as it likes.
static void late_transmits_are_no_doubt(void **state)
{
    (void)state;
    struct talk talk;
    talk_make(&talk);
    for (size_t i = 0; i < talk.event_count; i++) {
        struct event *event = &talk.events[i];
        if (event->kind == EVENT_TRANSMIT && event->payload.a > 20 * REPLY)
            event->payload.a -= 20 * REPLY - event->payload.a / REPLY * 13 % REPLY;
    }
    struct call_doubts doubts = talk_settle(&talk);
    assert_int_equal(doubts.sockets, 0);
    assert_int_equal(doubts.calls, 0);
}

// The descriptor became a file's after the connection's end, and the shim read on.
static void more_than_arrived_is_found(void **state)
{
    (void)state;
    struct talk talk;
    talk_make(&talk);
    talk.calls[talk.call_count++] = call(CALL_RECEIVE, 1, 1000000 + ROUNDS * ROUND_NS + 50000,
                                         (uint64_t)ROUNDS * REQUEST, 4096);
    struct call_doubts doubts = talk_settle(&talk);
    assert_int_equal(doubts.sockets, 1);
    assert_in_range(left_of(&talk, 1, CALL_RECEIVE), ROUNDS - 1, ROUNDS);
    assert_int_equal(left_of(&talk, 2, CALL_RECEIVE), ROUNDS);
}

// Calls that were lost leave a gap, behind which the offsets are right: nothing is taken out. Nor
// is it where the recording begins late, or one of the events contradicts for a moment.
static void gaps_are_no_doubt(void **state)
{
    (void)state;
    struct talk talk;
    talk_make(&talk);
    size_t kept = 0;
    for (size_t i = 0; i < talk.call_count; i++) {
        uint64_t number =
            talk.calls[i].offset / (talk.calls[i].kind == CALL_SEND ? REPLY : REQUEST);
        if (number >= 20 && (number < 50 || number >= 55))
            talk.calls[kept++] = talk.calls[i];
    }
    talk.call_count = kept;
    struct call_doubts doubts = talk_settle(&talk);
    assert_int_equal(doubts.sockets, 0);
    assert_int_equal(doubts.calls, 0);
}

// A thread that blocks has entered its call before the request comes.
static void blocking_calls_agree(void **state)
{
    (void)state;
    struct talk talk;
    talk_make(&talk);
    for (size_t i = 0; i < talk.call_count; i++)
        if (talk.calls[i].kind == CALL_RECEIVE)
            talk.calls[i].entry_ns -= 30000;
    struct call_doubts doubts = talk_settle(&talk);
    assert_int_equal(doubts.sockets, 0);
    assert_int_equal(doubts.calls, 0);
}

static void without_cookies_nothing_is_known(void **state)
{
    (void)state;
    struct talk talk;
    talk_make(&talk);
    talk.connections[0].cookie = talk.connections[1].cookie = 0;
    talk.calls[0].offset = 12345;
    struct call_doubts doubts = talk_settle(&talk);
    assert_int_equal(doubts.sockets, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_agrees_stays),
        cmocka_unit_test(missed_bytes_are_found),
        cmocka_unit_test(agreement_by_chance_proves_nothing),
        cmocka_unit_test(missed_replies_are_found),
        cmocka_unit_test(bytes_never_sent_are_found),
        cmocka_unit_test(late_transmits_are_no_doubt),
        cmocka_unit_test(more_than_arrived_is_found),
        cmocka_unit_test(gaps_are_no_doubt),
        cmocka_unit_test(blocking_calls_agree),
        cmocka_unit_test(without_cookies_nothing_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
