// SPDX-License-Identifier: MIT
//
// Whose a thread, a port and a hand-off are, where several servers are captured together.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analysis/calls/applications.h"
#include "tests/analysis/diagnosis/synthetic.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static struct connection connection(uint32_t id, uint32_t process, uint16_t port)
{
    return (struct connection){
        .id = id, .protocol = CONNECTION_TCP, .process = process, .local_port = port};
}

// Where nobody knows the network namespace.
static uint16_t of_port(const struct applications *all, uint16_t port)
{
    const struct connection one = connection(0, 0, port);
    return application_of_connection(all, &one);
}

static struct host_timeline host_of(struct span *spans, size_t count, char **names,
                                    struct core_timeline *core)
{
    *core = (struct core_timeline){.spans = {.items = spans, .count = count}};
    return (struct host_timeline){.cores = {.items = core, .count = 1},
                                  .names = {.items = names, .count = 8}};
}

// Two workers of one web server, a cache of two threads, and a second one of the same name.
static void servers_are_told_apart(void **state)
{
    (void)state;
    const struct call calls[] = {{.process = 10, .thread = 10}, {.process = 11, .thread = 11},
                                 {.process = 20, .thread = 21}, {.process = 20, .thread = 22},
                                 {.process = 30, .thread = 30}, {.process = 20, .thread = 21}};
    const struct connection connections[] = {connection(1, 10, 80), connection(2, 11, 80),
                                             connection(3, 11, 443), connection(4, 20, 11211),
                                             connection(5, 30, 11311)};
    const struct connection sockets[] = {connection(71, 0, 80), connection(72, 0, 11311),
                                         connection(73, 0, 6379)};
    char *names[] = {"nginx", "memcached:mc-worker", "memcached", "yes", "", "", "", ""};
    struct span spans[] = {{.kind = SPAN_TASK, .id = 11, .name = 0},
                           {.kind = SPAN_TASK, .id = 99, .name = 3},
                           {.kind = SPAN_IDLE, .id = 0, .name = 3},
                           {.kind = SPAN_TASK, .id = 22, .name = 1},
                           {.kind = SPAN_TASK, .id = 30, .name = 2}};
    struct core_timeline core;
    struct host_timeline host = host_of(spans, COUNT(spans), names, &core);
    struct applications all;
    assert_int_equal(applications_build(&all, calls, COUNT(calls), connections, COUNT(connections),
                                        sockets, COUNT(sockets), &host),
                     0);
    assert_int_equal(all.items.count, 4);
    uint16_t web = application_of_thread(&all, 10), cache = application_of_thread(&all, 21);
    uint16_t second = application_of_thread(&all, 30);
    assert_int_equal(application_of_thread(&all, 11), web);
    assert_int_equal(application_of_thread(&all, 22), cache);
    assert_int_equal(application_of_thread(&all, 99), NO_APPLICATION);
    assert_int_equal(of_port(&all, 443), web);
    assert_int_equal(of_port(&all, 80), web);
    assert_int_equal(of_port(&all, 11211), cache);
    assert_int_equal(of_port(&all, 22), NO_APPLICATION);
    assert_string_equal(all.items.items[web].name, "nginx");
    assert_string_equal(all.items.items[cache].name, "memcached:11211");
    assert_string_equal(all.items.items[second].name, "memcached:11311");
    assert_string_equal(all.items.items[of_port(&all, 6379)].name, "server on port 6379");

    int64_t times[] = {100, 200, 300, 400};
    uint32_t which[] = {71, 72, 73, 74};
    core.handoffs = (struct time_array){.items = times, .count = 4};
    core.handoff_sockets = (struct index_array){.items = which, .count = 4};
    assert_int_equal(applications_mark_handoffs(&all, &host, sockets, COUNT(sockets)), 0);
    assert_int_equal(core.handoff_applications.count, 4);
    assert_int_equal(core.handoff_applications.items[0], web);
    assert_int_equal(core.handoff_applications.items[1], second);
    assert_int_equal(core.handoff_applications.items[2], of_port(&all, 6379));
    assert_int_equal(core.handoff_applications.items[3], NO_APPLICATION);
    array_free(&core.handoff_applications);
    applications_free(&all);
}

