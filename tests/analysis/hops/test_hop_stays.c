// SPDX-License-Identifier: MIT
//
// Requests that hops saw, in runs that are known: the network's time is divided among the links it
// passed on, and the diagnosis blames the link that was slow.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "analysis/diagnosis/diagnosis.h"
#include "analysis/run/run_hops.h"
#include "analysis/timeline/timeline.h"
#include "base/log_file.h"
#include "tests/analysis/hops/seen.h"

static const struct hop_place queueing[HOPS] = {{.name = "eth0@client", .qdisc = "fq"},
                                                {.name = "in", .is_ingress = true},
                                                {.name = "out", .qdisc = "tbf"},
                                                {.name = "eth0@server", .is_ingress = true}};

static void ways_are_divided(void **state)
{
    (void)state;
    struct seen s = {.one_in = 0};
    make(&s, &plain);
    for (size_t i = 0; i < plain.requests; i++) {
        pass_there(&s, i, OUT);
        pass_back(&s, i);
    }
    find(&s);
    assert_int_equal(s.stays.whole, plain.requests);
    assert_int_equal(s.stays.divided[WAY_TO_SERVER], plain.requests);
    assert_int_equal(s.stays.divided[WAY_TO_CLIENT], plain.requests);
    assert_int_equal(s.stays.all.count, 6 * (size_t)plain.requests);
    for (size_t i = 0; i < plain.requests; i++) {
        static const uint8_t way[] = {CLIENT, IN, OUT, SERVER, SERVER, OUT, IN, CLIENT};
        const struct lifetime *lives = s.joined.lives.items;
        size_t count;
        const struct hop_stay *stays = hop_stays_of(&s.stays, i, &count);
        assert_int_equal(count, 6);
        for (size_t k = 0; k < count; k++) {
            assert_int_equal(stays[k].from, way[k + k / 3]);
            assert_int_equal(stays[k].to, way[k + k / 3 + 1]);
            assert_int_equal(hop_stay_way(&stays[k], &lives[i]), k / 3);
            if (k % 3)
                assert_true(stays[k].begin_ns == stays[k - 1].end_ns);
        }
        // They begin before the client's own stamp, and end at M(n): together they are the way.
        int64_t begin, end;
        assert_true(hop_way_of(&s.stays, lives, i, WAY_TO_SERVER, &begin, &end));
        assert_true(begin == stays[0].begin_ns && end == stays[2].end_ns);
        assert_true(end == lives[i].stamp_ns[STAMP_NIC]);
        assert_true(begin == lives[i].stamp_ns[STAMP_CLIENT_TX] - 500);
        assert_true(hop_way_of(&s.stays, lives, i, WAY_TO_CLIENT, &begin, &end));
        assert_true(begin == stays[3].begin_ns && end == stays[5].end_ns);
        assert_true(end - begin == (int64_t)lives[i].stage_ns[STAMP_CLIENT_RX]);
    }
    finish(&s);
}

// Where no queueing discipline lies between two ends of a link, the core that takes a
// packet in is what it waits for; where one does, or nobody knows, it is not.
static void cores_and_queues_are_known(void **state)
{
    (void)state;
    static const struct {
        const char *qdisc, *told;
        int peer;
        bool has_core;
    } cases[] = {{"", "", 7, false},
                 {"noqueue", "", 7, true},
                 {"noqueue", "", 6, false},
                 {"noqueue", "", 0, false},
                 {"tbf", "tbf", 7, false}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct seen s = {.one_in = 0};
        struct hop_place at[HOPS];
        memcpy(at, places, sizeof at);
        snprintf(at[OUT].qdisc, sizeof at[OUT].qdisc, "%s", cases[c].qdisc);
        at[OUT].number = at[SERVER].peer = 3;
        at[OUT].peer = cases[c].peer;
        at[SERVER].number = 7;
        make(&s, &plain);
        for (size_t i = 0; i < plain.requests; i++)
            pass_there(&s, i, OUT);
        for (size_t i = 0; i < s.records.count; i++)
            s.records.items[i].core_after = (uint8_t)(s.records.items[i].hop + 1);
        s.places = at;
        find(&s);
        for (size_t i = 0; i < s.stays.all.count; i++) {
            const struct hop_stay *stay = &s.stays.all.items[i];
            bool known = stay->from == OUT && cases[c].has_core;
            assert_int_equal(stay->sent_core, known ? OUT : HOP_NO_CORE);
            assert_int_equal(stay->taken_core, known ? SERVER : HOP_NO_CORE);
            assert_string_equal(hop_stay_qdisc(stay, at), stay->from == OUT ? cases[c].told : "");
        }
        assert_int_equal(s.stays.all.count, 3 * (size_t)plain.requests);
        finish(&s);
    }
}

