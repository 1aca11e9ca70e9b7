// SPDX-License-Identifier: MIT
//
// How far a watch looks back for an interval: each server is judged by itself; and that what it
// looked at can be saved. run_analyze() is
// this test's own: of each segment it "finds" what the servers did in it.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/run/run_analyze.h"
#include "base/folder.h"
#include "experiments/common/run_folder.h"
#include "experiments/watch/interval_analysis.h"

enum { BUSY, QUIET, SERVERS, SEGMENTS = 60 };

// What a server does in each segment, and of the interval how many requests have no arrival, which
// came so many segments before.
struct behaviour {
    size_t answers, without_arrival;
    unsigned came_before;
};

static struct behaviour servers[SERVERS];
static bool other_way_round; // applications have other numbers
static double latency_ns;    // of what they answer
static unsigned analyses;
static bool makes_room; // while it is looked at, the capture forgets the first segment

uint64_t run_segments_affordable(void)
{
    return UINT64_MAX;
}

static void add_lives(struct run_analysis *out, uint16_t application, size_t count, bool earlier,
                      enum lifetime_state state)
{
    struct lifetime one = {
        .application = application, .earlier = earlier, .state = state, .latency_ns = latency_ns};
    for (size_t i = 0; i < count; i++)
        assert_int_equal(array_push(&out->lifetimes.all, one), 0);
}

// The interval is the last segment.
int run_analyze(const struct run_request *request, struct progress *progress,
                struct run_analysis *out, struct error *err)
{
    const unsigned back = request->segments.last - request->segments.first;
    struct run_lifetimes *lives = &out->lifetimes;
    (void)progress;
    (void)err;
    if (makes_room) {
        char path[100];
        snprintf(path, sizeof path, "%s/events-%06u.tlog", request->run_dir,
                 request->segments.first);
        assert_int_equal(unlink(path), 0);
    }
    *out = (struct run_analysis){0};
    analyses++;
    for (uint16_t i = 0; i < SERVERS; i++) {
        const struct application one = {.port = 1000, // of both, in two network namespaces
                                        .namespace = (uint16_t)(1 + (other_way_round ? !i : i))};
        assert_int_equal(array_push(&lives->applications.items, one), 0);
    }
    for (uint16_t i = 0; i < SERVERS; i++) {
        const struct behaviour *server = &servers[other_way_round ? !i : i];
        const size_t lost = back < server->came_before ? server->without_arrival : 0;
        add_lives(out, i, lost, false, LIFETIME_NO_NIC);
        add_lives(out, i, server->answers - lost, false, LIFETIME_WHOLE);
    }
    const size_t answered = lives->all.count;
    for (uint16_t i = 0; i < SERVERS; i++)
        add_lives(out, i, back * servers[other_way_round ? !i : i].answers, true, LIFETIME_WHOLE);
    lives->beside = lives->all.count - answered;
    lives->all.count = answered;
    return 0;
}

void run_analysis_free(struct run_analysis *run)
{
    array_free(&run->lifetimes.all);
    array_free(&run->lifetimes.applications.items);
}

static bool alone; // nothing was recorded before the segment

// How many segments before the interval's are looked at.
static unsigned looks_back(struct interval_analysis *analysis, const char *folder, unsigned segment)
{
    struct run_request request = {.run_dir = folder};
    struct run_analysis run;
    struct error err;
    assert_int_equal(interval_analyze(analysis, segment, alone, &request, &run, &err), 0);
    assert_int_equal(request.segments.last, segment);
    run_analysis_free(&run);
    return segment - request.segments.first;
}

static int make_segments(void **state)
{
    static char folder[] = "/tmp/taillight-interval-XXXXXX";
    assert_non_null(mkdtemp(folder));
    for (unsigned i = 1; i <= SEGMENTS; i++) {
        char path[100];
        snprintf(path, sizeof path, "%s/events-%06u.tlog", folder, i);
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        fputs("events", file);
        fclose(file);
    }
    *state = folder;
    return 0;
}

static int remove_segments(void **state)
{
    folder_remove(*state);
    return 0;
}

static void the_busy_do_not_speak_for_the_quiet(void **state)
{
    struct interval_analysis analysis = {.looked_at = 40};
    servers[BUSY] = (struct behaviour){.answers = 2000};
    servers[QUIET] = (struct behaviour){.answers = 2000};
    assert_int_equal(looks_back(&analysis, *state, 41), 1);
    servers[QUIET].answers = 5;
    assert_int_equal(looks_back(&analysis, *state, 42), 41);
    servers[QUIET].answers = 0; // nobody asks it: nothing is to be compared
    assert_int_equal(looks_back(&analysis, *state, 43), 1);
    interval_analysis_free(&analysis);
}

