// SPDX-License-Identifier: MIT
//
// Queues, core contexts and head-of-line blocking against scenarios, in which the truth is known:
// the server is one thread that serves requests in the order of their hand-off.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "analysis/diagnosis/diagnosis.h"
#include "analysis/lifetime/join.h"
#include "analysis/timeline/timeline.h"
#include "tests/analysis/diagnosis/scenario_joined.h"

struct diagnosed {
    struct scenario scenario;
    struct application_calls calls;
    struct lifetime_array lives;
    struct host_timeline server;
    struct service_order order;
    struct diagnosis diagnosis;
};

static void diagnosed_build(struct diagnosed *d, const struct scenario_options *options)
{
    static const uint32_t threads[] = {SERVER_THREAD};
    const struct diagnosis_slice slice = {.low = 0.95, .high = 1};
    *d = (struct diagnosed){0};
    scenario_build(&d->scenario, options);
    struct error err = {0};
    scenario_join(&d->scenario, &d->calls, &d->server, &d->lives);
    assert_int_equal(
        service_order_build(&d->order, d->lives.items, d->lives.count, &d->calls, &d->server), 0);
    struct diagnosis_input in = {.lifetimes = d->lives.items,
                                 .lifetime_count = d->lives.count,
                                 .server = &d->server,
                                 .application_threads = threads,
                                 .application_thread_count = 1,
                                 .calls = &d->calls,
                                 .order = &d->order,
                                 .granularity_ns = 500};
    assert_int_equal(diagnose(&in, &slice, &d->diagnosis, &err), 0);
    assert_true(d->diagnosis.views.available);
}

static void diagnosed_free(struct diagnosed *d)
{
    diagnosis_free(&d->diagnosis);
    service_order_free(&d->order);
    array_free(&d->lives);
    array_free(&d->calls);
    host_timeline_free(&d->server);
    scenario_free(&d->scenario);
}

static const struct scenario_options burst = {.requests = 4000,
                                              .connections = 16,
                                              .gap_ns = 60000,
                                              .pipelined = 1,
                                              .fault = FAULT_BURST,
                                              .faults = 10,
                                              .fault_ns = 400000,
                                              .seed = 5};

// Requests whose reply began after this one's hand-off and before its own.
static uint32_t truly_ahead(const struct diagnosed *d, uint64_t request)
{
    const struct scenario_request *own = &d->scenario.requests.items[request];
    uint32_t ahead = 0;
    for (size_t i = 0; i < d->scenario.requests.count; i++) {
        const struct scenario_request *other = &d->scenario.requests.items[i];
        ahead += i != request && other->reply > own->handoff && other->reply < own->reply;
    }
    return ahead;
}

static void queues_are_as_deep_as_they_were(void **state)
{
    (void)state;
    struct diagnosed d;
    diagnosed_build(&d, &burst);
    const struct diagnosis_views *views = &d.diagnosis.views;
    assert_int_equal(views->messages.count, d.diagnosis.messages.count);
    uint64_t right = 0, deep = 0;
    for (size_t i = 0; i < views->messages.count; i++) {
        const struct message_view *view = &views->messages.items[i];
        uint64_t lifetime = d.diagnosis.messages.items[i].lifetime;
        uint32_t truth = truly_ahead(&d, d.lives.items[lifetime].request);
        uint32_t seen = view->ahead[QUEUE_PROCESSING];
        // One whose reply was just being sent may count either way.
        right += seen >= truth && seen <= truth + 1;
        deep += truth > 3;
        float blocked = 0;
        for (int scope = 0; scope < BLOCKING_SCOPES; scope++)
            blocked += view->blocked_ns[scope];
        assert_true(blocked <= d.lives.items[lifetime].latency_ns);
    }
    assert_true(deep > 20);
    assert_int_equal(right, views->messages.count);
    const struct queue_summary *sends = &views->queue[QUEUE_APP_SEND];
    assert_true(sends->sides[VIEW_SLICE].ahead.median > sends->sides[VIEW_REFERENCE].ahead.median);
    assert_true(sends->sides[VIEW_SLICE].ns.mean > sends->sides[VIEW_REFERENCE].ns.mean);
    assert_true(sends->more > views->messages.count / 2);
    diagnosed_free(&d);
}

