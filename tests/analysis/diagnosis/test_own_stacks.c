// SPDX-License-Identifier: MIT
//
// Servers with a network stack of their own, and hosts without a record of kernel events: lives of
// M(a) and the reply alone, or with M(n) beside (NSight §8), of scenarios whose truth is known.
// What lies between those stamps is exact, what nothing divides stays one stage, and no cause is
// made up in it.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "analysis/diagnosis/diagnosis.h"
#include "analysis/timeline/timeline.h"
#include "tests/analysis/lifetime/joined.h"

static const struct scenario_options faulty = {.requests = 4000,
                                               .connections = 16,
                                               .gap_ns = 60000,
                                               .pipelined = 1,
                                               .faults = 10,
                                               .fault_ns = 400000,
                                               .seed = 1};

enum { ALL_ARE_KNOWN = (1 << STAMP_KINDS) - 1 };

static bool is_of_stream(const struct event *event, bool with_segments)
{
    return event->kind == EVENT_HANDOFF || event->kind == EVENT_TRANSMIT ||
           (event->kind == EVENT_SEGMENT && with_segments);
}

// What the kernel records of such a server: its threads, and of messages nothing, or when they
// arrived.
static void forget_streams(struct scenario *s, bool with_segments)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->events.count; i++)
        if (!is_of_stream(&s->events.items[i], with_segments))
            s->events.items[kept++] = s->events.items[i];
    s->events.count = kept;
    if (with_segments)
        s->sockets.count = 0;
}

static void assert_known(const struct joined *j, unsigned known)
{
    for (size_t i = 0; i < j->lives.count; i++) {
        const struct lifetime *life = &j->lives.items[i];
        const struct scenario_request *r = &j->scenario.requests.items[i];
        const int64_t truth[STAMP_KINDS] = {r->intended,  r->send,        r->tx,    r->nic,
                                            r->handoff,   r->application, r->reply, r->server_tx,
                                            r->client_rx, r->read};
        double sum = 0;
        assert_int_equal(life->state, LIFETIME_WHOLE);
        assert_int_equal(life->present, known);
        for (int kind = 0; kind < STAMP_KINDS; kind++) {
            if (known >> kind & 1)
                assert_int_equal(life->stamp_ns[kind], truth[kind]);
            sum += life->stage_ns[kind];
        }
        assert_true(sum == life->latency_ns);
        bool arrival = (known >> STAMP_NIC & 1) != 0;
        assert_true(life->stage_ns[STAMP_NIC] ==
                    (double)((arrival ? r->nic : r->application) - r->tx));
        assert_true(life->stage_ns[STAMP_APPLICATION] ==
                    (arrival ? (double)(r->application - r->nic) : 0));
        assert_true(life->stage_ns[STAMP_REPLY] == (double)(r->reply - r->application));
        assert_true(life->stage_ns[STAMP_SERVER_TX] == 0);
        assert_true(life->stage_ns[STAMP_CLIENT_RX] == (double)(r->client_rx - r->reply));
    }
    assert_int_equal(j->counts.disorder.violations, 0);
}

enum {
    OF_SHIM = ALL_ARE_KNOWN & ~(1 << STAMP_NIC | 1 << STAMP_HANDOFF | 1 << STAMP_SERVER_TX),
    OF_NIC = OF_SHIM | 1 << STAMP_NIC,
};

static void the_shim_alone_makes_whole_lives(void **state)
{
    (void)state;
    struct joined j = {0};
    scenario_build(&j.scenario, &plain);
    struct join_input input = input_of(&j);
    input.events = NULL;
    input.event_count = 0;
    join_all(&j, &input);
    assert_known(&j, OF_SHIM);
    assert_int_equal(j.counts.without_arrivals, plain.requests);
    assert_int_equal(j.counts.without_handoffs, 0);
    assert_int_equal(j.counts.without_departures, plain.requests);
    assert_int_equal(join_undivided(&j.counts), UNDIVIDED_WAY_IN | UNDIVIDED_WAY_BACK);
    array_free(&j.lives);

    // A call that is lost is missing still.
    size_t lost = 0;
    while (j.calls.items[lost].kind != CALL_RECEIVE)
        lost++;
    j.calls.items[lost].connection = 4711;
    join_all(&j, &input);
    unsigned without = 0;
    for (size_t i = 0; i < j.lives.count; i++)
        without += j.lives.items[i].state == LIFETIME_NO_APPLICATION ||
                   j.lives.items[i].state == LIFETIME_NO_REPLY;
    assert_int_equal(without, 1);
    release(&j);
}

static const uint16_t ports[] = {80, SERVER_PORT};

static void what_a_stack_of_its_own_hides_is_not_missing(void **state)
{
    (void)state;
    for (int arrivals = 0; arrivals < 2; arrivals++) {
        struct joined j = {0};
        scenario_build(&j.scenario, &plain);
        forget_streams(&j.scenario, !arrivals);
        struct join_input input = input_of(&j);
        join_all(&j, &input);
        for (size_t i = 0; i < j.lives.count; i++)
            assert_int_equal(j.lives.items[i].state,
                             arrivals ? LIFETIME_NO_HANDOFF : LIFETIME_NO_SOCKET);
        assert_int_equal(j.counts.without_arrivals + j.counts.without_departures, 0);
        array_free(&j.lives);

        input.own_stacks = ports;
        input.own_stack_count = 1; // another server's
        join_all(&j, &input);
        assert_int_equal(j.lives.items[0].state,
                         arrivals ? LIFETIME_NO_HANDOFF : LIFETIME_NO_SOCKET);
        array_free(&j.lives);

        input.own_stack_count = 2;
        join_all(&j, &input);
        assert_known(&j, arrivals ? OF_NIC : OF_SHIM);
        assert_int_equal(j.counts.without_arrivals, arrivals ? 0 : plain.requests);
        assert_int_equal(j.counts.without_handoffs, arrivals ? plain.requests : 0);
        release(&j);
    }
}

