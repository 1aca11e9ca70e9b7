// SPDX-License-Identifier: MIT
//
// What a message waited for on the load's host: the thread of the load behind a hog, busy with
// other requests, asleep, woken late, with every connection full; and that a stage stays whole
// where the load's cores were not recorded.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "analysis/decomposition/decompose.h"
#include "analysis/decomposition/decomposer.h"
#include "analysis/timeline/timeline.h"
#include "base/array.h"

enum { LOAD = 300, HOG = 666, CORE = 1, MESSAGES = 3 };
enum { IDLE_PROCESS = 0, TIMER = VECTOR_LOCAL_TIMER };

static int64_t same_time(const void *context, enum host_clock clock, uint64_t value)
{
    (void)context, (void)clock;
    return (int64_t)value;
}

struct bench {
    struct ARRAY_OF(struct event) events;
    struct host_timeline host;
    struct lifetime lives[MESSAGES];
    struct client_turns turns;
    struct openings openings;
    uint16_t opening_100us;
    uint64_t opened_ns;
    struct component_share_array shares;
    struct component_table table;
};

static struct event *add(struct bench *b, uint64_t time_us, uint8_t kind, uint32_t id)
{
    assert_int_equal(
        array_push(&b->events,
                   (struct event){.time = 1000 * time_us, .kind = kind, .core = CORE, .id = id}),
        0);
    return &b->events.items[b->events.count - 1];
}

static void run(struct bench *b, uint64_t time_us, uint32_t thread, uint8_t flags)
{
    struct event *event = add(b, time_us, EVENT_SWITCH, thread);
    const char *name = thread == LOAD ? "load-0" : thread == HOG ? "hog" : "swapper";
    event->flags = flags;
    memcpy(event->payload.text, name, strlen(name));
}

static void wake(struct bench *b, uint64_t time_us)
{
    add(b, time_us, EVENT_WAKING, LOAD)->payload.a = CORE;
}

// A whole life, of stages of 10 us each but for what is said: due, sent, reply read.
static void live(struct bench *b, unsigned i, int64_t due_us, int64_t sent_us, int64_t read_us)
{
    struct disorder disorder = {0};
    struct lifetime *life = &b->lives[i];
    *life = (struct lifetime){
        .request = i, .receive_call = NO_CALL, .send_call = NO_CALL, .present = 0x3ff};
    for (int kind = STAMP_INTENDED; kind < STAMP_KINDS; kind++)
        life->stamp_core[kind] = NO_CORE;
    life->stamp_ns[STAMP_INTENDED] = 1000 * due_us;
    for (int kind = STAMP_SEND; kind < STAMP_REPLY_READ; kind++)
        life->stamp_ns[kind] = 1000 * (sent_us + 10 * (kind - STAMP_SEND));
    life->stamp_ns[STAMP_REPLY_READ] = 1000 * read_us;
    lifetime_compute_stages(life, 0, &disorder);
}

static void take_apart(struct bench *b, bool recorded, uint64_t depth)
{
    const struct time_source clock = {.convert = same_time};
    const struct connection connection = {
        .id = 1, .process = LOAD, .opening_100us = b->opening_100us, .opened_time = b->opened_ns};
    struct error err = {0};
    struct decomposer decomposer;
    assert_int_equal(host_timeline_build(b->events.items, b->events.count, &clock, &b->host, &err),
                     0);
    assert_int_equal(client_turns_build(&b->turns, b->lives, MESSAGES, &connection, 1, depth), 0);
    assert_int_equal(openings_build(&b->openings, &connection, 1, &clock, 0), 0);
    const struct diagnosis_input input = {.lifetimes = b->lives,
                                          .openings = &b->openings,
                                          .lifetime_count = MESSAGES,
                                          .client = recorded ? &b->host : NULL,
                                          .client_turns = &b->turns,
                                          .granularity_ns = 500};
    assert_int_equal(component_table_init(&b->table, NULL, &b->host, NULL), 0);
    decomposer_init(&decomposer, &input, &b->table);
    assert_int_equal(decompose(&decomposer, 0, &b->shares, NULL), 0);
    decomposer_fini(&decomposer);
    double sum = 0;
    for (size_t i = 0; i < b->shares.count; i++)
        sum += b->shares.items[i].ns;
    assert_true(fabs(sum - b->lives[0].latency_ns) < 1);
}