// --- and the diagnosis ---------------------------------------------------------------------------

enum { DELAY_NS = 2000000 };

static const char *first_cause(const struct diagnosis *found, uint64_t lifetime, float *ns)
{
    const char *name = "nothing";
    *ns = 0;
    for (size_t i = 0; i < found->attributions.count; i++) {
        const struct attribution *one = &found->attributions.items[i];
        if (one->lifetime == lifetime && one->ns > *ns) {
            *ns = one->ns;
            name = found->causes.items[one->cause].name;
        }
    }
    return name;
}

// Each message that was late was late for that cause, by all but a share of the time.
static void check_late_causes(struct seen *s, const struct hop_place *at, const char *cause,
                              const char *category, size_t faults, double share)
{
    static const uint32_t threads[] = {SERVER_THREAD};
    const struct scenario *scenario = &s->joined.scenario;
    const struct time_source clock = scenario_clock();
    const struct diagnosis_slice slow = {.high = 1, .min_latency_ns = DELAY_NS};
    struct diagnosis found = {0};
    struct host_timeline server;
    struct error err = {0};
    assert_int_equal(
        host_timeline_build(scenario->events.items, scenario->events.count, &clock, &server, &err),
        0);
    const struct diagnosis_input in = {.server = &server,
                                       .client = &server,
                                       .application_threads = threads,
                                       .application_thread_count = 1,
                                       .lifetimes = s->joined.lives.items,
                                       .lifetime_count = s->joined.lives.count,
                                       .hops = &s->stays,
                                       .hop_places = at,
                                       .granularity_ns = 500,
                                       .calls = &s->joined.calls};
    assert_int_equal(diagnose(&in, &slow, &found, &err), 0);
    assert_string_equal(found.reason, "");
    assert_true(found.messages.count >= faults);
    for (size_t i = 0; i < found.messages.count; i++) {
        float ns;
        assert_string_equal(first_cause(&found, found.messages.items[i].lifetime, &ns), cause);
        assert_true(fabs((double)ns - DELAY_NS) < share * DELAY_NS);
    }
    assert_int_equal(found.causes.items[0].role, ROLE_NETWORK);
    assert_string_equal(found.causes.items[0].category, category);
    diagnosis_free(&found);
    host_timeline_free(&server);
}

// What one of the links is slow for; queued: where in a queue, of which it is known how long it
// held the packet, but for the last microsecond.
static void check_causes(const char *const causes[3], bool queued)
{
    struct scenario_options options = plain;
    options.fault = FAULT_NETWORK;
    options.faults = 20;
    options.fault_ns = DELAY_NS;
    for (unsigned link = 0; link < 3; link++) {
        struct seen s = {.one_in = 0};
        make(&s, &options);
        for (size_t i = 0; i < options.requests; i++) {
            size_t first = s.records.count;
            pass_there(&s, i, link);
            struct hop_record *slow = &s.records.items[first + link];
            slow->queued_ns = queued && link != IN ? slow[1].time - slow->time - 100 : 0;
            pass_back(&s, i);
        }
        find(&s);
        check_late_causes(&s, queued ? queueing : places, causes[link],
                          queued && link != IN ? "queueing discipline" : "network", options.faults,
                          0.05);
        finish(&s);
    }
}

static void a_slow_link_is_the_cause(void **state)
{
    (void)state;
    static const char *const causes[] = {"hop eth0@client -> in", "hop in -> out",
                                         "hop out -> eth0@server"};
    check_causes(causes, false);
}

static void a_queue_that_holds_packets_is_the_cause(void **state)
{
    (void)state;
    static const char *const causes[] = {"in the queue of eth0@client (fq)", "hop in -> out",
                                         "in the queue of out (tbf)"};
    check_causes(causes, true);
}

