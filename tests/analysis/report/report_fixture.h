// SPDX-License-Identifier: MIT
//
// A run for the report's tests, made in memory: one memcached thread on core 3 that takes requests
// in order of their hand-off, a receive core 2, and a CPU hog that shares core 3 in the second
// half. Stamps, spans and causes come from the same small simulation, so they agree; the numbers
// resemble a real run (median near 45 us, head-of-line blocking behind the hog).
#ifndef TESTS_ANALYSIS_REPORT_REPORT_FIXTURE_H
#define TESTS_ANALYSIS_REPORT_REPORT_FIXTURE_H

#include <stdio.h>

#include "base/text.h"
#include "tests/analysis/report/report_fixture_diagnosis.h"

static void fixture_names(struct fixture *f, bool odd)
{
    static const char *const names[NAMES] = {"idle",   "memcached",       "yes",
                                             "NET_RX", "virtio1-input.0", "local timer"};
    for (int i = 0; i < NAMES; i++)
        if (array_push(&f->run.evidence.server.names,
                       strdup(odd && i == NAME_HOG ? FIXTURE_ODD_NAME : names[i])) < 0)
            abort();
    for (uint16_t core = FIXTURE_RECEIVE_CORE; core <= FIXTURE_APPLICATION_CORE; core++)
        if (array_push(&f->run.evidence.server.cores, (struct core_timeline){.core = core}) < 0)
            abort();
    f->run.evidence.has_events = true;
    f->run.evidence.application_threads = malloc(sizeof(uint32_t));
    f->run.evidence.application_threads[0] = FIXTURE_THREAD;
    f->run.evidence.application_thread_count = 1;
    struct application_member thread = {FIXTURE_THREAD, 0, MEMBERSHIP_SERVES};
    if (array_push(&f->run.lifetimes.applications.threads, thread) < 0)
        abort();
}

// Every fiftieth request without an answer, every ninetieth never sent, some without a stamp.
static void fixture_lose(struct run_analysis *run)
{
    for (size_t i = 0; i < run->lifetimes.all.count; i++) {
        struct lifetime *life = &run->lifetimes.all.items[i];
        bool unanswered = i % 50 == 7, unsent = i % 90 == 11;
        if (unanswered || unsent) {
            life->state = LIFETIME_UNANSWERED;
            life->latency_ns = INFINITY;
            life->uncorrected_latency_ns = unsent ? NAN : INFINITY;
            life->present = unsent ? 1 : 3;
        } else if (i % 70 == 13) {
            life->state = LIFETIME_NO_NIC;
            life->present &= (uint16_t) ~(1u << STAMP_NIC);
            life->stamp_ns[STAMP_NIC] = 0;
            life->stage_ns[STAMP_HANDOFF] += life->stage_ns[STAMP_NIC];
            life->stage_ns[STAMP_NIC] = 0;
        }
        run->lifetimes.unsent += unsent;
        run->lifetimes.timed_out += unanswered && !unsent;
    }
    run->evidence.dropped_events = 12;
    run->evidence.server.unpaired = 3;
    run->lifetimes.join.disorder.violations = 2;
    run->lifetimes.join.disorder.worst_ns = 910;
}

// What stood beside the server: tuned, and not, and a neighbour under load.
static void fixture_setup(json_t *experiment)
{
    json_object_set_new(experiment, "tuned",
                        json_pack("[{s:s,s:s,s:s,s:s,s:s,s:b,s:n}, {s:s,s:s,s:s,s:s,s:n,s:b,s:s}]",
                                  "host", "server", "setting", "sysctl", "path",
                                  "/proc/sys/kernel/numa_balancing", "value", "0", "old", "1",
                                  "applied", 1, "reason", "host", "server", "setting", "governor",
                                  "path", "/sys/devices/</script>", "value", "performance", "old",
                                  "applied", 0, "reason", "No such file or directory"));
    json_object_set_new(experiment, "neighbour_loads",
                        json_pack("[{s:s,s:s,s:i,s:f,s:f,s:f}]", "name", "web", "file",
                                  "nginx-web/load.json", "rate", 5000, "achieved_rate", 4998.7,
                                  "p50_us", 144.2, "p99_us", 4613.0));
}

