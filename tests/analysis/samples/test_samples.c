// SPDX-License-Identifier: MIT
//
// Samples: as they lie in a recording, the instants they belong to, and what they hint at for the
// causes of a synthetic run in which it is known who ran when.
#include <inttypes.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "analysis/lifetime/join.h"
#include "analysis/perf/perf_data.h"
#include "analysis/run/run_samples.h"
#include "analysis/samples/sample_hints.h"
#include "analysis/timeline/timeline.h"
#include "tests/analysis/diagnosis/scenario_joined.h"
#include "tests/analysis/perf/perf_data_maker.h"

// --- records -------------------------------------------------------------------------------------

static int parse(const struct maker *maker, uint64_t kept, struct perf_data *data)
{
    struct error err;
    struct perf_limits limits = perf_default_limits;
    const struct perf_input input = {"made", maker->bytes, maker->count};
    limits.samples = kept;
    return perf_data_parse(&input, 1, &limits, data, &err);
}

static void make_sample(struct maker *maker, uint64_t time, uint64_t address, uint64_t id)
{
    make_record(maker, PERF_SAMPLE, PERF_MISC_USER);
    make_u64(maker, id);
    make_u64(maker, address);
    make_u32(maker, 3);
    make_u32(maker, 4);
    make_u64(maker, time);
    make_u32(maker, 5);
    make_u32(maker, 0);
    make_record_end(maker);
}

static void samples_are_kept_by_time_where_asked_for(void **state)
{
    (void)state;
    struct maker maker = make_file();
    make_sample(&maker, 2000, 0x20, 7);
    make_sample(&maker, 1000, 0x10, 7);
    make_record(&maker, PERF_SAMPLE, PERF_MISC_GUEST_KERNEL);
    for (int i = 0; i < 5; i++)
        make_u64(&maker, 7);
    make_record_end(&maker);
    make_record(&maker, PERF_SAMPLE, PERF_MISC_USER); // too short
    make_u64(&maker, 7);
    make_u64(&maker, 0x30);
    make_record_end(&maker);
    make_file_end(&maker);
    struct perf_data data;
    assert_int_equal(parse(&maker, 0, &data), 0);
    assert_int_equal(data.counts[PERF_SAMPLE], 4);
    assert_int_equal(data.samples.count, 0);
    assert_int_equal(data.complaint_count, 0);
    perf_data_free(&data);
    assert_int_equal(parse(&maker, 10, &data), 0);
    assert_int_equal(data.samples.count, 2);
    assert_int_equal(data.guest_records, 1);
    assert_int_equal(data.complaint_count, 1);
    assert_int_equal(data.samples.items[0].time, 1000);
    assert_int_equal(data.samples.items[0].address, 0x10);
    assert_int_equal(data.samples.items[1].time, 2000);
    assert_int_equal(data.samples.items[1].pid, 3);
    assert_int_equal(data.samples.items[1].tid, 4);
    assert_int_equal(data.samples.items[1].cpu, 5);
    assert_int_equal(data.samples.items[1].frames, 0);
    perf_data_free(&data);
    assert_int_equal(parse(&maker, 1, &data), 0);
    assert_int_equal(data.samples.count, 1);
    assert_int_equal(data.samples_over_limit, 2);
    perf_data_free(&data);
    free(maker.bytes);
}

