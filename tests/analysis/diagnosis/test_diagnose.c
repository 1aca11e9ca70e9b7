// SPDX-License-Identifier: MIT
//
// The diagnosis against scenarios with one known culprit: the top cause must be that culprit, with
// about the nanoseconds it really cost each request.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "analysis/diagnosis/diagnosis.h"
#include "analysis/lifetime/join.h"
#include "analysis/timeline/timeline.h"
#include "base/text.h"
#include "tests/analysis/diagnosis/scenario_joined.h"

struct diagnosed {
    struct scenario scenario;
    struct application_calls calls;
    struct lifetime_array lives;
    struct host_timeline server;
    struct diagnosis diagnosis;
};

static const struct scenario_options usual = {.requests = 4000,
                                              .connections = 16,
                                              .gap_ns = 60000,
                                              .pipelined = 1,
                                              .faults = 10,
                                              .fault_ns = 400000,
                                              .seed = 1};

static const struct expected {
    const char *name;
    enum core_role role;
} expected[FAULT_SLOW] = {
    [FAULT_HOG] = {"yes", ROLE_A},
    [FAULT_WAKE] = {"wake-up latency", ROLE_A},
    [FAULT_LATE] = {"client queue", ROLE_CLIENT},
    [FAULT_NETWORK] = {"network to server", ROLE_NETWORK},
    [FAULT_INTERRUPT] = {"interrupt delivery", ROLE_R},
    [FAULT_IRQ] = {"virtio1-input.0 interrupt", ROLE_A},
    [FAULT_BURST] = {"head-of-line blocking", ROLE_A},
};

static void rebuild(struct diagnosed *d, const struct scenario_options *options)
{
    *d = (struct diagnosed){0};
    scenario_build(&d->scenario, options);
    scenario_join(&d->scenario, &d->calls, &d->server, &d->lives);
}

static struct diagnosis_input input_of(const struct diagnosed *d)
{
    static const uint32_t threads[] = {SERVER_THREAD};
    return (struct diagnosis_input){.lifetimes = d->lives.items,
                                    .lifetime_count = d->lives.count,
                                    .server = &d->server,
                                    .application_threads = threads,
                                    .application_thread_count = 1,
                                    .granularity_ns = 500,
                                    .calls = &d->calls};
}

static void run_slice(struct diagnosed *d, const struct diagnosis_slice *slice)
{
    struct error err = {0};
    struct diagnosis_input input = input_of(d);
    diagnosis_free(&d->diagnosis);
    assert_int_equal(diagnose(&input, slice, &d->diagnosis, &err), 0);
}

static const struct diagnosis_slice slowest = {.low = 0.99, .high = 1};

static void build(struct diagnosed *d, const struct scenario_options *options)
{
    rebuild(d, options);
    run_slice(d, &slowest);
}

static void release(struct diagnosed *d)
{
    scenario_free(&d->scenario);
    array_free(&d->calls);
    array_free(&d->lives);
    host_timeline_free(&d->server);
    diagnosis_free(&d->diagnosis);
}

static const struct cause *find_cause(const struct diagnosis *diagnosis, const char *name,
                                      enum core_role role)
{
    for (size_t i = 0; i < diagnosis->causes.count; i++)
        if (diagnosis->causes.items[i].role == role &&
            strcmp(diagnosis->causes.items[i].name, name) == 0)
            return &diagnosis->causes.items[i];
    return NULL;
}

// What must hold of any diagnosis.
static void assert_sound(const struct diagnosis *g)
{
    double *sums = calloc(g->messages.count + 1, sizeof *sums);
    size_t m = 0;
    for (size_t i = 0; i < g->attributions.count; i++) {
        const struct attribution *a = &g->attributions.items[i];
        while (m < g->messages.count && g->messages.items[m].lifetime != a->lifetime)
            m++;
        assert_true(m < g->messages.count); // grouped in the order of the messages
        assert_true(a->ns >= 0);
        assert_true(a->cause < g->causes.count);
        sums[m] += a->ns;
    }
    for (size_t i = 0; i < g->messages.count; i++) {
        const struct diagnosed_message *message = &g->messages.items[i];
        double deviation = message->deviation_ns > 0 ? message->deviation_ns : 0;
        assert_true(sums[i] <= deviation * 1.000001 + 0.01);
        assert_true(message->explained_ns <= deviation);
    }
    for (size_t i = 1; i < g->causes.count; i++)
        assert_true(g->causes.items[i - 1].total_ns >= g->causes.items[i].total_ns);
    free(sums);
}

