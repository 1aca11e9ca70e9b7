// SPDX-License-Identifier: MIT
//
// Agents' settings, their messages there and back, and pools of samples whose truth is known.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "loadgen/agents/agent_message.h"
#include "loadgen/agents/agent_pool.h"
#include "loadgen/load_agents.h"
#include "loadgen/method/load_reasons.h"

// --- settings ------------------------------------------------------------------------------------

static void agents_are_read(void **state)
{
    (void)state;
    struct agent_spec spec;
    struct error err;
    assert_int_equal(agent_spec_parse("throughput", &spec, &err), 0);
    assert_int_equal(spec.kind, AGENT_THROUGHPUT);
    assert_false(spec.has_cores);
    assert_int_equal(
        agent_spec_parse("latency,name=probe-1,rate=1.5k,connections=4,cores=0+2-3,threads=2,"
                         "netns=4711",
                         &spec, &err),
        0);
    assert_int_equal(spec.kind, AGENT_LATENCY);
    assert_string_equal(spec.name, "probe-1");
    assert_true(spec.rate == 1500);
    assert_int_equal(spec.connections, 4);
    assert_int_equal(spec.threads, 2);
    assert_int_equal(CPU_COUNT(&spec.cores), 3);
    assert_true(CPU_ISSET(3, &spec.cores));
    assert_string_equal(spec.netns, "/proc/4711/ns/net");
    assert_int_equal(agent_spec_parse("symmetric,netns=/run/netns/a", &spec, &err), 0);
    assert_string_equal(spec.netns, "/run/netns/a");
}

static void wrong_agents_are_refused(void **state)
{
    (void)state;
    static const char *const wrong[][2] = {
        {"", "no kind of agent"},
        {"fast", "\"fast\" is no kind of agent"},
        {"latency,", "\"\" is not one of"},
        {"latency,rate", "\"rate\" is not one of"},
        {"latency,speed=3", "\"speed\" is not one of"},
        {"latency,rate=0", "rate must be more than 0"},
        {"latency,rate=x", "rate: "},
        {"latency,connections=0", "connections must be"},
        {"latency,threads=0", "threads must be"},
        {"latency,cores=a", "cores: "},
        {"latency,netns=here", "neither a process"},
        {"latency,name=a/b", "name: "},
        {"latency,name=", "name: "},
        {"latency,name=../x", "name: "},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct agent_spec spec;
        struct error err = {0};
        assert_int_equal(agent_spec_parse(wrong[i][0], &spec, &err), -ERROR_INPUT);
        if (!strstr(err.text, wrong[i][1]))
            fail_msg("%s: \"%s\" does not say \"%s\"", wrong[i][0], err.text, wrong[i][1]);
    }
}

static void rates_are_shared_and_seeds_differ(void **state)
{
    (void)state;
    struct error err;
    double rate = 20000;
    struct agent_spec specs[4] = {{.kind = AGENT_THROUGHPUT, .rate = 5000},
                                  {.kind = AGENT_LATENCY},
                                  {.kind = AGENT_SYMMETRIC, .connections = 2},
                                  {.kind = AGENT_THROUGHPUT}};
    assert_int_equal(agent_specs_resolve(specs, 4, 16, 1, 8, 1, &rate, &err), 0);
    assert_true(specs[1].rate == 1000);
    assert_true(specs[2].rate == 7000 && specs[3].rate == 7000);
    assert_int_equal(specs[1].depth, 1);
    assert_int_equal(specs[2].depth, 8);
    assert_int_equal(specs[1].connections, 16);
    assert_int_equal(specs[2].connections, 2);
    assert_string_equal(specs[3].name, "agent4");
    for (unsigned i = 0; i < 4; i++)
        for (unsigned j = 0; j < i; j++)
            assert_true(specs[i].seed != specs[j].seed);
    // The same seed gives the same seeds again, another gives others.
    uint64_t before = specs[2].seed;
    assert_int_equal(agent_specs_resolve(specs, 4, 16, 1, 8, 1, &rate, &err), 0);
    assert_true(specs[2].seed == before);
    assert_int_equal(agent_specs_resolve(specs, 4, 16, 1, 8, 2, &rate, &err), 0);
    assert_true(specs[2].seed != before);
    // Without a rate of all, they add up.
    rate = 0;
    assert_int_equal(agent_specs_resolve(specs, 4, 16, 1, 8, 1, &rate, &err), 0);
    assert_true(rate == 20000);
}

static void refuse_together(struct agent_spec *specs, size_t count, double rate, const char *why)
{
    struct error err = {0};
    assert_int_equal(agent_specs_resolve(specs, count, 16, 1, 0, 1, &rate, &err), -ERROR_INPUT);
    if (!strstr(err.text, why))
        fail_msg("\"%s\" does not say \"%s\"", err.text, why);
}