// Two events, told apart by an ID in the middle; a group's counts and a chain behind it.
static void all_fields_are_passed_over_that_are_not_needed(void **state)
{
    (void)state;
    enum {
        TYPE = PERF_SAMPLE_HAS_IP | PERF_SAMPLE_HAS_TID | PERF_SAMPLE_HAS_TIME |
               PERF_SAMPLE_HAS_ADDR | PERF_SAMPLE_HAS_ID | PERF_SAMPLE_HAS_STREAM_ID |
               PERF_SAMPLE_HAS_CPU | PERF_SAMPLE_HAS_PERIOD | PERF_SAMPLE_HAS_READ |
               PERF_SAMPLE_HAS_CALLCHAIN,
        READ_FORMAT_AT = 32
    };
    static const uint64_t chain[] = {UINT64_MAX - 511, 0x1000, 0x2001, 0x3001};
    struct maker maker = {0};
    make_bytes(&maker, "PERFILE2", 8);
    make_u64(&maker, 16);
    for (uint64_t i = 0; i < 2; i++) {
        make_record(&maker, PERF_HEADER_ATTR, 0);
        size_t attr = maker.count;
        make_attr(&maker, 1, 0, TYPE);
        make_set_u64(&maker, attr + READ_FORMAT_AT,
                     PERF_READ_GROUP | PERF_READ_ID | PERF_READ_LOST |
                         PERF_READ_TOTAL_TIME_ENABLED);
        make_u64(&maker, 100 + i);
        make_record_end(&maker);
    }
    for (uint64_t nobody = 0; nobody < 2; nobody++) {
        make_record(&maker, PERF_SAMPLE, PERF_MISC_USER);
        make_u64(&maker, 0x1000);
        make_u64(&maker, 9);
        make_u64(&maker, 5000 + nobody);
        make_u64(&maker, 0xaaaa);
        make_u64(&maker, nobody ? 200 : 101);
        make_u64(&maker, 1);
        make_u64(&maker, 2);
        make_u64(&maker, 250000);
        make_u64(&maker, 2); // in the group
        make_u64(&maker, 1234);
        for (int i = 0; i < 2 * 3; i++)
            make_u64(&maker, 1);
        make_u64(&maker, 4);
        make_bytes(&maker, chain, sizeof chain);
        make_record_end(&maker);
    }
    struct perf_data data;
    assert_int_equal(parse(&maker, 10, &data), 0);
    assert_int_equal(data.samples.count, 1);
    assert_int_equal(data.complaint_count, 1); // no attribute has event 200
    const struct perf_sample *sample = &data.samples.items[0];
    assert_int_equal(sample->attr, 1);
    assert_int_equal(sample->time, 5000);
    assert_int_equal(sample->cpu, 2);
    assert_int_equal(sample->frames, 4);
    assert_memory_equal(sample->chain, chain, sizeof chain);
    perf_data_free(&data);
    free(maker.bytes);
}

// --- a profile made by hand ----------------------------------------------------------------------

enum { NAME_THREAD, NAME_SERVE, NAME_HOG, NAMES };
enum { NODE_SERVE = 2, NODE_HOG = 3 };

static struct sample_profile make_profile(void)
{
    static const char *const names[NAMES] = {"server", "serve", "hog"};
    static const struct sample_node nodes[] = {
        {0}, {0, NAME_THREAD, 0, 5}, {1, NAME_SERVE, 3, 5}, {2, NAME_HOG, 2, 2}};
    struct sample_profile profile = {.event = "cpu-clock:ppp"};
    for (int i = 0; i < NAMES; i++)
        assert_int_equal(array_push(&profile.names, strdup(names[i])), 0);
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++)
        assert_int_equal(array_push(&profile.nodes, nodes[i]), 0);
    return profile;
}

static void add_sample(struct sample_profile *profile, int64_t time_ns, uint32_t core,
                       uint32_t node)
{
    assert_int_equal(array_push(&profile->samples, (struct named_sample){time_ns, core, node}), 0);
}

static void stacks_are_added_up_and_folded(void **state)
{
    (void)state;
    char path[] = "/tmp/taillight-folded-XXXXXX", text[200];
    struct sample_profile profile = make_profile();
    struct sample_functions functions = {0};
    struct error err;
    assert_int_equal(sample_profile_functions(&profile, &functions), 0);
    assert_int_equal(functions.count, 2); // a thread is no function
    assert_int_equal(functions.items[0].name, NAME_SERVE);
    assert_int_equal(functions.items[0].self, 3);
    assert_int_equal(functions.items[0].total, 5);
    array_free(&functions);
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(sample_profile_write_folded(&profile, path, &err), 0);
    fd = open(path, O_RDONLY); // a new file in its place
    ssize_t got = read(fd, text, sizeof text - 1);
    text[got > 0 ? got : 0] = '\0';
    assert_string_equal(text, "server;serve 3\nserver;serve;hog 2\n");
    close(fd);
    unlink(path);
    sample_profile_free(&profile);
}

static void the_clocks_samples_tell_of_what_they_interrupted(void **state)
{
    (void)state;
    struct span spans[] = {{.begin_ns = 0, .end_ns = 1000, .kind = SPAN_TASK},
                           {.begin_ns = 500, .end_ns = 510, .kind = SPAN_VECTOR, .depth = 1}};
    struct core_timeline core = {.core = 1, .spans = {.items = spans, .count = 2}};
    const struct host_timeline host = {.cores = {.items = &core, .count = 1}};
    struct sample_profile profile = make_profile();
    add_sample(&profile, 400, 1, NODE_SERVE);
    add_sample(&profile, 505, 1, NODE_SERVE);
    add_sample(&profile, 505, 2, NODE_SERVE);
    sample_instants_settle(&profile, &host);
    assert_int_equal(profile.samples.items[0].time_ns, 400);
    assert_int_equal(profile.samples.items[1].time_ns, 499);
    assert_int_equal(profile.samples.items[2].time_ns, 505); // that core was not captured
    profile.samples.items[1].time_ns = 505;
    strcpy(profile.event, "cycles");
    sample_instants_settle(&profile, &host);
    assert_int_equal(profile.samples.items[1].time_ns, 505);
    sample_profile_free(&profile);
}

