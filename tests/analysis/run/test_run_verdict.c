// SPDX-License-Identifier: MIT
//
// The verdict's words about causes: what stands out, what does not, and what stands apart.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "analysis/run/run_holders.h"
#include "analysis/run/run_verdict.h"
#include "base/command_words.h"

enum { MESSAGES = 10 };

// The verdict of ten messages that took 200 us longer than usual.
static void judge(struct run_analysis *run, struct cause *causes, size_t count, double usual_ns)
{
    struct diagnosed_message messages[MESSAGES];
    struct diagnosis diagnosis = {
        .slice = {.low = 0.99, .high = 1},
        .reference_latency_ns = usual_ns,
        .messages = {.items = messages, .count = MESSAGES},
        .causes = {.items = causes, .count = count},
    };
    for (size_t i = 0; i < MESSAGES; i++)
        messages[i] = (struct diagnosed_message){.lifetime = i, .deviation_ns = 200e3};
    run->findings.diagnoses.items = &diagnosis;
    run->findings.diagnoses.count = 1;
    run_verdict(run);
    run->findings.diagnoses.items = NULL;
    run->findings.diagnoses.count = 0;
}

// Of the usual 400 us; each cause adds so much to each.
static void expect(const char *wanted, double yes_ns, double wake_up_ns, double stolen_ns)
{
    struct run_analysis run = {0};
    struct cause causes[] = {
        {.name = "yes", .role = ROLE_A, .explains = true, .total_ns = yes_ns * MESSAGES},
        {.name = "wake-up latency",
         .role = ROLE_A,
         .explains = true,
         .total_ns = wake_up_ns * MESSAGES},
        {.name = "virtual CPU taken away",
         .role = ROLE_A,
         .apart = true,
         .total_ns = stolen_ns * MESSAGES},
    };
    judge(&run, causes, sizeof causes / sizeof *causes, 400e3);
    print_message("%s\n", run.findings.verdict);
    assert_non_null(strstr(run.findings.verdict, wanted));
}

static void a_cause_stands_out_or_not(void **state)
{
    (void)state;
    expect(
        "yes (A) explains 75 %, wake-up latency (A) 10 %; apart from that, virtual CPU taken away "
        "(A) 15 %",
        150e3, 20e3, 30e3);
    expect("Nothing stands out: on average yes (A) adds 30.0 us, wake-up latency (A) adds 20.0 us; "
           "apart from that, virtual CPU taken away (A) 75 %",
           30e3, 20e3, 150e3);
}

// However much longer than usual that is: 20 us, and not less.
static void what_any_kernel_does_is_small(void **state)
{
    (void)state;
    struct run_analysis run = {0};
    struct cause cause = {
        .name = "yes", .role = ROLE_A, .explains = true, .total_ns = 19.9e3 * MESSAGES};
    judge(&run, &cause, 1, 10e3);
    assert_null(strstr(run.findings.verdict, "explains"));
    cause.total_ns = 20e3 * MESSAGES;
    judge(&run, &cause, 1, 10e3);
    assert_non_null(strstr(run.findings.verdict, "yes (A) explains 10 %"));
}

// Whoever reads a verdict may do something: about the first cause that stands out, and about none
// where nothing does.
static void what_helps_is_said(void **state)
{
    (void)state;
    struct run_analysis run = {0};
    struct cause cause = {.name = "yes",
                          .role = ROLE_A,
                          .category = "other programs",
                          .explains = true,
                          .total_ns = 150e3 * MESSAGES};
    judge(&run, &cause, 1, 400e3);
    assert_non_null(strstr(run.findings.verdict, "Against yes: keep other programs off the "
                                                 "server's cores (cpuset, taskset), or give it "
                                                 "more of them. "));
    cause.total_ns = 10e3 * MESSAGES; // nothing stands out
    judge(&run, &cause, 1, 400e3);
    assert_null(strstr(run.findings.verdict, "Against"));
    cause.total_ns = 150e3 * MESSAGES;
    strcpy(cause.category, "no remedy is known for this");
    judge(&run, &cause, 1, 400e3);
    assert_null(strstr(run.findings.verdict, "Against"));
}