// Two containers' web servers on port 80; of the second the shim's table tells by the cookie where
// it is, and two more are known by their sockets alone.
static void servers_of_one_port_are_told_apart_by_namespace(void **state)
{
    (void)state;
    const struct call calls[] = {{.process = 10, .thread = 10},
                                 {.process = 11, .thread = 11},
                                 {.process = 20, .thread = 20}};
    struct connection connections[] = {connection(1, 10, 80), connection(2, 11, 80),
                                       connection(3, 20, 80)};
    struct connection sockets[] = {connection(71, 0, 80), connection(72, 0, 80),
                                   connection(73, 0, 80), connection(74, 0, 90),
                                   connection(75, 0, 90), connection(76, 0, 80)};
    const uint16_t namespaces[] = {7, 7, 8, 7, 8, 9};
    for (size_t i = 0; i < COUNT(sockets); i++) {
        sockets[i].cookie = sockets[i].id;
        sockets[i].namespace = namespaces[i];
    }
    connections[0].namespace = connections[1].namespace = 7;
    connections[2].cookie = 73;
    char *names[] = {"nginx", "", "", "", "", "", "", ""};
    struct span spans[] = {{.kind = SPAN_TASK, .id = 11, .name = 0},
                           {.kind = SPAN_TASK, .id = 20, .name = 0}};
    struct core_timeline core;
    struct host_timeline host = host_of(spans, COUNT(spans), names, &core);
    struct applications all;
    assert_int_equal(applications_build(&all, calls, COUNT(calls), connections, COUNT(connections),
                                        sockets, COUNT(sockets), &host),
                     0);
    assert_int_equal(all.items.count, 5);
    uint16_t first = application_of_thread(&all, 10), second = application_of_thread(&all, 20);
    assert_int_equal(application_of_thread(&all, 11), first);
    assert_int_not_equal(first, second);
    static const char *const expected[] = {"nginx (10)",
                                           "nginx (10)",
                                           "nginx (20)",
                                           "server on port 90 (7)",
                                           "server on port 90 (8)",
                                           "server on port 80"};
    for (size_t i = 0; i < COUNT(sockets); i++) {
        uint16_t number = application_of_connection(&all, &sockets[i]);
        assert_string_equal(all.items.items[number].name, expected[i]);
        assert_int_equal(all.items.items[number].namespace, namespaces[i]);
    }
    applications_free(&all);
    // A shim that does not know the cookie, and a socket: the same server.
    connections[2].cookie = 0;
    assert_int_equal(
        applications_build(&all, calls + 2, 1, connections + 2, 1, sockets + 2, 1, NULL), 0);
    assert_int_equal(all.items.count, 1);
    applications_free(&all);
}

static void one_server_needs_no_marks(void **state)
{
    (void)state;
    const struct call calls[] = {{.process = 10, .thread = 10}, {.process = 10, .thread = 12}};
    const struct connection connections[] = {connection(1, 10, 80)};
    struct core_timeline core;
    struct host_timeline host = host_of(NULL, 0, NULL, &core);
    struct applications all;
    assert_int_equal(applications_build(&all, calls, 2, connections, 1, NULL, 0, &host), 0);
    assert_int_equal(all.items.count, 1);
    assert_string_equal(all.items.items[0].name, "server on port 80"); // none of its threads ran
    assert_int_equal(applications_mark_handoffs(&all, &host, NULL, 0), 0);
    assert_int_equal(core.handoff_applications.count, 0);
    applications_free(&all);
    assert_int_equal(applications_build(&all, NULL, 0, NULL, 0, NULL, 0, NULL), 0);
    assert_int_equal(all.items.count, 0);
    applications_free(&all);
}