// --- hints ---------------------------------------------------------------------------------------

struct known {
    struct scenario scenario;
    struct application_calls calls;
    struct lifetime_array lives;
    struct host_timeline server;
    struct diagnosis diagnosis;
    struct sample_profile profile;
};

static struct diagnosis_input known_input(const struct known *k)
{
    static const uint32_t threads[] = {SERVER_THREAD};
    return (struct diagnosis_input){.lifetimes = k->lives.items,
                                    .lifetime_count = k->lives.count,
                                    .server = &k->server,
                                    .application_threads = threads,
                                    .application_thread_count = 1,
                                    .granularity_ns = 500,
                                    .calls = &k->calls};
}

// A run with a fault, and a sample of core 0 every `every_ns`: in `hog` while the fault lasts.
static void build(struct known *k, enum fault fault, int64_t every_ns)
{
    const struct scenario_options options = {.requests = 4000,
                                             .connections = 16,
                                             .gap_ns = 60000,
                                             .pipelined = 1,
                                             .fault = fault,
                                             .faults = 10,
                                             .fault_ns = 400000,
                                             .seed = 1};
    const struct diagnosis_slice slice = {.low = 0.99, .high = 1};
    struct error err;
    *k = (struct known){.profile = make_profile()};
    struct scenario *s = &k->scenario;
    scenario_build(s, &options);
    scenario_join(&k->scenario, &k->calls, &k->server, &k->lives);
    const struct diagnosis_input in = known_input(k);
    assert_int_equal(diagnose(&in, &slice, &k->diagnosis, &err), 0);
    int64_t end = k->lives.items[k->lives.count - 1].stamp_ns[STAMP_REPLY_READ];
    for (int64_t at = SCENARIO_BEGIN_NS; at < end; at += every_ns) {
        uint32_t node = NODE_SERVE;
        for (size_t i = 0; i < s->faults.count; i++)
            if (at >= s->faults.items[i].begin && at < s->faults.items[i].end)
                node = NODE_HOG;
        add_sample(&k->profile, at, 0, node);
    }
}

static void release(struct known *k)
{
    scenario_free(&k->scenario);
    array_free(&k->calls);
    array_free(&k->lives);
    host_timeline_free(&k->server);
    diagnosis_free(&k->diagnosis);
    sample_profile_free(&k->profile);
}

static const struct sample_hint *hint_of(const struct sample_hints *hints, const char *cause)
{
    for (size_t i = 0; i < hints->count; i++)
        if (strcmp(hints->items[i].cause, cause) == 0)
            return &hints->items[i];
    fail_msg("no hint for %s", cause);
    return NULL;
}

static void a_hogs_function_leads(void **state)
{
    (void)state;
    struct known k;
    struct sample_hints hints;
    build(&k, FAULT_HOG, 5000);
    const struct diagnosis_input in = known_input(&k);
    assert_int_equal(sample_hints_find(&k.profile, &in, &k.diagnosis, &hints), 0);
    const struct sample_hint *hog = hint_of(&hints, "yes");
    print_message("%" PRIu64 " samples of yes, %" PRIu64 " in hog; %" PRIu64 " in ordinary\n",
                  hog->slice, hog->functions[0].slice, hog->reference);
    assert_int_equal(hog->role, ROLE_A);
    assert_int_equal(hog->functions[0].name, NAME_HOG);
    assert_true(hog->slice >= SAMPLE_HINT_LEAST);
    assert_true(hog->slice <= 10 * 400000 / 5000 + 10); // each sample once, however many waited
    assert_true(hog->functions[0].slice * 100 >= hog->slice * 95);
    assert_int_equal(hog->reference, 0);
    const struct sample_hint *own = hint_of(&hints, "application time"); // always there
    assert_int_equal(own->functions[0].name, NAME_SERVE);
    assert_true(own->reference > 0);
    assert_int_equal(hints.slice_messages, k.diagnosis.messages.count);
    // What tells slow messages from ordinary ones is how much of their samples the hog has.
    const struct node_samples *all = &hints.nodes[0], *of_hog = &hints.nodes[NODE_HOG];
    assert_true(all->slice >= hog->slice && all->reference >= own->reference);
    assert_true(of_hog->slice >= hog->functions[0].slice && of_hog->slice * 2 > all->slice);
    assert_true(of_hog->reference * 10 < all->reference);
    for (size_t i = 1; i < k.profile.nodes.count; i++)
        assert_true(hints.nodes[i].slice <= hints.nodes[k.profile.nodes.items[i].parent].slice);
    sample_hints_free(&hints);
    release(&k);
}