// A queue's part is cut to the way as all is, and where a packet by another clock is at the next
// hop before it left, nothing is behind the queue.
static void a_queue_is_a_part_of_the_link(void **state)
{
    (void)state;
    struct seen s = {.one_in = 0};
    make(&s, &plain);
    for (size_t i = 0; i < plain.requests; i++) {
        size_t first = s.records.count;
        pass_there(&s, i, OUT);
        s.records.items[first + CLIENT].queued_ns = 100;
        s.records.items[first + OUT].queued_ns = UINT32_MAX;
    }
    find(&s);
    assert_int_equal(s.stays.divided[WAY_TO_SERVER], plain.requests);
    for (size_t i = 0; i < plain.requests; i++) {
        const struct scenario_request *r = &s.joined.scenario.requests.items[i];
        size_t count;
        const struct hop_stay *stays = hop_stays_of(&s.stays, i, &count);
        assert_int_equal(count, 4);
        assert_int_equal(stays[0].part, STAY_IN_QUEUE);
        assert_int_equal(stays[0].end_ns - stays[0].begin_ns, 100);
        assert_int_equal(stays[1].part, STAY_BEHIND_QUEUE);
        assert_int_equal(stays[1].begin_ns, stays[0].end_ns);
        assert_int_equal(stays[1].end_ns - stays[1].begin_ns, 600);
        assert_string_equal(hop_stay_qdisc(&stays[0], queueing), "fq");
        assert_string_equal(hop_stay_qdisc(&stays[1], queueing), "");
        assert_int_equal(stays[2].part, STAY_WHOLE);
        assert_int_equal(stays[3].part, STAY_IN_QUEUE);
        assert_int_equal(stays[3].end_ns, r->nic);
    }
    finish(&s);
}

// --- into a virtual machine ----------------------------------------------------------------------

enum { EMULATOR = 900, MACHINE_CORE_1, MACHINE_CORE_0, EMULATOR_ON = 4, MACHINE_CORE_ON = 5 };

struct held_back {
    const char *cause, *category;
    const char *reader; // the name of the thread that reads from the tap
    uint32_t thread;    // that is held back
    uint8_t flags;      // of the switch with which it left its core
    const char *other;  // what has the core meanwhile; NULL: nothing
    bool stopped;       // by a signal
    const char *group;  // whose quota is used up
    bool is_macvtap;    // and no tap
};

static void run_for(struct scenario *s, uint32_t thread, uint16_t core, int64_t begin_ns,
                    int64_t end_ns)
{
    scenario_event(s, begin_ns - 100, EVENT_WAKING, core, thread)->payload.a = core;
    scenario_switch(s, begin_ns, core, thread, "emulator");
    scenario_switch(s, end_ns, core, 0, "");
}

// While a packet is late behind the tap: the thread leaves its core before it comes, and has it
// again just before it is seen inside. The machine's other core is busy all along.
static void hold_back(struct seen *seen, const struct held_back *of)
{
    struct scenario *s = &seen->joined.scenario;
    const uint16_t core = of->thread == EMULATOR ? EMULATOR_ON : MACHINE_CORE_ON;
    scenario_switch(s, SCENARIO_BEGIN_NS, 6, MACHINE_CORE_0, "CPU 0/KVM");
    for (size_t i = 0; i < s->options.requests; i++) {
        const struct scenario_request *r = &s->requests.items[i];
        const int64_t left = r->tx - 10000, back = r->nic - 5000;
        if (r->nic - r->tx < DELAY_NS)
            continue;
        if (of->thread != EMULATOR) // which the reader has given it
            run_for(s, EMULATOR, EMULATOR_ON, left + 12000, left + 15000);
        scenario_event(s, left - 5000, EVENT_WAKING, core, of->thread)->payload.a = core;
        scenario_switch(s, left - 4000, core, of->thread, "emulator");
        if (of->group) {
            struct event *quota = scenario_event(s, left - 10, EVENT_QUOTA, core, of->thread);
            memcpy(quota->payload.text, of->group, strlen(of->group));
        }
        if (of->stopped)
            scenario_event(s, left - 10, EVENT_BLOCKED, core, of->thread)->payload.b =
                BLOCKED_SIGNALLED;
        scenario_switch(s, left, core, of->other ? HOG_THREAD : 0, of->other ? of->other : "");
        s->events.items[s->events.count - 1].flags = of->flags;
        if (!of->flags)
            scenario_event(s, back - 100, EVENT_WAKING, core, of->thread)->payload.a = core;
        scenario_switch(s, back, core, of->thread, "emulator");
        scenario_switch(s, back + 4000, core, 0, "");
    }
}