static void what_does_not_go_together_is_refused(void **state)
{
    (void)state;
    struct agent_spec loaders[] = {{.kind = AGENT_THROUGHPUT, .rate = 1}};
    refuse_together(loaders, 1, 0, "only load");
    struct agent_spec twins[] = {{.name = "a", .kind = AGENT_SYMMETRIC, .rate = 1},
                                 {.name = "a", .kind = AGENT_SYMMETRIC, .rate = 1}};
    refuse_together(twins, 2, 0, "two agents are called a");
    struct agent_spec poor[] = {{.kind = AGENT_SYMMETRIC, .rate = 10}, {.kind = AGENT_SYMMETRIC}};
    refuse_together(poor, 2, 0, "share --rate");
    refuse_together(poor, 2, 10, "come to 10 requests/s");
    struct agent_spec little[] = {{.kind = AGENT_SYMMETRIC, .rate = 10}};
    refuse_together(little, 1, 20, "come to 10 requests/s");
}

// --- messages ------------------------------------------------------------------------------------

static void plans_come_back(void **state)
{
    (void)state;
    struct error err = {0};
    struct workload workload, again;
    struct agent_plan back, plan = {.spec = {.name = "a",
                                             .kind = AGENT_LATENCY,
                                             .rate = 0.1,
                                             .connections = 3,
                                             .threads = 2,
                                             .depth = 1,
                                             .seed = 7},
                                    .server = "[::1]:11211",
                                    .duration_ns = 123,
                                    .timeout_ns = 456,
                                    .stamps = STAMP_MODE_USER,
                                    .quantile = 0.999,
                                    .confidence = 0.9};
    assert_int_equal(workload_load_preset("etc", &workload, &err), 0);
    json_t *json = agent_plan_to_json(&plan, &workload);
    assert_non_null(json);
    assert_int_equal(agent_plan_from_json(json, &back, &again, &err), 0);
    assert_memory_equal(&back.spec, &plan.spec, sizeof plan.spec);
    assert_string_equal(back.server, plan.server);
    assert_true(back.duration_ns == 123 && back.timeout_ns == 456 && back.quantile == 0.999);
    char *before = workload_to_yaml(&workload), *after = workload_to_yaml(&again);
    assert_string_equal(before, after);
    free(before);
    free(after);
    workload_free(&again);
    static const struct {
        const char *key;
        double value;
    } wrong[] = {{"rate", -1.5}, {"connections", 0}, {"kind", 9}, {"quantile", 1.5}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        json_t *bad = json_copy(json);
        json_object_set_new(bad, wrong[i].key,
                            i % 3 ? json_integer((json_int_t)wrong[i].value)
                                  : json_real(wrong[i].value));
        assert_int_equal(agent_plan_from_json(bad, &back, &again, &err), -ERROR_INPUT);
        json_decref(bad);
    }
    json_object_set_new(json, "workload", json_string("keys: {count: -1}"));
    assert_int_equal(agent_plan_from_json(json, &back, &again, &err), -ERROR_INPUT);
    assert_non_null(strstr(err.text, "the plan's workload:1:"));
    json_decref(json);
    workload_free(&workload);
}