// Lives too long for all to be walked along, by a core that does a hundred things in a nanosecond.
static void of_too_much_some_are_taken(void **state)
{
    (void)state;
    struct diagnosed d;
    struct scenario_options options = usual;
    const struct diagnosis_slice half = {.low = 0.5, .high = 1};
    options.fault = FAULT_HOG;
    rebuild(&d, &options);
    run_slice(&d, &half);
    const size_t all = d.diagnosis.messages.count;
    const double slowest_ns = d.lives.items[d.diagnosis.messages.items[0].lifetime].latency_ns;
    assert_true(all > 1900);
    assert_int_equal(d.diagnosis.passed_over, 0);
    struct core_timeline busy = {.core = 60000, .scheduled = true};
    for (int i = 0; i < 100; i++)
        assert_int_equal(array_push(&busy.spans, ((struct span){.begin_ns = i > 50, .end_ns = 1})),
                         0);
    assert_int_equal(array_push(&d.server.cores, busy), 0);
    run_slice(&d, &half);
    const struct diagnosis *g = &d.diagnosis;
    assert_sound(g);
    assert_int_equal(g->messages.count, 20);
    assert_int_equal(g->messages.count + g->passed_over, all);
    assert_true(d.lives.items[g->messages.items[0].lifetime].latency_ns >= slowest_ns);
    for (size_t i = 1; i < g->messages.count; i++) // each once, the slowest first
        assert_true(g->messages.items[i - 1].lifetime != g->messages.items[i].lifetime &&
                    d.lives.items[g->messages.items[i - 1].lifetime].latency_ns >=
                        d.lives.items[g->messages.items[i].lifetime].latency_ns);
    char words[96], expected_words[96], count[32];
    snprintf(expected_words, sizeof expected_words, "20 of %s messages, evenly chosen",
             text_count(all, count));
    assert_string_equal(diagnosis_messages_words(g, words, sizeof words), expected_words);
    release(&d);
}

// The first cause against a quarter of a watch's ordinary messages is the one against all, and what
// it added is the same within 1 % of what the slice took longer.
static void few_ordinary_ones_are_enough(void **state)
{
    (void)state;
    double furthest = 0;
    for (uint64_t seed = 1; seed <= 70; seed++) {
        struct diagnosed d;
        struct diagnosis few;
        struct error err = {0};
        struct scenario_options options = usual;
        options.seed = seed * 7919;
        options.fault = (enum fault)(FAULT_HOG + seed % (FAULT_SLOW - FAULT_HOG));
        build(&d, &options);
        const struct diagnosis *all = &d.diagnosis;
        struct diagnosis_input input = input_of(&d);
        input.reference_most = 250;
        assert_int_equal(diagnose(&input, &slowest, &few, &err), 0);
        assert_sound(&few);
        assert_true(all->reference_count > 700);
        assert_int_equal(all->reference_taken, all->reference_count);
        assert_int_equal(few.reference_count, all->reference_count);
        assert_int_equal(few.reference_taken, 250);
        assert_int_equal(few.messages.count, all->messages.count);
        assert_true(all->causes.count > 0 && few.causes.count > 0);
        const struct cause *one = &all->causes.items[0], *other = &few.causes.items[0];
        assert_string_equal(other->name, one->name);
        assert_int_equal(other->role, one->role);
        double deviation = 0;
        for (size_t i = 0; i < few.messages.count; i++)
            deviation += few.messages.items[i].deviation_ns;
        furthest = fmax(furthest, fabs(other->total_ns - one->total_ns) / deviation);
        diagnosis_free(&few);
        release(&d);
    }
    print_message("the first cause differs by %.3f %% of the deviation at most\n", 100 * furthest);
    assert_true(furthest > 0 && furthest < 0.01);
}