static void what_holds_a_virtual_machine_back_is_the_cause(void **state)
{
    (void)state;
    static const struct held_back cases[] = {
        {"hop out -> eth0@server, emulator behind hog", "other programs", "emulator", EMULATOR,
         SWITCH_PREEMPTED, "hog", false, NULL, false},
        {"hop out -> eth0@server, vhost-900 behind hog", "other programs", "vhost-900", EMULATOR,
         SWITCH_PREEMPTED, "hog", false, NULL, false},
        {"hop out -> eth0@server, emulator behind hog", "other programs", "emulator", EMULATOR,
         SWITCH_PREEMPTED, "hog", false, NULL, true},
        {"hop out -> eth0@server, CPU 1/KVM behind hog", "other programs", "emulator",
         MACHINE_CORE_1, SWITCH_PREEMPTED, "hog", false, NULL, false},
        {"hop out -> eth0@server, emulator stopped by a signal", "signals", "emulator", EMULATOR, 0,
         NULL, true, NULL, false},
        {"hop out -> eth0@server, CPU 1/KVM throttled (CPU quota of box)", "CPU quota", "emulator",
         MACHINE_CORE_1, SWITCH_THROTTLED, NULL, false, "box", false},
        {"hop out -> eth0@server", "network", "emulator", MACHINE_CORE_1, 0, NULL, false, NULL,
         false},
    };
    struct scenario_options options = plain;
    options.fault = FAULT_NETWORK;
    options.faults = 20;
    options.fault_ns = DELAY_NS;
    options.gap_ns = 10 * DELAY_NS; // so that each is late by itself
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct seen s = {.one_in = 0};
        struct hop_place at[HOPS];
        memcpy(at, places, sizeof at);
        at[OUT].at_client = true;
        at[OUT].is_ingress = cases[c].is_macvtap;
        at[OUT].holder = (struct tap_holder){.process = EMULATOR,
                                             .takes_received = cases[c].is_macvtap,
                                             .thread_count = 3,
                                             .threads = {{MACHINE_CORE_0, "CPU 0/KVM", false},
                                                         {EMULATOR, "", true},
                                                         {MACHINE_CORE_1, "CPU 1/KVM", false}}};
        snprintf(at[OUT].holder.threads[1].name, TAP_NAME_BYTES, "%s", cases[c].reader);
        make(&s, &options);
        for (size_t i = 0; i < options.requests; i++) {
            pass_there(&s, i, OUT);
            s.records.items[s.records.count - 1].core_after = 2; // the machine's core 1
            pass_back(&s, i);
        }
        s.places = at;
        find(&s);
        hold_back(&s, &cases[c]);
        check_late_causes(&s, at, cases[c].cause, cases[c].category, options.faults, 0.1);
        finish(&s);
    }
}

// --- and the table -------------------------------------------------------------------------------

// The first hop's name has a control character, as another machine may have written it.
static void write_folder(const char *dir, const struct seen *s, char boot_id[40])
{
    char path[200];
    struct error err;
    struct log_reader log;
    snprintf(path, sizeof path, "%s/server", dir);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/server/capsule.json", dir);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "{\"flow_key\": \"%016llx\", \"one_in\": 1, \"hops\": [", KEY);
    for (size_t i = 0; i < HOPS; i++)
        fprintf(file,
                "%s{\"name\": \"%s\", \"role\": \"%s\", \"direction\": \"%s\", "
                "\"qdisc\": \"%s\", \"bundled\": 2, \"no_room\": 1}",
                i ? ", " : "", i ? queueing[i].name : "eth\\u001b0@client",
                hop_role_name(i ? HOP_LOOKS : HOP_BEGINS),
                queueing[i].is_ingress ? "ingress" : "egress", queueing[i].qdisc);
    fputs("]}", file);
    assert_int_equal(fclose(file), 0);
    snprintf(path, sizeof path, "%s/server/hops.tlog", dir);
    assert_int_equal(log_write(path, LOG_HOPS, HOP_LOG_VERSION, sizeof *s->records.items,
                               s->records.items, s->records.count, 0, &err),
                     0);
    assert_int_equal(
        log_reader_open(&log, path, LOG_HOPS, HOP_LOG_VERSION, sizeof *s->records.items, &err), 0);
    memcpy(boot_id, log.header.boot_id, 40);
    log_reader_close(&log);
}