// A collector's thread, a saving child and what that one forked again; a stranger, and one that the
// capture saw twice because its number was used again.
static void threads_without_calls_belong_to_their_process(void **state)
{
    (void)state;
    const struct call calls[] = {{.process = 10, .thread = 10}};
    const struct connection connections[] = {connection(1, 10, 6379)};
    struct thread_owner owners[] = {{1, 10, 10, 1},  {2, 12, 10, 1},  {3, 20, 20, 10},
                                    {4, 21, 21, 20}, {5, 30, 30, 1},  {6, 40, 10, 1},
                                    {7, 40, 40, 30}, {8, 50, 50, 50}, {9, 60, 60, 61}};
    char *names[] = {"sh", "redis-server", "redis-server:bio_lazy_free", "", "", "", "", ""};
    struct span spans[] = {{.kind = SPAN_TASK, .id = 21, .name = 0},
                           {.kind = SPAN_TASK, .id = 12, .name = 2}};
    struct core_timeline core;
    struct host_timeline host = host_of(spans, COUNT(spans), names, &core);
    struct applications all;
    host.owners = (struct thread_owner_array){.items = owners, .count = COUNT(owners)};
    assert_int_equal(applications_build(&all, calls, 1, connections, 1, NULL, 0, &host), 0);
    assert_int_equal(all.items.count, 1);
    assert_string_equal(all.items.items[0].name, "redis-server");
    static const struct {
        uint32_t thread;
        enum membership membership;
    } expected[] = {{10, MEMBERSHIP_SERVES}, {12, MEMBERSHIP_OWN},  {20, MEMBERSHIP_FORKED},
                    {21, MEMBERSHIP_FORKED}, {30, MEMBERSHIP_NONE}, {40, MEMBERSHIP_NONE},
                    {50, MEMBERSHIP_NONE},   {60, MEMBERSHIP_NONE}};
    for (size_t i = 0; i < COUNT(expected); i++) {
        bool none = expected[i].membership == MEMBERSHIP_NONE;
        assert_int_equal(membership_of_thread(&all, expected[i].thread), expected[i].membership);
        assert_int_equal(application_of_thread(&all, expected[i].thread),
                         none ? NO_APPLICATION : 0);
    }
    applications_free(&all);
}

// The messages of two servers are each compared with their own: what is usual for the slower one is
// no deviation, and nothing of the other's is its normal.
static void messages_belong_to_their_server(void **state)
{
    (void)state;
    struct synthetic_options options = {.seed = 5,
                                        .messages = 2000,
                                        .gap_ns = 80000,
                                        .noise = 0.05,
                                        .causes = 1u << CAUSED_BY_SERVER_A,
                                        .hits = 10,
                                        .truth = true};
    const struct diagnosis_slice everything = {.low = 0, .high = 1};
    struct synthetic s;
    struct diagnosis diagnosis;
    struct error err;
    synthetic_build(&s, &options);
    for (size_t i = 0; i < s.lives.count;
         i += 3) { // every third is the other server's: a far client
        struct lifetime *life = &s.lives.items[i];
        life->application = SYNTHETIC_OTHER;
        life->stage_ns[STAMP_CLIENT_RX] += 200000;
        life->latency_ns += 200000;
        for (int stamp = STAMP_CLIENT_RX; stamp < STAMP_KINDS; stamp++)
            life->stamp_ns[stamp] += 200000;
    }
    struct diagnosis_input input = synthetic_input(&s);
    assert_int_equal(diagnose(&input, &everything, &diagnosis, &err), 0);
    for (size_t c = 0; c < diagnosis.causes.count; c++)
        assert_string_not_equal(diagnosis.causes.items[c].name, "network to client");
    assert_true(diagnosis.causes.count > 0);
    size_t named = 0;
    for (size_t i = 0; i < diagnosis.messages.count; i++)
        named += fabs(diagnosis.messages.items[i].deviation_ns) < 100000;
    assert_true(named > diagnosis.messages.count * 9 / 10);
    diagnosis_free(&diagnosis);
    synthetic_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(servers_are_told_apart),
        cmocka_unit_test(servers_of_one_port_are_told_apart_by_namespace),
        cmocka_unit_test(one_server_needs_no_marks),
        cmocka_unit_test(threads_without_calls_belong_to_their_process),
        cmocka_unit_test(messages_belong_to_their_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