static void a_slow_application_names_its_function(void **state)
{
    (void)state;
    struct known k;
    struct sample_hints hints;
    build(&k, FAULT_SLOW, 5000);
    const struct diagnosis_input in = known_input(&k);
    assert_int_equal(sample_hints_find(&k.profile, &in, &k.diagnosis, &hints), 0);
    const struct sample_hint *own = hint_of(&hints, "application time");
    assert_int_equal(own->functions[0].name, NAME_HOG);
    assert_true(own->functions[0].reference * 10 <= own->reference);
    sample_hints_free(&hints);
    release(&k);
    build(&k, FAULT_SLOW, 5000);
    k.diagnosis.not_available = true; // no verdict, no hint
    assert_int_equal(sample_hints_find(&k.profile, &in, &k.diagnosis, &hints), 0);
    assert_int_equal(hints.count, 0);
    assert_null(hints.nodes);
    sample_hints_free(&hints);
    release(&k);
}

// Two knots, from 1 to 2 ms.
static struct clock_map *map_from(int64_t ns)
{
    struct clock_reading readings[2];
    struct clock_map *map;
    struct error err;
    for (int i = 0; i < 2; i++)
        readings[i] = (struct clock_reading){.clock = HOST_CLOCK_RAW,
                                             .width = 20,
                                             .tsc = (uint64_t)(ns + i * 1000000) * 2,
                                             .ns = ns + i * 1000000};
    assert_int_equal(clock_map_build(readings, 2, &map, &err), 0);
    return map;
}

// A recording that somebody laid into the folder of another run of the same boot is said, not used.
static void samples_of_another_run_are_not_used(void **state)
{
    (void)state;
    char dir[] = "/tmp/samples-XXXXXX", server[64], path[80];
    struct error err;
    struct maker maker = make_file();
    struct run_samples samples;
    const struct diagnosis_input in = {.lifetime_count = 0};
    json_t *capture = json_pack("{s:{s:s}}", "samples", "perf_data", "perf.data");
    make_sample(&maker, 1200000, 0x10, 7);
    make_sample(&maker, 1700000, 0x20, 7);
    make_file_end(&maker);
    assert_non_null(mkdtemp(dir));
    snprintf(server, sizeof server, "%s/server", dir);
    snprintf(path, sizeof path, "%s/perf.data", server);
    assert_int_equal(mkdir(server, 0700), 0);
    int fd = open(path, O_CREAT | O_WRONLY, 0600);
    assert_int_equal(write(fd, maker.bytes, maker.count), maker.count);
    close(fd);
    for (int another = 0; another < 3; another++) { // before it, and after
        static const int64_t begins[] = {1000000, 5000000, 100};
        struct clock_map *map = map_from(begins[another]);
        samples = (struct run_samples){.present = false};
        assert_int_equal(run_samples_add(dir, capture, map, &in, NULL, &samples, &err), 0);
        assert_int_equal(samples.present, !another);
        assert_int_equal(samples.profile.samples.count, another ? 0 : 2);
        if (another && !strstr(samples.problem, "of another run than server/clock.tlog"))
            fail_msg("it says \"%s\"", samples.problem);
        run_samples_free(&samples);
        clock_map_free(map);
    }
    json_decref(capture);
    free(maker.bytes);
    unlink(path);
    rmdir(server);
    assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_of_another_run_are_not_used),
        cmocka_unit_test(samples_are_kept_by_time_where_asked_for),
        cmocka_unit_test(all_fields_are_passed_over_that_are_not_needed),
        cmocka_unit_test(stacks_are_added_up_and_folded),
        cmocka_unit_test(the_clocks_samples_tell_of_what_they_interrupted),
        cmocka_unit_test(a_hogs_function_leads),
        cmocka_unit_test(a_slow_application_names_its_function),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