// Of too few messages, most of which waited for the same thing, those of before say what is
// ordinary; they are neither of the slice nor counted.
static void those_before_say_what_is_ordinary(void **state)
{
    (void)state;
    enum { WINDOW = 20 };
    struct diagnosed d;
    struct scenario_options options = usual;
    options.fault = FAULT_HOG;
    rebuild(&d, &options);
    run_slice(&d, &slowest);
    const uint64_t slow = d.diagnosis.messages.items[0].lifetime;
    const size_t from = slow - WINDOW / 2;
    assert_true(slow >= WINDOW && from + WINDOW <= d.lives.count);
    struct diagnosis_input input = input_of(&d);
    struct error err = {0};
    diagnosis_free(&d.diagnosis);
    input.lifetimes = d.lives.items + from;
    input.lifetime_count = WINDOW;
    assert_int_equal(diagnose(&input, &slowest, &d.diagnosis, &err), 0);
    assert_true(d.diagnosis.not_available);
    diagnosis_free(&d.diagnosis);
    for (size_t i = 0; i < d.lives.count; i++)
        d.lives.items[i].earlier = i < from || i >= from + WINDOW;
    input.lifetimes = d.lives.items;
    input.lifetime_count = d.lives.count;
    assert_int_equal(diagnose(&input, &slowest, &d.diagnosis, &err), 0);
    const struct diagnosis *g = &d.diagnosis;
    assert_false(g->not_available);
    assert_sound(g);
    assert_int_equal(g->candidates, WINDOW);
    assert_int_equal(g->earlier, d.lives.count - WINDOW);
    assert_int_equal(g->messages.count, 1);
    assert_int_equal(g->messages.items[0].lifetime, slow);
    assert_string_equal(g->causes.items[0].name, expected[FAULT_HOG].name);
    release(&d);
}

static void print_diagnosis(const struct diagnosis *g)
{
    for (size_t i = 0; i < g->causes.count && i < 5; i++)
        print_message("    %-40s %-7s %5llu x %9.0f ns\n", g->causes.items[i].name,
                      role_name(g->causes.items[i].role),
                      (unsigned long long)g->causes.items[i].messages,
                      g->causes.items[i].median_ns);
}

static void each_fault_is_the_top_cause(void **state)
{
    (void)state;
    for (int fault = FAULT_HOG; fault < FAULT_SLOW; fault++) {
        struct diagnosed d;
        struct scenario_options options = usual;
        options.fault = (enum fault)fault;
        build(&d, &options);
        const struct diagnosis *g = &d.diagnosis;
        print_message("%s: coverage median %.3f total %.3f\n", expected[fault].name,
                      g->coverage_median, g->coverage_total);
        print_diagnosis(g);
        assert_false(g->not_available);
        assert_in_range(g->messages.count, 40, 41);
        assert_sound(g);
        assert_true(g->causes.count > 0);
        assert_string_equal(g->causes.items[0].name, expected[fault].name);
        assert_int_equal(g->causes.items[0].role, expected[fault].role);
        assert_true(g->causes.items[0].explains);
        assert_true(g->coverage_median > 0.9 && g->coverage_total > 0.9);
        release(&d);
    }
}

// What nearly every message has, and in widely varying amounts, is none the less what makes the
// slowest ones slow.
static void a_usual_fault_is_a_cause(void **state)
{
    (void)state;
    struct diagnosed d;
    struct scenario_options options = usual;
    options.fault = FAULT_HOG;
    options.faults = options.requests;
    options.gap_ns = 5000000;
    options.fault_ns = 800000;
    options.fault_varies = true;
    build(&d, &options);
    const struct diagnosis *g = &d.diagnosis;
    print_diagnosis(g);
    assert_sound(g);
    assert_true(g->causes.count > 0);
    assert_string_equal(g->causes.items[0].name, expected[FAULT_HOG].name);
    assert_int_equal(g->causes.items[0].role, ROLE_A);
    assert_true(g->coverage_median > 0.9 && g->coverage_total > 0.9);
    release(&d);
}