// A trace that stands in for the kernel's events knows the connections, and not each one's bytes.
static void what_a_trace_does_not_show_is_not_missing(void **state)
{
    (void)state;
    for (int traced = 0; traced < 2; traced++) {
        struct joined j = {0};
        scenario_build(&j.scenario, &plain);
        const size_t sockets = j.scenario.sockets.count;
        forget_streams(&j.scenario, true);
        j.scenario.sockets.count = sockets;
        struct join_input input = input_of(&j);
        input.traced = traced;
        join_all(&j, &input);
        if (traced)
            assert_known(&j, OF_SHIM);
        else
            assert_int_equal(j.lives.items[0].state, LIFETIME_NO_NIC);
        assert_int_equal(j.counts.without_arrivals, traced ? plain.requests : 0);
        release(&j);
    }
}

// Of such a server's connection that the kernel sees after all, nothing changes.
static void what_the_kernel_sees_is_taken(void **state)
{
    (void)state;
    struct joined plainly, own = {0};
    build(&plainly, &plain);
    scenario_build(&own.scenario, &plain);
    struct join_input input = input_of(&own);
    input.own_stacks = ports;
    input.own_stack_count = 2;
    join_all(&own, &input);
    for (size_t i = 0; i < own.lives.count; i++) {
        assert_int_equal(own.lives.items[i].present, ALL_ARE_KNOWN);
        assert_int_equal(own.lives.items[i].untaken, 0);
        assert_memory_equal(own.lives.items[i].stage_ns, plainly.lives.items[i].stage_ns,
                            sizeof own.lives.items[i].stage_ns);
    }
    release(&plainly);
    release(&own);
}

// Whether the diagnosis of a run with this fault names that cause, with what it cost: first, or of
// the requests that the fault met itself.
static void assert_cause(enum fault fault, bool arrivals, bool first, const char *name,
                         enum core_role role)
{
    static const uint32_t threads[] = {SERVER_THREAD};
    static const struct diagnosis_slice slowest = {.low = 0.99, .high = 1};
    struct joined j = {0};
    struct host_timeline server;
    struct diagnosis diagnosis;
    struct error err = {0};
    struct scenario_options options = faulty;
    struct time_source clock = scenario_clock();
    options.fault = fault;
    scenario_build(&j.scenario, &options);
    forget_streams(&j.scenario, !arrivals);
    struct join_input input = input_of(&j);
    input.own_stacks = ports;
    input.own_stack_count = 2;
    join_all(&j, &input);
    assert_known(&j, arrivals ? OF_NIC : OF_SHIM);
    assert_int_equal(host_timeline_build(input.events, input.event_count, &clock, &server, &err),
                     0);
    const struct diagnosis_input in = {.lifetimes = j.lives.items,
                                       .lifetime_count = j.lives.count,
                                       .server = &server,
                                       .application_threads = threads,
                                       .application_thread_count = 1,
                                       .granularity_ns = 500,
                                       .calls = &j.calls};
    assert_int_equal(diagnose(&in, &slowest, &diagnosis, &err), 0);
    assert_false(diagnosis.not_available);
    assert_true(diagnosis.causes.count > 0);
    const struct cause *cause = diagnosis.causes.items;
    while (!first && (cause->role != role || strcmp(cause->name, name) != 0)) {
        cause++;
        assert_true(cause < diagnosis.causes.items + diagnosis.causes.count);
    }
    print_message("  M(n) %s: %s (%s), %llu x %.0f ns\n", arrivals ? "known" : "unknown",
                  cause->name, role_name(cause->role), (unsigned long long)cause->messages,
                  cause->median_ns);
    assert_string_equal(cause->name, name);
    assert_int_equal(cause->role, role);
    assert_true(cause->messages >= options.faults * 8 / 10);
    assert_true(cause->total_ns > 0.8 * (double)options.faults * (double)options.fault_ns);
    diagnosis_free(&diagnosis);
    host_timeline_free(&server);
    release(&j);
}

static void causes_are_named_where_they_are_seen(void **state)
{
    (void)state;
    // After M(a) all is as with any server. Before it nobody can tell, and nobody does: not of
    // those either that wait behind one that a fault met.
    assert_cause(FAULT_IRQ, false, false, "virtio1-input.0 interrupt", ROLE_A);
    assert_cause(FAULT_SLOW, false, false, "application time", ROLE_A);
    assert_cause(FAULT_NETWORK, false, true, "way in, undivided", ROLE_NETWORK);
    assert_cause(FAULT_INTERRUPT, false, true, "way in, undivided", ROLE_NETWORK);
    assert_cause(FAULT_HOG, false, true, "way in, undivided", ROLE_NETWORK);
    // From M(n) on the server's thread has it.
    assert_cause(FAULT_NETWORK, true, true, "network to server", ROLE_NETWORK);
    assert_cause(FAULT_HOG, true, true, "yes", ROLE_A);
    assert_cause(FAULT_WAKE, true, true, "wake-up latency", ROLE_A);
    assert_cause(FAULT_IRQ, true, false, "virtio1-input.0 interrupt", ROLE_A);
    assert_cause(FAULT_BURST, true, true, "head-of-line blocking", ROLE_A);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_shim_alone_makes_whole_lives),
        cmocka_unit_test(what_a_stack_of_its_own_hides_is_not_missing),
        cmocka_unit_test(what_a_trace_does_not_show_is_not_missing),
        cmocka_unit_test(what_the_kernel_sees_is_taken),
        cmocka_unit_test(causes_are_named_where_they_are_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