static void fixture_documents(struct run_analysis *run)
{
    run->evidence.experiment = json_pack(
        "{s:s, s:{s:s, s:i}, s:{s:{s:i, s:i}}, s:{s:f, s:s, s:i}}", "name", "quickstart", "server",
        "kind", "memcached", "threads", 1, "workload", "mix", "get", 90, "set", 10, "load", "rate",
        run->lifetimes.offered_rate, "arrivals", "exponential", "connections", 16);
    run->evidence.load = json_pack("{s:i, s:i}", "tx_stamps_unmatched", 0, "timed_out",
                                   (int)run->lifetimes.timed_out);
    if (run->lifetimes.timed_out) {
        json_object_set_new(run->evidence.load, "reasons",
                            json_pack("[s]", "some requests had to wait for a connection"));
        fixture_setup(run->evidence.experiment);
    }
    run->evidence.capture = json_pack("{s:s, s:i, s:i}", "backend", "events", "events", 812345,
                                      "dropped", (int)run->evidence.dropped_events);
    run->evidence.facts = json_pack("{s:{s:s, s:i}}", "server", "kernel", "6.18.0", "cores", 4);
}

// Two hops saw all but 30 requests on their way there.
static void fixture_hops(struct run_analysis *run)
{
    struct run_hops *hops = &run->lifetimes.hops;
    struct hop_row rows[] = {
        {.name = "before the first hop", .from = HOPS_MAX, .to = HOPS_MAX, .mean_ns = 900},
        {.name = "to2@client -> to0@switch", .from = 0, .to = 1, .mean_ns = 4100},
        {.name = "all of the way to server", .from = HOPS_MAX, .to = HOPS_MAX, .mean_ns = 5000}};
    hops->present = true;
    hops->stays.whole = run->lifetimes.states[LIFETIME_WHOLE];
    hops->stays.divided[WAY_TO_CLIENT] = hops->stays.whole;
    hops->stays.divided[WAY_TO_SERVER] = hops->stays.whole - 30;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rows[i].messages = hops->stays.divided[WAY_TO_SERVER];
        for (size_t q = 0; q < HOP_QUANTILES; q++)
            rows[i].value_ns[q] = q == 2 ? (double)NAN : rows[i].mean_ns * (double)(1 + q);
        if (array_push(&hops->rows, rows[i]) < 0)
            abort();
    }
    for (size_t i = 0; i < run->lifetimes.all.count; i++) {
        const int64_t *at = run->lifetimes.all.items[i].stamp_ns;
        const struct hop_stay stay = {.request = i,
                                      .begin_ns = at[STAMP_NIC] - 4000 - (int64_t)(i % 100) * 10,
                                      .end_ns = at[STAMP_NIC] - 100,
                                      .from = 0,
                                      .to = 1};
        if (run->lifetimes.all.items[i].state == LIFETIME_WHOLE &&
            array_push(&hops->stays.all, stay) < 0)
            abort();
    }
}

static void fixture_summarise(struct run_analysis *run, const struct fixture_options *options)
{
    run->lifetimes.scheduled = run->lifetimes.all.count;
    for (size_t i = 0; i < run->lifetimes.all.count; i++)
        run->lifetimes.states[run->lifetimes.all.items[i].state]++;
    run->lifetimes.sent = run->lifetimes.scheduled - run->lifetimes.unsent;
    run->lifetimes.answered = run->lifetimes.scheduled - run->lifetimes.states[LIFETIME_UNANSWERED];
    run->lifetimes.offered_rate = options->rate;
    run->lifetimes.achieved_rate = options->rate * 0.9996;
    run->lifetimes.lateness_p50_ns = 1240;
    run->lifetimes.lateness_p99_ns = 8900;
    run->evidence.clock_error_ns = 38;
    fixture_latency(run, true, &run->lifetimes.latency);
    fixture_latency(run, false, &run->lifetimes.uncorrected_latency);
    fixture_stages(run);
    if (options->hops)
        fixture_hops(run);
}