// The same of a program that has the load's core each time that a request is due, for a while.
static void a_usual_hog_of_the_client_is_a_cause(void **state)
{
    enum { LOAD_THREAD = 300, LOAD_CORE = 2 };
    (void)state;
    struct diagnosed d;
    struct scenario load = {0};
    struct scenario_options options = usual;
    struct host_timeline client;
    struct client_turns turns;
    struct time_source clock = scenario_clock();
    struct error err = {0};
    options.fault = FAULT_LATE;
    options.faults = options.requests;
    options.gap_ns = 5000000;
    options.fault_ns = 800000;
    options.fault_varies = true;
    rebuild(&d, &options);
    for (size_t i = 0; i < d.scenario.requests.count; i++) {
        const struct scenario_request *r = &d.scenario.requests.items[i];
        scenario_switch(&load, r->intended - 1000, LOAD_CORE, HOG_THREAD, "hog");
        load.events.items[load.events.count - 1].flags = SWITCH_PREEMPTED;
        scenario_switch(&load, r->send - 400, LOAD_CORE, LOAD_THREAD, "load-0");
    }
    scenario_switch(&load, d.scenario.requests.items[options.requests - 1].read + 1000, LOAD_CORE,
                    HOG_THREAD, "hog");
    for (size_t i = 0; i < d.scenario.client.count; i++)
        d.scenario.client.items[i].process = LOAD_THREAD;
    assert_int_equal(
        host_timeline_build(load.events.items, load.events.count, &clock, &client, &err), 0);
    assert_int_equal(client_turns_build(&turns, d.lives.items, d.lives.count,
                                        d.scenario.client.items, d.scenario.client.count, 0),
                     0);
    struct diagnosis_input input = input_of(&d);
    input.client = &client;
    input.client_turns = &turns;
    assert_int_equal(diagnose(&input, &slowest, &d.diagnosis, &err), 0);
    print_diagnosis(&d.diagnosis);
    assert_sound(&d.diagnosis);
    assert_true(d.diagnosis.causes.count > 0);
    assert_string_equal(d.diagnosis.causes.items[0].name, "hog");
    assert_int_equal(d.diagnosis.causes.items[0].role, ROLE_CLIENT);
    assert_true(d.diagnosis.coverage_median > 0.9);
    client_turns_free(&turns);
    host_timeline_free(&client);
    scenario_free(&load);
    release(&d);
}

// Relative difference between what the diagnosis attributes to the fault and what it really cost.
static double attribution_error(const struct diagnosed *d, enum fault fault)
{
    const struct diagnosis *g = &d->diagnosis;
    double truth = 0, off = 0;
    size_t at = 0;
    for (size_t m = 0; m < g->messages.count; m++) {
        uint64_t life = g->messages.items[m].lifetime;
        double attributed = 0, real = (double)d->scenario.requests.items[life].fault_ns;
        for (; at < g->attributions.count && g->attributions.items[at].lifetime == life; at++) {
            const struct cause *cause = &g->causes.items[g->attributions.items[at].cause];
            if (strcmp(cause->name, expected[fault].name) == 0 &&
                cause->role == expected[fault].role)
                attributed += g->attributions.items[at].ns;
        }
        truth += real;
        off += fabs(attributed - real);
    }
    return truth > 0 ? off / truth : 0;
}

