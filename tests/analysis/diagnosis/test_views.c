// SPDX-License-Identifier: MIT
//
// Queues, core contexts and head-of-line blocking against scenarios, in which the truth is known:
// the server is one thread that serves requests in the order of their hand-off.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
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
    bool without_client; // no load of ours
};

static void diagnosed_join(struct diagnosed *d)
{
    static const uint32_t threads[] = {SERVER_THREAD};
    const struct diagnosis_slice slice = {.low = 0.95, .high = 1};
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
                                 .without_client = d->without_client,
                                 .granularity_ns = 500};
    assert_int_equal(diagnose(&in, &slice, &d->diagnosis, &err), 0);
    assert_true(d->diagnosis.views.available);
}

static void diagnosed_build(struct diagnosed *d, const struct scenario_options *options)
{
    *d = (struct diagnosed){0};
    scenario_build(&d->scenario, options);
    diagnosed_join(d);
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

// What a thread works before it sends a reply's headers is for that reply, of which the body
// follows in a call of its own: nobody else's request on the connection.
static void work_before_a_replys_first_half_is_its_own(void **state)
{
    (void)state;
    struct diagnosed d;
    const struct scenario_options options = {.requests = 4000,
                                             .connections = 16,
                                             .gap_ns = 400000,
                                             .pipelined = 1,
                                             .halves = true,
                                             .fault = FAULT_SLOW,
                                             .faults = 100,
                                             .fault_ns = 300000,
                                             .seed = 5};
    diagnosed_build(&d, &options);
    assert_true(d.diagnosis.causes.count > 0);
    const struct cause *first = &d.diagnosis.causes.items[0];
    assert_string_equal(first->name, "application time");
    for (size_t i = 1; i < d.diagnosis.causes.count; i++)
        if (strcmp(first[i].name, "head-of-line blocking (same connection)") == 0)
            assert_true(first[i].total_ns < first->total_ns / 4); // another one stood behind it
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

static double cause_ns(const struct diagnosis *g, const char *name)
{
    for (size_t i = 0; i < g->causes.count; i++)
        if (g->causes.items[i].role == ROLE_A && strcmp(g->causes.items[i].name, name) == 0)
            return g->causes.items[i].total_ns;
    return 0;
}

enum { SLOW = 40, SLOW_NS = 400000 };

static const struct scenario_options slow = {.requests = 4000,
                                             .connections = 16,
                                             .gap_ns = 60000,
                                             .pipelined = 1,
                                             .fault = FAULT_SLOW,
                                             .faults = SLOW,
                                             .fault_ns = SLOW_NS,
                                             .seed = 5};

// Slow requests of the load are heavy themselves, and apart from those that waited behind them.
static void heavy_requests_are_told_from_those_behind(void **state)
{
    (void)state;
    struct diagnosed d;
    diagnosed_build(&d, &slow);
    const struct diagnosis_views *views = &d.diagnosis.views;
    const struct culprit *first = &views->culprits.items[0];
    assert_true(first->heavy && first->known && !first->foreign);
    assert_true(first->services > SLOW / 2 && first->services <= SLOW);
    assert_float_equal(first->each_ns, SLOW_NS + 6000, 3000);
    assert_in_range(views->slow_themselves, SLOW / 2, SLOW);
    assert_true(views->slow_behind >= views->messages.count - views->slow_themselves - 10);
    assert_true(views->blocked_ns > 0.9 * cause_ns(&d.diagnosis, "head-of-line blocking"));
    diagnosed_free(&d);
}

// The same work for a client that is not the load: its connection is named, and no request of the
// load held up others for long.
static void other_clients_are_named(void **state)
{
    enum { OTHER = 999, KEYS = 77 };
    (void)state;
    struct diagnosed d = {0};
    size_t moved = 0;
    scenario_build(&d.scenario, &slow);
    for (size_t i = 1; i < d.scenario.calls.count; i++) {
        struct call *call = &d.scenario.calls.items[i];
        if (call->kind == CALL_SEND && call[-1].kind == CALL_RECEIVE &&
            call->entry_tsc - call[-1].exit_tsc > SLOW_NS * CYCLES_PER_NS) {
            call->connection = call[-1].connection = OTHER;
            call[-1].command = KEYS;
            moved++;
        }
    }
    assert_int_equal(moved, SLOW);
    diagnosed_join(&d);
    const struct diagnosis_views *views = &d.diagnosis.views;
    const struct culprit *first = &views->culprits.items[0];
    assert_true(first->foreign && first->heavy);
    assert_int_equal(first->connection, OTHER);
    assert_int_equal(first->command, KEYS);
    assert_in_range(first->services, SLOW * 3 / 4, SLOW);
    assert_float_equal(first->each_ns, SLOW_NS + 6000, 3000);
    assert_true(first->messages > views->messages.count / 2);
    for (size_t i = 0; i < views->worst.count && i < SLOW / 2; i++)
        assert_true(views->worst.items[i].lifetime == NO_LIFETIME);
    double cause = cause_ns(&d.diagnosis, "head-of-line blocking");
    assert_true(cause > 0);
    assert_true(first->total_ns > 0.8 * cause);
    assert_true(views->blocked_ns > 0.9 * cause && views->blocked_ns < 1.1 * cause);
    assert_true(views->slow_themselves < 3);
    diagnosed_free(&d);
}

static int by_core_and_time(const void *left, const void *right)
{
    const struct event *a = left, *b = right;
    return order_of(a->core, b->core) ?: order_of(a->time, b->time);
}

enum { OTHER = 999 };

// The thread sleeps in requests, until a timer; with SWITCH_WAITS in its event loop. They are
// another client's, but where there is no load. The caller frees.
static void build_sleeping(struct diagnosed *d, uint8_t flags)
{
    struct scenario *s = &d->scenario;
    scenario_build(s, &slow);
    for (size_t i = 1; i < s->calls.count; i++) {
        struct call *call = &s->calls.items[i];
        if (call->kind != CALL_SEND || call[-1].kind != CALL_RECEIVE ||
            call->entry_tsc - call[-1].exit_tsc <= SLOW_NS * CYCLES_PER_NS)
            continue;
        int64_t begin = (int64_t)(call[-1].exit_tsc / CYCLES_PER_NS) + 500,
                end = (int64_t)(call->entry_tsc / CYCLES_PER_NS) - 500;
        if (!d->without_client)
            call->connection = call[-1].connection = OTHER;
        scenario_switch(s, begin, 0, 0, "swapper/0");
        s->events.items[s->events.count - 1].flags = flags;
        scenario_event(s, end - 1000, EVENT_WAKING, 0, SERVER_THREAD);
        scenario_switch(s, end, 0, SERVER_THREAD, "server");
    }
    array_sort(&s->events, by_core_and_time);
    diagnosed_join(d);
}

static const struct culprit *longest_sleeper(const struct diagnosis_views *views)
{
    const struct culprit *most = views->culprits.items;
    for (size_t i = 1; i < views->culprits.count; i++)
        most =
            views->culprits.items[i].slept_ns > most->slept_ns ? &views->culprits.items[i] : most;
    return most;
}

// Whose request that is, is known as if it had run.
static void sleeping_for_other_clients_is_theirs(void **state)
{
    (void)state;
    struct diagnosed d = {0};
    build_sleeping(&d, 0);
    const struct diagnosis_views *views = &d.diagnosis.views;
    const struct culprit *most = longest_sleeper(views);
    assert_true(most->foreign);
    assert_int_equal(most->connection, OTHER);
    assert_true(most->messages > views->messages.count / 2);
    assert_true(most->slept_ns > 0.8 * d.diagnosis.causes.items[0].total_ns);
    assert_true(most->total_ns < 0.2 * most->slept_ns);
    diagnosed_free(&d);
}

// Where no client is ours all requests are of one kind: those in which the thread slept are told
// from the others, and by their connections.
static void sleeping_for_a_client_is_his(void **state)
{
    (void)state;
    struct diagnosed d = {.without_client = true};
    build_sleeping(&d, 0);
    const struct diagnosis_views *views = &d.diagnosis.views;
    double slept_ns = 0;
    for (size_t i = 0; i < views->culprits.count; i++) {
        const struct culprit *one = &views->culprits.items[i];
        assert_true(one->foreign == (one->heavy || one->slept_ns > 0));
        assert_true(!one->foreign || one->connection != SEVERAL);
        slept_ns += one->slept_ns;
    }
    assert_true(longest_sleeper(views)->messages < views->messages.count);
    assert_true(slept_ns > 0.5 * d.diagnosis.causes.items[0].total_ns);
    diagnosed_free(&d);
}

// An event loop with a request unfinished serves whoever comes meanwhile.
static void a_waiting_loop_sleeps_for_nobody(void **state)
{
    (void)state;
    struct diagnosed d = {0};
    build_sleeping(&d, SWITCH_WAITS);
    assert_true(d.diagnosis.views.culprits.count > 0);
    assert_true(longest_sleeper(&d.diagnosis.views)->slept_ns <= 0);
    diagnosed_free(&d);
}

// What the thread does for itself after a reply is not the last connection's.
static void own_work_between_requests_is_nobodys(void **state)
{
    (void)state;
    struct diagnosed d;
    struct scenario_options options = slow;
    options.fault = FAULT_OWN_WORK;
    diagnosed_build(&d, &options);
    const struct diagnosis *g = &d.diagnosis;
    assert_string_equal(g->causes.items[0].name, "the server's own work");
    assert_string_equal(g->causes.items[0].category, "the server's own work");
    assert_true(g->coverage_median > 0.9);
    assert_true(cause_ns(g, "head-of-line blocking") < 0.5 * g->causes.items[0].total_ns);
    for (size_t i = 0; i < g->views.culprits.count; i++)
        assert_false(g->views.culprits.items[i].heavy);
    options.fault = FAULT_BURST; // nothing of the kind where there is none
    struct diagnosed none;
    diagnosed_build(&none, &options);
    assert_true(cause_ns(&none.diagnosis, "the server's own work") <= 0);
    diagnosed_free(&none);
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

// What the messages' cores did one by one is what they did together; each that a thread or core
// served first is somebody's.
static void messages_add_up(const struct diagnosis_views *views)
{
    double *sums = calloc(views->contexts.count, sizeof *sums);
    for (size_t i = 0; i < views->messages.count; i++) {
        const struct message_view *view = &views->messages.items[i];
        assert_true(view->contexts > 0);
        for (uint32_t c = 0; c < view->contexts; c++) {
            const struct context_time *one = &views->context_times.items[view->first_context + c];
            sums[one->context] += (double)one->ns;
        }
        for (uint32_t b = 0; b < view->blockers; b++) {
            const struct blocker *one = &views->blockers.items[view->first_blocker + b];
            if (one->scope != BLOCKED_BY_CORE_R && one->ns > 0)
                assert_true(one->culprit < views->culprits.count);
        }
    }
    for (size_t i = 0; i < views->contexts.count; i++)
        assert_float_equal(sums[i], views->contexts.items[i].ns[VIEW_SLICE], 1000);
    free(sums);
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
    messages_add_up(views);
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
        cmocka_unit_test(work_before_a_replys_first_half_is_its_own),
        cmocka_unit_test(blockers_are_named),
        cmocka_unit_test(pipelined_requests_share_their_service),
        cmocka_unit_test(heavy_requests_are_told_from_those_behind),
        cmocka_unit_test(other_clients_are_named),
        cmocka_unit_test(sleeping_for_other_clients_is_theirs),
        cmocka_unit_test(sleeping_for_a_client_is_his),
        cmocka_unit_test(a_waiting_loop_sleeps_for_nobody),
        cmocka_unit_test(own_work_between_requests_is_nobodys),
        cmocka_unit_test(contexts_add_up_and_show_the_hog),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
