// SPDX-License-Identifier: MIT
//
// Of a part of a capture only what the kernel counted meanwhile is told.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "analysis/run/input/run_counted.h"

// Three segments, the first of which is gone; they ended at 100, 200 and 300, the capture later.
static json_t *captured(void)
{
    json_t *capture = json_pack(
        "{s:{s:i, s:i}, s:{s:i, s:i}, s:[{s:s, s:i, s:f}], s:{s:{s:i}},"
        " s:{s:[{s:i, s:{s:i}, s:i, s:{}, s:[]},"
        "       {s:i, s:{s:i}, s:i, s:{s:i}, s:[{s:s, s:i, s:f}]},"
        "       {s:i, s:{s:i, s:i}, s:i, s:{s:i}, s:[{s:s, s:i, s:f}]}]}}",
        "network", "RetransSegs", 50, "ListenOverflows", 4, "firewall", "rules", 7, "untracked", 9,
        "quotas", "group", "/web", "times", 8, "throttled_ms", 80.0, "events", "segments_dropped",
        "NETFILTER_DROP", 3, "segments", "counted", "until_ns", 100, "network", "RetransSegs", 10,
        "untracked", 0, "segments_dropped", "quotas", "until_ns", 200, "network", "RetransSegs", 30,
        "untracked", 5, "segments_dropped", "NETFILTER_DROP", 2, "quotas", "group", "/web", "times",
        2, "throttled_ms", 20.0, "until_ns", 300, "network", "RetransSegs", 30, "ListenOverflows",
        1, "untracked", 5, "segments_dropped", "NETFILTER_DROP", 2, "quotas", "group", "/web",
        "times", 6, "throttled_ms", 60.0);
    assert_non_null(capture);
    return capture;
}

static void expect(int64_t from_ns, int64_t until_ns, const char *wanted)
{
    json_t *capture = captured(), *want = json_loads(wanted, 0, NULL);
    assert_non_null(want);
    run_counted_within(capture, from_ns, until_ns);
    json_object_del(capture, "segments");
    if (!json_equal(capture, want))
        fail_msg("%lld to %lld: %s", (long long)from_ns, (long long)until_ns,
                 json_dumps(capture, JSON_COMPACT));
    json_decref(capture);
    json_decref(want);
}

static void a_part_has_what_moved_meanwhile(void **state)
{
    (void)state;
    expect(100, 200,
           "{\"network\": {\"RetransSegs\": 20}, \"firewall\": {\"rules\": 7, \"untracked\": 5},"
           " \"quotas\": [{\"group\": \"/web\", \"times\": 2, \"throttled_ms\": 20.0}],"
           " \"events\": {\"segments_dropped\": {\"NETFILTER_DROP\": 2}}}");
    // What does not begin or end with a segment has what was counted in all that it touches.
    expect(250, 290,
           "{\"network\": {\"ListenOverflows\": 1}, \"firewall\": {\"rules\": 7, \"untracked\": 0},"
           " \"quotas\": [{\"group\": \"/web\", \"times\": 4, \"throttled_ms\": 40.0}],"
           " \"events\": {\"segments_dropped\": {}}}");
    expect(210, 0,
           "{\"network\": {\"RetransSegs\": 20, \"ListenOverflows\": 4},"
           " \"firewall\": {\"rules\": 7, \"untracked\": 4},"
           " \"quotas\": [{\"group\": \"/web\", \"times\": 6, \"throttled_ms\": 60.0}],"
           " \"events\": {\"segments_dropped\": {\"NETFILTER_DROP\": 1}}}");
}

static void what_was_before_the_first_that_is_kept_is_of_no_part(void **state)
{
    (void)state;
    expect(50, 100,
           "{\"network\": {}, \"firewall\": {\"rules\": 7, \"untracked\": 0}, \"quotas\": [],"
           " \"events\": {\"segments_dropped\": {}}}");
}

static void the_whole_and_a_capture_that_does_not_say_stay(void **state)
{
    (void)state;
    json_t *capture = captured(), *whole = captured();
    run_counted_within(capture, 0, 0);
    assert_true(json_equal(capture, whole));
    json_object_del(json_object_get(capture, "segments"), "counted");
    json_object_del(json_object_get(whole, "segments"), "counted");
    run_counted_within(capture, 100, 200);
    assert_true(json_equal(capture, whole));
    run_counted_within(NULL, 100, 200);
    json_decref(capture);
    json_decref(whole);
}

// Whatever stands in the file.
static void other_types_are_survived(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{\"segments\": {\"counted\": 3}, \"network\": []}",
        "{\"segments\": {\"counted\": [1, \"x\", {}]}, \"network\": 5, \"quotas\": {}}",
        "{\"segments\": {\"counted\": [{\"until_ns\": 0}, {\"until_ns\": \"y\", \"network\": "
        "[1]}]},"
        " \"quotas\": [1, null, {\"group\": 3}], \"events\": [], \"firewall\": \"none\"}",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        json_t *capture = json_loads(texts[i], 0, NULL);
        assert_non_null(capture);
        run_counted_within(capture, 1, 2);
        assert_true(json_is_object(capture));
        json_decref(capture);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_part_has_what_moved_meanwhile),
        cmocka_unit_test(what_was_before_the_first_that_is_kept_is_of_no_part),
        cmocka_unit_test(the_whole_and_a_capture_that_does_not_say_stay),
        cmocka_unit_test(other_types_are_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