// What has the server's core is its own thread, its own child, another process of its name.
static void the_servers_own_threads_are_no_strangers(void **state)
{
    enum { CHILD = 777, STRANGER = 1 };
    static const struct {
        struct thread_owner owner;
        const char *server, *cause, *category;
    } cases[] = {
        {{0, HOG_THREAD, SERVER_PROCESS, 1}, "server", "yes (own thread)", "the server's own work"},
        {{0, HOG_THREAD, CHILD, SERVER_PROCESS}, "server", "yes (forked child)", "forked child"},
        {{0, HOG_THREAD, CHILD, STRANGER}, "server", "yes", "other programs"},
        {{0, HOG_THREAD, CHILD, STRANGER}, "yes", "yes (process 777)", "other programs"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct diagnosed d;
        struct scenario_options options = usual;
        struct applications applications;
        struct error err = {0};
        options.fault = FAULT_HOG;
        rebuild(&d, &options);
        assert_int_equal(array_push(&d.server.owners, cases[i].owner), 0);
        assert_int_equal(applications_build(&applications, d.scenario.calls.items,
                                            d.scenario.calls.count, d.scenario.shim.items,
                                            d.scenario.shim.count, NULL, 0, &d.server),
                         0);
        snprintf(applications.items.items[0].name, sizeof applications.items.items[0].name, "%s",
                 cases[i].server);
        struct diagnosis_input input = input_of(&d);
        input.applications = &applications;
        assert_int_equal(diagnose(&input, &slowest, &d.diagnosis, &err), 0);
        assert_string_equal(d.diagnosis.causes.items[0].name, cases[i].cause);
        assert_string_equal(d.diagnosis.causes.items[0].category, cases[i].category);
        assert_true(d.diagnosis.coverage_median > 0.9);
        applications_free(&applications);
        release(&d);
    }
}

// Has a thread of the kernel do what a softirq does on the receive core.
static void thread_receive_processing(struct scenario *s, const char *name)
{
    for (size_t i = 0; i < s->events.count; i++) {
        struct event *event = &s->events.items[i];
        bool begins = event->kind == EVENT_SOFTIRQ_ENTRY;
        if (event->core != 1 || !(begins || event->kind == EVENT_SOFTIRQ_EXIT))
            continue;
        event->kind = EVENT_SWITCH;
        event->id = begins ? 77 : 0;
        strncpy(event->payload.text, begins ? name : "swapper/1", sizeof event->payload.text);
    }
}

// What keeps the core busy while the NIC keeps a packet to itself does not hold the packet up: an
// interrupt would have come through, as others did. By the kernel's stamps nobody sees what was
// slow.
static void what_the_nic_keeps_is_not_the_cores(void **state)
{
    (void)state;
    struct scenario_options options = usual;
    options.fault = FAULT_INTERRUPT;
    for (int variant = 0; variant < 4; variant++) {
        const bool busy = variant & 1, sent_on = variant & 2;
        struct diagnosed d = {0};
        scenario_build(&d.scenario, &options);
        scenario_nic_stamps(&d.scenario, sent_on ? 1200 : 500);
        for (size_t i = 0; i < d.scenario.faults.count; i++) {
            int64_t tick = d.scenario.faults.items[i].begin + options.fault_ns / 10;
            scenario_nested(&d.scenario, tick, tick + 2000, EVENT_IRQ_ENTRY, 1, 0, "tick");
        }
        for (size_t i = 0; busy && i < d.scenario.events.count; i++) {
            struct event *event = &d.scenario.events.items[i];
            if (event->kind != EVENT_SWITCH || event->core != 1)
                continue;
            event->id = 4242;
            memcpy(event->payload.text, "innocent", sizeof "innocent");
        }
        scenario_join(&d.scenario, &d.calls, &d.server, &d.lives);
        run_slice(&d, &slowest);
        const struct diagnosis *g = &d.diagnosis;
        print_diagnosis(g);
        assert_sound(g);
        assert_string_equal(g->causes.items[0].name, "interrupt delivery");
        assert_int_equal(g->causes.items[0].role, ROLE_R);
        assert_true(g->coverage_median > 0.96);
        const struct cause *innocent = find_cause(g, "innocent", ROLE_R);
        assert_true(!innocent || innocent->total_ns < 0.01 * g->causes.items[0].total_ns);
        release(&d);
    }
}

// Packets ahead of a message's are its head-of-line blocking, whatever processes them.
static void threads_receive_as_softirqs_do(void **state)
{
    (void)state;
    static const char *const names[] = {"ksoftirqd/1", "napi/eth0-8193", "backlog_napi/1"};
    struct scenario_options options = usual;
    struct diagnosed by_softirq, by_thread;
    options.fault = FAULT_BURST;
    build(&by_softirq, &options);
    const struct cause *blocked =
        find_cause(&by_softirq.diagnosis, "head-of-line blocking", ROLE_R);
    assert_non_null(blocked);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        by_thread = (struct diagnosed){0};
        scenario_build(&by_thread.scenario, &options);
        thread_receive_processing(&by_thread.scenario, names[i]);
        scenario_join(&by_thread.scenario, &by_thread.calls, &by_thread.server, &by_thread.lives);
        run_slice(&by_thread, &slowest);
        const struct cause *found =
            find_cause(&by_thread.diagnosis, "head-of-line blocking", ROLE_R);
        assert_non_null(found);
        assert_true(fabs(found->total_ns / blocked->total_ns - 1) < 0.01);
        release(&by_thread);
    }
    release(&by_softirq);
}