// One program may be to blame; of several it is said that the machine was busy with them, also
// where none stands out by itself.
static void a_busy_machine_is_said_to_be_so(void **state)
{
    (void)state;
    static const char *const names[] = {"cc1", "bash", "sed", "tail"};
    struct run_analysis run = {0};
    struct cause causes[4] = {0};
    for (size_t i = 0; i < 4; i++) {
        snprintf(causes[i].name, sizeof causes[i].name, "%s", names[i]);
        snprintf(causes[i].category, sizeof causes[i].category, "other programs");
        causes[i].role = ROLE_A;
        causes[i].explains = true;
        causes[i].total_ns = 40e3 * MESSAGES;
    }
    judge(&run, causes, 4, 100e3);
    assert_non_null(strstr(run.findings.verdict,
                           "cc1 (A) explains 20 %, bash (A) 20 %, sed (A) 20 %; in all, other "
                           "programs had the server's cores for 80 %: the machine was busy. "));
    judge(&run, causes, 4, 400e3);
    assert_non_null(strstr(run.findings.verdict, "Nothing stands out: "));
    assert_non_null(strstr(run.findings.verdict, "for 80 %: the machine was busy"));
    causes[0].total_ns = 180e3 * MESSAGES;
    judge(&run, causes, 2, 100e3);
    assert_null(strstr(run.findings.verdict, "busy"));
    judge(&run, causes + 1, 1, 100e3);
    assert_null(strstr(run.findings.verdict, "busy"));
    strcpy(causes[1].category, "scheduling");
    judge(&run, causes + 1, 2, 100e3);
    assert_null(strstr(run.findings.verdict, "busy"));
}

// Whoever has a lock may do one thing and another meanwhile: that is one cause, and what it did is
// said beneath, also where no piece stands out by itself. Where one is nearly all, it is that.
static void one_holder_is_one_cause(void **state)
{
    (void)state;
    static const char *const names[] = {
        "yes", "lock wait (futex): held by w-2, behind cc1", "lock wait (futex): held by w-2",
        "lock wait (futex): held by w-2, sleeping (timer)", "lock wait (futex): held by w-20"};
    static const double each[] = {60e3, 50e3, 30e3, 20e3, 15e3};
    struct run_analysis run = {0};
    struct cause causes[5] = {0};
    for (size_t i = 0; i < 5; i++) {
        snprintf(causes[i].name, sizeof causes[i].name, "%s", names[i]);
        snprintf(causes[i].category, sizeof causes[i].category, i ? "locking" : "other programs");
        causes[i].role = ROLE_A;
        causes[i].explains = true;
        causes[i].total_ns = each[i] * MESSAGES;
    }
    judge(&run, causes, 5, 100e3);
    assert_non_null(strstr(run.findings.verdict,
                           "lock wait (futex): held by w-2 (A) explains 50 % (behind cc1 25 %, "
                           "running 15 %, sleeping (timer) 10 %), yes (A) 30 %, lock wait (futex): "
                           "held by w-20 (A) 8 %. "));
    assert_non_null(strstr(run.findings.verdict, "Against lock wait (futex): held by w-2: "));
    for (size_t i = 1; i < 4; i++)
        causes[i].total_ns = 17e3 * MESSAGES;
    judge(&run, causes + 1, 3, 100e3);
    assert_null(strstr(run.findings.verdict, "Nothing stands out"));
    causes[1].total_ns = 160e3 * MESSAGES;
    judge(&run, causes + 1, 3, 100e3);
    assert_non_null(strstr(run.findings.verdict, "held by w-2, behind cc1 (A) explains 80 %. "));
}