static void blockers_are_named(void **state)
{
    (void)state;
    struct diagnosed d;
    diagnosed_build(&d, &burst);
    const struct diagnosis_views *views = &d.diagnosis.views;
    for (size_t i = 0; i < views->messages.count; i++) {
        const struct message_view *view = &views->messages.items[i];
        const struct lifetime *life = &d.lives.items[d.diagnosis.messages.items[i].lifetime];
        uint32_t all = 0;
        for (int scope = 0; scope < BLOCKING_SCOPES; scope++)
            all += view->blocked_by[scope];
        assert_int_equal(view->blockers, all < NAMED_BLOCKERS ? all : NAMED_BLOCKERS);
        for (uint32_t b = 0; b < view->blockers; b++) {
            const struct blocker *blocker = &views->blockers.items[view->first_blocker + b];
            const struct lifetime *other = &d.lives.items[blocker->lifetime];
            assert_true(b == 0 || blocker->ns <= blocker[-1].ns);
            assert_true(other->request != life->request);
            if (blocker->scope == BLOCKED_BY_CORE_R)
                continue;
            assert_true(other->stamp_ns[STAMP_REPLY] < life->stamp_ns[STAMP_REPLY]);
            assert_int_equal(blocker->scope == BLOCKED_BY_CONNECTION,
                             other->connection == life->connection);
            assert_int_equal(blocker->scope == BLOCKED_BY_BATCH,
                             other->batch == life->batch && other->connection != life->connection);
        }
    }
    assert_true(views->worst.count > 0);
    assert_true(views->worst.items[0].messages > 1);
    diagnosed_free(&d);
}

static void pipelined_requests_share_their_service(void **state)
{
    (void)state;
    struct diagnosed d;
    struct scenario_options options = burst;
    options.fault = FAULT_NONE;
    options.pipelined = 4;
    diagnosed_build(&d, &options);
    const struct diagnosis_views *views = &d.diagnosis.views;
    assert_true(views->blocking[BLOCKED_BY_CONNECTION].messages == views->messages.count);
    for (size_t i = 0; i < views->messages.count; i++)
        assert_true(views->messages.items[i].blocked_by[BLOCKED_BY_CONNECTION] >= 3);
    diagnosed_free(&d);
}

static double share_of(const struct diagnosis_views *views, const char *name, int side)
{
    double ns = 0;
    for (size_t i = 0; i < views->contexts.count; i++)
        if (strcmp(views->contexts.items[i].name, name) == 0)
            ns += views->contexts.items[i].ns[side];
    return ns / views->context_ns[side];
}

static void contexts_add_up_and_show_the_hog(void **state)
{
    (void)state;
    struct diagnosed d;
    struct scenario_options options = burst;
    options.fault = FAULT_HOG;
    options.faults = 100;
    diagnosed_build(&d, &options);
    const struct diagnosis_views *views = &d.diagnosis.views;
    double expected = 0;
    for (size_t i = 0; i < d.diagnosis.messages.count; i++) {
        const struct lifetime *life = &d.lives.items[d.diagnosis.messages.items[i].lifetime];
        expected += (double)(life->stamp_ns[STAMP_SERVER_TX] - life->stamp_ns[STAMP_NIC]);
    }
    assert_true(fabs(views->context_ns[VIEW_SLICE] - expected) < 0.001 * expected);
    assert_true(share_of(views, "yes", VIEW_SLICE) > 0.5);
    assert_true(share_of(views, "yes", VIEW_REFERENCE) < 0.01);
    for (size_t i = 0; i < views->contexts.count; i++)
        assert_true(views->contexts.items[i].role == ROLE_R ||
                    views->contexts.items[i].role == ROLE_A);
    diagnosed_free(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(queues_are_as_deep_as_they_were),
        cmocka_unit_test(blockers_are_named),
        cmocka_unit_test(pipelined_requests_share_their_service),
        cmocka_unit_test(contexts_add_up_and_show_the_hog),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
