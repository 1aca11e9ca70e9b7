// SPDX-License-Identifier: MIT
//
// The page's data: it parses back, its columns agree with one another and with the run, what is
// not finite is null, and what is cut is counted.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "analysis/report/page/report_html.h"
#include "tests/analysis/report/report_fixture.h"

static const struct fixture_options usual = {.requests = 6000, .rate = 20000};
static const struct fixture_options odd = {.requests = 6000, .rate = 20000, .odd = true};

// As a browser gets it: through text.
static json_t *page_of(const struct run_analysis *run)
{
    struct error err = {0};
    json_t *built = page_data_build(run, &err);
    if (!built)
        fail_msg("%s", err.text);
    char *text = json_dumps(built, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(12));
    assert_non_null(text);
    json_decref(built);
    json_error_t error;
    json_t *page = json_loads(text, 0, &error);
    if (!page)
        fail_msg("%s at %d", error.text, error.position);
    free(text);
    return page;
}

static const json_t *get(const json_t *value, const char *key)
{
    const json_t *inner = json_object_get(value, key);
    if (!inner)
        fail_msg("no \"%s\"", key);
    return inner;
}

static json_int_t integer(const json_t *value, const char *key)
{
    const json_t *inner = get(value, key);
    assert_true(json_is_integer(inner));
    return json_integer_value(inner);
}

static void check_messages(const struct run_analysis *run, const struct diagnosis *diagnosis,
                           const json_t *data)
{
    const json_t *messages = get(data, "messages"), *attributions = get(data, "attributions");
    size_t shown = (size_t)integer(data, "shown"), detailed = (size_t)integer(data, "detailed");
    static const char *const columns[] = {"id", "at_ns", "latency_ns", "deviation_ns",
                                          "explained_ns"};
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        assert_int_equal(json_array_size(get(messages, columns[i])), shown);
    assert_int_equal(json_array_size(get(messages, "operation")), detailed);
    assert_int_equal(json_array_size(get(messages, "stages")), STAGES);
    const json_t *first = get(messages, "first");
    assert_int_equal(json_array_size(first), shown + 1);
    assert_int_equal(json_integer_value(json_array_get(first, shown)),
                     diagnosis->attributions.count);
    assert_int_equal(json_array_size(get(attributions, "cause")), diagnosis->attributions.count);
    for (size_t i = 0; i < shown; i++) {
        const struct diagnosed_message *message = &diagnosis->messages.items[i];
        const struct lifetime *life = &run->lifetimes.all.items[message->lifetime];
        assert_int_equal(json_integer_value(json_array_get(get(messages, "id"), i)), life->request);
        assert_int_equal(json_integer_value(json_array_get(get(messages, "latency_ns"), i)),
                         llround(life->latency_ns));
        assert_int_equal(json_integer_value(json_array_get(get(messages, "at_ns"), i)),
                         life->stamp_ns[STAMP_INTENDED] - run->lifetimes.begin_ns);
        json_int_t begin = json_integer_value(json_array_get(first, i));
        if (begin < json_integer_value(json_array_get(first, i + 1)))
            assert_int_equal(diagnosis->attributions.items[begin].lifetime, message->lifetime);
    }
}

static void test_messages_match_the_run(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_build(&fixture, &usual);
    json_t *page = page_of(&fixture.run);
    const json_t *diagnoses = get(page, "diagnoses");
    assert_int_equal(json_array_size(diagnoses), 3);
    for (size_t i = 0; i < 3; i++) {
        const struct diagnosis *diagnosis = &fixture.run.findings.diagnoses.items[i];
        const json_t *data = json_array_get(diagnoses, i);
        assert_true(diagnosis->messages.count > 0);
        assert_true(diagnosis->attributions.count > 0);
        assert_int_equal(integer(data, "total"), diagnosis->messages.count);
        assert_int_equal(json_array_size(get(data, "causes")), diagnosis->causes.count);
        check_messages(&fixture.run, diagnosis, data);
    }
    json_decref(page);
    fixture_free(&fixture);
}