static void fixture_verdict(struct run_analysis *run, const struct fixture_options *options)
{
    run->findings.verdict_available = !options->no_verdict;
    if (options->no_verdict)
        snprintf(run->findings.verdict, sizeof run->findings.verdict,
                 "N/A: too few requests could be followed.");
    else if (options->odd)
        snprintf(run->findings.verdict, sizeof run->findings.verdict, "The tail is %s & co.",
                 FIXTURE_ODD_NAME);
    else
        snprintf(run->findings.verdict, sizeof run->findings.verdict,
                 "The slowest 1 %% of requests took %s to %s where an ordinary one takes "
                 "%s. Most of the extra time went to head-of-line blocking (A) behind "
                 "requests that waited while yes (A) held the server's core, all of it in the "
                 "second half of the run.",
                 TEXT_NS(run->findings.diagnoses.items[0].slice_low_ns),
                 TEXT_NS(run->findings.diagnoses.items[0].slice_high_ns),
                 TEXT_NS(run->findings.diagnoses.items[0].reference_latency_ns));
}

// What stands beside the diagnoses: a thread blocked for a while, what the ordinary request is made
// of, what the slow ones share, and when the first cause came.
static void fixture_findings(struct run_analysis *run, bool odd)
{
    struct diagnosis *first = &run->findings.diagnoses.items[0];
    struct time_budget *budget = &run->findings.budget;
    struct thread_budget one = {
        .thread = FIXTURE_THREAD, .threads = 1, .whole_ns = 1e9, .busy_ns = 4e8};
    struct ordinary_part part = {.name = "client receive",
                                 .category = "client",
                                 .role = ROLE_CLIENT,
                                 .mean_ns = 4100,
                                 .fast_ns = 2700,
                                 .met = 1};
    const struct shared_trait trait = {.kind = TRAIT_REPLY,
                                       .value = 400000,
                                       .requests = 80,
                                       .slow = 30,
                                       .slow_share = 0.75,
                                       .share = 0.02,
                                       .odds_ratio = 147,
                                       .odds_low = 60,
                                       .median_ns = 2.6e6,
                                       .other_median_ns = 1e5,
                                       .rank_correlation = 0.2};
    snprintf(one.name, sizeof one.name, "%s", odd ? FIXTURE_ODD_NAME : "memcached");
    one.ns[BUDGET_REQUESTS] = 3e8;
    one.ns[BUDGET_BLOCKED] = 1e8;
    one.ns[BUDGET_IDLE] = 6e8;
    *budget = (struct time_budget){.end_ns = 1000000000, .has_calls = true};
    for (int i = 0; i < 2; i++) {
        struct thread_budget copy = one;
        copy.thread = i ? 0 : FIXTURE_THREAD;
        if (array_push(&copy.waits, (struct budget_wait){75, 12, 1e8}) < 0 ||
            array_push(i ? &budget->names : &budget->threads, copy) < 0)
            abort();
    }
    if (array_push(&first->ordinary, part) < 0 || array_push(&run->findings.shared, trait) < 0)
        abort();
    if (first->causes.count)
        snprintf(first->causes.items[0].shape, sizeof first->causes.items[0].shape,
                 "every 20.0 ms (98 %% of 51 times)");
}

// Samples of the application's core: slow messages have most of theirs in the hog, ordinary ones
// few.
static void fixture_samples(struct run_samples *samples)
{
    enum { SERVER, SERVE, HOG_THREAD, HOG, FUNCTIONS };
    static const char *const names[FUNCTIONS] = {"memcached", "drive_machine", "yes", "full_write"};
    static const struct sample_node nodes[] = {{0, 0, 0, 1000},
                                               {0, SERVER, 0, 800},
                                               {1, SERVE, 800, 800},
                                               {0, HOG_THREAD, 0, 200},
                                               {3, HOG, 200, 200}};
    static const struct node_samples near[] = {
        {300, 400}, {90, 390}, {90, 390}, {210, 10}, {210, 10}};
    struct sample_profile *profile = &samples->profile;
    int failed = 0;
    samples->present = true;
    samples->frequency = 999;
    snprintf(profile->event, sizeof profile->event, "cycles");
    for (size_t i = 0; i < FUNCTIONS; i++)
        failed |= array_push(&profile->names, strdup(names[i])) < 0;
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++)
        failed |= array_push(&profile->nodes, nodes[i]) < 0;
    for (int64_t i = 0; i < 1000; i++)
        failed |= array_push(&profile->samples, ((struct named_sample){i, 3, i < 800 ? 2 : 4})) < 0;
    samples->hints.nodes = malloc(sizeof near);
    if (failed || !samples->hints.nodes)
        abort();
    memcpy(samples->hints.nodes, near, sizeof near);
}