// The records of one are missing for good, another stood still for long.
static void in_vain_for_one_is_not_for_all(void **state)
{
    struct interval_analysis analysis = {.looked_at = 40};
    servers[BUSY] =
        (struct behaviour){.answers = 2000, .without_arrival = 50, .came_before = SEGMENTS};
    servers[QUIET] = (struct behaviour){.answers = 2000};
    other_way_round = false;
    assert_int_equal(looks_back(&analysis, *state, 41), 40);
    assert_int_equal(looks_back(&analysis, *state, 42), 1);
    servers[QUIET].without_arrival = 3;
    servers[QUIET].came_before = 3;
    other_way_round = true;
    assert_int_equal(looks_back(&analysis, *state, 43), 42);
    servers[QUIET].without_arrival = 0;
    assert_int_equal(looks_back(&analysis, *state, 44), 1);
    interval_analysis_free(&analysis);
    other_way_round = false;
}

// What goes while it is looked at can be saved until the next interval is looked at.
static void what_is_looked_at_stays(void **state)
{
    struct interval_analysis analysis = {.looked_at = 50};
    char path[100];
    servers[BUSY] = servers[QUIET] = (struct behaviour){.answers = 2000};
    makes_room = true;
    assert_int_equal(looks_back(&analysis, *state, 51), 1);
    makes_room = false;
    held_segment_path(*state, "events", 50, path, sizeof path);
    assert_int_equal(access(path, R_OK), 0);
    assert_int_equal(looks_back(&analysis, *state, 52), 1);
    held_segment_path(*state, "events", 50, path, sizeof path);
    assert_int_equal(access(path, R_OK), -1);
    held_segment_path(*state, "events", 51, path, sizeof path);
    assert_non_null(strstr(path, "held-"));
    held_segment_path(*state, "events", 53, path, sizeof path);
    assert_non_null(strstr(path, "events-"));
    interval_analysis_free(&analysis);
}

// A segment before which nothing was recorded: what is missing of it is in no other.
static void one_after_a_rest_is_looked_at_by_itself(void **state)
{
    struct interval_analysis analysis = {.looked_at = 40};
    servers[BUSY] = (struct behaviour){.answers = 2000, .without_arrival = 1};
    servers[QUIET] = (struct behaviour){.answers = 2};
    alone = true;
    assert_int_equal(looks_back(&analysis, *state, 41), 0);
    assert_int_equal(analysis.given_up, 0);
    assert_int_equal(looks_back(&analysis, *state, 44), 0);
    assert_int_equal(analysis.given_up, 2);
    alone = false;
    assert_true(looks_back(&analysis, *state, 45) > 1);
    interval_analysis_free(&analysis);
}

// From which segment on messages are looked at, with a few before; 0: all that are opened.
static unsigned messages_from(struct interval_analysis *analysis, const char *folder,
                              unsigned segment)
{
    struct run_request request = {.run_dir = folder};
    struct run_analysis run;
    struct error err;
    analyses = 0;
    assert_int_equal(interval_analyze(analysis, segment, alone, &request, &run, &err), 0);
    run_analysis_free(&run);
    return request.segments.messages_from;
}

// Whoever is asked much needs no messages of before the interval, but for the last moments.
static void of_many_requests_those_of_before_are_left_out(void **state)
{
    struct interval_analysis analysis = {.looked_at = 40};
    servers[BUSY] = (struct behaviour){.answers = 2000};
    servers[QUIET] = (struct behaviour){.answers = 0};
    assert_int_equal(messages_from(&analysis, *state, 41), 0); // nothing is known of them yet
    assert_int_equal(messages_from(&analysis, *state, 42), 42);
    assert_int_equal(messages_from(&analysis, *state, 44), 43); // two at once
    assert_int_equal(analyses, 1);
    servers[QUIET].answers = 400;
    assert_int_equal(messages_from(&analysis, *state, 45), 0); // and all once more
    assert_int_equal(analyses, 2);
    servers[QUIET].answers = 0;
    assert_int_equal(messages_from(&analysis, *state, 46), 0);
    assert_int_equal(messages_from(&analysis, *state, 47), 47);
    latency_ns = 150e6;
    assert_int_equal(messages_from(&analysis, *state, 48), 0);
    latency_ns = 0;
    assert_int_equal(messages_from(&analysis, *state, 49), 0);
    servers[BUSY].without_arrival = 1;
    servers[BUSY].came_before = 1;
    assert_int_equal(messages_from(&analysis, *state, 50), 0);
    interval_analysis_free(&analysis);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_busy_do_not_speak_for_the_quiet),
        cmocka_unit_test(in_vain_for_one_is_not_for_all),
        cmocka_unit_test(what_is_looked_at_stays),
        cmocka_unit_test(one_after_a_rest_is_looked_at_by_itself),
        cmocka_unit_test(of_many_requests_those_of_before_are_left_out),
    };
    return cmocka_run_group_tests(tests, make_segments, remove_segments);
}