// How long message 0 spent in that component of the client's, in us.
static double spent_us(const struct bench *b, const char *name)
{
    double ns = 0;
    for (size_t i = 0; i < b->shares.count; i++) {
        const struct component *component =
            &b->table.components.items[b->shares.items[i].component];
        if (component->role == ROLE_CLIENT && strcmp(component->name, name) == 0)
            ns += b->shares.items[i].ns;
    }
    return ns / 1000;
}

static void expect(const struct bench *b, const char *name, double us)
{
    if (fabs(spent_us(b, name) - us) > 0.01)
        fail_msg("%s: %g us, not %g", name, spent_us(b, name), us);
}

static void release(struct bench *b)
{
    host_timeline_free(&b->host);
    client_turns_free(&b->turns);
    openings_free(&b->openings);
    component_table_fini(&b->table);
    array_free(&b->shares);
    array_free(&b->events);
}

// Due at 100 us, sent at 400, read at 600; RX is at 470.
static void begin(struct bench *b)
{
    *b = (struct bench){0};
    live(b, 0, 100, 400, 600);
    live(b, 1, 5000, 5000, 5200);
    live(b, 2, 6000, 6000, 6200);
    run(b, 10, LOAD, 0);
}

// Due at 100 us, sent at 400; its connection is opened at 350, after 200 us of trying.
static void a_connection_that_is_opened_is_the_cause(void **state)
{
    struct bench b;
    (void)state;
    for (int recorded = 0; recorded <= 1; recorded++) {
        begin(&b);
        b.opening_100us = 2;
        b.opened_ns = 350000;
        run(&b, 900, LOAD, 0);
        take_apart(&b, recorded, 0);
        expect(&b, "connection being opened", 200);
        expect(&b, "client queue", 100);
        release(&b);
    }
}

// One that was open by then has nothing to do with it.
static void a_connection_that_was_open_is_none(void **state)
{
    struct bench b;
    (void)state;
    begin(&b);
    b.opening_100us = 2;
    b.opened_ns = 100000;
    take_apart(&b, false, 0);
    expect(&b, "connection being opened", 0);
    expect(&b, "client queue", 300);
    release(&b);
}

// Due at 100 us, sent at 5400 by a thread that read its last reply at 300 and had opened a
// connection again before: it had none since, though no record says when that began to be opened.
static void a_thread_without_a_connection_is_told_from_a_busy_one(void **state)
{
    struct bench b;
    (void)state;
    for (int again = 0; again <= 1; again++) {
        begin(&b);
        live(&b, 0, 100, 5400, 5600);
        live(&b, 1, 60, 60, 300);
        live(&b, 2, 200, 5390, 5700);
        b.opening_100us = again ? 1 : 0;
        b.opened_ns = 50000;
        run(&b, 9000, LOAD, 0);
        take_apart(&b, true, 0);
        expect(&b, "connection being opened", again ? 5090 : 0);
        expect(&b, "client busy with other requests", again ? 200 : 5290);
        expect(&b, "client queue", 10);
        release(&b);
    }
}

static void what_had_the_core_is_the_cause(void **state)
{
    struct bench b;
    (void)state;
    begin(&b);
    run(&b, 150, HOG, SWITCH_PREEMPTED);
    run(&b, 350, LOAD, 0);
    add(&b, 500, EVENT_VECTOR_ENTRY, TIMER);
    add(&b, 540, EVENT_VECTOR_EXIT, TIMER);
    run(&b, 9000, IDLE_PROCESS, 0);
    take_apart(&b, true, 0);
    expect(&b, "hog", 200);
    expect(&b, "client queue", 100);
    expect(&b, "local timer interrupt", 40);
    expect(&b, "client receive", 90);
    expect(&b, "client stack", 10);
    release(&b);
}