// The slow request itself is located, not explained; those behind it are blocked by it.
static void a_slow_application_is_located(void **state)
{
    (void)state;
    struct diagnosed d;
    struct scenario_options options = usual;
    options.fault = FAULT_SLOW;
    build(&d, &options);
    const struct diagnosis *g = &d.diagnosis;
    assert_sound(g);
    const struct cause *located = find_cause(g, "application time", ROLE_A);
    assert_non_null(located);
    assert_false(located->explains);
    assert_true(located->messages >= options.faults);
    assert_true(fabs(located->max_ns - (double)options.fault_ns) < 5000);
    const struct cause *blocking = find_cause(g, "head-of-line blocking", ROLE_A);
    assert_non_null(blocking);
    assert_true(blocking->explains && blocking->max_ns > 0.7 * (double)options.fault_ns);
    double unexplained = 1 - g->coverage_total;
    double deviation = 0;
    for (size_t i = 0; i < g->messages.count; i++)
        deviation += g->messages.items[i].deviation_ns;
    assert_true(fabs(unexplained * deviation - located->total_ns) < 0.02 * deviation);
    release(&d);
}

static void random_faults_are_found(void **state)
{
    (void)state;
    enum { SEEDS = 210 };
    unsigned right = 0;
    double worst = 0, sum = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct diagnosed d;
        struct scenario_options options = usual;
        options.seed = seed * 7919;
        options.fault = (enum fault)(FAULT_HOG + seed % (FAULT_SLOW - FAULT_HOG));
        options.requests = 1500;
        options.faults = 3 + (unsigned)(seed % 3);
        options.gap_ns = 40000 + (int64_t)(seed * 997 % 60000);
        options.fault_ns = 150000 + (int64_t)(seed * 10007 % 700000);
        build(&d, &options);
        const struct diagnosis *g = &d.diagnosis;
        assert_sound(g);
        bool found = g->causes.count > 0 &&
                     strcmp(g->causes.items[0].name, expected[options.fault].name) == 0 &&
                     g->causes.items[0].role == expected[options.fault].role;
        right += found;
        if (!found) {
            print_message("seed %llu: %s was not found\n", (unsigned long long)seed,
                          expected[options.fault].name);
            print_diagnosis(g);
        }
        if (options.fault != FAULT_BURST) {
            double error = attribution_error(&d, options.fault);
            worst = error > worst ? error : worst;
            sum += error;
        }
        release(&d);
    }
    print_message("top cause right in %u of %d; attribution error mean %.4f worst %.4f\n", right,
                  SEEDS, sum / SEEDS, worst);
    assert_true(right >= SEEDS * 98 / 100);
    assert_true(sum / SEEDS < 0.03);
    assert_true(worst < 0.15);
}