// A run of `count` requests, one every us of a TSC of 1 GHz, whose latencies in us come from
// `latency(i)`; on two connections.
static void make_run(struct engine_result *run, size_t count, uint64_t start,
                     double (*latency)(size_t))
{
    *run = (struct engine_result){.sample_count = count,
                                  .connection_count = 2,
                                  .depth = 8,
                                  .thread_count = 1,
                                  .tsc_hz = 1e9,
                                  .start_tsc = start,
                                  .end_tsc = start + count * 1000,
                                  .cpu_ns = 1000,
                                  .counts = {.replies = {count}, .in_flight_max = 4}};
    run->sample_bytes = (count + 1) * sizeof *run->samples;
    run->samples =
        mmap(NULL, run->sample_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    run->connections = calloc(2, sizeof *run->connections);
    for (uint32_t c = 0; c < 2; c++)
        run->connections[c] = (struct connection){.id = c + 1, .local_port = (uint16_t)(start + c)};
    for (size_t i = 0; i < count; i++) {
        uint64_t intended = start + i * 1000;
        run->samples[i] = (struct sample){.intended_tsc = intended,
                                          .send_tsc = intended,
                                          .sent_tsc = intended + 1,
                                          .reply_tsc = intended + (uint64_t)(latency(i) * 1e3),
                                          .connection = (uint32_t)(i % 2) + 1};
    }
}

static double ramp(size_t i)
{
    return (double)(i % 100 + 1);
}
static double ramp_above(size_t i)
{
    return (double)(i % 100 + 101);
}

static int unpack_piece(void *unpack, const void *bytes, size_t count, struct error *err)
{
    return agent_unpack_feed(unpack, bytes, count, err);
}

// Packs a run and unpacks it, piece by piece. Returns what came of it.
static int send_run(const struct engine_result *run, struct engine_result *back, struct error *err)
{
    json_t *json = agent_result_to_json(run, true);
    int status = agent_result_from_json(json, 1 << 20, 100, back, err);
    json_decref(json);
    assert_int_equal(status, 0);
    struct agent_unpack *unpack = agent_unpack_new(back, err);
    status = agent_pack(run, true, unpack_piece, unpack, err);
    if (status >= 0)
        status = agent_unpack_end(unpack, err);
    agent_unpack_free(unpack);
    return status;
}

static void results_come_back(void **state)
{
    (void)state;
    static const size_t counts[] = {0, 1, 100000};
    for (size_t i = 0; i < 3; i++) {
        struct error err = {0};
        struct engine_result run, back;
        make_run(&run, counts[i], 1000, ramp);
        error_set(&run.counts.first_break, ERROR_FAILED, "broke");
        run.end = ENGINE_TIMED_OUT;
        assert_int_equal(send_run(&run, &back, &err), 0);
        assert_int_equal(back.sample_count, counts[i]);
        assert_memory_equal(back.samples, run.samples, counts[i] * sizeof *run.samples);
        assert_memory_equal(back.connections, run.connections, 2 * sizeof *run.connections);
        assert_string_equal(back.counts.first_break.text, "broke");
        assert_int_equal(back.counts.replies[0], counts[i]);
        assert_int_equal(back.end, ENGINE_TIMED_OUT);
        engine_result_free(&back);
        engine_result_free(&run);
    }
}

static void wrong_results_are_refused(void **state)
{
    (void)state;
    struct error err = {0};
    struct engine_result run, back;
    make_run(&run, 1000, 1000, ramp);
    json_t *json = agent_result_to_json(&run, true);
    assert_int_equal(agent_result_from_json(json, 999, 100, &back, &err), -ERROR_INPUT);
    assert_int_equal(agent_result_from_json(json, 1000, 1, &back, &err), -ERROR_INPUT);
    json_object_set_new(json, "tsc_hz", json_real(0));
    assert_int_equal(agent_result_from_json(json, 1000, 100, &back, &err), -ERROR_INPUT);
    json_object_del(json, "tsc_hz");
    assert_int_equal(agent_result_from_json(json, 1000, 100, &back, &err), -ERROR_INPUT);
    assert_non_null(strstr(err.text, "tsc_hz"));
    json_decref(json);
    // A sample of a connection that is not there.
    run.samples[500].connection = 3;
    assert_int_equal(send_run(&run, &back, &err), -ERROR_INPUT);
    assert_non_null(strstr(err.text, "sample 500"));
    engine_result_free(&back);
    // More and fewer than announced, and what is not compressed at all.
    for (int more = -1; more <= 1; more++) {
        struct engine_result other = run;
        other.sample_count = (size_t)(1000 + more);
        json = agent_result_to_json(&other, true);
        assert_int_equal(agent_result_from_json(json, 2000, 100, &back, &err), 0);
        json_decref(json);
        struct agent_unpack *unpack = agent_unpack_new(&back, &err);
        if (more == 0) {
            assert_int_equal(agent_unpack_feed(unpack, "no zstd at all", 14, &err), -ERROR_INPUT);
        } else {
            int status = agent_pack(&run, true, unpack_piece, unpack, &err);
            if (status == 0)
                status = agent_unpack_end(unpack, &err);
            assert_int_equal(status, -ERROR_INPUT);
            assert_non_null(strstr(err.text, "than were announced"));
        }
        agent_unpack_free(unpack);
        engine_result_free(&back);
    }
    engine_result_free(&run);
}

// --- pools ---------------------------------------------------------------------------------------

static void pools_are_not_averages(void **state)
{
    (void)state;
    static const struct agent_spec specs[] = {{.name = "low", .kind = AGENT_SYMMETRIC},
                                              {.name = "load", .kind = AGENT_THROUGHPUT},
                                              {.name = "high", .kind = AGENT_LATENCY},
                                              {.name = "gone", .kind = AGENT_SYMMETRIC}};
    struct error err = {0};
    struct engine_result pool;
    struct load_summary summary;
    struct fleet_outcome *fleet = calloc(1, sizeof *fleet);
    fleet->count = 4;
    for (size_t i = 0; i < 4; i++)
        fleet->agents[i].spec = &specs[i];
    make_run(&fleet->agents[0].result, 9000, 1000, ramp);
    make_run(&fleet->agents[1].result, 0, 500, ramp);
    make_run(&fleet->agents[2].result, 1000, 5500, ramp_above);
    snprintf(fleet->agents[3].lost, sizeof fleet->agents[3].lost, "killed");
    assert_int_equal(agent_pool(fleet, &pool, &err), 0);
    assert_int_equal(pool.sample_count, 10000);
    assert_int_equal(pool.connection_count, 6);
    for (uint32_t c = 0; c < 6; c++)
        assert_int_equal(pool.connections[c].id, c + 1);
    for (size_t i = 0; i < pool.sample_count; i++) {
        const struct sample *sample = &pool.samples[i];
        assert_true(i == 0 || pool.samples[i - 1].intended_tsc <= sample->intended_tsc);
        bool high = sample->intended_tsc % 1000 == 500;
        assert_true(high ? sample->connection >= 5 : sample->connection <= 2);
        assert_int_equal(sample_sender(sample), high ? 1 : 0);
    }
    assert_int_equal(pool.counts.replies[0], 10000);
    assert_int_equal(pool.counts.in_flight_max, 8); // at the same time
    assert_true(pool.start_tsc == 1000 && pool.end_tsc == 9001000);
    // 90 % are 1 to 100 us, the rest 101 to 200 us: the average of the two p99s would be 149 us.
    assert_int_equal(load_summarise(&pool, 9000000, &summary, &err), 0);
    assert_true(fabs(summary.latency.us[2] - 190) < 1e-6);
    assert_true(fabs(summary.latency.us[1] - 100) < 1e-6);
    engine_result_free(&pool);
    for (size_t i = 0; i < 3; i += 2)
        snprintf(fleet->agents[i].lost, sizeof fleet->agents[i].lost, "killed too");
    assert_int_equal(agent_pool(fleet, &pool, &err), -ERROR_INCONCLUSIVE);
    assert_non_null(strstr(err.text, "agent low was lost: killed too"));
    fleet_outcome_free(fleet);
    free(fleet);
}

// --- points of a curve ---------------------------------------------------------------------------

static json_t *finding(const char *name, enum saturation who, const char *why)
{
    struct load_saturation found = {.who = who, .in_flight = {1, 20}, .waiting = {3, 4}};
    snprintf(found.why, sizeof found.why, "%s", why);
    return json_pack("{s:s,s:{s:o}}", "name", name, "report", "saturated",
                     load_saturation_json(&found));
}

static void anybody_tells_of_saturation(void **state)
{
    (void)state;
    struct load_summary summary = {.scheduled = 100};
    struct load_saturation found;
    json_t *agents = json_pack(
        "{s:{s:f,s:f,s:i,s:i},s:[o,o,o,{s:s,s:s}]}", "total", "offered_rate", 5000.0,
        "achieved_rate", 4990.0, "scheduled", 5000, "answered", 4990, "list",
        finding("probe", SATURATION_NONE, ""), finding("one", SATURATION_CLIENT, "no time"),
        finding("two", SATURATION_SERVER, "full"), "name", "gone", "lost", "killed");
    load_agents_point(agents, &summary, &found);
    assert_true(summary.offered_rate == 5000 && summary.achieved_rate == 4990);
    assert_true(summary.scheduled == 5000 && summary.answered == 4990);
    assert_int_equal(found.who, SATURATION_SERVER);
    assert_string_equal(found.why, "agent two: full");
    assert_true(found.in_flight[0] == 3 && found.in_flight[1] == 60 && found.waiting[1] == 12);
    json_array_remove(json_object_get(agents, "list"), 2);
    load_agents_point(agents, &summary, &found);
    assert_string_equal(found.why, "agent one: no time");
    json_array_remove(json_object_get(agents, "list"), 1);
    load_agents_point(agents, &summary, &found);
    assert_int_equal(found.who, SATURATION_NONE);
    json_decref(agents);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agents_are_read),
        cmocka_unit_test(wrong_agents_are_refused),
        cmocka_unit_test(rates_are_shared_and_seeds_differ),
        cmocka_unit_test(what_does_not_go_together_is_refused),
        cmocka_unit_test(plans_come_back),
        cmocka_unit_test(results_come_back),
        cmocka_unit_test(wrong_results_are_refused),
        cmocka_unit_test(pools_are_not_averages),
        cmocka_unit_test(anybody_tells_of_saturation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