// A curve's ranks and latencies ascend, end at the last answered request, and were all measured.
static void check_curve(const struct run_analysis *run, const json_t *curve, size_t infinite)
{
    const json_t *ranks = get(curve, "rank"), *values = get(curve, "ns");
    size_t points = json_array_size(ranks);
    assert_int_equal(json_array_size(values), points);
    assert_true(points > 100 && points <= 2000);
    assert_int_equal(integer(curve, "infinite"), infinite);
    json_int_t last_rank = 0, last_ns = 0;
    for (size_t i = 0; i < points; i++) {
        json_int_t rank = json_integer_value(json_array_get(ranks, i));
        json_int_t ns = json_integer_value(json_array_get(values, i));
        assert_true(rank > last_rank && ns >= last_ns);
        last_rank = rank;
        last_ns = ns;
    }
    assert_int_equal(json_integer_value(json_array_get(ranks, 0)), 1);
    assert_int_equal(last_rank, integer(curve, "count") - (json_int_t)infinite);
    size_t slower = 0;
    for (size_t i = 0; i < run->lifetimes.all.count; i++)
        slower += isfinite(run->lifetimes.all.items[i].latency_ns) &&
                  run->lifetimes.all.items[i].latency_ns > (double)last_ns;
    assert_int_equal(slower, 0);
}

static void test_curve_reaches_the_last_request(void **state)
{
    (void)state;
    const struct fixture_options *const runs[] = {&usual, &odd};
    for (size_t i = 0; i < 2; i++) {
        struct fixture fixture;
        fixture_build(&fixture, runs[i]);
        json_t *page = page_of(&fixture.run);
        check_curve(&fixture.run, get(get(page, "curves"), "corrected"),
                    fixture.run.lifetimes.states[LIFETIME_UNANSWERED]);
        json_decref(page);
        fixture_free(&fixture);
    }
}

static void test_what_is_not_finite_is_null(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_build(&fixture, &odd);
    struct diagnosis *diagnosis = &fixture.run.findings.diagnoses.items[0];
    diagnosis->coverage_median = NAN;
    diagnosis->causes.items[0].max_ns = INFINITY;
    fixture.run.evidence.clock_error_ns = NAN;
    json_t *page = page_of(&fixture.run);
    const json_t *data = json_array_get(get(page, "diagnoses"), 0);
    assert_true(json_is_null(get(data, "coverage_median")));
    assert_true(json_is_null(get(json_array_get(get(data, "causes"), 0), "max_ns")));
    assert_true(json_is_null(get(get(page, "measures"), "clock_error_ns")));
    const json_t *values = get(get(page, "latency"), "value");
    assert_true(json_is_integer(json_array_get(values, 0)));
    assert_true(json_is_null(json_array_get(values, LATENCY_QUANTILES - 1))); // unanswered ones
    json_decref(page);
    fixture_free(&fixture);
}

// Every span lies within the life and what is around it, and inside the spans that are open when it
// begins. Returns how many lie before the life or after it.
static size_t check_spans(const json_t *core, json_int_t life, json_int_t around)
{
    size_t outside = 0;
    const json_t *spans = get(core, "spans");
    size_t count = json_array_size(get(spans, "from"));
    json_int_t open_until[8] = {0};
    for (size_t i = 0; i < count; i++) {
        json_int_t from = json_integer_value(json_array_get(get(spans, "from"), i));
        json_int_t length = json_integer_value(json_array_get(get(spans, "length"), i));
        json_int_t depth = json_integer_value(json_array_get(get(spans, "depth"), i));
        assert_true(from >= -around && length > 0 && from + length <= life + around);
        outside += from + length <= 0 || from >= life;
        assert_true(json_integer_value(json_array_get(get(spans, "whole"), i)) >= length);
        assert_true(depth >= 0 && depth < 8);
        if (depth > 0)
            assert_true(from + length <= open_until[depth - 1]);
        open_until[depth] = from + length;
    }
    return outside;
}