// So it is whatever the words for whom it waits; what tells one wait from another is no piece.
static void holders_without_a_colon(void **state)
{
    (void)state;
    static const struct {
        const char *wait, *piece;
    } rows[] = {
        {"stop-the-world pause (VM Thread)", ", behind cc1"},
        {"waiting for python3 (another process)", ", sleeping (timer)"},
        {"waiting for the interpreter lock (GIL): held by python3", ", behind yes"},
        {"waiting for a packet from 127.0.0.1:53, timed out", ""},
        {"waiting for python3 (127.0.0.1:8082), in vain", ""},
        {"blocked in write to a.log", ", disk vda: write"},
        {"blocked in openat: python3 (another process)", ", sleeping (timer)"},
        {"blocked in recv from 127.0.0.1:53, timed out", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char name[CAUSE_NAME_BYTES];
        snprintf(name, sizeof name, "%s%s", rows[i].wait, rows[i].piece);
        assert_int_equal(run_holder_length(name), strlen(rows[i].wait));
    }
}

// What makes the load inconclusive makes the run so, first of all.
static void a_load_in_doubt_is_the_headline(void **state)
{
    (void)state;
    struct cause cause = {
        .name = "yes", .role = ROLE_A, .explains = true, .total_ns = 150e3 * MESSAGES};
    struct run_analysis run = {.evidence.load = json_pack("{s:s, s:[s]}", "verdict", "n/a",
                                                          "reasons", "this client ran out of CPU")};
    judge(&run, &cause, 1, 400e3);
    const char begin[] = "Inconclusive: this client ran out of CPU. The slowest 1 %";
    assert_memory_equal(run.findings.verdict, begin, sizeof begin - 1);
    assert_true(run.findings.verdict_available);
    assert_false(run_is_conclusive(&run));
    json_object_set_new(run.evidence.load, "verdict", json_string("ok"));
    judge(&run, &cause, 1, 400e3);
    assert_null(strstr(run.findings.verdict, "Inconclusive"));
    assert_true(run_is_conclusive(&run));
    json_decref(run.evidence.load);
}

// Whose request the slow ones were behind stands in the verdict, and when most of it is nobody's.
static void who_held_up_is_named(void **state)
{
    (void)state;
    struct diagnosed_message messages[MESSAGES];
    struct cause cause = {.name = "head-of-line blocking",
                          .role = ROLE_A,
                          .explains = true,
                          .total_ns = 1e6 * MESSAGES};
    struct culprit culprit = {.foreign = true,
                              .heavy = true,
                              .connection = 7,
                              .client = 7,
                              .services = 2,
                              .messages = MESSAGES,
                              .total_ns = 9e5 * MESSAGES,
                              .each_ns = 2e6};
    struct diagnosis diagnosis = {
        .slice = {.low = 0.99, .high = 1},
        .reference_latency_ns = 40000,
        .messages = {.items = messages, .count = MESSAGES},
        .causes = {.items = &cause, .count = 1},
        .views = {.available = true,
                  .culprits = {.items = &culprit, .count = 1},
                  .blocked_ns = 9e5 * MESSAGES},
    };
    struct run_analysis run = {.findings = {.diagnoses = {.items = &diagnosis, .count = 1}}};
    for (size_t i = 0; i < MESSAGES; i++)
        messages[i] = (struct diagnosed_message){.lifetime = i, .deviation_ns = 1e6};
    run_verdict(&run);
    assert_non_null(strstr(run.findings.verdict,
                           "connection 7 (not of this load) (2.00 ms each, 2 of them, far longer "
                           "than usual) held up 10 of these requests, for 9.00 ms in all."));
    culprit.command = command_word_of("LRANGE a 0 -1\r\n", 15);
    run_verdict(&run);
    assert_non_null(strstr(run.findings.verdict,
                           ". lrange of connection 7 (not of this load) (2.00 ms each, "));
    assert_null(strstr(run.findings.verdict, "is known to be whose"));
    culprit.total_ns = diagnosis.views.blocked_ns = 1e5 * MESSAGES;
    run_verdict(&run);
    assert_null(strstr(run.findings.verdict, "held up"));
    assert_null(strstr(run.findings.verdict, "slept"));
    assert_non_null(strstr(run.findings.verdict, "Of 10.0 ms of head-of-line blocking only 1.00 ms "
                                                 "is known to be whose."));
    strcpy(cause.category, "head-of-line blocking");
    cause.part_count = 1;
    cause.parts[0] = (struct cause_part){"page faults", "page faults", 6e5 * MESSAGES};
    strcpy(cause.parts_words, "page faults 60 %");
    run_verdict(&run);
    assert_non_null(strstr(run.findings.verdict,
                           "head-of-line blocking (A) explains 100 % (of it page faults 60 %). "));
    assert_non_null(strstr(run.findings.verdict, "Against its page faults: give it more memory"));
    culprit.slept_ns = 8e5 * MESSAGES;
    run_verdict(&run);
    assert_non_null(strstr(run.findings.verdict,
                           "For 8.00 ms in all the thread slept in lrange of connection 7 (not of "
                           "this load), for which 10 of these requests had to wait."));
}

// Every connection is full: what the replies then took is said as well, and only then.
static void what_fills_connections_is_said(void **state)
{
    (void)state;
    struct ordinary_part parts[] = {
        {.name = "every connection full",
         .category = "full connections",
         .role = ROLE_CLIENT,
         .mean_ns = 7e8,
         .concerns = true},
        {.name = "client queue", .category = "client", .role = ROLE_CLIENT, .mean_ns = 2e7},
        {.name = "waiting for a timer",
         .category = "timers",
         .role = ROLE_A,
         .mean_ns = 4e7,
         .remedy = "shorter sleeps"},
        {.name = "application time", .category = "application", .role = ROLE_A, .mean_ns = 2e6}};
    struct diagnosed_message message = {.deviation_ns = 1e6};
    struct diagnosis diagnosis = {.slice = {.low = 0.99, .high = 1},
                                  .reference_latency_ns = 762e6,
                                  .messages = {.items = &message, .count = 1},
                                  .ordinary = {.items = parts, .count = 4}};
    struct run_analysis run = {.findings = {.diagnoses = {.items = &diagnosis, .count = 1}}};
    run_verdict(&run);
    assert_non_null(
        strstr(run.findings.verdict,
               "of the 762 ms of an ordinary request, "
               "700 ms are every connection full (client). Once it is sent, it takes "
               "42.0 ms, of which 40.0 ms are waiting for a timer (A): shorter sleeps. "));
    // Also where none of the slow ones could be followed.
    diagnosis.not_available = true;
    strcpy(diagnosis.reason, "no request of the slice could be followed (9 were never answered)");
    run_verdict(&run);
    assert_non_null(strstr(run.findings.verdict, "9 were never answered). Slow for everyone: of"));
    diagnosis.not_available = false;
    strcpy(parts[0].category, "client");
    run_verdict(&run);
    assert_null(strstr(run.findings.verdict, "Once it is sent"));
    // No part is more than the whole: parts are means of several, of which the median may be less.
    diagnosis.reference_latency_ns = 690e6;
    run_verdict(&run);
    assert_non_null(strstr(run.findings.verdict,
                           "of the 762 ms of an ordinary request in the mean, 700 ms are"));
}

// 16 of 20 us are the client's own: it is named first, and the server only then.
static void a_late_client_comes_first(void **state)
{
    (void)state;
    struct run_analysis run = {0};
    struct cause causes[] = {
        {.name = "yes",
         .role = ROLE_CLIENT,
         .category = "client's cores",
         .explains = true,
         .total_ns = 90e3 * MESSAGES},
        {.name = "client queue",
         .role = ROLE_CLIENT,
         .category = "client",
         .explains = true,
         .total_ns = 70e3 * MESSAGES},
        {.name = "head-of-line blocking",
         .role = ROLE_A,
         .category = "head-of-line blocking",
         .explains = true,
         .total_ns = 30e3 * MESSAGES},
    };
    judge(&run, causes, sizeof causes / sizeof *causes, 100e3);
    const char begin[] = "The client was late, not the server: keep other programs";
    assert_memory_equal(run.findings.verdict, begin, sizeof begin - 1);
    assert_non_null(
        strstr(run.findings.verdict,
               "yes (client) explains 45 %, client queue (client) 35 %; second, what is "
               "not the client's: head-of-line blocking (A) explains 15 %"));
    // What waits for a full connection waits for the server.
    strcpy(causes[0].category, "full connections");
    judge(&run, causes, sizeof causes / sizeof *causes, 100e3);
    assert_null(strstr(run.findings.verdict, "The client was late"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_busy_machine_is_said_to_be_so),
        cmocka_unit_test(one_holder_is_one_cause),
        cmocka_unit_test(holders_without_a_colon),
        cmocka_unit_test(a_load_in_doubt_is_the_headline),
        cmocka_unit_test(what_helps_is_said),
        cmocka_unit_test(a_cause_stands_out_or_not),
        cmocka_unit_test(what_any_kernel_does_is_small),
        cmocka_unit_test(what_fills_connections_is_said),
        cmocka_unit_test(who_held_up_is_named),
        cmocka_unit_test(a_late_client_comes_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