static void windows_are_told_apart(void **state)
{
    (void)state;
    struct diagnosed d;
    struct scenario_options options = usual;
    options.fault = FAULT_HOG;
    int64_t half = (int64_t)options.requests * options.gap_ns / 2;
    options.fault_from_ns = half + half / 20;
    rebuild(&d, &options);
    struct diagnosis_slice window = slowest;
    window.from_ns = SCENARIO_BEGIN_NS;
    window.to_ns = SCENARIO_BEGIN_NS + half;
    run_slice(&d, &window);
    assert_false(d.diagnosis.not_available);
    assert_null(find_cause(&d.diagnosis, "yes", ROLE_A));
    assert_true(d.diagnosis.causes.count > 0);
    window.from_ns = window.to_ns;
    window.to_ns = INT64_MAX;
    run_slice(&d, &window);
    assert_string_equal(d.diagnosis.causes.items[0].name, "yes");
    assert_int_equal(d.diagnosis.causes.items[0].role, ROLE_A);
    release(&d);
}

static void batches_within_a_connection_are_named(void **state)
{
    (void)state;
    for (int separate = 0; separate < 2; separate++) {
        struct diagnosed d;
        struct scenario_options options = usual;
        options.requests = 3000;
        options.connections = 1;
        options.gap_ns = 100000;
        options.pipelined = separate ? 8 : 1;
        options.separate_sends = true;
        build(&d, &options);
        // With one connection all blocking is on it; the last of eight waits for the seven before.
        assert_sound(&d.diagnosis);
        assert_null(find_cause(&d.diagnosis, "head-of-line blocking", ROLE_A));
        const struct cause *same =
            find_cause(&d.diagnosis, "head-of-line blocking (same connection)", ROLE_A);
        if (separate) {
            assert_non_null(same);
            assert_ptr_equal(same, &d.diagnosis.causes.items[0]);
            assert_true(d.diagnosis.coverage_median > 0.8);
        }
        release(&d);
    }
}

static void lost_records_are_said(void **state)
{
    (void)state;
    struct diagnosed d;
    struct scenario_options options = usual;
    options.fault = FAULT_HOG;
    options.lose_every = 200;
    build(&d, &options);
    assert_true(d.server.unpaired > 0);
    assert_sound(&d.diagnosis);
    assert_false(d.diagnosis.not_available);
    assert_string_equal(d.diagnosis.causes.items[0].name, "yes");
    release(&d);
}

static void too_little_evidence_is_no_verdict(void **state)
{
    (void)state;
    struct diagnosed d;
    struct error err = {0};
    struct scenario_options options = usual;
    options.requests = 49;
    build(&d, &options);
    assert_true(d.diagnosis.not_available);
    assert_non_null(strstr(d.diagnosis.reason, "only 49 requests"));
    release(&d);

    options.requests = 1000;
    rebuild(&d, &options);
    struct diagnosis_input input = input_of(&d);
    input.dropped_share = 0.02;
    assert_int_equal(diagnose(&input, &slowest, &d.diagnosis, &err), 0);
    assert_true(d.diagnosis.not_available);
    assert_non_null(strstr(d.diagnosis.reason, "2.00 %"));
    input.dropped_share = 0;
    input.server = NULL;
    diagnosis_free(&d.diagnosis);
    assert_int_equal(diagnose(&input, &slowest, &d.diagnosis, &err), 0);
    assert_true(d.diagnosis.not_available);
    for (size_t i = 0; i < 60; i++)
        d.lives.items[i * 10].state = LIFETIME_NO_HANDOFF;
    run_slice(&d, &slowest);
    assert_true(d.diagnosis.not_available);
    assert_int_equal(d.diagnosis.left_out[LIFETIME_NO_HANDOFF], 60);
    assert_non_null(strstr(d.diagnosis.reason, "no M(h) stamp"));
    release(&d);
}