static void test_timelines_hold_the_slowest(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_build(&fixture, &usual);
    json_t *page = page_of(&fixture.run);
    const json_t *timelines = get(page, "timelines");
    size_t references = 0, spans = 0, around = 0, names = json_array_size(get(page, "names"));
    assert_int_equal(integer(json_array_get(timelines, 0), "id"),
                     fixture.run.lifetimes.all
                         .items[fixture.run.findings.diagnoses.items[0].messages.items[0].lifetime]
                         .request);
    for (size_t i = 0; i < json_array_size(timelines); i++) {
        const json_t *one = json_array_get(timelines, i), *cores = get(one, "cores");
        references += json_is_true(get(one, "reference"));
        assert_int_equal(json_array_size(get(one, "stamps")), STAMP_KINDS);
        assert_int_equal(json_array_size(cores), 2);
        for (size_t c = 0; c < 2; c++) {
            around += check_spans(json_array_get(cores, c), integer(one, "life_ns"),
                                  integer(one, "around_ns"));
            const json_t *of = get(get(json_array_get(cores, c), "spans"), "name");
            spans += json_array_size(of);
            for (size_t s = 0; s < json_array_size(of); s++)
                assert_in_range(json_integer_value(json_array_get(of, s)), 0, names - 1);
        }
    }
    assert_int_equal(references, 5);
    assert_true(spans > json_array_size(timelines));
    assert_true(around > json_array_size(timelines)); // what happened before and after is there
    json_decref(page);
    fixture_free(&fixture);
}

static bool has_timeline(const json_t *timelines, uint64_t request)
{
    for (size_t i = 0; i < json_array_size(timelines); i++)
        if ((uint64_t)integer(json_array_get(timelines, i), "id") == request)
            return true;
    return false;
}

// In each half of the run the message that the largest cause slowed most, and the slowest of each
// operation, though two hundred others are slower.
static void test_timelines_are_chosen_by_cause_time_and_kind(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_build(&fixture,
                  &(struct fixture_options){.requests = 4000, .rate = 20000, .everything = true});
    const struct run_analysis *run = &fixture.run;
    const struct diagnosis *diagnosis = &run->findings.diagnoses.items[0];
    json_t *page = page_of(run);
    const json_t *timelines = get(page, "timelines");
    int64_t half = (run->lifetimes.begin_ns + run->lifetimes.end_ns) / 2;
    double worst[2] = {0}, slowest[2] = {0};
    uint64_t of_cause[2] = {0}, of_operation[2] = {0};
    for (size_t i = 0; i < diagnosis->attributions.count; i++) {
        const struct attribution *one = &diagnosis->attributions.items[i];
        const struct lifetime *life = &run->lifetimes.all.items[one->lifetime];
        size_t part = life->stamp_ns[STAMP_INTENDED] >= half;
        if (one->cause == 0 && (double)one->ns > worst[part])
            worst[part] = (double)one->ns, of_cause[part] = life->request;
    }
    for (size_t i = 0; i < run->lifetimes.all.count; i++) {
        const struct lifetime *life = &run->lifetimes.all.items[i];
        if (life->operation < 2 && life->latency_ns > slowest[life->operation])
            slowest[life->operation] = life->latency_ns,
            of_operation[life->operation] = life->request;
    }
    assert_true(diagnosis->messages.count > 1000);
    for (size_t i = 0; i < 2; i++) {
        assert_true(worst[i] > 0 && slowest[i] > 0);
        assert_true(has_timeline(timelines, of_cause[i]));
        assert_true(has_timeline(timelines, of_operation[i]));
    }
    assert_in_range(json_array_size(timelines), 100, 260);
    json_decref(page);
    fixture_free(&fixture);
}