// Builds the run. Free with fixture_free.
static inline void fixture_build(struct fixture *f, const struct fixture_options *options)
{
    *f = (struct fixture){.random = 88172645463325252u};
    struct run_analysis *run = &f->run;
    double spacing = 1e9 / options->rate;
    snprintf(run->evidence.run_dir, sizeof run->evidence.run_dir,
             "runs/quickstart-20250102T030405Z");
    snprintf(run->evidence.name, sizeof run->evidence.name, "%s",
             options->odd ? FIXTURE_ODD_NAME : "quickstart");
    run->lifetimes.begin_ns = FIXTURE_BEGIN_NS;
    run->lifetimes.end_ns = FIXTURE_BEGIN_NS + (int64_t)(spacing * (double)options->requests);
    f->extra = calloc(options->requests + 1, sizeof *f->extra);
    f->application_free_ns = f->receive_free_ns = f->application_shown_ns = f->receive_shown_ns =
        f->next_timer_ns = FIXTURE_BEGIN_NS;
    fixture_names(f, options->odd);
    int64_t at = FIXTURE_BEGIN_NS;
    for (size_t i = 0; i < options->requests; i++) {
        fixture_request(f, i, at);
        at += (int64_t)fixture_exponential(f, spacing);
    }
    if (options->odd)
        fixture_lose(run);
    fixture_summarise(run, options);
    if (options->requests) {
        int64_t half = (run->lifetimes.begin_ns + run->lifetimes.end_ns) / 2;
        fixture_diagnose(f, options, 0, 0);
        if (!options->everything) {
            fixture_diagnose(f, options, run->lifetimes.begin_ns, half);
            fixture_diagnose(f, options, half, run->lifetimes.end_ns);
        }
    }
    if (options->requests) {
        fixture_verdict(run, options);
        fixture_findings(run, options->odd);
    }
    if (options->samples)
        fixture_samples(&run->evidence.samples);
    fixture_documents(run);
}

static inline void fixture_free(struct fixture *f)
{
    struct run_analysis *run = &f->run;
    for (size_t i = 0; i < run->findings.diagnoses.count; i++) {
        array_free(&run->findings.diagnoses.items[i].messages);
        array_free(&run->findings.diagnoses.items[i].causes);
        array_free(&run->findings.diagnoses.items[i].attributions);
        array_free(&run->findings.diagnoses.items[i].ordinary);
        array_free(&run->findings.diagnoses.items[i].views.messages);
        array_free(&run->findings.diagnoses.items[i].views.blockers);
        array_free(&run->findings.diagnoses.items[i].views.contexts);
        array_free(&run->findings.diagnoses.items[i].views.context_times);
        array_free(&run->findings.diagnoses.items[i].views.calls);
        array_free(&run->findings.diagnoses.items[i].views.worst);
    }
    array_free(&run->findings.diagnoses);
    for (size_t i = 0; i < run->findings.part_diagnoses.count; i++) {
        array_free(&run->findings.part_diagnoses.items[i].messages);
        array_free(&run->findings.part_diagnoses.items[i].causes);
    }
    array_free(&run->findings.part_diagnoses);
    time_budget_free(&run->findings.budget);
    array_free(&run->findings.shared);
    array_free(&run->lifetimes.all);
    applications_free(&run->lifetimes.applications);
    host_timeline_free(&run->evidence.server);
    run_samples_free(&run->evidence.samples);
    free(run->evidence.application_threads);
    json_decref(run->evidence.experiment);
    json_decref(run->evidence.load);
    json_decref(run->evidence.capture);
    json_decref(run->evidence.facts);
    free(f->extra);
}

#endif