static void unanswered_requests_fill_the_tail(void **state)
{
    (void)state;
    struct diagnosed d;
    struct scenario_options options = usual;
    options.requests = 1000;
    rebuild(&d, &options);
    for (size_t i = 0; i < 20; i++) {
        d.lives.items[i * 17].state = LIFETIME_UNANSWERED;
        d.lives.items[i * 17].latency_ns = INFINITY;
    }
    run_slice(&d, &slowest);
    assert_true(d.diagnosis.not_available);
    assert_non_null(strstr(d.diagnosis.reason, "20 were never answered"));
    assert_int_equal(d.diagnosis.causes.count, 0);
    // The others were, and what they are made of is known.
    double sum = 0;
    for (size_t i = 0; i < d.diagnosis.ordinary.count; i++)
        sum += d.diagnosis.ordinary.items[i].mean_ns;
    assert_true(sum > 0 && fabs(sum / d.diagnosis.reference_latency_ns - 1) < 0.1);
    release(&d);
}

static void slices_pick_their_messages(void **state)
{
    (void)state;
    struct diagnosed d;
    struct error err = {0};
    struct diagnosis_slice slice;
    struct scenario_options options = usual;
    options.fault = FAULT_HOG;
    rebuild(&d, &options);
    assert_int_equal(diagnosis_slice_parse(">200us", &slice, &err), 0);
    run_slice(&d, &slice);
    size_t slow = 0;
    for (size_t i = 0; i < d.lives.count; i++)
        slow += d.lives.items[i].latency_ns >= 200000;
    assert_true(slow > 20);
    assert_int_equal(d.diagnosis.messages.count, slow);
    assert_string_equal(d.diagnosis.causes.items[0].name, "yes");
    assert_int_equal(diagnosis_slice_parse("p20-p30", &slice, &err), 0);
    run_slice(&d, &slice);
    assert_in_range(d.diagnosis.messages.count, 395, 405);
    assert_sound(&d.diagnosis); // faster than the median: nothing to explain, and nothing invented
    assert_int_equal(d.diagnosis.attributions.count, 0);
    assert_true(isnan(d.diagnosis.coverage_median));
    release(&d);
}

static void slice_texts(void **state)
{
    (void)state;
    struct diagnosis_slice slice;
    struct error err = {0};
    assert_int_equal(diagnosis_slice_parse("p99-100", &slice, &err), 0);
    assert_true(fabs(slice.low - 0.99) < 1e-12 && slice.high >= 1 && slice.min_latency_ns <= 0);
    assert_int_equal(diagnosis_slice_parse(" 99.9 - p100 ", &slice, &err), 0);
    assert_true(fabs(slice.low - 0.999) < 1e-12);
    assert_int_equal(diagnosis_slice_parse("> 500us", &slice, &err), 0);
    assert_true(slice.min_latency_ns >= 500000 && slice.low <= 0 && slice.high >= 1);
    static const char *const bad[] = {"",      "p99",    "p99-",    "-100",   "99-101", "30-20",
                                      "50-50", "p99-1x", "nan-100", "1e1-50", ">",      ">5",
                                      ">-5us", "a-b",    "1..2-50", "0x1-50"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        err = (struct error){0};
        assert_int_equal(diagnosis_slice_parse(bad[i], &slice, &err), -ERROR_INPUT);
        assert_non_null(strstr(err.text, "slice '"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_too_much_some_are_taken),
        cmocka_unit_test(few_ordinary_ones_are_enough),
        cmocka_unit_test(those_before_say_what_is_ordinary),
        cmocka_unit_test(each_fault_is_the_top_cause),
        cmocka_unit_test(a_usual_fault_is_a_cause),
        cmocka_unit_test(a_usual_hog_of_the_client_is_a_cause),
        cmocka_unit_test(what_the_nic_keeps_is_not_the_cores),
        cmocka_unit_test(threads_receive_as_softirqs_do),
        cmocka_unit_test(the_servers_own_threads_are_no_strangers),
        cmocka_unit_test(a_slow_application_is_located),
        cmocka_unit_test(random_faults_are_found),
        cmocka_unit_test(windows_are_told_apart),
        cmocka_unit_test(batches_within_a_connection_are_named),
        cmocka_unit_test(lost_records_are_said),
        cmocka_unit_test(too_little_evidence_is_no_verdict),
        cmocka_unit_test(unanswered_requests_fill_the_tail),
        cmocka_unit_test(slices_pick_their_messages),
        cmocka_unit_test(slice_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