// Each request is in one cell, unanswered ones above the rows; each column knows its slowest.
static void test_heat_counts_every_request(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_build(&fixture, &odd);
    const struct run_lifetimes *lives = &fixture.run.lifetimes;
    json_t *page = page_of(&fixture.run);
    const json_t *heat = get(page, "heat"), *cells = get(heat, "cells");
    size_t columns = (size_t)integer(heat, "columns"), rows = (size_t)integer(heat, "rows");
    uint64_t all = 0, never = 0;
    assert_int_equal(json_array_size(cells), columns * (rows + 1));
    assert_int_equal(json_array_size(get(heat, "slowest")), columns);
    for (size_t i = 0; i < json_array_size(cells); i++) {
        uint64_t number = (uint64_t)json_integer_value(json_array_get(cells, i));
        all += number;
        never += i % (rows + 1) == rows ? number : 0;
    }
    assert_int_equal(all, lives->all.count);
    assert_true(never > 0);
    assert_int_equal(never, lives->states[LIFETIME_UNANSWERED]);
    double most = 0;
    uint64_t slowest = 0;
    for (size_t i = 0; i < lives->all.count / columns / 2; i++) // surely of the first column
        if (lives->all.items[i].latency_ns > most)
            most = lives->all.items[i].latency_ns, slowest = lives->all.items[i].request;
    assert_true(isinf(most));
    assert_int_equal(json_integer_value(json_array_get(get(heat, "slowest"), 0)), slowest);
    json_decref(page);
    fixture_free(&fixture);
}

// More spans than a page shows: the longest stay, the rest is counted.
static void test_omitted_spans_are_counted(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_build(&fixture, &(struct fixture_options){.requests = 3000, .rate = 20000});
    struct run_analysis *run = &fixture.run;
    struct lifetime *life = &run->lifetimes.all.items[0]; // alive during the whole run
    run->findings.diagnoses.items[0].messages.items[0].lifetime = 0;
    life->stamp_ns[STAMP_REPLY_READ] = run->lifetimes.end_ns;
    struct core_timeline *timeline = &run->evidence.server.cores.items[0];
    size_t within = 0;
    json_t *page = page_of(run);
    const int64_t around = integer(json_array_get(get(page, "timelines"), 0), "around_ns");
    assert_int_equal(around, (run->lifetimes.end_ns - life->stamp_ns[STAMP_INTENDED]) / 5);
    for (size_t i = 0; i < timeline->spans.count; i++)
        within += timeline->spans.items[i].begin_ns < run->lifetimes.end_ns + around &&
                  timeline->spans.items[i].end_ns > run->lifetimes.begin_ns - around;
    const json_t *core = json_array_get(get(json_array_get(get(page, "timelines"), 0), "cores"), 0);
    size_t shown = json_array_size(get(get(core, "spans"), "from"));
    assert_true(within > 1000 && shown <= 500 && shown > 100);
    assert_int_equal(integer(core, "omitted"), within - shown);
    json_decref(page);
    fixture_free(&fixture);
}

// A slice of everything: the page stays small, and says how much of it is there.
static void test_large_slices_are_cut(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_build(&fixture, &(struct fixture_options){.requests = 50000, .rate = 20000});
    struct diagnosis *diagnosis = &fixture.run.findings.diagnoses.items[0];
    diagnosis->messages.count = diagnosis->attributions.count = 0;
    for (size_t i = 0; i < 50000; i++)
        if (array_push(&diagnosis->messages, (struct diagnosed_message){.lifetime = i,
                                                                        .deviation_ns = 1000,
                                                                        .explained_ns = 500}) < 0 ||
            array_push(&diagnosis->attributions, (struct attribution){i, 0, 500}) < 0)
            abort();
    json_t *page = page_of(&fixture.run);
    const json_t *data = json_array_get(get(page, "diagnoses"), 0);
    assert_int_equal(integer(data, "total"), 50000);
    assert_int_equal(integer(data, "shown"), 33333);
    assert_int_equal(integer(data, "detailed"), 2000);
    assert_int_equal(json_array_size(get(get(data, "messages"), "id")), 33333);
    assert_int_equal(json_array_size(get(get(data, "attributions"), "ns")), 33333);
    char *text = json_dumps(page, JSON_COMPACT);
    assert_true(strlen(text) < 8 * 1024 * 1024);
    free(text);
    json_decref(page);
    fixture_free(&fixture);
}

