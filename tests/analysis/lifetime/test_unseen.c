// SPDX-License-Identifier: MIT
//
// How long nobody knows what a message's core did: cores that were recorded from some time on only,
// or never, and records that are missing.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "analysis/lifetime/unseen.h"
#include "tests/analysis/diagnosis/scenario_joined.h"

struct fixture {
    struct scenario scenario;
    struct application_calls calls;
    struct host_timeline server;
    struct lifetime_array lives;
    struct unseen_time unseen;
};

static void make(struct fixture *f)
{
    *f = (struct fixture){0};
    scenario_build(
        &f->scenario,
        &(struct scenario_options){
            .requests = 1000, .connections = 8, .gap_ns = 50000, .pipelined = 1, .seed = 7});
}

static void look(struct fixture *f)
{
    scenario_join(&f->scenario, &f->calls, &f->server, &f->lives);
    assert_int_equal(unseen_time_build(&f->unseen, f->lives.items, f->lives.count, &f->server), 0);
}

static void release(struct fixture *f)
{
    unseen_time_free(&f->unseen);
    host_timeline_free(&f->server);
    array_free(&f->calls);
    array_free(&f->lives);
    scenario_free(&f->scenario);
}

static bool is_about_messages(const struct event *event)
{
    return event->kind == EVENT_SEGMENT || event->kind == EVENT_HANDOFF ||
           event->kind == EVENT_WAKING;
}

// Takes away what a core that is recorded from `from_ns` on does not say before.
static void forget_core(struct scenario *s, uint16_t core, int64_t from_ns)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->events.count; i++) {
        const struct event *event = &s->events.items[i];
        if (event->core != core || is_about_messages(event) ||
            (int64_t)event->time - MONOTONIC_AHEAD_NS >= from_ns)
            s->events.items[kept++] = *event;
    }
    s->events.count = kept;
}

// How long requests lay at the receive core before `until_ns`, each moment once.
static uint64_t received_ns(const struct fixture *f, int64_t until_ns, uint64_t *requests)
{
    uint64_t sum = 0;
    int64_t reached = INT64_MIN;
    *requests = 0;
    for (size_t i = 0; i < f->lives.count; i++) { // their order is that of M(n) here, but for a few
        int64_t from = f->lives.items[i].stamp_ns[STAMP_NIC];
        int64_t to = f->lives.items[i].stamp_ns[STAMP_HANDOFF];
        to = to < until_ns ? to : until_ns;
        *requests += to > from;
        from = from > reached ? from : reached;
        sum += to > from ? (uint64_t)(to - from) : 0;
        reached = to > reached ? to : reached;
    }
    return sum;
}

static void all_is_seen(void **state)
{
    (void)state;
    struct fixture f;
    make(&f);
    look(&f);
    assert_int_equal(f.unseen.cores.count, 0);
    assert_int_equal(f.unseen.unrecorded_ns + f.unseen.lost_ns + f.unseen.unrecorded, 0);
    release(&f);
}

static void a_core_is_followed_late(void **state)
{
    (void)state;
    struct fixture f;
    const int64_t from = SCENARIO_BEGIN_NS + 10000000;
    uint64_t requests;
    make(&f);
    forget_core(&f.scenario, 1, from);
    struct event *watched = scenario_event(&f.scenario, from, EVENT_WATCHED, 1, 0);
    watched->flags = WATCHED_LATE;
    look(&f);
    uint64_t truth = received_ns(&f, from, &requests);
    assert_int_equal(f.unseen.cores.count, 1);
    const struct unseen_core *core = &f.unseen.cores.items[0];
    assert_int_equal(core->core, 1);
    assert_true(core->received);
    assert_int_equal(core->lost_ns, 0);
    assert_true(requests > 100 && f.unseen.unrecorded == requests);
    assert_true(fabs((double)core->unrecorded_ns / (double)truth - 1) < 0.02);
    assert_int_equal(f.unseen.unrecorded_ns, core->unrecorded_ns);
    release(&f);
}

static void a_core_is_never_recorded(void **state)
{
    (void)state;
    struct fixture f;
    uint64_t requests;
    make(&f);
    forget_core(&f.scenario, 1, INT64_MAX);
    look(&f);
    uint64_t truth = received_ns(&f, INT64_MAX, &requests);
    assert_int_equal(f.unseen.unrecorded, f.lives.count);
    assert_true(fabs((double)f.unseen.unrecorded_ns / (double)truth - 1) < 0.02);
    release(&f);
}

// A switch on the server's core is flagged: what the thread before it did is not known.
static void records_are_missing(void **state)
{
    (void)state;
    struct fixture f;
    make(&f);
    size_t at = f.scenario.events.count / 2;
    while (f.scenario.events.items[at].kind != EVENT_SWITCH ||
           f.scenario.events.items[at].core != 0 || f.scenario.events.items[at].id != 0)
        at++;
    f.scenario.events.items[at].flags = SWITCH_UNSEEN;
    look(&f);
    assert_int_equal(f.unseen.cores.count, 1);
    const struct unseen_core *core = &f.unseen.cores.items[0];
    assert_int_equal(core->core, 0);
    assert_false(core->received);
    assert_int_equal(core->unrecorded_ns, 0);
    assert_int_equal(f.unseen.unrecorded, 0);
    assert_true(core->lost_ns > 500 && core->lost_ns < 1000000);
    release(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_is_seen),
        cmocka_unit_test(a_core_is_followed_late),
        cmocka_unit_test(a_core_is_never_recorded),
        cmocka_unit_test(records_are_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