// A clock's two knots, a minute apart.
static struct clock_map *knots_from(int64_t ns)
{
    struct clock_reading readings[4];
    struct clock_map *map;
    struct error err;
    for (int i = 0; i < 4; i++) {
        const int64_t at = ns + i / 2 * INT64_C(60000000000);
        readings[i] = (struct clock_reading){.clock = i % 2 ? HOST_CLOCK_MONOTONIC : HOST_CLOCK_RAW,
                                             .width = 20,
                                             .tsc = (uint64_t)at * CYCLES_PER_NS,
                                             .ns = at + (i % 2 ? MONOTONIC_AHEAD_NS : 0)};
    }
    assert_int_equal(clock_map_build(readings, 4, &map, &err), 0);
    return map;
}

// A queue that is known of those messages only that came late to it is where it is, not where they
// were when the others had passed it.
static void the_table_is_in_the_order_of_the_way(void **state)
{
    (void)state;
    static const char *const names[] = {
        "before the first hop",      "eth␛0@client -> in", "in -> out",
        "in the queue of out (tbf)", "out -> eth0@server", "behind the last hop",
        "all of the way to server"};
    char dir[] = "/tmp/hop-table-XXXXXX", boot_id[40], path[200], lack[RUN_HOPS_WORDS];
    struct scenario_options options = plain;
    struct seen s = {.one_in = 0};
    struct run_hops hops;
    struct error err;
    options.fault = FAULT_NETWORK;
    options.faults = 20;
    options.fault_ns = DELAY_NS;
    make(&s, &options);
    for (size_t i = 0; i < options.requests; i++) {
        const struct scenario_request *r = &s.joined.scenario.requests.items[i];
        size_t first = s.records.count;
        pass_there(&s, i, CLIENT);
        s.records.items[first + OUT].queued_ns = r->nic - r->tx > DELAY_NS / 2 ? 100 : 0;
    }
    array_sort(&s.records, by_time);
    assert_non_null(mkdtemp(dir));
    write_folder(dir, &s, boot_id);
    struct clock_map *of_run = knots_from(SCENARIO_BEGIN_NS / 2);
    struct clock_map *of_another = knots_from(SCENARIO_BEGIN_NS * 20);
    struct run_hops_input in = {.run_dir = dir,
                                .boot_id = boot_id,
                                .clock = scenario_clock(),
                                .clock_map = of_run,
                                .requests = {.samples = s.joined.scenario.samples.items,
                                             .connections = s.joined.scenario.client.items,
                                             .connection_count = s.joined.scenario.client.count,
                                             .lives = s.joined.lives.items,
                                             .life_count = s.joined.lives.count}};
    assert_int_equal(run_hops_add(&in, &hops, &err), 0);
    assert_string_equal(hops.problem, "");
    assert_true(hops.rows.count >= sizeof names / sizeof *names);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_string_equal(hops.rows.items[i].name, names[i]);
    assert_true(hops.rows.items[3].messages >= options.faults &&
                hops.rows.items[3].messages < options.requests);
    run_hops_lack(&hops, lack);
    assert_non_null(strstr(lack, " replies: 3 packets could not carry any"));
    run_hops_free(&hops);
    // Beside the clock log of another run of the same boot they are not used.
    in.clock_map = of_another;
    assert_int_equal(run_hops_add(&in, &hops, &err), 0);
    assert_non_null(strstr(hops.problem, "server/hops.tlog is of another run than the clock.tlog"));
    assert_int_equal(hops.rows.count, 0);
    run_hops_free(&hops);
    clock_map_free(of_run);
    clock_map_free(of_another);
    finish(&s);
    for (const char *const *file = (const char *const[]){"hops.tlog", "capsule.json", NULL}; *file;
         file++) {
        snprintf(path, sizeof path, "%s/server/%s", dir, *file);
        remove(path);
    }
    snprintf(path, sizeof path, "%s/server", dir);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ways_are_divided),
        cmocka_unit_test(cores_and_queues_are_known),
        cmocka_unit_test(a_queue_is_a_part_of_the_link),
        cmocka_unit_test(a_slow_link_is_the_cause),
        cmocka_unit_test(a_queue_that_holds_packets_is_the_cause),
        cmocka_unit_test(what_holds_a_virtual_machine_back_is_the_cause),
        cmocka_unit_test(the_table_is_in_the_order_of_the_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