// Nothing was captured: no cores, no names, no diagnoses.
static void test_run_without_a_capture(void **state)
{
    (void)state;
    struct run_analysis run = {0};
    json_t *page = page_of(&run);
    assert_true(json_is_false(get(page, "captured")));
    assert_int_equal(json_array_size(get(page, "timelines")), 0);
    assert_int_equal(json_array_size(get(get(get(page, "curves"), "corrected"), "ns")), 0);
    assert_true(json_is_null(get(get(page, "documents"), "capture")));
    json_decref(page);
}

// Of messages that were compared with no ordinary one nobody knows how much longer they took.
static void test_extra_time_is_known_or_null(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_build(&fixture,
                  &(struct fixture_options){.requests = 4000, .rate = 20000, .no_verdict = true});
    json_t *page = page_of(&fixture.run);
    const json_t *messages = get(json_array_get(get(page, "diagnoses"), 0), "messages");
    assert_true(json_array_size(get(messages, "id")) > 0);
    static const char *const columns[] = {"deviation_ns", "explained_ns"};
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        assert_true(json_is_null(json_array_get(get(messages, columns[i]), 0)));
    json_decref(page);
    fixture_free(&fixture);
}

// What the recording of a load's own cores knows of the server's is no picture of these.
static void test_a_capture_for_the_load_alone_shows_no_cores(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_build(&fixture, &usual);
    for (int alone = 0; alone < 2; alone++) {
        fixture.run.evidence.of_load_alone = alone;
        json_t *page = page_of(&fixture.run);
        const json_t *cores = get(json_array_get(get(page, "timelines"), 0), "cores");
        assert_true(json_array_size(cores) > 0);
        assert_int_equal(json_is_true(get(json_array_get(cores, 0), "captured")), !alone);
        assert_int_equal(json_is_true(get(page, "captured")), !alone);
        json_decref(page);
    }
    fixture_free(&fixture);
}

// Clients that are not ours have not said when they sent what.
static void test_without_a_client_a_message_has_no_stamp_of_one(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_build(&fixture, &usual);
    for (int without = 0; without < 2; without++) {
        fixture.run.evidence.without_client = without;
        json_t *page = page_of(&fixture.run);
        const json_t *stamps = get(json_array_get(get(page, "timelines"), 0), "stamps");
        size_t of_client = 0;
        for (size_t i = 0; i < json_array_size(stamps); i++) {
            const json_int_t kind = integer(json_array_get(stamps, i), "kind");
            of_client += kind == STAMP_INTENDED || kind == STAMP_SEND || kind == STAMP_REPLY_READ;
        }
        assert_int_equal(of_client, without ? 0 : 3);
        assert_true(json_array_size(stamps) - of_client >= 3);
        json_decref(page);
    }
    fixture_free(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages_match_the_run),
        cmocka_unit_test(test_curve_reaches_the_last_request),
        cmocka_unit_test(test_what_is_not_finite_is_null),
        cmocka_unit_test(test_timelines_hold_the_slowest),
        cmocka_unit_test(test_timelines_are_chosen_by_cause_time_and_kind),
        cmocka_unit_test(test_heat_counts_every_request),
        cmocka_unit_test(test_omitted_spans_are_counted),
        cmocka_unit_test(test_large_slices_are_cut),
        cmocka_unit_test(test_run_without_a_capture),
        cmocka_unit_test(test_extra_time_is_known_or_null),
        cmocka_unit_test(test_a_capture_for_the_load_alone_shows_no_cores),
        cmocka_unit_test(test_without_a_client_a_message_has_no_stamp_of_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