// After a stall two replies are read one after the other, and only then the message is sent, with
// none in flight: of two that may be, both places were taken until the first.
static void a_batch_of_replies_made_room(void **state)
{
    struct bench b;
    (void)state;
    begin(&b);
    live(&b, 1, 80, 80, 370);
    live(&b, 2, 90, 90, 390);
    run(&b, 9000, IDLE_PROCESS, 0);
    take_apart(&b, true, 2);
    expect(&b, "every connection full", 270);
    expect(&b, "client busy with other requests", 20);
    expect(&b, "client queue", 10);
    release(&b);
}

static void a_thread_works_for_others(void **state)
{
    struct bench b;
    (void)state;
    begin(&b);
    live(&b, 1, 90, 130, 370); // sent and read meanwhile
    run(&b, 9000, IDLE_PROCESS, 0);
    take_apart(&b, true, 0);
    expect(&b, "client busy with other requests", 270);
    expect(&b, "client queue", 30);
    release(&b);
    begin(&b); // the same, and the reply made room for it
    live(&b, 1, 90, 130, 370);
    b.lives[0].in_flight = 3;
    run(&b, 9000, IDLE_PROCESS, 0);
    take_apart(&b, true, 4);
    expect(&b, "every connection full", 270);
    expect(&b, "client busy with other requests", 0);
    expect(&b, "client queue", 30);
    release(&b);
}

static void a_thread_sleeps_and_is_woken_late(void **state)
{
    struct bench b;
    (void)state;
    begin(&b);
    run(&b, 50, IDLE_PROCESS, SWITCH_WAITS);
    wake(&b, 220);
    run(&b, 260, LOAD, 0);
    run(&b, 9000, IDLE_PROCESS, 0);
    take_apart(&b, true, 0);
    expect(&b, "client's timer late", 120);
    expect(&b, "client wake-up latency", 40);
    expect(&b, "client queue", 140);
    release(&b);
}

// Its reply is on its way to it.
static void a_thread_sleeps_until_the_reply_is_there(void **state)
{
    struct bench b;
    (void)state;
    begin(&b);
    run(&b, 480, IDLE_PROCESS, SWITCH_WAITS);
    wake(&b, 560);
    run(&b, 560, LOAD, 0);
    run(&b, 9000, IDLE_PROCESS, 0);
    take_apart(&b, true, 0);
    expect(&b, "client asleep", 80);
    expect(&b, "client's timer late", 0);
    release(&b);
}

static void a_thread_that_is_held_up_says_in_what(void **state)
{
    static const char file[] = "samples.tlog";
    enum { WRITE = 1 };
    struct bench b;
    (void)state;
    begin(&b);
    memcpy(add(&b, 150, EVENT_FILE, LOAD)->payload.text, file, sizeof file);
    add(&b, 150, EVENT_BLOCKED, LOAD)->payload.a = WRITE;
    run(&b, 150, IDLE_PROCESS, 0);
    wake(&b, 220);
    run(&b, 220, LOAD, 0);
    run(&b, 9000, IDLE_PROCESS, 0);
    take_apart(&b, true, 0);
    expect(&b, "client asleep: blocked in write to samples.tlog", 70);
    expect(&b, "client's timer late", 0);
    expect(&b, "client queue", 230);
    release(&b);
}

static void without_records_a_stage_stays_whole(void **state)
{
    struct bench b;
    (void)state;
    begin(&b);
    run(&b, 150, HOG, SWITCH_PREEMPTED);
    run(&b, 350, LOAD, 0);
    take_apart(&b, false, 0);
    expect(&b, "client queue", 300);
    expect(&b, "client receive", 130);
    release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_connection_that_is_opened_is_the_cause),
        cmocka_unit_test(a_connection_that_was_open_is_none),
        cmocka_unit_test(a_thread_without_a_connection_is_told_from_a_busy_one),
        cmocka_unit_test(what_had_the_core_is_the_cause),
        cmocka_unit_test(a_batch_of_replies_made_room),
        cmocka_unit_test(a_thread_works_for_others),
        cmocka_unit_test(a_thread_sleeps_and_is_woken_late),
        cmocka_unit_test(a_thread_sleeps_until_the_reply_is_there),
        cmocka_unit_test(a_thread_that_is_held_up_says_in_what),
        cmocka_unit_test(without_records_a_stage_stays_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
